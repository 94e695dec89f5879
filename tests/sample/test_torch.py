"""The same draws by torch operations: every family, bit for bit, on tensors of the processor."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.sample.test_law import LAWS, bimodal
from unicr import noise
from unicr.noise import IID
from unicr.sample import Fill, choose_step, derive, host_share, integer_law, words_at
from unicr.sample._torch import key_on, words

KEY = derive("a test")
CPU = torch.device("cpu")
# every family at the lower end of its range, where tails are heaviest, and a user's density
FAMILIES: dict[str, IID] = {
    name: law
    for name, kind in noise.FAMILIES.items()
    if not kind.joint
    and (law := kind(**{one.name: one.low for one in kind.parameters}, scale=1).iid) is not None
} | {"a user's": noise.from_density(bimodal), "gaussian * 0.3": noise.gaussian(sigma=0.3)}


@pytest.mark.parametrize("first", [0, 5, 2**36 - 300, 2**61 + 17])
def test_words_are_those_of_numpy(first: int) -> None:
    made = words(key_on(KEY, CPU), 3, first, 1000).numpy()
    assert np.array_equal(made, words_at(KEY, 3, np.arange(first, first + 1000, dtype=np.uint64)))


def both(one: IID, step: float, integers: bool, n: int, start: int) -> tuple[torch.Tensor, ...]:
    row = np.arange(784) % 256 - 30.0 if integers else np.linspace(-1, 2, 784)
    fill = Fill(integer_law(one, step), row, key=KEY, step=step, integers=integers)
    compiled, plain = torch.empty(n, 784), torch.empty(n, 784)
    fill.fill_tensor(compiled, start)
    fill.fill_by_torch(plain, start)
    return compiled, plain


@pytest.mark.parametrize("name", FAMILIES)
def test_a_million_draws_are_the_same_bits(name: str) -> None:
    one = FAMILIES[name]
    assert torch.equal(*both(one, choose_step(one), False, 1300, 3))


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_ten_million_draws_are_the_same_bits(name: str) -> None:
    one = FAMILIES[name]
    for start in range(0, 12_800, 1600):
        assert torch.equal(*both(one, choose_step(one), False, 1600, start))


@pytest.mark.parametrize(("one", "step"), LAWS, ids=lambda x: getattr(x, "text", str(x)))
def test_lattices_coarse_and_fine_are_the_same_bits(one: IID, step: float) -> None:
    assert torch.equal(*both(one, step, True, 130, 1 << 40))


@pytest.mark.parametrize("name", FAMILIES)
def test_the_processor_fills_in_less_than_half_a_percent(name: str) -> None:
    one = FAMILIES[name]
    for step in (choose_step(one), choose_step(one) * 2**15):
        assert host_share(integer_law(one, step)) < 5e-3
