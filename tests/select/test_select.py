"""A selector all the way: made, certified with, verified, replayed, attacked, shown."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from tests.cli.command import run as run_unicr
from unicr import noise
from unicr.classifier import MLP, Selective, load_classifier
from unicr.data import load_dataset
from unicr.errors import CertifyError, ModelError, RunError, UnicrError
from unicr.guard import policy
from unicr.lab.attack import Settings, attack_run, defences, make
from unicr.lab.train import Examples, SelectorTraining, train_selector, write_selector
from unicr.lab.train.internal import estimate_worth, lost_radius, train_network
from unicr.norms import l2, linf
from unicr.progress import listen
from unicr.runs import (
    NO_TRUST,
    Job,
    Run,
    Spec,
    Trusted,
    certify_run,
    read_commitment,
    replay,
    table,
    verify,
)
from unicr.select import (
    SelectiveClassifier,
    Selector,
    file_of,
    load_selector,
)
from unicr.smoothing import Plan, Transcript, recompute
from unicr.smoothing.procedures import MemberVotes, SelectiveCertificate

MODELS = ("builtin:mnist-mlp-0.5", "builtin:mnist-mlp-1.0")
CHOICES = (noise.gaussian(sigma=0.5), noise.gaussian(sigma=1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A selector with weights drawn at random: nothing that is certified may depend on its wit."""
    torch.manual_seed(1)
    place = tmp_path_factory.mktemp("selector")
    save_file(MLP((784, 16, 2)).state_dict(), place / "own.safetensors")
    own = {"spec": "builtin:mlp", "weights": place / "own.safetensors"}
    settings = Selector(noise.gaussian(sigma=1), CHOICES)
    write_selector(place, settings, [own, *({"spec": spec} for spec in MODELS)])
    return place


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run")
    certify_run(job_of(folder), out).close()
    return out


def job_of(folder: Path, selector: Selector | None = None) -> Job:
    spec, selector = str(file_of(folder)), selector or load_selector(folder)
    return Job(
        classifier=load_classifier(spec),
        data=load_dataset("builtin:mnist"),
        noise=selector.noise,
        norms=(l2, linf),
        plan=selector.fit(Plan(n0=50, n=400)),
        seed=0,
        limit=8,
        data_spec="builtin:mnist",
        model_arguments={"spec": spec},
    )


def test_a_run_verifies_and_replays(run: Path) -> None:
    with Run(run) as opened:
        spec = opened.spec
        assert list(verify(opened)) == []
        rows = list(opened.rows())
        assert sum(row.status == "certified" for row in rows) >= 5
        assert {row.certificate.noise for row in rows if row.certificate} <= {
            law.text for law in CHOICES
        }
        model = NO_TRUST.open_model(spec)
        again = list(replay(opened, model, NO_TRUST.open_data(spec), 3))
        assert [text for _, text in again] == [None] * 3
        assert spec.scope == "every input"
        assert len(table(opened)) == 8


def test_a_selector_is_committed_to_with_all_of_its_parts(folder: Path, tmp_path: Path) -> None:
    """Another weight of the selector itself is another commitment."""
    words = ["--selector", folder, "--data", "builtin:mnist", "--norm", "2", "--n", "200", "--max",
             "2", "--out", tmp_path / "run"]  # fmt: skip
    nonce = ["--nonce", "7d" * 32]
    assert run_unicr("commit", *words).code == 0
    found = read_commitment(tmp_path / "run")
    assert found is not None
    changed = Path(shutil.copytree(folder, tmp_path / "changed"))
    torch.manual_seed(2)
    own = json.loads(file_of(changed).read_text())["models"][0]["weights"]
    save_file(MLP((784, 16, 2)).state_dict(), changed / own)
    other = [changed if one is folder else one for one in words]
    run_unicr("certify", *other, *nonce).check_refused("commits to")
    assert run_unicr("certify", *words, *nonce).code == 0
    told = ["--commitment", found[0], *nonce]
    assert run_unicr("verify", tmp_path / "run", "--replay", "2", *told).code == 0


