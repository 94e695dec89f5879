"""Check a run again: every claim from its transcript without the model, the votes with it.

What can be recomputed is: bounds, class, radii, and which inputs, norms and noises there must be.
With the data, labels and inputs are compared too; with the model the votes of some inputs, drawn
so that nobody can know which. All the rest is bound by the seal.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

from unicr.classifier import Classifier
from unicr.data import Dataset
from unicr.data.internal import digest_input
from unicr.errors import UNREADABLE, CertifyError, RunError, UnicrError, listed
from unicr.files import memory_size
from unicr.folder import changes
from unicr.noise import Lattice, Noise
from unicr.norms import parse_norm
from unicr.radius import RadiusCurve, SecondLaw
from unicr.radius.internal import load_tables, name_guarantee, prove_directly
from unicr.runs._commit import FILE as COMMITMENT
from unicr.runs._commit import commit_again, digest_of_inputs, read_commitment
from unicr.runs._reopen import NO_TRUST, Trusted
from unicr.runs._run import Row, Run
from unicr.runs._spec import Spec
from unicr.smoothing import (
    THIS_INPUT,
    Certificate,
    Curves,
    NormRadius,
    Plan,
    VoteCounter,
    recompute,
)

# Two processors (their vector units, their libm) may differ in the last digits of a sum of some
# thousand terms, by about 1e-13 of it at most. Nothing larger than this passes as the same number.
SAME = 1e-12


@dataclass(frozen=True)
class Problem:
    """What is wrong with a stored certificate, or (`idx` None) with the run as a whole."""

    idx: int | None
    text: str

    def __str__(self) -> str:
        return self.text if self.idx is None else f"input {self.idx}: {self.text}"


def verify(
    run: Run,
    *,
    trusted: Trusted = NO_TRUST,
    data: Dataset | None = None,
    model: Classifier | None = None,
) -> Iterator[Problem]:
    """List everything in a run that does not hold. This takes no samples. The list is empty if all
    holds.

    The procedure of the run is repeated on the transcript of every input. It must ask the stored
    questions, and its certificate must be the stored one. With your own `data` and `model`, labels
    and inputs are compared, and the commitment is recomputed.
    """
    spec = trusted.open(run.spec)
    curves = spec.curves
    yield from (Problem(None, text) for text in _check_settings(spec, data))
    yield from (Problem(None, text) for text in _check_commitment(run, spec, model, data))
    if (text := check_seal(run)) is not None:
        yield Problem(None, text)
    records = run.records()
    if list(_find_gaps(spec, [record["idx"] for record in records], None)) == []:
        stored = [(record["idx"], record["label"], str(record["input_hash"])) for record in records]
        if digest_of_inputs(stored) != spec.inputs:
            yield Problem(None, "labels or hashes of inputs are not those that the run began with")
    seen = []
    for record in records:
        seen.append(record["idx"])
        try:
            row = run.row(record)
            complaint = check_row(row, spec, curves)
            complaint = complaint or (
                None if data is None else _compare_input(row, data, spec.lattice)
            )
        except (UnicrError, *UNREADABLE) as error:
            complaint = f"cannot be read: {error}"
        if complaint is not None:
            yield Problem(record["idx"], complaint)
    yield from (Problem(None, text) for text in _find_gaps(spec, seen, data))


def _check_settings(spec: Spec, data: Dataset | None) -> Iterator[str]:
    """What the settings say against themselves, or against the data."""
    if spec.plan != spec.keyed_plan:
        yield f"the rule {spec.plan.rule.text} draws by another seed than the run's own"
    if spec.plan.rule.among_noises and spec.scope != THIS_INPUT:
        yield "a union bound over noises, and no search"
    if data is not None and spec.data_size != len(data):
        yield f"{spec.data_size} inputs in the run's data, {len(data)} in yours"
    # a search writes one run for each norm, all from the same votes; others have all their norms
    one_of = spec.scope == THIS_INPUT and len(spec.norms) == 1 and spec.norms[0] in spec.all_norms
    if spec.norms != spec.all_norms and not one_of:
        served = ", ".join(norm.text for norm in spec.all_norms)
        yield f"the votes were for the norms {served}, not {', '.join(spec.norm_texts)}"


def _check_commitment(
    run: Run, spec: Spec, model: Classifier | None, data: Dataset | None
) -> Iterator[str]:
    """Whether the commitment is that of your own model and data, and of the file in the folder."""
    own = commit_again(spec, model, data)
    if own.commitment != spec.commitment:
        differing = changes(spec.decides, own.decides)
        yield (
            f"your model and data give the commitment {own.commitment[:16]}…, the run has "
            f"{spec.commitment[:16]}… ({differing[:400]})"
        )
    try:
        found = read_commitment(run.folder)
    except RunError as error:
        yield str(error)
        return
    if found is not None and found[0] != spec.commitment:
        yield f"{COMMITMENT} commits to another run ({found[0][:16]}…)"


def is_complete(run: Run) -> bool:
    """Whether every input that the run is about has a result."""
    seen = [record["idx"] for record in run.read("SELECT idx FROM results")]
    return list(_find_gaps(run.spec, seen, None)) == []


def check_seal(run: Run) -> str | None:
    """What is wrong with the stored seal of a run; None if it holds, or is not due yet."""
    stored = run.stored_seal()
    if stored is None and is_complete(run):
        return (
            "every input has a result and there is no seal: it was removed, or the run was stopped "
            "in its last moment (then --resume seals it)"
        )
    if stored is not None and stored != run.seal():
        return "the run was changed after it was sealed"
    return None


def refuse_broken_seal(run: Run, *, force: bool = False) -> str:
    """RunError if the seal of a run is broken; with `force`, words that mark the run instead.

    "" where nothing is wrong. A run that is not finished has no seal yet.
    """
    run.spec  # noqa: B018  settings that make no sense are told first
    text = check_seal(run)
    if text is not None and not force:
        raise RunError(
            f"{run.folder}: {text}; `unicr verify` says more, and --force reads the run anyway"
        )
    return "" if text is None else "SEAL BROKEN"


def _compare_input(row: Row, data: Dataset, lattice: Lattice | None) -> str | None:
    """What is not as in the data."""
    if not 0 <= row.idx < len(data):
        return f"the data has {len(data)} inputs only"
    try:
        x, label = data[row.idx]
    except (UnicrError, OSError) as error:
        return None if row.certificate is None else f"it cannot be read: {error}"
    if row.certificate is None and row.label == -1:
        return None
    if digest_input(x.numpy()) != row.input_hash:
        return "the input is another one (its hash differs)"
    on_grid = lattice is not None and lattice.holds(x.numpy())
    if row.certificate is not None and row.certificate.between_points and not on_grid:
        return "the input is not on the grid that its radius speaks of"
    return None if label == row.label else f"label {row.label} stored, {label} in the data"


def _find_gaps(spec: Spec, seen: list[int], data: Dataset | None) -> Iterator[str]:
    """Inputs that are missing, or that the settings do not ask for."""
    wanted = spec.indices(spec.data_size if data is None else len(data))
    if len(seen) != len(set(seen)):
        yield f"{len(seen) - len(set(seen))} results are of inputs that have one already"
    there = {idx for idx in seen if idx in wanted}
    if missing := len(wanted) - len(there):
        # the first of them only: a run may say that it has any number of inputs
        some = listed(islice((idx for idx in wanted if idx not in there), 6), 5)
        yield f"{missing} of {len(wanted)} inputs have no result ({some})"
    if surplus := sorted(set(seen) - there):
        some = listed(surplus, 5)
        yield f"{len(surplus)} results are of inputs that max and skip leave out ({some})"


def check_row(row: Row, spec: Spec, curves: Curves) -> str | None:
    """None, or the first thing about a stored certificate that its transcript does not support."""
    c = row.certificate
    if c is None:
        return None
    steps = spec.plan.procedure.steps(spec.plan, spec.noise, curves)
    try:
        return find_difference(c, recompute(steps, c.transcript))
    except CertifyError as error:
        return str(error)


def prove_again(
    run: Run,
    *,
    trusted: Trusted = NO_TRUST,
    every: bool = False,
    skip: Collection[int | None] = (),
) -> Iterator[tuple[str, str | None]]:
    """Radii proved again without stored curves: (what was proved, None or what is wrong with it).

    The radii of a claim are read from curves, and those that do not come with the package from a
    file on this machine, which whoever made the run here may have written. So of each noise and
    norm with such a curve the largest radius is proved from p_A and p_B directly; with `every`,
    every radius of the run, whatever its curve. Inputs in `skip`, of which `verify` told already
    that they do not hold, are left out.
    """
    spec = trusted.open(run.spec)
    chosen: dict[tuple[str, ...], tuple[NormRadius, Row, Noise]] = {}
    for row in run.readable():
        c = row.certificate
        if c is None or row.idx in skip:
            continue
        law = trusted.noise(spec, c.noise)
        for one in c.radii:
            stored = getattr(c, "q_a", None) is not None or any(
                RadiusCurve(part, one.norm, spec.dim).on_disk for part in {law, law.core}
            )
            key = (law.text, one.norm, *([str(row.idx)] if every else []))
            larger = key not in chosen or one.proved > chosen[key][0].proved
            if one.proved > 0 and (every or stored) and larger:
                chosen[key] = one, row, law
    load_tables.cache_clear()  # what was read from disk before
    for one, row, law in chosen.values():
        proved = _prove(one, row, law, spec)
        wrong = None
        # a curve is read from below; two sums of the same theorem may differ by rounding
        if one.proved > proved * (1 + PROOFS_AGREE):
            wrong = f"l{one.norm} radius {one.proved!r} stored, a new proof gives {proved!r}"
        elif one.reach is not None:
            reach = _prove(one, row, law.core, spec)
            if one.reach > reach * (1 + PROOFS_AGREE):
                wrong = f"l{one.norm} reach {one.reach!r} stored, a new proof gives {reach!r}"
        yield f"input {row.idx}", wrong


PROOFS_AGREE = 1e-9  # as `docs/theory.md#rounding-charges` allows for a sum


def _prove(one: NormRadius, row: Row, noise: Noise, spec: Spec) -> float:
    """The radius that theorems prove from the row's bounds, after what the grid costs."""
    c = row.certificate
    assert c is not None
    q_a, second = getattr(c, "q_a", None), None
    if q_a is not None:
        second = SecondLaw(q_a, getattr(spec.plan.procedure, "share", 1.0))
    proved = prove_directly(noise, one.norm, spec.dim, c.p_a, c.p_b, second)
    if spec.lattice is None or c.between_points:
        return proved
    p, frame = parse_norm(one.norm).p, noise.frame
    return spec.lattice.reduce(proved, p, spec.dim, None if frame is None else frame.spread(p))


