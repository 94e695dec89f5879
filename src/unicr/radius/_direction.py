"""Phase II, direction optimisation: the spectrum with the smallest ‖λδ‖_p on the boundary.

k equal coordinates for every k on a geometric grid, one or two large ones with dust, unequal
pairs; then refinement around the best. A direction is solved only when it fails at the best radius
found so far, so most cost one evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from unicr.noise import Noise
from unicr.norms import Norm
from unicr.radius._boundary import find_first_root
from unicr.radius._question import Evidence, Question
from unicr.radius._spectrum import Spectrum, dusty_spectrum, equal_spectrum, pair_spectrum
from unicr.radius.theorems import find_exact_bound
from unicr.tradeoff import compute_tradeoff
from unicr.tradeoff.internal import compute_margin, compute_start_margin, guess_radius

# Nothing here proves: the numbers say where the search looks and how finely, no more.
SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.6)  # of Σ|δ_i|^p, in the dust
RATIOS = (0.15, 0.4, 0.65, 0.85)  # of two unequal coordinates
COARSE = 3e-4  # variance added to a log-ratio's law while directions are compared
FINE = 2e-5  # and when the best one is measured
IMPROVEMENT = 5e-5  # of the radius: a smaller gain is not worth a new direction


def has_spectra(noise: Noise) -> bool:
    """Whether a direction matters only by how many coordinates move by how much.

    This holds where coordinates are independent and alike, and for densities of max|z_i|.
    """
    return noise.iid is not None or (noise.radial is not None and math.isinf(noise.radial.order))


def find_worst_directions(question: Question) -> tuple[Spectrum, ...] | None:
    """The worst directions (the two signs of one, at most), where a theorem names them."""
    bound = find_exact_bound(question)
    return None if bound is None else bound.directions


def list_candidates(question: Question) -> list[Spectrum]:
    """Every direction worth one evaluation, unscaled; the two classical ones first."""
    noise, norm, dim = question.noise, question.norm, question.dim
    known = find_worst_directions(question)
    if known is not None:
        return list(known)
    if dim == 1:
        return (
            [equal_spectrum(1)]
            if noise.facts.symmetric
            else [equal_spectrum(1), equal_spectrum(1, -1.0)]
        )
    mixed = [] if noise.facts.symmetric else [_mix_signs(dim, n) for n in list_counts(dim)[:-1]]
    if math.isinf(norm.p) and noise.facts.unimodal:  # T falls as any coordinate moves farther
        return [equal_spectrum(dim), equal_spectrum(dim, -1.0), *mixed]
    counts = list_counts(dim)
    spectra = [equal_spectrum(1), equal_spectrum(dim), *(equal_spectrum(k) for k in counts[1:-1])]
    if not math.isinf(norm.p):
        for big in (1, 2):
            spectra += [dusty_spectrum(big, dim - big, s, norm) for s in SHARES if dim > big]
        spectra += [pair_spectrum(ratio) for ratio in RATIOS]
    if not noise.facts.symmetric:
        spectra = [*spectra, *(_negate(spectrum) for spectrum in spectra), *mixed]
    return spectra


def list_counts(dim: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 11, … up to dim: steps of about √2."""
    counts = {1, dim}
    k = 1.0
    while k < dim:
        counts.add(round(k))
        k *= math.sqrt(2)
    return sorted(c for c in counts if c <= dim)


def _negate(spectrum: Spectrum) -> Spectrum:
    return Spectrum(tuple((-size, count) for size, count in spectrum.levels))


def _mix_signs(dim: int, negative: int) -> Spectrum:
    return Spectrum(((1.0, dim - negative), (-1.0, negative)))


