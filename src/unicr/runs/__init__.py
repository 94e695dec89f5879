"""Runs: a dataset certified into a folder that survives, resumes, exports and can be re-checked."""

from unicr.runs._certify import certify_into, certify_run, resume_job
from unicr.runs._database import Database
from unicr.runs._execute import Executor, Work, execute
from unicr.runs._export import COLUMNS, Column, Source, export, floor_decimal, sources, table
from unicr.runs._job import Job, Terms
from unicr.runs._preflight import preflight
from unicr.runs._reopen import NO_TRUST, Trusted
from unicr.runs._run import Row, Run, load_run
from unicr.runs._schedule import Input
from unicr.runs._scores import load_scores, scores_of
from unicr.runs._sign import seals, sign, signed_by
from unicr.runs._spec import Execution, Spec
from unicr.runs._verify import Problem, caught, difference, replay, verify
from unicr.runs.logs import (
    LogRow,
    paired,
    read_intervals,
    read_log,
    recertify,
    recertify_two,
)

__all__ = [
    "COLUMNS",
    "NO_TRUST",
    "Column",
    "Database",
    "Execution",
    "Executor",
    "Input",
    "Job",
    "LogRow",
    "Problem",
    "Row",
    "Run",
    "Source",
    "Spec",
    "Terms",
    "Trusted",
    "Work",
    "caught",
    "certify_into",
    "certify_run",
    "difference",
    "execute",
    "export",
    "floor_decimal",
    "load_run",
    "load_scores",
    "paired",
    "preflight",
    "read_intervals",
    "read_log",
    "recertify",
    "recertify_two",
    "replay",
    "resume_job",
    "scores_of",
    "seals",
    "sign",
    "signed_by",
    "sources",
    "table",
    "verify",
]
