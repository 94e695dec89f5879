"""Any noise on R^d given by its log-density and a sampler: no symmetry, no independence assumed."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from unicr.errors import NoiseError
from unicr.law import Facts
from unicr.noise._base import Draws, Noise
from unicr.noise._family import dimension
from unicr.sample import derive
from unicr.text import number

if TYPE_CHECKING:
    import torch

BLOCK = 64  # samples that one generator makes: what a batch of any size is cut from
CHECK_WORK = 1 << 21  # samples × coordinates of the two-sample check: a second or so
CHECK_SAMPLES = (256, 32_768)  # least and most samples of it
CHECK_STREAM = 0x4D43_0100  # streams of its own: no certificate uses these samples
CHECK_KEY = derive("unicr joint")
FALSE_ALARM = 1e-6  # of the whole check, shared evenly by its tests


class Joint(Noise):
    """Any noise, given by its log-density and a sampler.

    `logpdf(z)` maps (n, dim) to (n,); it need not be normalised. `sampler(n, generator)` returns
    (n, dim) and must draw from `generator` only. Samples are made in blocks of 64, each with its
    own seeded generator. So sample s of a stream does not depend on the batch size. Facts are what
    the caller states: pass `symmetric=True` if μ(−z) = μ(z).
    """

    in_threads = False
    dim: int
    _logpdf: Callable[[torch.Tensor], torch.Tensor]
    _sampler: Callable[[int, torch.Generator], torch.Tensor]
    _name: str
    _scale: float
    _facts: Facts

    def __init__(
        self,
        logpdf: Callable[[torch.Tensor], torch.Tensor],
        sampler: Callable[[int, torch.Generator], torch.Tensor],
        *,
        dim: int,
        symmetric: bool = False,
        log_concave: bool = False,
        bounded: bool = False,
        finite_variance: bool = True,
        unimodal: bool = False,
        positive: bool = False,
        name: str | None = None,
    ) -> None:
        label = getattr(logpdf, "__name__", type(logpdf).__name__)
        facts = Facts(
            symmetric=symmetric,
            log_concave=log_concave,
            bounded=bounded,
            finite_variance=finite_variance,
            unimodal=unimodal or log_concave,
            positive=positive,
            source="declared",
        )
        vars(self).update(
            dim=dimension(dim, 1),
            _logpdf=logpdf,
            _sampler=sampler,
            _name=name or f"Joint({label}, dim={dim})",
            _scale=1.0,
            _facts=facts,
        )
        self._check()

    def _check(self) -> None:
        import torch

        z = self._block(CHECK_KEY, 0)
        if not bool(torch.isfinite(z).all()):
            raise NoiseError(f"the sampler of {self._name} returned a value that is not finite")
        if not torch.equal(z, self._block(CHECK_KEY, 0)):
            raise NoiseError(
                f"the sampler of {self._name} gave different values for the same generator: draw "
                "from the `generator` that it is given and from nothing else"
            )
        if not bool(torch.isfinite(self.log_prob(z)).all()):
            raise NoiseError(
                f"the log-density of {self._name} is not finite at its own samples, so density and "
                "sampler do not match"
            )

    def check_agreement(self) -> None:
        """Raise NoiseError where sampler and density disagree; a right pair does once in 10⁶ times.

        A Metropolis step z → z' (taken with chance min(1, μ(z')/μ(z)), z' proposed evenly) is
        reversible: if the samples follow μ, normalised or not, then D = f(z') − f(z) is symmetric
        about 0 for every f, and |Σ D|/√(Σ D²) > x has probability at most 2·exp(−x²/2) (Hoeffding,
        given |D|). Tested with steps along lines v, for f = location, spread and tail of v·z (v the
        mean and the weakest and strongest directions of other samples, single coordinates, random
        ones); with steps in all coordinates, for f = log μ; and with stretched z, for f = log|z|.
        So wrong shifts, scales, correlations and shapes are seen, the finer the more samples fit
        into the check: 10 % of scale up to thousands of coordinates, little beyond 10,000.
        """
        if not _agrees(self):
            raise NoiseError(
                f"the samples of {self._name} do not follow its density (two-sample check, "
                f"false alarm {FALSE_ALARM:g}): make `sampler` draw from exp(logpdf)"
            )

    @property
    def _text(self) -> str:
        return self._name if self._scale == 1.0 else f"{self._name} * {number(self._scale)}"

    @property
    def _key(self) -> tuple[Any, ...]:
        return (type(self), self._logpdf, self._sampler, self.dim, self._scale)

    @property
    def facts(self) -> Facts:
        return self._facts

    @property
    def sigma(self) -> float:
        """sqrt(E‖ε‖²/d), estimated from 4,096 samples."""
        import torch

        if not self._facts.finite_variance:
            return math.inf
        z = self.sample(4096, seed=1, dtype=torch.float64)
        return float(z.square().mean().sqrt())

    def _scale_by(self, factor: float) -> Self:
        return self._copy(_scale=self._scale * factor)

    def log_prob(self, z: torch.Tensor) -> torch.Tensor:
        import torch

        flat = z.flatten(1).to(torch.float64) / self._scale
        values = torch.as_tensor(self._logpdf(flat), dtype=torch.float64)
        if tuple(values.shape) != (len(flat),):
            raise NoiseError(
                f"the log-density of {self._name} returned shape {tuple(values.shape)} for "
                f"{len(flat)} samples: it must return one number for each, shape ({len(flat)},)"
            )
        if bool(torch.isnan(values).any()):
            raise NoiseError(f"the log-density of {self._name} returned NaN")
        return values - self.dim * math.log(self._scale)

    def _block(self, key: bytes, block: int) -> torch.Tensor:
        import torch

        seed = int.from_bytes(derive(key, "block", block)[:8], "little") >> 1
        generator = torch.Generator().manual_seed(seed)
        z = torch.as_tensor(self._sampler(BLOCK, generator))
        if tuple(z.shape) != (BLOCK, self.dim):
            raise NoiseError(
                f"the sampler of {self._name} returned shape {tuple(z.shape)}, but "
                f"{(BLOCK, self.dim)} is needed"
            )
        return z

    def _fill(self, out: torch.Tensor, draws: Draws, base: torch.Tensor | None) -> None:
        start = draws.start
        stop = start + out.shape[0]
        for block in range(start // BLOCK, (stop + BLOCK - 1) // BLOCK):
            z = self._block(draws.key, block)
            first, last = max(start, block * BLOCK), min(stop, (block + 1) * BLOCK)
            rows = z[first - block * BLOCK : last - block * BLOCK]
            out[first - start : last - start] = rows.to(out) * self._scale
        if base is not None:
            out.add_(base)


@lru_cache(maxsize=64)
def _agrees(noise: Joint) -> bool:
    import torch

    least, most = CHECK_SAMPLES
    n = min(max(CHECK_WORK // noise.dim, least), most)
    n += -n % BLOCK
    pilot = noise.sample(min(n, 4096), input_index=CHECK_STREAM, dtype=torch.float64)
    z = noise.sample(n, input_index=CHECK_STREAM + 1, dtype=torch.float64)
    generator = torch.Generator().manual_seed(CHECK_STREAM)
    before = noise.log_prob(z)
    tests: list[torch.Tensor] = []

    def accept(after: torch.Tensor) -> torch.Tensor:
        """Which Metropolis steps to points of these log-densities are taken."""
        coin = torch.rand(n, generator=generator, dtype=torch.float64)
        return coin.log() < after - before

    for v in _test_directions(pilot, generator):
        projected = pilot @ v
        centre = projected.median()
        spread = (projected - centre).abs().median().clamp_min(1e-300) * 1.5
        # jumps about as long as the law is wide: most are taken, and each still moves the sample
        jump = torch.randn(n, generator=generator, dtype=torch.float64) * 1.5
        move = accept(noise.log_prob(z + (jump * spread)[:, None] * v))
        start = (z @ v - centre) / spread
        tests += [(f(start + jump) - f(start)) * move for f in _STATISTICS]

    centre = pilot.median(0).values
    each = (pilot - centre).abs().median(0).values * 1.5
    jumps = torch.randn(z.shape, generator=generator, dtype=torch.float64) * each
    after = noise.log_prob(z + jumps * (1.5 / math.sqrt(noise.dim)))
    move = accept(after)
    tests.append(after[move] - before[move])

    stretch = torch.randn(n, generator=generator, dtype=torch.float64) / math.sqrt(noise.dim)
    stretched = centre + (z - centre) * stretch.exp()[:, None]
    tests.append(stretch * accept(noise.log_prob(stretched) + noise.dim * stretch))

    # Hoeffding, two-sided, with a share of the false alarm for each test
    limit = math.sqrt(2 * math.log(2 * len(tests) / FALSE_ALARM))
    return all(abs(float(d.sum())) <= limit * float(d.square().sum().sqrt()) for d in tests)


def _test_directions(pilot: torch.Tensor, generator: torch.Generator) -> list[torch.Tensor]:
    """Unit vectors along which the pilot samples or chance suggest to look."""
    import torch

    dim = pilot.shape[1]
    directions = []
    if 1 < dim <= 256:
        _, vectors = torch.linalg.eigh(torch.cov(pilot.T))
        directions += [vectors[:, 0], vectors[:, -1]]
    mean = pilot.median(0).values
    if float(mean.norm()) > 0:
        directions.append(mean / mean.norm())
    for i in sorted({0, dim // 2, dim - 1}):
        row = torch.zeros(dim, dtype=torch.float64)
        row[i] = 1.0
        directions.append(row)
    if dim > 1:
        for _ in range(2):
            row = torch.randn(dim, generator=generator, dtype=torch.float64)
            directions.append(row / row.norm())
    return directions


_STATISTICS: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    lambda x: x.tanh(),  # location
    lambda x: (x.abs() - 1).tanh(),  # spread
    lambda x: (2 * (x.abs() - 2.5)).tanh(),  # tail
)