def find_difference(stored: Certificate, right: Certificate) -> str | None:
    """None, or the first claim of a stored certificate that the one made again does not have."""
    for one in fields(right):
        old, new = getattr(stored, one.name), getattr(right, one.name)
        if one.name in ("seed", "transcript"):  # the run's, and what both were made from
            continue
        if one.name == "radii":
            if [r.norm for r in old] != [r.norm for r in new]:
                return f"norms {[r.norm for r in old]} where the run has {[r.norm for r in new]}"
            complaints = (_find_radius_difference(a, b) for a, b in zip(old, new, strict=True))
            if found := next(filter(None, complaints), None):
                return found
        elif not _are_same(old, new):
            return f"{WORDS.get(one.name, one.name)} {old!r} stored, {new!r} from the counts"
    return None


def _find_radius_difference(stored: NormRadius, right: NormRadius) -> str | None:
    weaker = _is_weaker(stored, right)
    for one in fields(right):
        was, now = getattr(stored, one.name), getattr(right, one.name)
        if not _are_same(was, now) and not (weaker and one.name in WEAKER):
            return f"{one.name} in l{right.norm} is {was!r} stored, {now!r} from the counts"
    return None


WEAKER = ("radius", "proved", "guarantee")


def _is_weaker(stored: NormRadius, now: NormRadius) -> bool:
    """Whether a radius is less than today's theorem proves from the same counts.

    An older version proved less, and its claim holds. Nobody can claim more in this way: radius and
    proved radius must both be at most those of today, and the guarantee what these say. All else,
    the searched radius too, must be the same (`WEAKER`).
    """
    claimed = stored.guarantee == name_guarantee(stored.proved, stored.searched) == "approximate"
    less = stored.proved <= now.proved and stored.radius <= now.radius
    return claimed and less


