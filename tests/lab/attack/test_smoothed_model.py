"""The smoothed model that attacks differentiate, against closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from scipy import stats
from torch import nn

from tests.lab.attack.planted import Linear, Probit, weights
from unicr import noise
from unicr.classifier import Classifier, Denoised, Normalised, load_classifier
from unicr.errors import ModelError
from unicr.smoothing import SmoothedModel, SmoothedModule

SIGMA = 0.7


def probit(samples: int, *, fresh: bool = False, batch: int = 1024) -> SmoothedModel:
    classifier = load_classifier(Probit(weights(6)))
    law = noise.gaussian(sigma=SIGMA)
    return SmoothedModel(
        classifier, [law], [4], (6,), samples=samples, fresh=fresh, batch=batch, seed=2
    )


def test_probability_and_gradient_are_those_of_the_probit_model() -> None:
    """E Φ(w·(x + ε)) = Φ(w·x/√(1 + σ²‖w‖²)).

    Hoeffding: a mean of n numbers in an interval of length c is off by more than 3.5·c/√n with
    probability below 5e-11; seven such means are compared.
    """
    n = 20_000
    weight = weights(6)
    x = torch.tensor([[0.3, -0.2, 0.1, 0.4, -0.5, 0.2]], requires_grad=True)
    spread = math.sqrt(1 + SIGMA**2 * float(weight.square().sum()))
    at = float(x.detach()[0] @ weight) / spread
    p = probit(n)(x)[0, 1].exp()
    assert abs(float(p.detach()) - stats.norm.cdf(at)) < 3.5 / math.sqrt(n)
    (gradient,) = torch.autograd.grad(p, x)
    exact = stats.norm.pdf(at) / spread * weight
    steepest = 2 * weight.abs() * stats.norm.pdf(0)
    assert bool(((gradient[0] - exact).abs() < 3.5 * steepest / math.sqrt(n)).all())


def test_fixed_noise_repeats_and_fresh_noise_averages_out() -> None:
    x = torch.zeros(1, 6)
    fixed, fresh = probit(500), probit(500, fresh=True)
    with torch.no_grad():
        assert torch.equal(fixed(x), fixed(x))
        several = [float(fresh(x)[0, 1].exp()) for _ in range(40)]
        together = float(probit(20_000)(x)[0, 1].exp())
    assert len(set(several)) == 40
    assert sum(several) / 40 == pytest.approx(together, abs=1e-5)


def test_passes_of_any_size_give_the_same_values_and_gradients() -> None:
    values = []
    for batch in (7, 4096):
        x = torch.full((1, 6), 0.2, requires_grad=True)
        out = probit(100, batch=batch)(x)[0, 1]
        values.append((out.detach(), torch.autograd.grad(out, x)[0]))
    torch.testing.assert_close(values[0][0], values[1][0])
    torch.testing.assert_close(values[0][1], values[1][1])


def test_every_input_has_its_own_noise() -> None:
    classifier = load_classifier(Probit(weights(6)))
    laws = [noise.gaussian(sigma=0.2), noise.laplace(sigma=2.0)]
    x = torch.rand(2, 6)
    both = SmoothedModel(classifier, laws, [3, 8], (6,), samples=50)
    for i, index in enumerate((3, 8)):
        alone = SmoothedModel(classifier, laws[i : i + 1], [index], (6,), samples=50)
        torch.testing.assert_close(both(x)[i], alone(x[i : i + 1])[0])
        row = torch.tensor([i, i])
        torch.testing.assert_close(both(x[i].expand(2, 6), row)[1], both(x)[i])


def test_the_weights_are_left_alone() -> None:
    module = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 2)).train()
    model = SmoothedModel(
        load_classifier(module), [noise.gaussian(sigma=0.1)], [0], (6,), samples=20
    )
    x = torch.rand(1, 6, requires_grad=True)
    first = model(x)
    first.sum().backward()
    assert x.grad is not None
    assert all(weight.grad is None and weight.requires_grad for weight in module.parameters())
    assert module.training
    assert torch.equal(first, model(x))


def test_normalised_and_denoised_models_are_differentiated_as_a_whole() -> None:
    weight = weights(4)
    base = load_classifier(Linear(weight))
    denoiser = nn.Linear(4, 4, bias=False)
    law = [noise.gaussian(sigma=0.05)]
    wrapped: list[tuple[Classifier, Callable[[torch.Tensor], torch.Tensor]]] = [
        (Normalised(base, 0.3, 2.0), lambda x: (x - 0.3) / 2.0),
        (Denoised(denoiser, base), denoiser),
    ]
    for classifier, before in wrapped:
        model = SmoothedModel(classifier, law, [0], (4,), samples=200)
        plain = SmoothedModel(base, law, [0], (4,), samples=200)
        x = torch.rand(1, 4, requires_grad=True)
        (gradient,) = torch.autograd.grad(model(x)[0, 1], x)
        noisy = before(x[:, None] + plain._sampled()).flatten(0, 1)
        expected = torch.log_softmax(base.module(noisy), 1).exp().mean(0).log()  # type: ignore[attr-defined]
        torch.testing.assert_close(model(x)[0], expected)
        torch.testing.assert_close(gradient, torch.autograd.grad(expected[1], x)[0])


def test_a_single_score_counts_as_two_classes() -> None:
    weight = weights(4)
    one = nn.Linear(4, 1, bias=False)
    one.weight.data = weight[None].clone()
    law = [noise.gaussian(sigma=0.5)]
    x = torch.rand(1, 4)
    single = SmoothedModel(load_classifier(one), law, [0], (4,), samples=30)(x)
    double = SmoothedModel(load_classifier(Linear(weight)), law, [0], (4,), samples=30)(x)
    torch.testing.assert_close(single, double)


def first_is_positive(batch: torch.Tensor) -> torch.Tensor:
    return (batch[:, 0] > 0).long()


def test_a_model_without_gradients_answers_with_shares_of_votes() -> None:
    classifier = load_classifier(first_is_positive, num_classes=3)
    model = SmoothedModel(classifier, [noise.gaussian(sigma=1)], [0], (4,), samples=40)
    x = torch.zeros(1, 4)
    votes = model.votes(x)[0]
    assert not model.differentiable
    assert int(votes.sum()) == 40
    assert 0 < int(votes[1]) < 40
    torch.testing.assert_close(model(x)[0], ((votes + 0.5) / 41.5).log())


def test_the_number_of_classes_must_be_known() -> None:
    law = [noise.gaussian(sigma=1)]
    with pytest.raises(ModelError, match="give num_classes"):
        SmoothedModel(load_classifier(first_is_positive), law, [0], (4,))


class Labels(nn.Module):
    """A module that gives labels instead of scores."""

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return (batch[:, 0] > 0).long()


def test_a_module_that_gives_labels_has_no_gradient() -> None:
    law = [noise.gaussian(sigma=1)]
    model = SmoothedModel(load_classifier(Labels()), law, [0], (4,), num_classes=2)
    with pytest.raises(ModelError, match="labels, which have no gradient"):
        model(torch.zeros(1, 4))


def test_the_public_module_is_the_model_for_any_batch() -> None:
    """Its gradient is that of Φ, as for the model with streams; a fresh one changes its noise."""
    torch.manual_seed(0)
    base = torch.nn.Linear(4, 3)
    law = noise.gaussian(sigma=0.5)
    g = SmoothedModule(base, law, samples=200)
    for n in (3, 2):
        x = torch.randn(n, 4, requires_grad=True)
        streams = SmoothedModel(load_classifier(base), [law] * n, range(n), (4,), samples=200)
        assert torch.equal(g(x), streams(x))
        (slope,) = torch.autograd.grad(g(x)[:, 0].sum(), x)
        assert slope.abs().sum() > 0
    x = torch.zeros(1, 4)
    assert torch.equal(g(x), g(x))
    fresh = SmoothedModule(base, law, samples=50, fresh=True)
    assert not torch.equal(fresh(x), fresh(x))
