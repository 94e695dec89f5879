"""Splitting noise: published radii, planted classifiers, every perturbation of a lattice, runs."""

from __future__ import annotations

import itertools
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.cli.command import run
from unicr import SmoothedClassifier, noise
from unicr.errors import CertifyError, NoiseError, RunError
from unicr.noise import Lattice
from unicr.radius import RadiusCurve, certified_radius
from unicr.runs import Spec, load_run
from unicr.smoothing import Certificate, Plan
from unicr.smoothing.procedures import Offsets, OffsetVotes
from unicr.values import Array

EXACT = Offsets().fit(Plan(n=1000))
# Levine & Feizi 2021, github.com/alevine0/smoothingSplittingNoise, CIFAR-10: σ, p_A, their radius
SAMPLED = [
    (0.5, 0.99590725, 0.85893655),
    (0.5, 0.98860687, 0.8462919),
    (2.0, 0.84841484, 2.41388869),
    (2.0, 0.92141891, 2.91967583),
    (3.5, 0.86179578, 4.38654041),
    (3.5, 0.90943217, 4.96410131),
]
# without α: 2λ·255 steps, p_A, p_B, their radius, in whole steps
COUNTED = [
    (441, 1.0, 0.0, 0.86274517),
    (1766, 0.85164213, 0.07870895, 2.67451),
    (1766, 0.99546999, 0.00453001, 3.43137264),
    (3091, 0.50792623, 0.13070203, 2.28627467),
    (3091, 0.98447102, 0.01552895, 5.87058878),
]


@pytest.mark.parametrize(("sigma", "p_a", "published"), SAMPLED)
def test_the_published_radii_of_sampled_splitting(
    sigma: float, p_a: float, published: float
) -> None:
    law = noise.splitting(sigma=sigma)
    found = certified_radius(law, 1, 3072, p_a=p_a)
    assert found.proved == pytest.approx(published, abs=1e-6)
    assert 0 <= published + 1e-6 - float(RadiusCurve(law, 1, 3072)(p_a)) <= 4e-4 * published


@pytest.mark.parametrize(("steps", "p_a", "p_b", "published"), COUNTED)
def test_the_published_radii_without_alpha(
    steps: int, p_a: float, p_b: float, published: float
) -> None:
    """Theirs are the largest whole number of steps of 1/255 below or at ours, less one at most."""
    law = noise.splitting(scale=steps / 510)
    found = certified_radius(law, 1, 3072, p_a=p_a, p_b=p_b).proved
    assert published - 1e-6 <= found <= published + 2 / 255


