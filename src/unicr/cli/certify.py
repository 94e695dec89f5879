"""`unicr certify`: a model, a dataset and a noise in, a folder of certificates out."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from unicr.cli._options import FAILED, CertifyOptions, Noise_, OutFolder
from unicr.errors import CertifyError, RunError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unicr.runs import Job
    from unicr.select import Selector
    from unicr.smoothing import Certificate, Rule

ADAPTIVE = 0.01
EARLY = "When to stop early"
BUILDING = "preparing p_A-R curves (built once for a noise, then read from disk) ..."


def certify(
    *,
    options: CertifyOptions,
    out: OutFolder,
    noise: Noise_ = "",
    selector: Path | None = None,
    bound: Annotated[Literal["single", "both"], Parameter(group=EARLY)] = "single",
    target_radius: Annotated[float | None, Parameter(group=EARLY)] = None,
    tol: Annotated[float | None, Parameter(group=EARLY)] = None,
    adaptive: Annotated[bool, Parameter(group=EARLY)] = False,
    rule: Annotated[str | None, Parameter(group=EARLY)] = None,
    second: float | None = None,
    resume: bool = False,
    retry_failed: bool = False,
) -> int:
    """Certify every input of a dataset; an interruption loses nothing.

    All that decides the run is committed to before a number is drawn; where `unicr commit` did that
    in the same folder before, --nonce is needed. Exit code 3 if some inputs failed. Example:

    unicr certify --model builtin:mnist-mlp-0.5 --data builtin:mnist \\
      --noise 'gaussian(sigma=0.5)' --norm 1 2 inf --n 10000 --max 20 --out my-run

    Parameters
    ----------
    selector
        In place of --model and --noise: a folder that `unicr select` made. Each input gets the
        noise that its selector chooses, and the choice is certified too.
    bound
        single: p_B = 1 - p_A. both: three tests at alpha/3 bound p_B too.
    target_radius
        Stop an input as soon as it is certified at this radius (in the first norm), or cannot be.
    tol
        Take as few of the n samples as the n0 votes say are enough, if this much of the radius (in
        the first norm) may be given away on average. With n = 100000, take --n0 1000.
    adaptive
        --tol at 1 % of the largest radius that n can give.
    rule
        The sampling rule by its name, in place of the four options above: fixed, three,
        'target(radius=0.5)', 'pilot(share=0.01)', randomised, or one of your own; every, for
        splitting noise, counts all its offsets in place of samples: no alpha.
    second
        Votes under a second law too (DSRS): spherical noise, or l1_exp, within the ball that holds
        this share of it, e.g. 0.5. Half of n goes there where the first votes say that it pays.
    resume
        Go on with a run that was interrupted; with --seed also with a larger --max. What failed by
        the environment (a full disk, a killed worker, no memory) is done again.
    retry_failed
        Like --resume, and do again every input that failed.
    """
    chosen = rule_of(rule, bound, target_radius, tol, adaptive)
    job, choice = job_of(options, chosen, noise=noise, selector=selector, tol=tol, second=second)
    return run_and_report(job, out, resume=resume, retry_failed=retry_failed, selector=choice)


def job_of(
    options: CertifyOptions,
    rule: Rule,
    *,
    noise: str,
    selector: Path | None,
    tol: float | None,
    second: float | None,
) -> tuple[Job, Selector | None]:
    """The job that the options of `certify` ask for, and its selector if it has one."""
    from unicr.noise import parse
    from unicr.select import file_of, load_selector

    if bool(options.model and noise) == (selector is not None) or (selector and options.model):
        raise CertifyError("give --model and --noise, or --selector in place of both")
    if second is not None and selector is not None:
        raise CertifyError("--second is for one noise: a selector has several")
    choice = None
    if selector is not None:
        choice = load_selector(file_of(selector))
        options = replace(options, model=str(file_of(selector)))
    job = options.job(parse(noise) if choice is None else choice.noise, rule)
    if tol is not None:
        job = tolerating(job, tol)
    if second is not None:
        from unicr.smoothing.procedures import TwoLawVotes

        job = replace(job, plan=TwoLawVotes(second).fit(job.plan))
    if choice is not None:
        job = replace(job, plan=choice.fit(job.plan))
    return job, choice


def rule_of(
    text: str | None, bound: str, target: float | None, tol: float | None, adaptive: bool
) -> Rule:
    """The sampling rule that the options ask for."""
    from unicr.smoothing import Rule
    from unicr.smoothing.rules import Fixed, Pilot, Target, ThreeTests

    given = [
        Target(target) if target is not None else None,
        Pilot() if tol is not None else None,
        Pilot(ADAPTIVE) if adaptive else None,
        ThreeTests() if bound == "both" else None,
        Rule.parse(text) if text is not None else None,
    ]
    chosen = [one for one in given if one is not None]
    if len(chosen) > 1:
        raise CertifyError(
            "give one of --target-radius, --tol, --adaptive, --bound both and --rule"
        )
    return chosen[0] if chosen else Fixed()


def tolerating(job: Job, tol: float) -> Job:
    """The job with `tol` as a share of its largest radius, which is what the run keeps: other
    curves than today's would give another share, and other sample sizes.
    """
    from unicr.progress import announce
    from unicr.smoothing.rules import Pilot

    with announce(BUILDING):
        share = tol / next(iter(job.largest.values()))
    return replace(job, plan=replace(job.plan, rule=Pilot(float(f"{share:.3g}"))))


def run_and_report(
    job: Job,
    out: Path,
    *,
    resume: bool,
    retry_failed: bool = False,
    selector: Selector | None = None,
) -> int:
    """Announce, run with a progress bar on a terminal, and sum up."""
    from unicr.lab.report.runs import RunBar, summary
    from unicr.progress import announce
    from unicr.radius import round_down
    from unicr.runs import certify_run, preflight

    with announce(BUILDING):
        reach = ", ".join(f"l{norm} {round_down(r, 4)}" for norm, r in job.largest.items())
    kind = "searched radius" if job.searched else "proved radius"
    sizes = f"n={job.plan.n}, alpha={job.plan.alpha:g}"
    under = "" if selector is None else f" under {selector.noise.text}, the selector's noise"
    print(f"largest {kind} that {sizes} can give{under}: {reach}", file=sys.stderr)
    for line in preflight(job):
        print(line, file=sys.stderr)
    with RunBar(job, before=done_before(out)) as progress:
        run = certify_run(
            job,
            out,
            resume=resume,
            retry_failed=retry_failed,
            on_result=progress.add,
            on_samples=progress.count,
        )
    with run:
        rows, seal = list(run.rows()), run.seal()
    print(summary(rows, [norm.text for norm in job.norms], searched=job.searched))
    n = job.plan.n
    if selector is not None:
        print(votes_line([row.certificate for row in rows if row.certificate is not None]))
    elif min(taken := [row.certificate.n for row in rows if row.certificate], default=n) < n:
        mean = sum(taken) / max(len(taken), 1)
        saved = n / max(mean, 1)
        print(f"early stopping: {mean:.0f} of {n} samples on average, {saved:.1f} x fewer")
    elif job.plan.procedure.name == "two_laws":
        found = [row.certificate for row in rows if row.certificate is not None]
        asked = sum(getattr(one, "q_a", None) is not None for one in found)
        print(f"second law: it promised more for {asked} of {len(found)} inputs, and was asked")
    print(f"run in {out}, seal {seal}", file=sys.stderr)
    return FAILED if any(row.status == "failed" for row in rows) else 0


def done_before(out: Path) -> int:
    """How many inputs an interrupted run has."""
    from unicr.runs import Run

    try:
        with Run(out) as run:
            return len(run.done())
    except RunError:
        return 0


def votes_line(found: Sequence[Certificate]) -> str:
    """What the selector chose, and how many votes an input took."""
    chosen: dict[str, int] = {}
    for one in found:
        chosen[str(one.noise)] = chosen.get(str(one.noise), 0) + 1
    often = ", ".join(f"{noise} {count} times" for noise, count in sorted(chosen.items()))
    mean = sum(one.n0 + one.n for one in found) / max(len(found), 1)
    return f"chosen: {often}; {mean:.0f} votes an input"
