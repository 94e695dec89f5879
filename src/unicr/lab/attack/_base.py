"""What an attack is: a direction for every input, scaled into the ball of its certified radius.

`Attack.perturb` is final: it asks the attack for directions and returns moved inputs whose actual
float32 difference, measured in float64, is strictly shorter than the bound. A certificate speaks of
nothing longer, so a single ulp above the radius would be a false alarm.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import random
import warnings
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
import torch
from numpy.typing import NDArray

from unicr.extras import require
from unicr.lab.attack._settings import AttackError
from unicr.norms import Norm
from unicr.registry import Catalogue
from unicr.smoothing import SmoothedModel

Bounds = NDArray[np.float64]
Memory = dict[Hashable, torch.Tensor]
ROUNDING = 1e-10  # far above the float64 error of a norm, far below what a radius means


@dataclass(frozen=True, eq=False)
class Targets:
    """What is attacked together: inputs (n, …), the class of each, the smoothed model around them.

    `starts` are inputs that are known to be of other classes, for attacks that walk from one.
    With `clip` every moved input stays within [0, 1].
    """

    x: torch.Tensor
    classes: torch.Tensor
    model: SmoothedModel
    seed: int = 0
    clip: bool = False
    starts: tuple[torch.Tensor, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.x)

    @property
    def dim(self) -> int:
        """Coordinates of one input."""
        return self.x[0].numel()

    def moved(self, delta: torch.Tensor) -> torch.Tensor:
        """x + δ as the attack sees it, differentiable."""
        moved = self.x + delta
        return moved.clamp(0.0, 1.0) if self.clip else moved

    def margin(self, delta: torch.Tensor) -> torch.Tensor:
        """log p of the certified class at x + δ less that of the best other one."""
        log_probabilities = self.model(self.moved(delta))
        claimed = log_probabilities.gather(1, self.classes[:, None])[:, 0]
        others = log_probabilities.scatter(1, self.classes[:, None], -torch.inf)
        return claimed - others.max(1).values


@dataclass(frozen=True)
class Attack(ABC):
    """One attack with its settings as fields; `EFFORT` names those that more work multiplies."""

    name: ClassVar[str]
    differentiates: ClassVar[bool] = False
    images_only: ClassVar[bool] = False
    EFFORT: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for option in dataclasses.fields(self):
            value = getattr(self, option.name)
            if not value > 0:
                raise AttackError(f"{self.name}: {option.name}={value!r} must be above 0")

    def scaled(self, effort: float) -> Attack:
        """The same attack with `effort` times as many steps, queries or tries."""
        if not effort > 0:
            raise AttackError(f"effort={effort!r} must be above 0")
        more = {key: max(1, round(getattr(self, key) * effort)) for key in self.EFFORT}
        return dataclasses.replace(self, **more)

    def settings(self) -> dict[str, Any]:
        """The values of its fields."""
        return dataclasses.asdict(self)

    @final
    def perturb(
        self, targets: Targets, norm: Norm, bounds: Bounds, memory: Memory | None = None
    ) -> torch.Tensor:
        """Moved inputs, each strictly within its own bound of the input, in this norm.

        `memory` keeps directions that do not depend on the norm or the bound, for later calls
        with the same targets. Where the attack finds no direction, a random one is taken.
        """
        self.check(targets.model, tuple(targets.x.shape[1:]))
        bounds = np.asarray(bounds, dtype=np.float64)
        if bounds.shape != (len(targets),) or not bool(np.all((bounds > 0) & np.isfinite(bounds))):
            raise AttackError(f"bounds {bounds}: give one finite number above 0 for each input")
        if targets.clip and not bool(((targets.x >= 0) & (targets.x <= 1)).all()):
            raise AttackError(
                "clip keeps changed inputs in [0, 1], but some inputs are outside before any change"
            )
        memory = {} if memory is None else memory
        key = self._key(norm, bounds)
        if key not in memory:
            seed = mix_seed(targets.seed, self.name, key)
            with fix_seed(seed):
                directions = self._directions(targets, norm, bounds, seed)
                memory[key] = _replace_useless(directions.detach().to(torch.float64).cpu())
        moved = [
            within(x, v, norm, bound)
            for x, v, bound in zip(targets.x.cpu(), memory[key], bounds.tolist(), strict=True)
        ]
        result = torch.stack(moved).to(targets.x.device)
        return result.clamp(0.0, 1.0) if targets.clip else result

    def check(self, model: SmoothedModel, shape: tuple[int, ...]) -> None:
        """Refuse what this attack cannot work on."""
        if self.differentiates and not model.differentiable:
            raise AttackError(
                f"{self.name} needs gradients, but {model.name} is not a torch module: use square, "
                "hopskipjump, procedural or gaussian, which need labels only"
            )
        if self.images_only and (len(shape) not in (2, 3) or min(shape[-2:]) < 5):
            raise AttackError(
                f"{self.name} needs images of at least 5 x 5 pixels, not inputs of shape {shape}: "
                "use apgd, hopskipjump or gaussian"
            )

    def _key(self, norm: Norm, bounds: Bounds) -> Hashable:
        """What the directions depend on, beside the targets."""
        return norm.text, tuple(bounds.tolist())

    @abstractmethod
    def _directions(self, targets: Targets, norm: Norm, bounds: Bounds, seed: int) -> torch.Tensor:
        """A direction for every input, of any length; torch and numpy are seeded already."""


def within(x: torch.Tensor, direction: torch.Tensor, norm: Norm, bound: float) -> torch.Tensor:
    """x moved along the direction to just below the bound: float32, with ‖moved − x‖ < bound.

    The norm is that of the rounded numbers, in float64; where rounding made it too long, the step
    is shortened until it is not.
    """
    origin = np.asarray(x, dtype=np.float64)
    way = np.asarray(direction, dtype=np.float64)
    top = float(np.max(np.abs(way), initial=0.0))
    if top == 0 or not np.isfinite(top):
        return x.clone()
    way = way / top
    step, less = bound / norm(way), 2.0**-40
    while True:
        with np.errstate(over="ignore"):
            moved = (origin + step * way).astype(np.float32)
        length = norm(moved.astype(np.float64) - origin)
        if length * (1 + ROUNDING) < bound:
            return torch.from_numpy(moved)
        step *= min(bound / length, 1.0) * (1 - less)
        less = min(2 * less, 0.5)


def best_of(
    targets: Targets, norm: Norm, bounds: Bounds, candidates: Iterable[torch.Tensor]
) -> torch.Tensor:
    """The one of several candidate directions that hurts each input most."""
    best = torch.zeros_like(targets.x)
    least = torch.full((len(targets),), torch.inf, device=targets.x.device)
    for candidate in candidates:
        length = per_input([norm(row) for row in candidate], targets.x)
        delta = candidate.to(targets.x) * per_input(bounds, targets.x) / length
        with torch.no_grad():
            margin = targets.margin(delta)
        better = margin < least
        least[better], best[better] = margin[better], delta[better]
    return best


def _replace_useless(directions: torch.Tensor) -> torch.Tensor:
    """Directions with those that are zero or not finite replaced by random ones."""
    flat = directions.flatten(1)
    bad = ~torch.isfinite(flat).all(1) | (flat == 0).all(1)
    flat[bad] = torch.randn(int(bad.sum()), flat.shape[1], dtype=flat.dtype)
    return flat.view(directions.shape)


def per_input(values: Bounds | Sequence[float], like: torch.Tensor) -> torch.Tensor:
    """One number per input, shaped so that it multiplies a batch."""
    flat = torch.as_tensor(np.asarray(values), dtype=like.dtype, device=like.device)
    return flat.view(-1, *[1] * (like.ndim - 1))


class Cube(torch.nn.Module):
    """The smoothed model in coordinates where every input is the middle of the unit cube.

    A library's own ball there, of `shape` L1, L2 or Linf and radius ½, touches the sides: it is the
    ball of the norm, or has its size along a direction whose coordinates are all alike.
    """

    def __init__(self, targets: Targets, norm: Norm, bounds: Bounds) -> None:
        super().__init__()
        self.shape = "Linf" if norm.p == np.inf else "L1" if norm.p <= 1 else "L2"
        relative = targets.dim ** (0.5 - 1 / norm.p) if self.shape == "L2" else 1.0
        self._targets, self._width = targets, 2 * relative * per_input(bounds, targets.x)

    def delta(self, z: torch.Tensor) -> torch.Tensor:
        """How far z is from the input."""
        return (z - 0.5).view(self._targets.x.shape) * self._width

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        log_probabilities: torch.Tensor = self._targets.model(self._targets.moved(self.delta(z)))
        return log_probabilities


def mix_seed(*parts: object) -> int:
    """A seed of 63 bits from a seed and what it is for."""
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return int.from_bytes(digest[:8]) >> 1


@contextmanager
def fix_seed(seed: int) -> Iterator[None]:
    """The global generators that attack libraries draw from, seeded inside and restored after."""
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)  # noqa: NPY002


@contextmanager
def quiet() -> Iterator[None]:
    """Warnings of attack libraries (old interfaces, numbers that overflow) are not the user's."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def library(module: str) -> Any:
    """A module of an attack library; its root names the extra where it is missing."""
    with quiet():
        require(module.partition(".")[0], "attack")
        return importlib.import_module(module)


ATTACKS: Catalogue[type[Attack]] = Catalogue(
    "unicr.attacks", "unicr.lab.attack", Attack, classes=True
)


def make(name: str, effort: float = 1.0) -> Attack:
    """The attack of that name, with `effort` times its usual steps."""
    if name not in ATTACKS:
        raise AttackError(f"there is no attack {name!r}; there are {', '.join(ATTACKS)}")
    return ATTACKS[name]().scaled(effort)
