"""Models made to break certificates through rounding or through the random generator.

Each gets a certificate that is false out of real-valued noise with a seed, and none by default.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import special
from torch import nn

from tests.cli.command import run
from unicr import SmoothedClassifier, noise
from unicr.classifier import load_classifier
from unicr.errors import CertifyError
from unicr.runs import Run
from unicr.smoothing import Certificate, VoteCounter

DIM, SHIFT = 256, 0.125
LAW = noise.spherical_exp(k=2, sigma=1.25, dim=DIM)  # its samples are float32, as most tools' are
GRAIN = SHIFT / 2 / 2**23  # x + ε is a whole multiple of it for x = SHIFT, for x = 0 often not


class LowBits(nn.Module):
    """Voráček and Hein's adversary: class 1 where some value has bits finer than GRAIN."""

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        scaled = batch.double() / GRAIN
        fine = (scaled != scaled.round()).any(1).float()
        return torch.stack([0.5 - fine, fine - 0.5], 1)


class Linear(nn.Module):
    """Two linear layers that undo each other, between clamps: zero but for rounding."""

    big = torch.tensor(1.5 * 2**23 * GRAIN)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        near = batch.clamp(-SHIFT / 4, SHIFT / 4)
        there = (near + self.big) - self.big
        score = (there - near).abs().amax(1) - GRAIN / 8
        return torch.stack([-score, score], 1)


def breaks(smoothed: SmoothedClassifier) -> bool:
    """Whether a point inside the certified ball of x = 0 has, surely, another class."""
    certificate = smoothed.certify(torch.zeros(DIM), 2, n=10_000)
    other = torch.full((DIM,), SHIFT)
    if certificate.abstained or certificate.radius() <= float(other.norm()):
        return False
    return smoothed.predict(other, n=2000, alpha=1e-9, input_index=1) not in (
        certificate.predict,
        -1,
    )


@pytest.mark.parametrize("model", [LowBits(), Linear()], ids=["low bits", "linear layers"])
def test_rounding_breaks_real_valued_noise_and_not_the_lattice(model: nn.Module) -> None:
    real = SmoothedClassifier(model, LAW, num_classes=2, seed=0, lattice=None)
    assert breaks(real)
    assert not breaks(SmoothedClassifier(model, LAW, num_classes=2))
    iid = noise.gaussian(sigma=1.25)
    assert not breaks(SmoothedClassifier(model, iid, num_classes=2))


def test_lattice_votes_are_the_same_function_at_every_point_of_the_lattice() -> None:
    """The proof itself: x + δ + ε′ drawn at x + δ is what shifting every draw at x gives."""
    law, lattice = noise.gaussian(sigma=0.5), noise.Lattice.parse("1/255")
    seen: list[torch.Tensor] = []
    passes: list[torch.Tensor] = []

    def watch(batch: torch.Tensor) -> torch.Tensor:
        seen.append(batch.clone())
        return torch.zeros(len(batch), dtype=torch.int64)

    for x in (torch.zeros(6), torch.full((6,), 7 / 255)):
        smoothed = SmoothedClassifier(watch, law, num_classes=2, seed=0, lattice=lattice, batch=64)
        smoothed.votes(x, 16, start=0)
        passes.append(seen[-1])  # before it the check whether the model looks at its batch
    first, second = (lattice.integers(one.numpy()) for one in passes)
    assert np.array_equal(lattice.floats(first), passes[0].numpy())
    assert np.array_equal(lattice.floats(second), passes[1].numpy())
    assert np.abs(first - second).max() > 7  # the noise itself differs: the input is in its key


class Foresight:
    """Knows the generator: class 1 for the very copies of x that a seed will draw, else 0."""

    def __init__(self, x: torch.Tensor, seed: int, lattice: str | None, n: int) -> None:
        self.known: set[bytes] = set()
        self.learning = True
        spy = SmoothedClassifier(self, noise.gaussian(sigma=0.5), seed=seed, lattice=lattice)
        spy.votes(x, n, start=0)
        self.learning = False

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        rows = [row.numpy().tobytes() for row in batch]
        if self.learning:
            self.known.update(rows)
        return torch.tensor([int(row in self.known) for row in rows])


@pytest.mark.parametrize("lattice", [None, "1/255"], ids=["real", "lattice"])
def test_a_model_that_knows_the_seed_is_certified_falsely_and_labelled(lattice: str | None) -> None:
    """It gives class 0 almost everywhere; a seed makes it look like class 1, a nonce does not."""
    x, law = torch.zeros(16), noise.gaussian(sigma=0.5)
    model = Foresight(x, 7, lattice, 1100)

    def certified(**where: object) -> Certificate:
        smoothed = SmoothedClassifier(model, law, num_classes=2, lattice=lattice, **where)  # type: ignore[arg-type]
        return smoothed.certify(x, 2, n=1000)

    fooled = certified(seed=7)
    assert fooled.predict == 1
    assert fooled.radius() > 1
    assert "seed 7: an experiment" in fooled.promise
    honest = certified()
    assert honest.predict == 0
    assert "seed" not in honest.promise


