"""The experiment items: their constants against the paper's own text, their tables against what
the stored runs, a published log or a planted classifier say.
"""

from __future__ import annotations

import csv
import math
import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist, fmean

import numpy as np
import pytest
import torch

from unicr.classifier import load_classifier
from unicr.errors import UnicrError
from unicr.metrics import Scores
from unicr.noise import parse
from unicr.runs import Run, verify
from unicr_paper import ITEMS, Ended, Request, efficientnet, run_items
from unicr_paper._certify import Printed, top_means, with_inputs
from unicr_paper._item import Context, MissingDataError
from unicr_paper.items import c_opt, cifar10, imagenet
from unicr_paper.items import standard as standard_item

SHARED = Path(__file__).parents[4] / "shared" / "data"
ALPHA = 0.001


def needs(*names: str) -> pytest.MarkDecorator:
    absent = [name for name in names if not (SHARED / name).exists()]
    return pytest.mark.skipif(bool(absent), reason=f"../shared/data has no {', '.join(absent)}")


def outcome(name: str, out: Path, data: Path = SHARED, **options: str) -> Ended:
    settings = Request(out=out, data=data, mode="quick", options=options)
    (one,) = run_items([ITEMS[name]], settings, log=print)
    return one


def made(name: str, out: Path, data: Path = SHARED, **options: str) -> Path:
    one = outcome(name, out, data, **options)
    assert one.state == "done", one.text
    folder = out / name
    assert any(folder.glob("*.png"))
    assert any(folder.glob("*.svg"))
    words = (folder / "comparison.txt").read_text()
    assert "the paper" in words
    assert "Note: " in words
    return folder


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def work(folder: Path) -> Path:
    (only,) = (folder / "work").iterdir()
    return only


def numbers(rows: Sequence[dict[str, str]], column: str, **wanted: str) -> list[float]:
    return [float(r[column]) for r in rows if all(r[k] == v for k, v in wanted.items())]


def test_printed_scores_have_the_improvements_that_the_papers_text_prints() -> None:
    def gains(printed: dict[str, Printed]) -> list[float]:
        pairs = [one.scores for one in printed.values() if one.scores]
        return [100 * (ours / base - 1) for base, ours in pairs]

    assert gains(cifar10.PRINTED) == pytest.approx([25.34, 32.44, 38.78], abs=0.011)
    assert gains(imagenet.PRINTED) == pytest.approx([8.75, 4.55, 14.81], abs=0.006)


def test_printed_tables_fit_what_the_papers_text_says_of_them() -> None:
    best = {
        norm: max(zip(values, c_opt.BETAS, strict=True))[1]
        for norm, values in c_opt.PRINTED.items()
    }
    assert best == {"1": 0.75, "2": 2.25, "inf": 2.25}
    for printed in (cifar10.PRINTED, imagenet.PRINTED, standard_item.PRINTED):
        for one in printed.values():
            assert len(one.radii) == len(one.fixed) == len(one.chosen)
            assert all(np.diff(side).max() <= 0 for side in (one.fixed, one.chosen))
    assert min(one.chosen[0] for one in standard_item.PRINTED.values()) == 98.6


def test_top_means_are_averages_of_the_largest() -> None:
    radii = np.array([7.0, 5.0, 1.0, 4.0, 0.0, 3.0, 2.0, 6.0, 0.0, 9.0])
    right = np.arange(10) > 0  # a wrong input counts as 0
    many = Scores("many", "2", radii, right.astype(float), np.zeros(10))
    one = Scores("one", "2", np.array([2.0]), np.ones(1), np.zeros(1))
    first, second = top_means([many, one])
    assert first == [7.5, 6.0, 29 / 6, 3.75, 3.0]
    assert second == [2.0] * 5


MODEL = """
    import torch

    class Brightest(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.gain = torch.nn.Parameter(torch.ones(1))

        def forward(self, x):
            return self.gain * x.mean((2, 3))
"""
SIDE = 16


@pytest.fixture
def folder(tmp_path: Path) -> dict[str, str]:
    """Red, green and blue images in ImageNet's form, and a model that names the brightest channel.

    At σ ≤ 1 another channel wins with probability below 1e-25 per sample: every vote agrees.
    """
    from PIL import Image

    for channel, name in enumerate(("n01", "n02", "n03")):
        (tmp_path / "images" / name).mkdir(parents=True)
        pixels = np.zeros((SIDE, SIDE, 3), np.uint8)
        pixels[..., channel] = 255
        Image.fromarray(pixels).save(tmp_path / "images" / name / "a.png")
    lines = [line[4:] for line in MODEL.splitlines()]
    (tmp_path / "model.py").write_text("\n".join(lines) + "\n")
    return {"folder": str(tmp_path / "images"), "model": f"{tmp_path / 'model.py'}:Brightest"}