def test_radii_are_those_of_the_weakest_part(run: Path) -> None:
    """The certificate from its own counts, by hand: the least of all bounds that back it."""
    with Run(run) as opened:
        found = [row.certificate for row in opened.rows()]
        plan = opened.spec.plan
    from scipy import special, stats

    sigmas = (1.0, 0.5, 1.0)
    for one in found:
        assert isinstance(one, SelectiveCertificate)
        if one.abstained:
            continue
        main = 1 + [law.text for law in CHOICES].index(str(one.noise))
        k = one.counts[one.predict]
        low = stats.beta.ppf(0.9 * plan.alpha, k, plan.n - k + 1)
        most = sigmas[main] * special.ndtri(low)
        assert one.radius("2") <= most * (1 + 1e-9)
        assert one.radius("inf") == pytest.approx(one.radius("2") / 28)
        texts = {f"member({f'index={m}' if m else ''})" for m in (0, 3 - main)}
        assert {e.counted for e in one.transcript if e.purpose == "support"} <= texts


def test_workers_and_resume_change_nothing(folder: Path, run: Path, tmp_path: Path) -> None:
    some = replace(job_of(folder), limit=1, workers=1)
    certify_run(some, tmp_path).close()
    job = replace(job_of(folder), limit=2)
    with certify_run(job, tmp_path, resume=True) as opened, Run(run) as whole:
        mine = [row.certificate for row in opened.rows()]
        assert mine == [row.certificate for row in whole.rows()][:2]
    other = replace(job_of(folder, replace(load_selector(folder), share=0.2)), limit=2)
    with pytest.raises(RunError, match=r"plan: .*'share': 0.1.* there, .*'share': 0.2.* now"):
        certify_run(other, tmp_path, resume=True)


@pytest.mark.parametrize("field", ["votes", "radii", "predict", "noise", "among"])
def test_a_changed_certificate_is_found(run: Path, tmp_path: Path, field: str) -> None:
    with Run(run) as opened, Run(tmp_path, create=True) as forged:
        forged.set_spec(opened.spec)
        rows = list(opened.rows())
        row = next(row for row in rows if row.status == "certified")
        one = row.certificate
        assert isinstance(one, SelectiveCertificate)
        *before, last = one.transcript
        rolled = replace(last, counts=tuple(int(c) for c in np.roll(last.counts, 1)))
        other = next(law.text for law in CHOICES if law.text != one.noise)
        longer = tuple(replace(r, radius=r.radius * 1.1) for r in one.radii)
        changed = {
            "votes": replace(one, transcript=Transcript((*before, rolled))),
            "among": replace(one, among=(0, 1) if one.among != (0, 1) else (0, 0)),
            "radii": replace(one, radii=longer),
            "predict": replace(one, predict=(one.predict + 1) % 10),
            "noise": replace(one, noise=other),
        }[field]
        for each in rows:
            forged.add(replace(row, certificate=changed) if each.idx == row.idx else each)
        forged.set_seal()
        found = list(verify(forged))
    assert [problem.idx for problem in found] == [row.idx]


def test_votes_that_nobody_asked_for(run: Path, folder: Path) -> None:
    with Run(run) as opened:
        spec, row = opened.spec, next(opened.rows())
    one = row.certificate
    assert isinstance(one, SelectiveCertificate)
    parts, curves = one.transcript.exchanges, spec.curves
    for changed, words in (
        ((*parts, parts[-1]), "was not asked for"),
        (parts[:-1], "is missing"),
        ((parts[0], parts[0], *parts[1:]), "the votes before it ask"),
    ):
        steps = spec.plan.procedure.steps(spec.plan, noise.gaussian(sigma=1), curves)
        with pytest.raises(CertifyError, match=words):
            recompute(steps, Transcript(changed))


def test_attacks_on_selector_and_classifier_together(run: Path) -> None:
    with Run(run) as opened:
        spec = opened.spec
    model = NO_TRUST.open_model(spec)
    settings = Settings(samples=8, votes=100)
    outcomes, _ = attack_run(
        run,
        model,
        NO_TRUST.open_data(spec),
        [make("apgd", 0.2), make("gaussian", 0.1)],
        settings=settings,
        norms=["2"],
        factors=[1.0, 4.0],
        limit=3,
        model_arguments={"spec": spec.model},
    )
    found = {(one.attack, one.factor): one for one in defences(outcomes)}
    assert found["apgd", 1.0].changed == found["gaussian", 1.0].changed == 0
    assert found["apgd", 4.0].held < found["apgd", 1.0].held


