"""`unicr certify`: a model, a dataset and a noise in, a folder of certificates out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from unicr.cli._options import FAILED, JobOptions, Noise_, OutFolder

if TYPE_CHECKING:
    from unicr.runs import Job
    from unicr.smoothing import Rule

ADAPTIVE = 0.01
EARLY = "When to stop early"
BUILDING = "building the p_A-R curves of this noise, once: they stay on disk ..."


def certify(
    *,
    noise: Noise_,
    options: JobOptions,
    out: OutFolder,
    bound: Annotated[Literal["single", "both"], Parameter(group=EARLY)] = "single",
    target_radius: Annotated[float | None, Parameter(group=EARLY)] = None,
    tol: Annotated[float | None, Parameter(group=EARLY)] = None,
    adaptive: Annotated[bool, Parameter(group=EARLY)] = False,
    rule: Annotated[str | None, Parameter(group=EARLY)] = None,
    resume: bool = False,
    retry_failed: bool = False,
) -> int:
    """Certify every input of a dataset into a folder that survives interruption.

    Exit code 3 if some inputs failed. Example:

    unicr certify --model builtin:mnist-mlp-0.5 --data builtin:mnist \\
      --noise 'gaussian(sigma=0.5)' --norm 1 2 inf --n 10000 --max 20 --out my-run

    Parameters
    ----------
    bound
        single: p_B = 1 - p_A. both: three tests at alpha/3 bound p_B too.
    target_radius
        Stop an input as soon as it is certified at this radius (in the first norm), or cannot be.
    tol
        Stop when the samples left could raise the radius (in the first norm) by at most this.
    adaptive
        Stop early with --tol at 1 % of the largest radius that n can give.
    rule
        The sampling rule by its name, in place of the four options above: fixed, three,
        'target(radius=0.5)', 'tolerance(share=0.01)', or one of your own.
    resume
        Go on with a run that was interrupted, or with a larger --max. What failed by the
        environment (a full disk, a killed worker, no memory) is done again.
    retry_failed
        Like --resume, and do again every input that failed.
    """
    from unicr.noise import parse

    chosen = rule_of(rule, bound, target_radius, tol, adaptive)
    job = options.job(parse(noise), chosen)
    return run_and_report(job, out, resume=resume, retry_failed=retry_failed)


def rule_of(
    text: str | None, bound: str, target: float | None, tol: float | None, adaptive: bool
) -> Rule:
    """The sampling rule that the options ask for."""
    from unicr.errors import CertifyError
    from unicr.smoothing import Rule
    from unicr.smoothing.rules import Fixed, Target, ThreeTests, Tolerance

    given = [
        Target(target) if target is not None else None,
        Tolerance(radius=tol) if tol is not None else None,
        Tolerance(share=ADAPTIVE) if adaptive else None,
        ThreeTests() if bound == "both" else None,
        Rule.parse(text) if text is not None else None,
    ]
    chosen = [one for one in given if one is not None]
    if len(chosen) > 1:
        raise CertifyError(
            "give one of --target-radius, --tol, --adaptive, --bound both and --rule"
        )
    return chosen[0] if chosen else Fixed()


def run_and_report(job: Job, out: Path, *, resume: bool, retry_failed: bool = False) -> int:
    """Announce, run with a progress bar on a terminal, and sum up."""
    from rich.console import Console

    from unicr.radius import round_down
    from unicr.report.runs import Progress, summary
    from unicr.report.tables import patience
    from unicr.runs import certify_run, preflight

    console = Console(stderr=True)
    with patience(BUILDING):
        reach = ", ".join(f"l{norm} {round_down(r, 4)}" for norm, r in job.largest.items())
    kind = "searched radius" if job.searched else "proved radius"
    sizes = f"n={job.plan.n}, alpha={job.plan.alpha:g}"
    console.print(f"largest {kind} that {sizes} can give: {reach}")
    for line in preflight(job):
        warned = line.startswith("warning")
        console.print(line, style="yellow" if warned else None, highlight=False)
    with Progress(job, console) as progress:
        run = certify_run(
            progress.job, out, resume=resume, retry_failed=retry_failed, on_result=progress.add
        )
    with run:
        rows, seal = list(run.rows()), run.seal()
    print(summary(rows, [norm.text for norm in job.norms], searched=job.searched))
    if job.plan.rule.name in ("target", "tolerance"):
        taken = [row.certificate.n for row in rows if row.certificate is not None]
        mean = sum(taken) / max(len(taken), 1)
        saved = job.plan.n / max(mean, 1)
        print(f"early stopping: {mean:.0f} of {job.plan.n} samples on average, {saved:.1f} x fewer")
    print(f"run in {out}, seal {seal}", file=sys.stderr)
    return FAILED if any(row.status == "failed" for row in rows) else 0