def test_imagenet_runs_on_any_folder_and_model(tmp_path: Path, folder: dict[str, str]) -> None:
    made_in = made("imagenet", tmp_path / "out", tmp_path, **folder)
    n = ITEMS["imagenet"].sizes["quick"]["n"]
    most = NormalDist().inv_cdf(ALPHA ** (1 / n))  # of n votes all agree
    dim = 3 * SIDE**2
    scores = {row["norm"]: row for row in read(made_in / "scores.csv")}
    for norm, unit in (("2", 1.0), ("inf", math.sqrt(dim))):
        for side, sigma in (("fixed", 0.5), ("i_opt", 1.0)):
            radius = sigma * most / unit
            assert radius * (1 - 1e-3) <= float(scores[norm][side]) <= radius * (1 + 1e-9)
    rows = read(made_in / "accuracy.csv")
    assert numbers(rows, "fixed", norm="2") == [100, 0, 0, 0, 0]
    assert numbers(rows, "i_opt", norm="2") == [100, 100, 0, 0, 0]
    assert numbers(rows, "paper_i_opt", norm="2") == list(imagenet.PRINTED["2"].chosen)
    with Run(work(made_in) / "i-opt" / "l2") as store:
        assert {row.certificate.noise for row in store.rows() if row.certificate} == {
            "gennorm(beta=2, sigma=1)"
        }


def test_imagenet_says_what_it_needs(tmp_path: Path, folder: dict[str, str]) -> None:
    def missing(**options: str) -> str:
        one = outcome("imagenet", tmp_path / "a", tmp_path, **options)
        assert one.state == "missing data"
        assert "\n" not in one.text
        return one.text

    assert "needs --set weights=…" in missing()
    assert "needs --set folder=…, or imagenet100_224.npz in " in missing(model=folder["model"])
    assert "there is no absent-0.5.pth" in missing(weights="absent-0.5.pth", model=folder["model"])
    (tmp_path / "empty").mkdir()
    empty = {"weights": str(tmp_path / "empty"), "model": folder["model"]}
    assert missing(**empty).endswith("empty holds weights")


def test_imagenet_without_its_network_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imagenet, "find_spec", lambda name: None)
    one = outcome("imagenet", tmp_path / "a", tmp_path, weights="some-0.25.pth")
    assert (one.state, one.text) == (
        "missing data",
        "needs efficientnet-lite-pytorch: pip install --no-deps efficientnet-lite-pytorch==0.1.0",
    )


def test_imagenet_takes_the_best_of_several_sigmas(tmp_path: Path, folder: dict[str, str]) -> None:
    """All votes agree at σ = 0.25 and 0.5: the larger one wins at every radius."""
    (tmp_path / "weights").mkdir()
    for name in ("0.25", "0.5"):
        torch.save({"gain": torch.ones(1)}, tmp_path / "weights" / f"gain-{name}.pth")
    options = {**folder, "weights": str(tmp_path / "weights"), "inputs": "2"}
    made_in = made("imagenet", tmp_path / "out", tmp_path, **options)
    n = ITEMS["imagenet"].sizes["quick"]["n"]
    most = NormalDist().inv_cdf(ALPHA ** (1 / n))
    (l2,) = [row for row in read(made_in / "scores.csv") if row["norm"] == "2"]
    for column, sigma in (("fixed", 0.5), ("i_opt", 1.0), ("i_opt_searched", 1.0)):
        assert float(l2[column]) == pytest.approx(sigma * most, rel=1e-3)
    assert float(l2["fixed"]) <= float(l2["fixed_searched"]) <= 0.5 * most * (1 + 1e-9)
    top = read(made_in / "top.csv")
    for sigma in (0.25, 0.5):
        means = numbers(top, "fixed", norm="2", sigma=str(sigma))
        assert means == pytest.approx([sigma * most] * 5, rel=1e-3)
    for name in ("0.25", "0.5"):
        with Run(work(made_in) / f"sigma-{name}" / "i-opt" / "l2") as store:
            assert not any(verify(store))
            assert len(list(store.rows())) == 2
            assert not store.spec.searched