def test_nonces_are_drawn_once_kept_and_checked() -> None:
    law, x = noise.gaussian(sigma=0.5), torch.zeros(4)

    def model(batch: torch.Tensor) -> torch.Tensor:
        return (batch[:, 0] > 0).long()

    one = SmoothedClassifier(model, law, num_classes=2)
    votes = one.votes(x, 500, start=0)
    again = SmoothedClassifier(model, law, num_classes=2, nonce=one.nonce)
    assert np.array_equal(again.votes(x, 500, start=0), votes)
    others = [SmoothedClassifier(model, law, num_classes=2) for _ in range(3)]
    assert len({one.nonce, *(other.nonce for other in others)}) == 4
    settings = VoteCounter(model, law, num_classes=2, nonce=one.nonce, commitment="00" * 32)
    drawn = [list(s.votes(x, 5000, start=0)) for s in (again, settings)]
    assert drawn[0] != drawn[1]
    for bad in ("abc", "", "ab" * 31, "ab" * 33, "0x" + "ab" * 31, "zz" * 32, "\u0663" * 64):
        with pytest.raises(CertifyError, match="64 hexadecimal"):
            SmoothedClassifier(model, law, nonce=bad)
    with pytest.raises(CertifyError, match="not both"):
        SmoothedClassifier(model, law, nonce=one.nonce, seed=1)


def test_what_the_lattice_takes_is_small_and_taken_from_every_radius() -> None:
    """One radius, for every change: it has paid for the sampler and for moving inputs."""
    law = noise.gaussian(sigma=0.5)

    def model(batch: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(batch), dtype=torch.int64)

    for x in (torch.full((3072,), 51 / 255), torch.full((3072,), 0.2001)):
        real = SmoothedClassifier(model, law, num_classes=2, lattice=None)
        exact = real.certify(x, [1, 2, "inf"], n=1000)
        found = SmoothedClassifier(model, law, num_classes=2).certify(x, [1, 2, "inf"], n=1000)
        assert found.charge is not None
        assert 0 < found.charge < 1e-9
        assert found.p_a == pytest.approx(exact.p_a - found.charge, abs=1e-16)
        for norm in (1, 2, "inf"):
            lost = exact.radius(norm) - found.radius(norm)
            assert 0 < lost < 1e-4 * law.sigma
        assert "lattice" not in found.promise
        assert "grid" not in found.promise


class Fractions:
    """Class 1 where the fractional parts of 255 x say that the input was moved off 8-bit values."""

    def __init__(self, x: torch.Tensor) -> None:
        self.parts = (255.0 * x.double()) % 1.0

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        away = ((255.0 * batch.double()) % 1.0 - self.parts).abs()
        return (torch.minimum(away, 1 - away).mean(dim=1) > 0.25).long()


def test_moves_by_fractions_of_a_grey_level_contradict_no_radius() -> None:
    """Every pixel moves by .4/255 or .6/255, before a model that sees only fractional parts.

    On the default grid such a model has no majority to certify. On the grid 1/255 it always gives
    class 0, and the radius has paid √d/255 for moving inputs there: moved inputs keep the class.
    """
    dim, law = 784, noise.gaussian(sigma=0.5)
    x = torch.full((dim,), 51 / 255)
    model = Fractions(x)
    g_default = SmoothedClassifier(model, law, num_classes=2)
    fine = g_default.certify(x, 2, n=4000)
    assert fine.radius() < 0.2  # a share of votes near one half
    for step in (0.4 / 255, -0.4 / 255):
        if abs(step) * math.sqrt(dim) < fine.radius():
            assert g_default.predict(x + step, n=1000) in (fine.predict, -1)
    g = SmoothedClassifier(model, law, num_classes=2, lattice="1/255")
    coarse = g.certify(x, 2, n=4000)
    exact = law.sigma * float(special.ndtri(coarse.p_a))
    assert coarse.p_a == pytest.approx(0.001 ** (1 / 4000), rel=1e-9)
    assert exact - 0.12 < coarse.radius() <= exact - math.sqrt(dim) / 255
    for step in (0.4 / 255, -0.4 / 255, 0.6 / 255):
        assert abs(step) * math.sqrt(dim) < coarse.radius()
        assert g.predict(x + step, n=1000) == coarse.predict == 0


BRIGHTER = """
def model(batch):
    brighter = (batch.flatten(1).double() - 51 / 255).sum(1) / 28
    return (brighter > 0.08).long()
"""


