"""Runs: a dataset certified into a folder that survives, resumes, exports and can be re-checked."""

from unicr.runs._certify import carried_out, certify_run, going_on
from unicr.runs._database import Database
from unicr.runs._execute import Executor, Work, execute
from unicr.runs._export import export, floor_decimal, table
from unicr.runs._job import Job, Terms
from unicr.runs._manifest import THIS_INPUT, Manifest, changes
from unicr.runs._preflight import preflight
from unicr.runs._reopen import NOTHING, Own
from unicr.runs._run import Row, Run, load_run
from unicr.runs._scores import load_scores, scores_of
from unicr.runs._sign import seals, sign, signed_by
from unicr.runs._verify import Choice, Problem, caught, certifier, difference, replay, verify
from unicr.runs._votes import Input
from unicr.runs.logs import (
    LogRow,
    paired,
    read_intervals,
    read_log,
    recertify,
    recertify_two,
)

__all__ = [
    "NOTHING",
    "THIS_INPUT",
    "Choice",
    "Database",
    "Executor",
    "Input",
    "Job",
    "LogRow",
    "Manifest",
    "Own",
    "Problem",
    "Row",
    "Run",
    "Terms",
    "Work",
    "carried_out",
    "caught",
    "certifier",
    "certify_run",
    "changes",
    "difference",
    "execute",
    "export",
    "floor_decimal",
    "going_on",
    "load_run",
    "load_scores",
    "paired",
    "preflight",
    "read_intervals",
    "read_log",
    "recertify",
    "recertify_two",
    "replay",
    "scores_of",
    "seals",
    "sign",
    "signed_by",
    "table",
    "verify",
]