def test_imagenet_takes_one_network_for_several_sigmas(
    tmp_path: Path, folder: dict[str, str]
) -> None:
    torch.save({"gain": torch.ones(1)}, tmp_path / "gain.pth")
    options = {**folder, "weights": str(tmp_path / "gain.pth"), "sigma": "0.5,0.25"}
    top = read(made("imagenet", tmp_path / "out", tmp_path, **options) / "top.csv")
    n = ITEMS["imagenet"].sizes["quick"]["n"]
    most = NormalDist().inv_cdf(ALPHA ** (1 / n))
    for sigma in (0.25, 0.5):
        means = numbers(top, "fixed", norm="2", sigma=str(sigma))
        assert means == pytest.approx([sigma * most] * 5, rel=1e-3)


def test_imagenet_knows_by_its_weights_whether_a_pool_comes_first(tmp_path: Path) -> None:
    """A name that begins with 1 is in a sequence: `half_lite0` is one, `lite0` is not."""
    torch.save({"_conv_stem.weight": torch.ones(1)}, tmp_path / "plain.pth")
    torch.save({"1._conv_stem.weight": torch.ones(1)}, tmp_path / "halved.pth")
    assert imagenet._architecture(str(tmp_path / "plain.pth")) == efficientnet.SPEC
    assert imagenet._architecture(str(tmp_path / "halved.pth")) == efficientnet.HALF
    with pytest.raises(MissingDataError, match=r"there is no .*absent\.pth"):
        imagenet._architecture(str(tmp_path / "absent.pth"))


def test_a_halved_network_sees_means_of_four_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(efficientnet, "lite0", torch.nn.Identity)
    image = torch.arange(16.0).view(1, 1, 4, 4)
    assert efficientnet.half_lite0()(image).tolist() == [[[[2.5, 4.5], [10.5, 12.5]]]]


@pytest.mark.parametrize(
    ("name", "text"), [("mean", "0.5;0.5"), ("sigma", "0"), ("sigma", "0.5,-1"), ("std", "x")]
)
def test_imagenet_refuses_what_are_no_numbers(
    tmp_path: Path, folder: dict[str, str], name: str, text: str
) -> None:
    one = outcome("imagenet", tmp_path / "out", tmp_path, **folder, **{name: text})
    assert one.state == "failed"
    assert f"--set {name}={text}" in one.text


def test_defence_without_its_libraries_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyautoattack", None)
    one = outcome("defence", tmp_path)
    assert one.state == "missing data"
    assert "unicr[attack]" in one.text


@pytest.mark.parametrize("name", ["c-opt", "cifar10", "standard"])
def test_items_without_their_data_are_skipped(tmp_path: Path, name: str) -> None:
    one = outcome(name, tmp_path / "out", tmp_path)
    assert one.state == "missing data"
    assert "--data-dir" in one.text


@pytest.mark.important
@pytest.mark.slow
def test_defence_holds_at_the_radius_and_not_at_three_times_it(tmp_path: Path) -> None:
    pytest.importorskip("pyautoattack")
    rows = read(made("defence", tmp_path) / "defence.csv")
    assert numbers(rows, "accuracy", attack="apgd", factor="1.0") == [1.0]
    assert numbers(rows, "accuracy", attack="gaussian", factor="1.0") == [1.0]
    assert numbers(rows, "accuracy", attack="apgd", factor="3.0")[0] <= 0.5
    assert {row["inputs"] for row in rows} == {"8"}


@pytest.mark.slow
def test_i_opt(tmp_path: Path) -> None:
    folder = made("i-opt", tmp_path)
    rows = read(folder / "noises.csv")
    flat = numbers(rows, "fixed", norm="1")
    spread = [28 * r for r in numbers(rows, "fixed", norm="inf")]
    assert spread == pytest.approx(flat, rel=1e-3, abs=2e-4)  # the grid takes up to 1e-4 σ off
    for norm in ("1", "inf"):
        with Run(work(folder) / "i-opt" / f"l{norm}") as store:
            assert not any(verify(store))
            right = [row.radius(norm) * row.correct for row in store.rows()]
        top = numbers(read(folder / "top.csv"), "i_opt", norm=norm, top_percent="100")
        assert top == pytest.approx([fmean(right)], rel=1e-12)
    beta_and_sigma = [parse(row["noise"]) for row in rows]
    assert all(0.5 - 1e-6 <= noise.sigma <= 2 + 1e-6 for noise in beta_and_sigma)


@pytest.mark.slow
@needs("mnist_train.npz", "mnist_test.npz")
def test_c_opt(tmp_path: Path) -> None:
    folder = made("c-opt", tmp_path)
    rows = read(folder / "scores.csv")
    assert len(rows) == 4
    for row in rows:
        point = work(folder) / "points" / f"gennorm-beta-{float(row['beta']):g}-sigma-0.5"
        with Run(point / "run") as store:
            certified = list(store.rows())
        mean = fmean(one.radius(row["norm"]) * one.correct for one in certified)
        assert float(row["score"]) == pytest.approx(mean, rel=1e-9)  # one σ: the average radius
        assert fmean(one.correct for one in certified) > 0.5
    assert {row["paper"] for row in rows} == {"2.7448", "2.2615", "0.0641", "0.0879"}