def test_the_predictor_depends_on_the_input_alone(folder: Path) -> None:
    predictor = SelectiveClassifier.load(folder)
    data = load_dataset("builtin:mnist")
    inputs = [data[i][0] for i in range(4)]
    first = [predictor.predict(x, n=300) for x in inputs]
    assert first == [predictor.predict(x, n=300) for x in reversed(inputs)][::-1]
    assert sum(a == data[i][1] for i, a in enumerate(first)) >= 3
    one = predictor.certify(inputs[0], [2, "inf"], n=500)
    assert one.predict == data[0][1]
    assert 0 < one.radius("inf") < one.radius(2)


def test_three_choices_and_an_interval() -> None:
    """With the selector between the first two, they back each other up; the third is excluded."""
    laws = [noise.gaussian(sigma=s) for s in (0.5, 0.7, 1.0)]

    def select(batch: torch.Tensor) -> torch.Tensor:
        return (batch[:, 0] > 0).long() + (batch[:, 0] > 3).long()

    def classify(batch: torch.Tensor) -> torch.Tensor:
        return (batch[:, 1] > -1).long()

    predictor = SelectiveClassifier(select, noise.gaussian(sigma=1), classify, laws)
    found = predictor.certify(torch.tensor([0.02, 0.0]), 2, n=3000)
    assert found.among == (0, 1)
    assert repr(predictor).startswith("SelectiveClassifier(")
    assert predictor._repr_html_().count("<tr>") == 1 + 1 + 3  # head, selector, choices
    assert found.predict == 1
    assert 0.8 < found.radius() < 1
    assert predictor.predict(torch.tensor([0.02, 0.0])) == 1
    alone = predictor.certify(torch.tensor([1.5, 0.0]), 2, n=3000)
    # 1.5 lies as far from the first choice as from the third: either may be excluded, or both
    assert alone.among in ((0, 1), (1, 1), (1, 2))


def test_a_selector_learns_which_choice_is_better(tmp_path: Path) -> None:
    """Choice 0 is worth more on the left, choice 1 on the right."""
    net = f"{tmp_path}/net.py:net"
    (tmp_path / "net.py").write_text(NET)
    torch.manual_seed(0)
    inputs = torch.randn(300, 4) * 2
    worths = torch.where(inputs[:, :1] > 0, torch.tensor([0.2, 1.0]), torch.tensor([1.0, 0.2]))
    examples = Examples(inputs, torch.zeros(300, dtype=torch.long), 2)
    law = noise.gaussian(sigma=0.5)
    losses: list[float] = []
    lesson = SelectorTraining(arch=net, epochs=5, lr=3e-2, batch=50, copies=4)
    with listen(lambda *told: losses.append(float(told[3].split()[0]))):
        module = train_network(worths, law, examples, lesson)
    far = inputs[:, 0].abs() > 0.5
    right = module(inputs).argmax(1) == (inputs[:, 0] > 0)
    assert float(right[far].float().mean()) > 0.9
    assert losses[-1] < 0.6 * losses[0]


def test_what_a_choice_is_worth_is_about_its_radius() -> None:
    """A linear model whose radius is known: the distance to its boundary."""
    module = torch.nn.Linear(3, 2)
    with torch.no_grad():
        module.weight[:] = torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
        module.bias.zero_()
    model = load_classifier(module)
    inputs = torch.tensor([[1.0, 0, 0], [0.5, 0, 0], [-0.5, 0, 0]])
    examples = Examples(inputs, torch.tensor([1, 1, 1]), 2)
    lesson = SelectorTraining(votes=20_000)  # a standard error of 0.01: 0.12 is far beyond chance
    by_scores = estimate_worth(model, noise.gaussian(sigma=0.5), l2, examples, lesson)
    votes = load_classifier(lambda batch: (batch[:, 0] > 0).long())
    by_votes = estimate_worth(votes, noise.gaussian(sigma=0.5), l2, examples, lesson)
    for found in (by_scores, by_votes):
        assert found.tolist() == pytest.approx([1.0, 0.5, 0.0], abs=0.12)


