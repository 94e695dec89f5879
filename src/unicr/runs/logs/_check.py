"""What in a published log cannot be as it says: radii, digits, labels, rows, sums.

Nothing here needs the model. A finding is a contradiction inside the log, with its siblings, or
with the n, α and noise that its authors state; it does not say which of the two sides is wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from unicr.binomial import lower_bound
from unicr.errors import RunError, listed
from unicr.noise import Noise, parse
from unicr.norms import Norm, l2
from unicr.runs.logs._evidence import (
    counts_between,
    gaussian_radius,
    gaussian_sigma,
    largest_bound,
    least_p_a,
    needed_alpha,
    tells_p_a,
)
from unicr.runs.logs._read import BOUND, LogRow, is_log, read_log

SIGMA = re.compile(r"sigma_?(\d+(?:\.\d+)?)|noise_?(\d+(?:\.\d+)?)")
SAME_DATA = 0.9  # share of equal labels from which two logs are of the same data
USUAL = (0.05, 0.025, 0.01, 0.005, 0.001, 0.0005, 0.0001)  # α that people take
SLACK = 1e-9  # of a radius: more than the error of a bound, less than any printed digit


@dataclass(frozen=True)
class Claim:
    """What the authors of logs state. What is None is not checked.

    Parameters
    ----------
    noise
        The noise of the logs. {sigma} means the number after sigma_ (or noise_) in a log's path.
    norm
        The norm of the radii in the logs.
    dim
        Number of input coordinates; needed for norms above 2.
    n
        With alpha: the number of votes that bound p_A.
    alpha
        The stated failure probability of one certificate (one-sided).
    accuracy
        The stated certified accuracies by radius, as printed.
    average
        The stated average certified radius, as printed.
    """

    noise: str | None = None
    norm: Norm = l2
    dim: int | None = None
    n: int | None = None
    alpha: float | None = None
    accuracy: Mapping[float, str] = field(default_factory=dict)
    average: str | None = None

    def law(self, path: Path) -> Noise | None:
        """The noise of one log."""
        if self.noise is None or "{sigma}" not in self.noise:
            return None if self.noise is None else parse(self.noise)
        told = [a or b for a, b in SIGMA.findall(str(path))]
        if not told:
            raise RunError(f"{path} has no part sigma_NUMBER that could replace {{sigma}}")
        return parse(self.noise.replace("{sigma}", told[-1]))


@dataclass(frozen=True)
class Finding:
    """One kind of contradiction in a log: its name, a sentence, and the inputs that show it."""

    kind: str
    text: str
    inputs: tuple[int, ...] = ()


@dataclass(frozen=True)
class CheckedLog:
    """A log, what it says in sum, and the findings."""

    path: Path
    rows: int
    accuracy: float
    average: float
    largest: float
    findings: tuple[Finding, ...]


def find_logs(paths: Iterable[Path]) -> list[Path]:
    """The logs among files and, at any depth, in folders, in the order of their names."""
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise RunError(f"cannot read {path}: the file does not exist")
        if path.is_dir() and not is_log(path):
            found += sorted(one for one in path.rglob("*") if is_log(one))
        else:
            found.append(path)
    if not found:
        raise RunError(f"there is no log in {listed(paths)}")
    return list(dict.fromkeys(found))


def check_logs(paths: Sequence[Path], claim: Claim) -> list[CheckedLog]:
    """Every log by itself, then against those of the same data."""
    read: dict[Path, list[LogRow]] = {}
    findings: dict[Path, list[Finding]] = {path: [] for path in paths}
    for path in paths:
        try:
            read[path] = read_log(path, claim.norm)
            told = any(row.radius_most is not None for row in read[path])
            findings[path] += check_rows(read[path], claim, claim.law(path) if told else None)
        except RunError as error:
            findings[path].append(Finding("unreadable", str(error)))
    for path, finding in compare_logs(read):
        findings[path].append(finding)
    return [_summed(path, read.get(path, []), findings[path]) for path in paths]


def check_rows(rows: Sequence[LogRow], claim: Claim, noise: Noise | None) -> list[Finding]:
    """The findings of one log."""
    found = [*_check_answers(rows), *_check_inputs(rows), *_check_sums(rows, claim)]
    if noise is not None and tells_p_a(noise):
        if gaussian_sigma(noise) is not None and claim.norm.p > 2 and claim.dim is None:
            raise RunError(
                f"l{claim.norm.text} radii depend on the number of coordinates: give --dim"
            )
        found += _check_columns(rows, claim, noise)
        if claim.n is not None and claim.alpha is not None:
            wrong = _check_radii(rows, claim, noise, claim.n, claim.alpha)
            found += [_with_alpha(one, rows, claim, noise, claim.n) for one in wrong]
    if claim.n is not None and claim.alpha is not None:
        found += _check_counts(rows, claim.n, claim.alpha)
    return found


def _finding(
    kind: str, rows: Sequence[LogRow], text: Callable[[LogRow], str], many: str
) -> Iterator[Finding]:
    """A finding about some rows: how many, and the words about the first."""
    if rows:
        first = f"input {rows[0].idx}: {text(rows[0])}"
        head = f"{len(rows)} {many}, " if len(rows) > 1 else ""
        yield Finding(kind, f"{head}{first}", tuple(row.idx for row in rows))


def _check_answers(rows: Sequence[LogRow]) -> Iterator[Finding]:
    wrong = [row for row in rows if row.correct != (row.predict == row.label)]
    yield from _finding(
        "correct",
        wrong,
        lambda r: f"correct is {int(r.correct)}, predict {r.predict} and label {r.label}",
        "rows where correct is not (predict = label)",
    )
    yield from _finding(
        "abstention",
        [row for row in rows if row.predict == -1 and row.radius > 0],
        lambda r: f"an abstention with a radius of {r.radius:.6g} or more",
        "abstentions with a radius",
    )


def _check_inputs(rows: Sequence[LogRow]) -> Iterator[Finding]:
    order = [row.idx for row in rows]
    doubled = [idx for idx, times in Counter(order).items() if times > 1]
    if doubled:
        text = f"{len(doubled)} inputs stand there more than once: {listed(doubled, 5)}"
        yield Finding("doubled", text, tuple(doubled))
    back = [b for a, b in pairwise(order) if b < a]
    if back:
        text = f"the order goes back {len(back)} times, first at input {back[0]}"
        yield Finding("order", text, tuple(back))
    stride = _stride(order)
    if stride is not None:
        there = set(order)
        missing = [i for i in range(min(order), max(order), stride) if i not in there]
        if missing:
            text = f"every {stride}th input, but {len(missing)} are missing: {listed(missing, 5)}"
            yield Finding("missing", text, tuple(missing))


def _stride(order: Sequence[int]) -> int | None:
    """The step between inputs, where most steps are the same."""
    unique = sorted(set(order))
    steps = Counter(b - a for a, b in pairwise(unique))
    if not steps:
        return None
    step, times = steps.most_common(1)[0]
    return step if 2 * times > len(unique) - 1 else None


def _check_columns(rows: Sequence[LogRow], claim: Claim, noise: Noise) -> Iterator[Finding]:
    """A radius that no sound method has at the p_A beside it; under Gaussian noise also less."""
    sigma = gaussian_sigma(noise)

    def differs(row: LogRow) -> bool:
        if row.predict == -1 or row.p_a_most is None or row.radius_most is None:
            return False
        if sigma is not None:
            ends = (row.p_a or 0.0, row.p_a_most)
            low, high = (gaussian_radius(p, sigma, claim.norm, claim.dim or 1) for p in ends)
            return low > row.radius_most * (1 + SLACK) or row.radius > high * (1 + SLACK)
        least = least_p_a(np.array([row.radius]), noise, claim.norm, claim.dim or 1)
        return bool(least[0] > row.p_a_most * (1 + SLACK))

    yield from _finding(
        "columns",
        [row for row in rows if differs(row)],
        lambda r: f"radius {r.radius:.6g} and {BOUND} {r.p_a:.6g} contradict each other",
        f"rows whose radius and {BOUND} contradict each other under {noise.text}",
    )


def _check_radii(
    rows: Sequence[LogRow], claim: Claim, noise: Noise, n: int, alpha: float
) -> list[Finding]:
    """Radii that n votes cannot give at all, or else radii that no count of them gives.

    Where some are too large α is another one, and digits say nothing more.
    """
    return [*_check_largest(rows, claim, noise, n, alpha)] or [
        *_check_digits(rows, claim, noise, n, alpha)
    ]


def _with_alpha(
    finding: Finding, rows: Sequence[LogRow], claim: Claim, noise: Noise, n: int
) -> Finding:
    """The finding with the usual α under which there would be none."""
    fits = [a for a in USUAL if not _check_radii(rows, claim, noise, n, a)]
    words = f"all fit alpha={listed(f'{a:g}' for a in fits)}" if fits else "no usual alpha fits"
    return replace(finding, text=f"{finding.text}; {words}")


def _check_largest(
    rows: Sequence[LogRow], claim: Claim, noise: Noise, n: int, alpha: float
) -> Iterator[Finding]:
    top = largest_bound(n, alpha)
    radii = np.array([0.0 if row.predict == -1 else row.radius for row in rows])
    p_a = least_p_a(radii, noise, claim.norm, claim.dim or 1)
    own = np.array([row.p_a or 0.0 if row.predict != -1 else 0.0 for row in rows])
    p_a = np.maximum(p_a, own)
    above = [row for row, p in zip(rows, p_a.tolist(), strict=True) if p > top * (1 + 1e-12)]
    if above:
        worst = rows[int(np.argmax(p_a))]
        yield Finding(
            "radius",
            f"{len(above)} radii above what n={n} votes at alpha={alpha:g} can give under "
            f"{noise.text} (p_A <= {top:.8g}); the largest, {worst.radius:.6g} of input "
            f"{worst.idx}, needs alpha >= {needed_alpha(float(p_a.max()), n):.3g}",
            tuple(row.idx for row in above),
        )


def _check_digits(
    rows: Sequence[LogRow], claim: Claim, noise: Noise, n: int, alpha: float
) -> Iterator[Finding]:
    """Printed radii of Gaussian noise that no count of n votes gives."""
    sigma = gaussian_sigma(noise)
    if sigma is None:
        return

    @cache
    def possible(low: float, high: float) -> bool:
        def radius(p: float) -> float:
            return gaussian_radius(p, sigma, claim.norm, claim.dim or 1)

        first, last = counts_between(low, high, radius, n, alpha)
        return first <= last

    yield from _finding(
        "digits",
        [
            row
            for row in rows
            if row.predict != -1
            and row.radius_most is not None
            and row.radius > 0
            and not possible(row.radius, row.radius_most)
        ],
        lambda r: f"between {r.radius:.6g} and {r.radius_most:.6g} lies no radius of any count",
        f"radii that no count of n={n} votes at alpha={alpha:g} gives under {noise.text}",
    )


def _check_counts(rows: Sequence[LogRow], n: int, alpha: float) -> Iterator[Finding]:
    """Counts beyond n, and bounds of p_A that are not those of the count, or of any count."""
    yield from _finding(
        "counts",
        [row for row in rows if row.count is not None and not 0 <= row.count <= n],
        lambda r: f"{r.count} votes of {n}",
        f"counts that are not between 0 and n={n}",
    )

    def differs(row: LogRow) -> bool:
        if row.p_a is None or row.p_a_most is None:
            return False
        if row.count is None:
            first, last = counts_between(row.p_a, row.p_a_most, lambda p: p, n, alpha)
            return first > last
        if not 0 <= row.count <= n:
            return False
        bound = lower_bound(row.count, n, alpha)
        return not row.p_a * (1 - SLACK) <= bound <= row.p_a_most * (1 + SLACK)

    yield from _finding(
        "bounds",
        [row for row in rows if differs(row)],
        lambda r: f"{BOUND} {r.p_a:.6g} is not of {'any count' if r.count is None else r.count}",
        f"{BOUND} that are not those of their counts at n={n}, alpha={alpha:g}",
    )


def _check_sums(rows: Sequence[LogRow], claim: Claim) -> Iterator[Finding]:
    """Sums as printed, held against the least and the most that the rows can give."""
    hits = [row for row in rows if row.correct]
    for radius, printed in claim.accuracy.items():
        low = sum(row.radius >= radius for row in hits) / len(rows)
        high = sum((row.radius_most or 0.0) >= radius for row in hits) / len(rows)
        if not _overlaps(printed, low, high):
            text = f"accuracy at {radius:g} is {_range(low, high)} by the rows, {printed} is stated"
            yield Finding("summary", text)
    if claim.average is not None:
        low = sum(row.radius for row in hits) / len(rows)
        high = sum(row.radius_most or 0.0 for row in hits) / len(rows)
        if not _overlaps(claim.average, low, high):
            text = f"average radius is {_range(low, high)} by the rows, {claim.average} is stated"
            yield Finding("summary", text)


def _overlaps(printed: str, low: float, high: float) -> bool:
    try:
        value = Decimal(printed)
        half = float(Decimal((0, (5,), int(value.as_tuple().exponent) - 1)))
    except (InvalidOperation, TypeError, ValueError):
        raise RunError(f"{printed!r} is not a number") from None
    return float(value) - half <= high * (1 + SLACK) and float(value) + half >= low * (1 - SLACK)


def _range(low: float, high: float) -> str:
    return f"{low:.4f}" if f"{low:.4f}" == f"{high:.4f}" else f"{low:.4f} to {high:.4f}"


def compare_logs(read: Mapping[Path, Sequence[LogRow]]) -> Iterator[tuple[Path, Finding]]:
    """Logs of the same data (the same step, nearly the same labels) held against each other."""
    groups: dict[tuple[int, int | None], list[list[Path]]] = {}
    labels = {path: {row.idx: row.label for row in rows} for path, rows in read.items()}
    for path, own in labels.items():
        alike = groups.setdefault((min(own), _stride(list(own))), [])
        home = next((group for group in alike if _same_data(own, labels[group[0]])), None)
        if home is None:
            alike.append([path])
        else:
            home.append(path)
    for group in (group for alike in groups.values() for group in alike if len(group) > 1):
        yield from _compare_group(group, labels)


def _same_data(one: Mapping[int, int], other: Mapping[int, int]) -> bool:
    common = one.keys() & other.keys()
    equal = sum(one[idx] == other[idx] for idx in common)
    return bool(common) and equal >= SAME_DATA * len(common)


def _compare_group(
    group: Sequence[Path], labels: Mapping[Path, Mapping[int, int]]
) -> Iterator[tuple[Path, Finding]]:
    votes: dict[int, Counter[int]] = {}
    for path in group:
        for idx, label in labels[path].items():
            votes.setdefault(idx, Counter())[label] += 1
    usual = {idx: counter.most_common(1)[0][0] for idx, counter in votes.items()}
    most = max(len(labels[path]) for path in group)
    for path in group:
        own = labels[path]
        if len(own) < most:
            text = f"{len(own)} inputs where other logs of the same data have {most}"
            yield path, Finding("short", text)
        other = [idx for idx, label in own.items() if label != usual[idx]]
        if other:
            text = (
                f"{len(other)} labels differ from other logs of the same data, first input "
                f"{other[0]}: {own[other[0]]} here, {usual[other[0]]} there"
            )
            yield path, Finding("labels", text, tuple(other))


def _summed(path: Path, rows: Sequence[LogRow], findings: Sequence[Finding]) -> CheckedLog:
    size = max(len(rows), 1)
    return CheckedLog(
        path=path,
        rows=len(rows),
        accuracy=sum(row.correct for row in rows) / size,
        average=sum(row.radius for row in rows if row.correct) / size,
        largest=max((row.radius for row in rows), default=0.0),
        findings=tuple(findings),
    )