class Shortcut(torch.nn.Module):
    """A block as the paper's authors name its parts, with a projected shortcut at a new width."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.bn1, self.bn2 = torch.nn.BatchNorm2d(width), torch.nn.BatchNorm2d(width)
        self.conv2 = torch.nn.Conv2d(width, width, 3, 1, 1, bias=False)
        if stride > 1:
            step = torch.nn.Conv2d(before, width, 1, stride, bias=False)
            self.downsample = torch.nn.Sequential(step, torch.nn.BatchNorm2d(width))
        self.stride = stride

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        short = self.downsample(x) if self.stride > 1 else x
        y: torch.Tensor = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (y + short).relu()


def test_cifar10_takes_the_layout_of_the_paper_s_weights(tmp_path: Path) -> None:
    """A normaliser without weights, then a ResNet whose last layer is fc: the same labels."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        OrderedDict(
            conv1=torch.nn.Conv2d(3, 16, 3, 1, 1, bias=False),
            bn1=torch.nn.BatchNorm2d(16),
            relu=torch.nn.ReLU(),
            layer1=torch.nn.Sequential(Shortcut(16, 16, 1)),
            layer2=torch.nn.Sequential(Shortcut(16, 32, 2)),
            layer3=torch.nn.Sequential(Shortcut(32, 64, 2)),
            avgpool=torch.nn.AvgPool2d(8),
            flat=torch.nn.Flatten(),
            fc=torch.nn.Linear(64, 10),
        )
    )
    images = torch.rand(64, 3, 32, 32) * torch.rand(64, 3, 1, 1)
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in (cifar10.MEAN, cifar10.STD))
    net((images - mean) / std)  # running statistics that are not their defaults
    scores = net.eval()((images - mean) / std).detach()
    net.get_submodule("fc").bias.data -= scores.mean(0)
    expected = (scores - scores.mean(0)).argmax(1)
    whole = {f"1.{name}": tensor for name, tensor in net.state_dict().items()}
    file = tmp_path / "CIFAR_Gaussian[-1.0, 0.5]_best.pth"
    torch.save(whole, file)
    context = Context("quick", {}, tmp_path / "work", tmp_path, 0, 1, print, {"weights": str(file)})
    ((sigma, arguments),) = cifar10._models(context).items()
    assert sigma == 0.5
    assert arguments["spec"] == "builtin:resnet8"
    assert torch.equal(load_classifier(**arguments).predict(images), expected)
    assert len(set(expected.tolist())) > 1
    torch.save(whole, tmp_path / "CIFAR_Gaussian[-1.0, 0.12]_best.pth")
    several = replace(context, options={"weights": str(tmp_path)})
    assert list(cifar10._models(several)) == [0.12, 0.5]
    for wrong in ("0", "many"):
        with pytest.raises(UnicrError, match=f"inputs={wrong}: a whole number"):
            with_inputs(replace(context, options={"inputs": wrong}))
    torch.save(whole, tmp_path / "best.pth")
    with pytest.raises(UnicrError, match="best must be the last number"):
        cifar10._models(several)


def test_cifar10_takes_another_network(tmp_path: Path) -> None:
    """`fc` keeps its name there, and mean and std go before: the labels are the network's own."""
    source = "import torch\ndef make():\n    return torch.nn.Sequential(torch.nn.Flatten(), F())\n"
    source += "class F(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    source += "        self.fc = torch.nn.Linear(3072, 10)\n"
    source += "    def forward(self, x):\n        return self.fc(x)\n"
    (tmp_path / "net.py").write_text(source)
    weight = torch.randn(10, 3072, generator=torch.Generator().manual_seed(0))
    tensors = {"1.1.fc.weight": weight, "1.1.fc.bias": torch.zeros(10)}
    file = tmp_path / "own-0.25.pt"
    torch.save({**tensors, "0.m": torch.full((3,), 0.5), "0.d": torch.full((3,), 2.0)}, file)
    options = {"weights": str(file), "model": f"{tmp_path / 'net.py'}:make"}
    context = Context("quick", {}, tmp_path / "work", tmp_path, 0, 1, print, options)
    ((sigma, arguments),) = cifar10._models(context).items()
    images = torch.rand(32, 3, 32, 32)
    expected = (((images - 0.5) / 2).flatten(1) @ weight.T).argmax(1)
    assert sigma == 0.25
    assert torch.equal(load_classifier(**arguments).predict(images), expected)