def test_losses_are_bounded_by_the_stake_first() -> None:
    scores = torch.tensor([[[0.0, 9.0], [0.0, 10.0]], [[9.0, 0.0], [10.0, 0.0]]])
    right, wrong = lost_radius(scores, torch.tensor([[0.5, 1.0], [0.5, 1.0]]), 1.0).tolist()
    assert right == 0.0
    assert wrong > 0.5


def test_training_makes_a_folder_that_can_be_moved(tmp_path: Path) -> None:
    data = load_dataset("builtin:mnist")
    inputs = torch.stack([data[i][0] for i in range(40)])
    labels = torch.tensor([data[i][1] for i in range(40)])
    models = [({"spec": spec}, load_classifier(spec)) for spec in MODELS]
    settings = Selector(noise.gaussian(sigma=1), CHOICES)
    lesson = SelectorTraining(epochs=1, batch=20, copies=2, votes=10)
    place = tmp_path / "made"
    examples = Examples(inputs, labels, 10)
    worths = train_selector(examples, models, settings, l2, place, lesson)
    assert worths.shape == (40, 2)
    place.rename(tmp_path / "moved")
    found = load_classifier(str(tmp_path / "moved" / "selector.json"))
    assert isinstance(found, Selective)
    assert found.predict(inputs).tolist()
    assert load_selector(tmp_path / "moved") == settings
    with pytest.raises(RunError, match="already contains a selector"):
        train_selector(
            Examples(inputs, labels, 10), models, settings, l2, tmp_path / "moved", lesson
        )


def test_code_is_not_run_without_trust(folder: Path, tmp_path: Path) -> None:
    values = json.loads((folder / "selector.json").read_text())
    (tmp_path / "trap.py").write_text("raise SystemExit('ran')\n")
    values["models"][1] = {"spec": f"{tmp_path}/trap.py:model"}
    (tmp_path / "own.safetensors").write_bytes((folder / "selector.safetensors").read_bytes())
    values["models"][0]["weights"] = "own.safetensors"
    (tmp_path / "selector.json").write_text(json.dumps(values))
    with pytest.raises(ModelError, match="which can run code: if you trust it, name its file"):
        load_classifier(str(tmp_path / "selector.json"))
    values["models"][0]["weights"] = "../elsewhere.safetensors"
    (tmp_path / "selector.json").write_text(json.dumps(values))
    with pytest.raises(ModelError, match="outside its folder"):
        load_classifier(str(tmp_path / "selector.json"))
    values = job_of(folder).spec.to_dict()
    values["plan"]["procedure"]["choices"][0] = f"{tmp_path}/trap.py:law"
    spec = Spec.from_dict(values)
    with pytest.raises(RunError, match="not executed unless you trust it"):
        Trusted().open(spec)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"noise": 1, "choices": [], "models": []}', '{"noise": "x", "models": 3}'],
)
def test_files_that_are_no_selectors(tmp_path: Path, text: str) -> None:
    (tmp_path / "selector.json").write_text(text)
    with pytest.raises(ModelError, match="cannot read the selector"):
        load_classifier(str(tmp_path / "selector.json"))


def test_settings_that_make_no_sense(folder: Path, run: Path, tmp_path: Path) -> None:
    law = noise.gaussian(sigma=1)
    for bad in (
        lambda: Selector(law, (law,)),
        lambda: Selector(law, CHOICES, share=1.0),
        lambda: Selector(law, CHOICES, votes=0),
        lambda: Selector.read({"noise": "gaussian(sigma=1)"}),
        lambda: Selector(law, CHOICES).fit(Plan.from_dict(UNION)),
        lambda: SelectiveClassifier(len, law, [len], CHOICES),
        lambda: write_selector(tmp_path, Selector(law, CHOICES), [{"spec": "a"}]),
        lambda: SelectorTraining(copies=1),
        lambda: SelectorTraining(lr=0.0),
        lambda: certify_run(
            replace(job_of(folder), classifier=load_classifier(MODELS[0])), tmp_path
        ),
        lambda: certify_run(replace(job_of(folder), noise=CHOICES[0]), tmp_path),
    ):
        with pytest.raises(UnicrError):
            bad()
    with Run(run) as opened, pytest.raises(RunError, match="need no guard"):
        policy(opened.spec, load_classifier(str(file_of(folder))), 1)
    with pytest.raises(ModelError, match="at least two"):
        Selective(load_classifier(MODELS[0]), [load_classifier(MODELS[0])])
    with pytest.raises(CertifyError, match="no classifier number"):
        MemberVotes(1).labels(load_classifier(MODELS[0]), torch.zeros(1, 784))