# the same repository, CIFAR-10, σ = 3.5, stability training: the right ones of 10,000 images sorted
# in 40 groups of equal size, and the mean of p_A (of p_A − p_B where every offset counts) in each
TABLE = {
    "sampled": (5498, "splitting(sigma=3.5)", [
        0.5, 0.5, 0.5, 0.5134, 0.5484, 0.5852, 0.6224, 0.6553,
        0.6833, 0.7099, 0.7359, 0.7611, 0.7833, 0.8052, 0.8244, 0.8477,
        0.8671, 0.8851, 0.899, 0.9128, 0.9246, 0.9365, 0.9484, 0.9579,
        0.9662, 0.9733, 0.9789, 0.9838, 0.9875, 0.9907, 0.9934, 0.9956,
        0.9969, 0.998, 0.9988, 0.9993, 0.9996, 0.9998, 0.9999, 0.9999,
    ]),
    "uniform": (4479, "uniform(sigma=3.5)", [
        0.5, 0.5, 0.5, 0.5, 0.5011, 0.5222, 0.5488, 0.5757,
        0.6005, 0.6252, 0.6482, 0.6708, 0.694, 0.7197, 0.7434, 0.7641,
        0.7858, 0.8057, 0.8229, 0.8416, 0.8583, 0.8739, 0.8884, 0.9036,
        0.9168, 0.9307, 0.9423, 0.954, 0.9637, 0.9715, 0.9777, 0.9836,
        0.9877, 0.9914, 0.9943, 0.9965, 0.998, 0.9989, 0.9997, 0.9999,
    ]),
    "counted": (5496, f"splitting(scale={3091 / 510!r})", [
        0.0272, 0.0824, 0.1312, 0.1856, 0.2427, 0.3021, 0.3592, 0.4131,
        0.4557, 0.5023, 0.5472, 0.5863, 0.6291, 0.6652, 0.703, 0.7402,
        0.7755, 0.802, 0.8278, 0.8518, 0.8762, 0.8946, 0.9126, 0.9281,
        0.944, 0.9566, 0.966, 0.9746, 0.982, 0.9879, 0.9919, 0.9949,
        0.9973, 0.999, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0,
    ]),
}  # fmt: skip
# certified accuracy at ℓ1 radius 1, 2, 3, 4 and average radius, as the page of peers prints them
PRINTED = {
    "sampled": (47.4, 44.1, 39.8, 34.5, 2.291),
    "uniform": (36.1, 32.2, 28.3, 23.6, 1.628),
    "counted": (50.6, 46.6, 42.0, 36.4, 2.430),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_table_of_cifar_10_follows_from_published_votes(name: str) -> None:
    right, text, groups = TABLE[name]
    law, share = noise.parse(text), np.array(groups)
    if name == "counted":
        each = [certified_radius(law, 1, 3072, p_a=(1 + g) / 2, p_b=(1 - g) / 2) for g in groups]
        radius = np.array([one.proved for one in each])
    else:
        radius = np.array([certified_radius(law, 1, 3072, p_a=p).proved if p > 0.5 else 0.0
                           for p in share])  # fmt: skip
    *accuracy, average = PRINTED[name]
    assert float(radius.mean()) * right / 10_000 == pytest.approx(average, abs=6e-3)
    # between the means of neighbouring groups the sorted radii are followed by chords
    place = (np.arange(40) + 0.5) / 40
    for r, printed in zip((1, 2, 3, 4), accuracy, strict=True):
        beyond = 1 - float(np.interp(r, radius, place))
        assert 100 * beyond * right / 10_000 == pytest.approx(printed, abs=0.35)


def rough(batch: torch.Tensor) -> torch.Tensor:
    """A classifier with jumps, on two coordinates."""
    return ((2.3 * batch[:, 0] + 1.7 * batch[:, 1]).floor() % 3).long()


def exact(f: object, scale: float, seed: int, lattice: str = "1/4") -> SmoothedClassifier:
    return SmoothedClassifier(f, noise.splitting(scale=scale), lattice=lattice, seed=seed)


@pytest.mark.parametrize("scale", [0.25, 0.5, 1.0, 1.125])
def test_no_lattice_perturbation_below_the_radius_changes_the_exact_answer(scale: float) -> None:
    """Every pair of points of the 5 × 5 lattice, for several seeds: 25,000 checks without α."""
    points = [torch.tensor(p) / 4 for p in itertools.product(range(5), repeat=2)]
    positive = 0
    for seed in range(10):
        smooth = exact(rough, scale, seed)
        found = [smooth.certify(x, 1, plan=EXACT) for x in points]
        for (x, one), (y, other) in itertools.product(zip(points, found, strict=True), repeat=2):
            if not one.abstained and float((x - y).abs().sum()) < one.radius():
                positive += bool((x != y).any())
                assert other.predict == one.predict
    assert positive > 0 or scale < 0.5


def test_a_planted_classifier_changes_its_mind_just_beyond_the_exact_radius() -> None:
    """Votes of f = [coordinate 0 above ½] move by one in W with every step: no larger R is true."""
    smooth = exact(lambda batch: (batch[:, 0] > 0.5).long(), 0.5, 3, "1/16")
    found = [smooth.certify(torch.tensor([k / 16, 0.5]), 1, plan=EXACT) for k in range(17)]
    assert found[0].predict == 0
    assert found[16].predict == 1
    for k, one in enumerate(found):
        beyond = [abs(j - k) / 16 for j, y in enumerate(found) if y.predict != one.predict]
        if not one.abstained:
            assert min(beyond) - 1 / 16 <= one.radius() <= min(beyond) + 1e-9
            assert one.alpha == 0
            assert "without any doubt" in one.promise


def test_radii_of_counted_offsets_are_between_grid_points() -> None:
    """The certificate says so, 8-bit images are on their own grid, and no other input is taken."""
    law = noise.splitting(scale=0.5)
    on, off = torch.full((2,), 51 / 255), torch.full((2,), 0.2001)
    found = SmoothedClassifier(rough, law, seed=0).certify(on, 1, plan=EXACT)
    assert found.between_points
    assert found.lattice == "1/255"
    assert "between points of the grid 1/255" in found.promise
    with pytest.raises(CertifyError, match="not on the grid 1/255"):
        SmoothedClassifier(rough, law, seed=0, lattice="1/255").certify(off, 1, plan=EXACT)


def test_values_are_told_apart_by_exactly_as_many_offsets_as_the_theorem_says() -> None:
    law, lattice, key = noise.splitting(scale=0.4), Lattice.parse("1/10"), bytes(range(32))
    seen = []
    for value in range(11):
        fill = OffsetVotes().copies(law, lattice, torch.full((3,), value / 10), key)
        out = torch.empty(8, 3)
        fill(out, 5)
        seen.append(out)
    for a, b in itertools.combinations(range(11), 2):
        assert ((seen[a] != seen[b]).sum(0) == min(b - a, 8)).all()


def published_middle(x: Array, place: Array, width: float) -> Array:
    """Their description: the interval of x between place + width·(whole numbers), cut to [0, 1]."""
    high = np.ceil((x - place) / width) * width + place
    return np.asarray(0.5 * (np.minimum(high, 1.0) + np.maximum(high - width, 0.0)))


@pytest.mark.parametrize("scale", [0.1, 0.5, 1.3])
@pytest.mark.parametrize("lattice", [None, "1/255"])
def test_the_model_sees_what_was_published(scale: float, lattice: str | None) -> None:
    """Quantiles of 40,000 middles beside those of the published rule; KS, false alarm 1e-7."""
    batches = []

    def watch(batch: torch.Tensor) -> torch.Tensor:
        batches.append(batch.clone())
        return torch.zeros(len(batch), dtype=torch.long)

    x, count = 51 / 255, 40_000
    law = noise.splitting(scale=scale)
    # a given batch: passes that measure the best size would be watched too
    smooth = SmoothedClassifier(watch, law, seed=4, lattice=lattice, batch=500)
    smooth.votes(torch.full((2,), x), count // 2, start=0)
    seen = np.sort(torch.cat(batches).double().numpy().ravel())
    places = (np.arange(400_000) + 0.5) / 400_000 * 2 * scale
    true = np.sort(published_middle(np.full(400_000, x), places, 2 * scale))
    grid = np.linspace(0, 1, 301) + 1 / 1019
    apart = np.searchsorted(seen, grid) / len(seen) - np.searchsorted(true, grid) / len(true)
    step = 0 if lattice is None else 1 / 510 / scale
    assert np.max(np.abs(apart)) < 2.9 / np.sqrt(len(seen)) + step


def test_the_sampled_certificate_of_a_planted_classifier_is_true_and_the_published_one() -> None:
    """f = [middle of coordinate 0 above ½]: P(f = 1) = P(x + U > ½) is ½ exactly at x = ½."""
    law = noise.splitting(scale=0.4)
    smooth = SmoothedClassifier(lambda b: (b[:, 0] > 0.5).long(), law, seed=1)
    found = smooth.certify(torch.tensor([229 / 255, 0.2]), 1, n=20_000)
    assert found.predict == 1
    true = min(1.0, (229 / 255 - 0.5 + 0.4) / 0.8)
    assert true - 0.03 <= found.p_a <= true  # six deviations are 0.02
    assert found.radius() == pytest.approx(2 * 0.4 * (found.p_a - 0.5), rel=1e-3)
    assert found.radius() <= 229 / 255 - 0.5


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sampled run and one without α, over the command line."""
    folder = tmp_path_factory.mktemp("splitting")
    common = ["certify", "--model", "builtin:mnist-mlp-0.5", "--data", "builtin:mnist", "--norm", 1]
    law = ["--noise", "splitting(scale=0.5)", "--max", 3]
    sampled = run(*common, *law, "--n", 500, "--out", folder / "sampled")
    counted = run(*common, *law, "--rule", "every", "--out", folder / "counted")
    assert (sampled.code, counted.code) == (0, 0), sampled.err + counted.err
    return folder


@pytest.mark.parametrize("name", ["sampled", "counted"])
def test_runs_are_verified_replayed_and_scored(runs: Path, name: str) -> None:
    folder = runs / name
    done = run("verify", folder, "--replay", 2)
    assert done.code == 0, done.out
    assert "all hold" in done.out
    assert "2 of 3 inputs sampled again: the same votes" in done.out
    assert "splitting(scale=0.5)" in run("score", folder).out
    with load_run(folder) as opened:
        for row in opened.rows():
            one = row.certificate
            assert isinstance(one, Certificate)
            if one.abstained:
                continue
            gap = one.p_a - one.p_b
            assert one.radius(1) == pytest.approx(0.5 * gap, rel=1e-3)
            if name == "counted":
                assert (one.alpha, one.n, one.charge) == (0.0, 255, 0.0)


def test_runs_are_reported(runs: Path) -> None:
    pytest.importorskip("plotly")
    page = runs / "splitting.html"
    assert run("report", runs / "sampled", runs / "counted", "-o", page).code == 0
    assert "splitting(scale=0.5)" in page.read_text()


def changed(folder: Path, key: str, value: object) -> Spec:
    with load_run(folder) as opened:
        values = opened.spec.to_dict()
    return Spec.from_dict({**values, key: value})


def test_nobody_passes_samples_off_as_all_offsets(runs: Path, tmp_path: Path) -> None:
    """A spec that claims the exact rule for sampled votes, another noise or another norm."""
    with load_run(runs / "counted") as opened:
        plan = opened.spec.plan.to_dict()
    with pytest.raises(RunError, match="works only for splitting noise"):
        changed(runs / "counted", "plan", {**plan, "procedure": {"name": "two_steps"}})
    with pytest.raises(RunError, match="alpha=0"):
        changed(runs / "counted", "plan", {**plan, "rule": {"name": "fixed"}})
    for key, value, words in (
        ("noise", "uniform(scale=0.5)", "not for uniform"),
        ("norms", ["2"], "not in l2"),
        ("lattice", "2^-8", "it should be|on the lattice|steps"),
    ):
        forged = tmp_path / key
        forged.mkdir()
        data = (runs / "counted" / "run.sqlite").read_bytes()
        (forged / "run.sqlite").write_bytes(data)
        with sqlite3.connect(forged / "run.sqlite") as base:
            base.execute("UPDATE spec SET value = 'null' WHERE key = 'noise_data'")
            base.execute("UPDATE spec SET value = ? WHERE key = ?", (json.dumps(value), key))
        done = run("verify", forged)
        assert done.code == 1
        assert key == "lattice" or words in done.out, done.out


@pytest.mark.parametrize("value", [-0.1, 1.2])
def test_inputs_outside_the_box_are_refused_in_one_line(value: float, tmp_path: Path) -> None:
    x = torch.tensor([0.5, value])
    for plan in (Plan(n=100), EXACT):
        with pytest.raises(NoiseError, match=r"needs inputs between 0 and 1"):
            exact(rough, 0.5, 0).certify(x, 1, plan=plan)
    np.savez(tmp_path / "out.npz", x=np.stack([x.numpy(), [0.5, 0.5]]), y=np.zeros(2, np.int64))
    (tmp_path / "model.py").write_text("def f(batch):\n    return (batch[:, 0] > 0.2).long()\n")
    done = run(
        "certify", "--model", f"{tmp_path / 'model.py'}:f", "--data", tmp_path / "out.npz",
        "--noise", "splitting(scale=0.5)", "--norm", 1, "--n", 200, "--lattice", "1/100",
        "--out", tmp_path / "run",
    )  # fmt: skip
    assert done.code == 3  # that input failed, the other one did not
    with load_run(tmp_path / "run") as opened:
        reasons = [row.reason for row in opened.rows()]
    assert f"the input has the value {value:.6g}" in str(reasons[0])
    assert reasons[1] is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--noise", "gaussian(sigma=1)"], "not for gaussian(sigma=1)"),
        (["--noise", "splitting(scale=0.5)", "--lattice", "none"], "on real numbers"),
        (["--noise", "splitting(scale=0.111)"], "but a whole number is needed: use scale="),
        (["--noise", "splitting(scale=0.5)", "--n", "100"], "use n=255 or more"),
        (["--noise", "splitting(scale=0.5)", "--norm", "2"], "not in l2"),
        (["--noise", "splitting(scale=0)"], "scale=0"),
    ],
)
def test_what_cannot_be_counted_is_refused_in_one_line(
    options: list[str], words: str, tmp_path: Path
) -> None:
    base = ["--model", "builtin:mnist-mlp-0.5", "--data", "builtin:mnist", "--rule", "every"]
    norm = [] if "--norm" in options else ["--norm", "1"]
    done = run("certify", *base, *norm, *options, "--max", 1, "--out", tmp_path / "run")
    done.check_refused(words)


def test_the_procedure_without_its_rule_claims_nothing() -> None:
    with pytest.raises(CertifyError, match="needs the rule every, not fixed"):
        Plan(n=1000, procedure=Offsets())


def test_training_and_attacks_see_the_split_inputs() -> None:
    from unicr.smoothing import SmoothedModule

    seen = []

    class Watch(torch.nn.Module):
        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            seen.append(batch.detach().clone())
            return torch.stack([batch[:, 0], 1 - batch[:, 0]], 1)

    law = noise.splitting(scale=2)
    model = SmoothedModule(Watch(), law, samples=64)
    x = torch.full((1, 3), 0.25, requires_grad=True)
    model(x).sum().backward()
    values = torch.cat(seen)
    assert float(values.min()) >= 0
    assert float(values.max()) <= 1
    assert float((values == 0.5).float().mean()) > 0.5  # most intervals hold the whole box