@pytest.mark.slow
@needs(cifar10.IMAGES, cifar10.WEIGHTS, cifar10.LOG)
def test_cifar10(tmp_path: Path) -> None:
    folder = made("cifar10", tmp_path)
    with (SHARED / cifar10.LOG).open(newline="") as file:
        log = list(csv.DictReader(file, delimiter="\t"))
    published = read(folder / "published-log.csv")
    for row in published:
        scale = math.sqrt(cifar10.DIM) if row["norm"] == "inf" else 1.0
        reach = [float(r["radius"]) >= float(row["radius"]) * scale for r in log]
        share = 100 * fmean(
            reached and r["correct"] == "1" for reached, r in zip(reach, log, strict=True)
        )
        assert float(row["published_log"]) == pytest.approx(share, abs=0.41)  # radii cut: 2 of 500
    scores = {row["norm"]: row for row in read(folder / "scores.csv")}
    spread = math.sqrt(cifar10.DIM) * float(scores["inf"]["fixed"])
    assert spread == pytest.approx(float(scores["2"]["fixed"]), rel=1e-3)
    with Run(work(folder) / "fixed") as store:
        assert sum(row.correct for row in store.rows()) >= 2  # 79.6 % are right by 50 votes
        most = 0.25 * NormalDist().inv_cdf(ALPHA ** (1 / store.spec.plan.n))
        assert max(row.radius("2") for row in store.rows()) <= most


@pytest.mark.slow
@needs(standard_item.IMAGES, standard_item.WEIGHTS)
def test_standard(tmp_path: Path) -> None:
    folder = made("standard", tmp_path)
    rows = read(folder / "agreement.csv")
    assert numbers(rows, "i_opt", norm="2")[0] >= 50  # noise small enough keeps f(x)
    with Run(work(folder) / "i-opt" / "l2") as store:
        assert not any(verify(store))
        noises = [row.certificate.noise for row in store.rows() if row.certificate]
    assert all(parse(text or "").sigma < standard_item.SIGMA for text in noises)


@pytest.mark.slow
def test_visual_without_other_images(tmp_path: Path) -> None:
    folder = made("visual", tmp_path / "out", tmp_path)
    rows = read(folder / "examples.csv")
    assert [(row["data"], row["norm"]) for row in rows] == [("MNIST", "1"), ("MNIST", "inf")]
    assert "no CIFAR-10 images" in (folder / "comparison.txt").read_text()
    for row in rows:
        with Run(work(folder) / "MNIST" / "i-opt" / f"l{row['norm']}") as store:
            (one,) = (r for r in store.rows() if r.idx == int(row["input"]))
        assert one.certificate is not None
        assert one.certificate.noise == row["after"]
        assert one.radius(row["norm"]) == float(row["radius_after"])


@pytest.mark.slow
@needs(cifar10.IMAGES, cifar10.WEIGHTS)
def test_visual_with_cifar10(tmp_path: Path) -> None:
    rows = read(made("visual", tmp_path) / "examples.csv")
    assert [row["data"] for row in rows] == ["MNIST", "MNIST", "CIFAR-10", "CIFAR-10"]


@pytest.mark.slow
@needs("imagenet100_224.npz")
def test_imagenet_at_its_own_size(tmp_path: Path) -> None:
    """Real images of 224×224 through a small network: what a user's own weights would do."""
    (tmp_path / "tiny.py").write_text(
        "import torch\n\n\ndef tiny():\n"
        "    torch.manual_seed(0)\n"
        "    return torch.nn.Sequential(\n"
        "        torch.nn.Conv2d(3, 8, 7, 8), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),\n"
        "        torch.nn.Flatten(), torch.nn.Linear(8, 100))\n"
    )
    options = {
        "folder": str(SHARED / "imagenet100_224.npz"),
        "model": f"{tmp_path / 'tiny.py'}:tiny",
        "mean": "0.485,0.456,0.406",
        "std": "0.229,0.224,0.225",
        "sigma": "0.25",
    }
    folder = made("imagenet", tmp_path / "out", tmp_path, **options)
    with Run(work(folder) / "fixed") as store:
        spec, rows = store.spec, list(store.rows())
    assert spec.dim == 3 * 224 * 224
    assert spec.noise.text == "gaussian(sigma=0.25)"
    assert [row.idx for row in rows] == [0, 33, 66]
    assert all(row.status != "failed" for row in rows)