WORDS = {"predict": "class", "p_a": "p_A", "p_b": "p_B"}


def _are_same(old: Any, new: Any) -> bool:
    if type(old) is not type(new):
        return False
    if isinstance(new, float):
        return math.isclose(old, new, rel_tol=SAME, abs_tol=0.0)
    return bool(old == new)


def replay(
    run: Run,
    classifier: Classifier,
    data: Dataset,
    count: int,
    *,
    trusted: Trusted = NO_TRUST,
) -> Iterator[tuple[int, str | None]]:
    """Run `count` inputs again with the same noise. Yields (input, None or what differs).

    The procedure of the run is repeated on the model, and the transcript must be the stored one.
    The inputs are chosen at random each time, so the author of the run cannot know which. Failed
    inputs can be chosen too. `compute_detection` gives the probability that this finds forged rows.
    """
    if count < 0:
        raise RunError(f"replay={count} must be the number of inputs to sample again, at least 0")
    # the key of the noise is made from the model and data that are here, not from the run's word
    spec = commit_again(trusted.open(run.spec), classifier, data)
    if classifier.digest != run.spec.model_hash:
        raise RunError("this is not the model that the run was made with (its hash differs)")
    needed = 4 * spec.batch * math.prod(data.shape)  # bytes of the noisy copies of one pass
    if needed > memory_size():
        raise RunError(
            f"the run used passes of {spec.batch} inputs, which need {needed:.3g} bytes of memory, "
            f"but this machine has {memory_size():.3g}"
        )
    rows = run.readable()
    chosen = random.SystemRandom().sample(rows, min(count, len(rows)))
    curves = spec.curves
    smoothed = VoteCounter(classifier, spec.noise, **spec.smoothing)
    for row in sorted(chosen, key=lambda row: row.idx):
        complaint = _compare_input(row, data, spec.lattice)
        yield row.idx, complaint or _replay_row(row, data, smoothed, spec.plan, curves)


def _replay_row(
    row: Row, data: Dataset, smoothed: VoteCounter, plan: Plan, curves: Curves
) -> str | None:
    c = row.certificate
    try:
        again = smoothed.certify_with(data[row.idx][0], plan, curves, row.idx)
    except Exception as error:  # a stranger's model may raise anything
        return None if c is None else f"it fails now: {type(error).__name__}: {error}"
    if c is None:
        return f"failed in the run ({row.reason}), and now it does not"
    for was, now in zip(c.transcript, again.transcript, strict=False):
        if was != now:
            return f"{was.words}: {list(was.counts)} stored; {now.words}: {list(now.counts)} now"
    if len(c.transcript) != len(again.transcript):
        return f"{len(c.transcript)} questions stored, {len(again.transcript)} asked now"
    return find_difference(c, again)


def compute_detection(total: int, replayed: int, forged: int) -> float:
    """The probability that at least one of `forged` rows is among those replayed.

    Rows are drawn without replacement, so it is 1 − C(total − forged, replayed) / C(total,
    replayed), rounded down to two digits.
    """
    missed = math.comb(total - forged, replayed) / math.comb(total, replayed)
    return math.floor(100 * (1 - missed)) / 100