NET = """
import torch


def net():
    return torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
"""
UNION = {
    "n0": 1,
    "n": 1,
    "alpha": 0.1,
    "rule": {"name": "union", "candidates": 2},
    "procedure": {"name": "two_steps"},
}


def test_every_command_follows_a_run_with_a_selector(run: Path, tmp_path: Path) -> None:
    """score, export, report and attack by command line; they say what the run itself says."""
    here = tmp_path / "run"
    shutil.copytree(run, here, ignore=shutil.ignore_patterns("attack*"))
    with Run(here) as opened:
        rows = [(row.label, row.certificate) for row in opened.rows()]
    right = [one.radius("2") for label, one in rows if one and one.predict == label]
    mean = sum(right) / len(rows)
    scored = run_unicr("score", here, "--norm", "2", "--format", "json")
    assert scored.code == 0
    assert f"{mean:.3f}"[:-1] in scored.out
    assert run_unicr("export", here, "--out", tmp_path / "run.jsonl").code == 0
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert {line["scope"] for line in lines} == {"every input"}
    assert {line["noise"] for line in lines} <= {law.text for law in CHOICES}
    few = ["--norm", "2", "--max", "2", "--effort", "0.1", "--samples", "8", "--votes", "200"]
    done = run_unicr("attack", here, "--attack", "gaussian", *few)
    assert done.code == 0
    assert run_unicr("report", here, "--out", tmp_path / "page.html").code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert CHOICES[1].text in page
    assert "gaussian" in page


def test_the_command_line_with_a_selector_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "rule.py").write_text(
        "def dark(batch):\n    return (batch.flatten(1).mean(1) < 0.13).long()\n"
    )
    made, laws = tmp_path / "choice", [law.text for law in CHOICES]
    by = ["--by", f"{tmp_path}/rule.py:dark"]
    make = ["select", *by, "--model", *MODELS, "--noise", *laws, "--out", made]
    assert run_unicr(*make).code == 0
    run_unicr(*make).check_refused("already contains a selector")
    where = ["--data", "builtin:mnist", "--norm", "2", "--out", tmp_path / "run"]
    certify = ["certify", "--selector", made, *where, "--n", "300", "--max", "3"]
    run_unicr(*certify).check_refused("can run code")
    rule = ["--trust", tmp_path / "rule.py"]
    run_unicr(*certify, "--trust", made / "selector.json").check_refused("can run code")
    run_unicr(*certify, "--model", "x").check_refused("or --selector alone")
    done = run_unicr(*certify, *rule, "--verbose")
    assert (done.code, "chosen noise: " in done.out) == (0, True)
    assert run_unicr("verify", tmp_path / "run", "--replay", "2", *rule).code == 0


@pytest.mark.parametrize(
    ("by", "model", "law", "words"),
    [
        ("none.py:dark", MODELS[0], "gaussian(sigma=1)", "none.py"),
        ("rule.py:light", MODELS[0], "gaussian(sigma=1)", "light"),
        ("rule.py:dark", "builtin:mnist-mlp-7", "gaussian(sigma=1)", "mnist-mlp-7"),
        ("rule.py:dark", MODELS[0], "cauchy(scale=1)", "--selector-noise"),
    ],
)
def test_a_selector_of_parts_that_are_not_there_is_refused(
    by: str, model: str, law: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "rule.py").write_text("def dark(batch):\n    return (batch[:, 0] < 0).long()\n")
    run_unicr(
        "select", "--by", f"{tmp_path}/{by}", "--model", model, "--noise", "gaussian(sigma=0.5)",
        law, "--out", tmp_path / "choice",
    ).check_refused(words)  # fmt: skip
    assert not (tmp_path / "choice").exists()
