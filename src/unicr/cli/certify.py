"""`unicr certify`: a model, a dataset and a noise in, a folder of certificates out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from unicr.cli._options import (
    DATA,
    MODEL,
    PLACE,
    DataOptions,
    ModelOptions,
    PlaceOptions,
    Whole,
    whole,
)

if TYPE_CHECKING:
    from unicr.runs import Job
    from unicr.smoothing import Rule

FAILED = 3
ADAPTIVE = 0.01


def certify(
    *,
    model: str,
    data: str,
    noise: str,
    norm: Annotated[list[str], Parameter(consume_multiple=True, negative="")],
    out: Path,
    loading: ModelOptions = MODEL,
    reading: DataOptions = DATA,
    place: PlaceOptions = PLACE,
    n0: Annotated[int, Parameter(name="--n0", converter=whole)] = 100,
    n: Whole = 100_000,
    alpha: float = 0.001,
    bound: Literal["single", "both"] = "single",
    target_radius: float | None = None,
    tol: float | None = None,
    adaptive: Annotated[bool, Parameter(negative="")] = False,
    rule: str | None = None,
    searched: Annotated[bool, Parameter(negative="")] = False,
    batch: Whole = 1000,
    chunk: Whole = 10_000,
    skip: Whole = 1,
    max_: Annotated[int | None, Parameter(name="--max", converter=whole)] = None,
    seed: int = 0,
    resume: Annotated[bool, Parameter(negative="")] = False,
    retry_failed: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Certify every input of a dataset. Exit code 3 if some inputs failed.

    Parameters
    ----------
    model
        builtin:mnist-mlp-0.5, a .pt2, .pt, .onnx or .joblib file, file.py:name or hf:DIR.
    data
        builtin:mnist, an .npz, .npy, .csv, .parquet, idx or CIFAR file, or a folder of images.
    noise
        The smoothing noise, e.g. 'gaussian(sigma=0.5)'.
    norm
        One or more norms, from the same votes: --norm 1 2 inf.
    out
        The folder of the run.
    n0
        Samples that choose the class.
    n
        Fresh samples that bound its probability (the most, with early stopping).
    alpha
        Failure probability of one certificate.
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
    searched
        Store the searched radius, the paper's approximate one, instead of the proved one.
    batch
        Samples per forward pass.
    chunk
        The most samples of one task, with --workers or --ray.
    skip
        Certify every skip-th input only.
    max_
        Certify at most this many inputs.
    seed
        Seed of the noise.
    resume
        Go on with a run that was interrupted, or with a larger --max. What failed by the
        environment (a full disk, a killed worker, no memory) is done again.
    retry_failed
        Like --resume, and do again every input that failed.
    """
    from unicr.noise import parse
    from unicr.runs import Job
    from unicr.smoothing import Plan, norms_of

    chosen = rule_of(rule, bound, target_radius, tol, adaptive)
    smoothing, norms = parse(noise), norms_of(norm)
    classifier = loading.load(model)
    dataset = reading.load(data, classifier)
    job = Job(
        classifier=classifier,
        data=dataset,
        noise=smoothing,
        norms=norms,
        plan=Plan(n0=n0, n=n, alpha=alpha, rule=chosen),
        seed=seed,
        searched=searched,
        skip=skip,
        limit=max_,
        batch=batch,
        workers=place.workers,
        ray=place.address,
        gpus=place.gpus,
        chunk=chunk,
        data_spec=data,
        data_arguments=reading.arguments(),
        model_arguments=loading.arguments(model),
    )
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
    from unicr.report.runs import Progress, summary, warn_about_range
    from unicr.runs import certify_run

    console = Console(stderr=True)
    reach = ", ".join(f"l{norm} {round_down(r, 4)}" for norm, r in job.largest.items())
    kind = "searched radius" if job.searched else "proved radius"
    sizes = f"n={job.plan.n}, alpha={job.plan.alpha:g}"
    console.print(f"largest {kind} that {sizes} can give: {reach}")
    warning = warn_about_range(job.data, job.noise)
    if warning:
        console.print(f"warning: {warning}", style="yellow", highlight=False)
    with Progress(len(job.indices), job.norms[0].text, console) as progress:
        run = certify_run(
            job, out, resume=resume, retry_failed=retry_failed, on_result=progress.add
        )
    with run:
        rows, seal = list(run.rows()), run.seal()
    Console().print(summary(rows, [norm.text for norm in job.norms], searched=job.searched))
    if job.plan.rule.name in ("target", "tolerance"):
        taken = [row.certificate.n for row in rows if row.certificate is not None]
        mean = sum(taken) / max(len(taken), 1)
        saved = job.plan.n / max(mean, 1)
        print(f"early stopping: {mean:.0f} of {job.plan.n} samples on average, {saved:.1f} x fewer")
    print(f"run in {out}, seal {seal}", file=sys.stderr)
    return FAILED if any(row.status == "failed" for row in rows) else 0