def test_the_one_radius_of_an_8_bit_image_outlasts_moves_in_the_worst_direction(
    tmp_path: Path,
) -> None:
    """All pixels move along the gradient of a model whose true radius, 0.08, is hardly undercut.

    On the grid 1/255 a move by .51/255 becomes one by 1/255: a radius between grid points, about
    .07, would be wrong there. What is printed has paid √d/255 = .11 for it and is 0.
    """
    (tmp_path / "model.py").write_text(BRIGHTER)
    np.savez(tmp_path / "data.npz", x=np.full((1, 1, 28, 28), 51, np.uint8), y=np.zeros(1, int))
    found: dict[str, float] = {}
    for lattice in ("auto", "1/255"):
        out = tmp_path / lattice.replace("/", "-")
        done = run(
            "certify", "--model", f"{tmp_path}/model.py:model", "--data", tmp_path / "data.npz",
            "--noise", "gaussian(sigma=0.5)", "--norm", 2, "--n", 20_000, "--out", out,
            "--lattice", lattice, "--seed", 1,
        )  # fmt: skip
        assert done.code == 0, done.err
        with Run(out) as kept:
            (row,) = kept.rows()
        assert row.certificate is not None
        assert [radius.norm for radius in row.certificate.radii] == ["2"]
        found[lattice] = row.certificate.radius()
    law, x = noise.gaussian(sigma=0.5), torch.full((1, 28, 28), 51 / 255, dtype=torch.float64)
    model = load_classifier(f"{tmp_path}/model.py:model", trust=[tmp_path / "model.py"])
    fine = SmoothedClassifier(model, law, num_classes=2)
    coarse = SmoothedClassifier(model, law, num_classes=2, lattice="1/255")
    assert found["1/255"] == 0
    assert 0.51 * 28 / 255 < found["auto"] < 0.08
    for step in (0.4 / 255, -0.4 / 255, 0.51 / 255, -0.51 / 255):
        assert fine.predict(x + step, n=20_000, alpha=1e-9) in (0, -1)
    assert coarse.predict(x + 0.51 / 255, n=20_000, alpha=1e-9) == 1


def test_a_certificate_says_that_its_sampler_has_no_bound() -> None:
    """Spherical noise is drawn as real numbers: the promise says so, that of i.i.d. noise not."""
    laws = noise.spherical_gg(k=2, sigma=0.5, dim=12), noise.gaussian(sigma=0.5)
    for law, said in zip(laws, (True, False), strict=True):
        model = SmoothedClassifier(
            lambda b: torch.zeros(len(b), dtype=torch.int64), law, num_classes=2
        )
        found = model.certify(torch.zeros(12), 2, n=100)
        assert (found.charge is None) == said
        assert ("has no bound" in found.promise) == said


def test_a_label_does_not_see_the_rest_of_its_pass() -> None:
    """Every forward pass has the full size: votes of a range are those of its parts."""
    law, sizes = noise.gaussian(sigma=0.5), set()

    def model(batch: torch.Tensor) -> torch.Tensor:
        sizes.add(len(batch))
        return (batch[:, 0] > 0).long()

    smoothed = SmoothedClassifier(model, law, num_classes=2, batch=100, seed=0)
    x = torch.zeros(3)
    whole = smoothed.votes(x, 90, start=5)
    parts = smoothed.votes(x, 13, start=5) + smoothed.votes(x, 77, start=18)
    assert np.array_equal(whole, parts)
    assert sizes == {100}


def test_a_model_that_looks_at_its_batch_is_refused_or_passes_inputs_one_by_one() -> None:
    """Batch statistics: the label of an input is not its own, so there is nothing to certify."""
    module = nn.Sequential(nn.BatchNorm1d(8, track_running_stats=False), nn.Linear(8, 2))
    law, x = noise.gaussian(sigma=0.5), torch.full((8,), 5.0)
    with pytest.raises(CertifyError, match=r"depends on the other inputs .* --batch 1"):
        SmoothedClassifier(module, law, seed=0).certify(x, 2, n=1000)

    def spread(batch: torch.Tensor) -> torch.Tensor:
        return (batch[:, 0] > batch[:, 0].mean()).long()

    with pytest.raises(CertifyError, match="no function of its input"):
        SmoothedClassifier(spread, law, num_classes=2, seed=0).votes(x, 10, start=0)
    alone = SmoothedClassifier(spread, law, num_classes=2, seed=0, batch=1)
    assert list(alone.votes(x, 10, start=0)) == [10, 0]


def test_a_classifier_that_draws_is_not_taken_for_one_that_looks_at_its_batch() -> None:
    """Rare flips of its own: in 50 tries no refusal (one would need the same flips again)."""
    torch.manual_seed(0)

    def model(batch: torch.Tensor) -> torch.Tensor:
        return (torch.rand(len(batch)) < 0.01).long()

    law, x = noise.gaussian(sigma=0.5), torch.zeros(3)
    for seed in range(50):
        SmoothedClassifier(model, law, num_classes=2, seed=seed).votes(x, 1, start=0)