def list_neighbours(best: Spectrum, norm: Norm, dim: int, step: float) -> Iterator[Spectrum]:
    """Directions near the best one: other counts, shares and ratios, closer as `step` falls."""
    levels = best.levels
    if len(levels) == 1:
        size, k = levels[0]
        for factor in (1 / (1 + step), 1 + step):
            count = min(max(round(k * factor), 1), dim)
            if count != k:
                yield equal_spectrum(count, math.copysign(1.0, size))
        if k < dim and not math.isinf(norm.p):
            yield from (dusty_spectrum(k, dim - k, share, norm) for share in (0.01, 0.03))
        return
    (a, m), (b, n) = levels
    if math.isinf(norm.p) and m + n == dim:  # other numbers of each sign
        for factor in (1 / (1 + step), 1 + step):
            negative = round(n * factor)
            if 1 <= negative < dim and negative != n:
                yield _mix_signs(dim, negative)
        return
    if not math.isinf(norm.p):
        for factor in (1 / (1 + step), 1 + step):
            yield Spectrum(((a, m), (b * factor, n)))
    for change in (-1, 1):
        if m + change >= 1 and m + n + change <= dim:
            yield Spectrum(((a, m + change), (b, n)))
        if n > 1 and m + n < dim:
            yield Spectrum(((a, m), (b, min(max(round(n * (1 + step * change)), 1), dim - m))))


def search_direction(
    question: Question, evidence: Evidence, *, closed: bool = True, proved: float = 0.0
) -> tuple[float, Spectrum]:
    """The smallest boundary radius found, on the certified side, and its direction (unit length).

    `closed=False` composes even where one coordinate has a closed form. In one dimension the
    search of a density with several modes begins at what is `proved`.

    See docs/theory.md#directions-of-iid-noise.
    """
    noise, norm, dim = question.noise, question.norm, question.dim
    p_a, p_b, guess = evidence.p_a, evidence.p_b, _guess(question, evidence)
    monotone = noise.facts.unimodal  # on either side of 0, with or without symmetry: (c), (j)
    begin = proved if dim == 1 else 0.0

    def value_along(spectrum: Spectrum, spread: float) -> Callable[[float], float]:
        unit = spectrum.unit(norm)

        def value(r: float) -> float:
            return compute_margin(
                compute_tradeoff(noise, unit.shifts(r), spread=spread, closed=closed), p_a, p_b
            )

        return value

    def root(spectrum: Spectrum, spread: float, near: float, stop: float = math.inf) -> float:
        start, endless = compute_start_margin(p_a, p_b), p_a == 1.0
        value = value_along(spectrum, spread)
        return find_first_root(
            value, start, near, monotone=monotone, endless=endless, stop=stop, proved=begin
        )

    best_radius, best = math.inf, None
    tried: set[Spectrum] = set()

    def consider(spectrum: Spectrum) -> bool:
        nonlocal best_radius, best
        unit = spectrum.unit(norm)
        if unit in tried:
            return False
        tried.add(unit)
        limit = best_radius * (1 - IMPROVEMENT)
        if best is not None and monotone and value_along(unit, COARSE)(limit) >= 0:
            return False
        radius = root(unit, COARSE, guess if best is None else best_radius, best_radius)
        improves = radius < limit or best is None
        if improves:
            best_radius, best = radius, unit
        return improves

    for spectrum in list_candidates(question):
        consider(spectrum)
    assert best is not None
    if find_worst_directions(question) is None and math.isfinite(best_radius):
        step = 0.3
        for _ in range(24):
            improved = [consider(near) for near in list(list_neighbours(best, norm, dim, step))]
            if not any(improved):
                step /= 2.5
                if step < 0.02:
                    break
    near = best_radius if math.isfinite(best_radius) and best_radius > 0 else guess
    return root(best, FINE, near), best


def _guess(question: Question, evidence: Evidence) -> float:
    """About how large the radius is along one coordinate."""
    noise = question.noise
    size = noise.scale
    if noise.radial is not None:
        size = float(noise.radial.length.ppf(0.5)) / question.dim
    return size * guess_radius(evidence.p_a, evidence.p_b)
