"""`unicr certify`: a model, a dataset and a noise in, a folder of certificates out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unicr.cli._parameters import FAILED, Loading, Out, command, read_as, spread
from unicr.data import DataOptions
from unicr.errors import CertifyError
from unicr.noise import Noise
from unicr.norms import Norm, parse_norm
from unicr.runs import Job, Place, Terms, certify_run, find_begun
from unicr.smoothing import Certificate, Plan, Procedure, Rule

BUILDING = "preparing the run (p_A-R curves are built once for a noise, then read from disk) ..."


@dataclass(frozen=True)
class PlanOptions(Plan):
    """A plan as it is asked for; `fit` makes one that its rule and its procedure agree on."""

    def __post_init__(self) -> None:
        """Nothing is checked before `fit`, which may change what is left to the procedure."""

    def fit(self) -> Plan:
        """The plan itself."""
        if self.rule.exact:  # nothing is sampled: all offsets are counted
            from unicr.smoothing.procedures import Offsets

            return Offsets().fit(Plan(self.n0, self.n, self.alpha))
        return Plan(self.n0, self.n, self.alpha, self.rule, self.procedure)


@dataclass(frozen=True)
class SearchPlan(PlanOptions):
    """Of I-OPT, whose search looks at the n0 samples of each noise."""

    n0: int = 1000
    n: int = 10_000


@dataclass(frozen=True)
class PointPlan(PlanOptions):
    """Of C-OPT, which certifies once for every point of its grid."""

    n: int = 1000


for _plan in (PlanOptions, SearchPlan, PointPlan):
    spread(_plan, "Sampling")
spread(Terms)
spread(Place, "Where the work is done")
read_as(Norm, parse_norm)
read_as(Rule, Rule.parse)
read_as(Procedure, Procedure.parse)
PLAN, LOADING, READING, PLACE = PlanOptions(), Loading(), DataOptions(), Place()


@command
def certify(
    *,
    model: str | None = None,
    data: str,
    noise: str | None = None,
    terms: Terms,
    out: Out,
    selector: Path | None = None,
    resume: bool = False,
    retry_failed: bool = False,
    verbose: bool = False,
    plan: PlanOptions = PLAN,
    loading: Loading = LOADING,
    reading: DataOptions = READING,
    place: Place = PLACE,
) -> int:
    """Certify every input of a dataset; an interruption loses nothing.

    For each input, n0 noisy copies choose a class, and n fresh ones bound its probability. The
    folder gets the class, the votes and the radii. For audits: if you ran `unicr commit` on this
    folder, pass the random number that the auditor sent you with --nonce. Exit code 3 if some
    inputs failed. Example:

    unicr certify --model builtin:mnist-mlp-0.5 --data builtin:mnist \\
      --noise 'gaussian(sigma=0.5)' --norm 1 2 inf --n 10000 --max 20 --out my-run

    Parameters
    ----------
    model
        builtin:mnist-mlp-0.5, builtin:resnet20 with --weights, an .onnx file, file.py:name,
        hf:DIR, hub:ORGANISATION/NAME; .pt2, .pt and .joblib files need --trust. Required unless
        --selector is given.
    data
        builtin:mnist, an .npz, .npy, .csv, .parquet, idx or CIFAR file, or a folder of images.
    noise
        The smoothing noise, e.g. 'gaussian(sigma=0.5)'; see `unicr noise list`.
    out
        The folder of the run.
    selector
        A folder that `unicr select` made, instead of --model and --noise. The selector chooses the
        noise of each input, and the choice is certified too.
    resume
        Continue a run that was interrupted. A run with --seed may also get a larger --max. Inputs
        that failed because of the machine (a full disk, a killed worker, no memory) are repeated.
    retry_failed
        Like --resume, and repeat every input that failed.
    verbose
        Also print the largest possible radius, the accuracy of the model itself, and how many
        samples were taken.
    """
    from unicr.lab.report.tables import summary
    from unicr.progress import announce

    find_begun(out, resume=resume or retry_failed)  # refuses before a model is loaded
    job = open_job(model, data, noise, selector, plan, terms, loading, reading, place)
    with announce(BUILDING):
        largest = job.largest
    for text in job.warnings():
        print(f"warning: {text}", file=sys.stderr)
    if verbose:
        for text in (largest_radius(job, largest), *job.facts()):
            print(text, file=sys.stderr)
    with certify_run(job, out, resume=resume, retry_failed=retry_failed) as run:
        rows, seal = list(run.rows()), run.stored_seal()
    norms = [norm.text for norm in job.norms]
    print(summary(rows, norms, searched=job.searched, verbose=verbose))
    if verbose:
        certificates = [row.certificate for row in rows if row.certificate is not None]
        for text in samples_taken(certificates, job.plan):
            print(text)
    print(f"run in {out}, seal {seal}", file=sys.stderr)
    return FAILED if any(row.status == "failed" for row in rows) else 0


def open_job(
    model: str | None,
    data: str,
    noise: str | None,
    selector: Path | None,
    plan: PlanOptions,
    terms: Terms,
    loading: Loading,
    reading: DataOptions,
    place: Place,
) -> Job:
    """The job that the options ask for: of a model and a noise, or of a selector."""
    from unicr.select import file_of, load_selector

    if bool(model and noise) == (selector is not None) or (selector and model):
        raise CertifyError("give either --model and --noise, or --selector alone")
    asked = plan.fit()
    law: str | Noise = noise or ""
    if selector is not None:
        if asked.procedure != Plan().procedure:
            raise CertifyError(
                "--procedure cannot be used with --selector, which is a procedure itself"
            )
        model, choice = str(file_of(selector)), load_selector(file_of(selector))
        asked, law = choice.fit(asked), choice.noise
    return Job.open(model or "", data, law, asked, terms, loading, reading, place)


def largest_radius(job: Job, largest: dict[str, float]) -> str:
    """The largest radius that the plan can give in each norm, in words."""
    from unicr.radius import round_down

    kind = "searched radius" if job.searched else "proved radius"
    reach = ", ".join(f"l{norm} {round_down(radius, 4)}" for norm, radius in largest.items())
    sizes = f"n={job.plan.n}, alpha={job.plan.alpha:g}"
    return f"largest {kind} that {sizes} can give under {job.noise.text}: {reach}"


def samples_taken(certificates: Sequence[Certificate], plan: Plan) -> list[str]:
    """How many samples an input took, and which noises or laws were chosen, where that varies."""
    lines = []
    count = max(len(certificates), 1)
    mean = sum(one.n for one in certificates) / count
    if min((one.n for one in certificates), default=plan.n) < plan.n:
        saved = plan.n / max(mean, 1)
        lines.append(f"samples: {mean:.0f} of {plan.n} on average, {saved:.1f} x fewer")
    chosen: dict[str, int] = {}
    for one in certificates:
        if one.noise is not None:
            chosen[one.noise] = chosen.get(one.noise, 0) + 1
    if chosen:
        often = ", ".join(f"{noise} {times} times" for noise, times in sorted(chosen.items()))
        lines.append(f"chosen noise: {often}")
    both = [one for one in certificates if getattr(one, "q_a", None) is not None]
    if plan.procedure.name == "two_laws":
        lines.append(f"second law: used for {len(both)} of {len(certificates)} inputs")
    return lines
