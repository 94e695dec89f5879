"""Runs: a dataset certified into a folder that survives, resumes, exports and can be re-checked."""

from unicr.runs._certify import (
    begin,
    carried_out,
    certify_run,
    conversations,
    going_on,
    row_of,
    write,
)
from unicr.runs._database import Database
from unicr.runs._execute import Executor, Work, execute
from unicr.runs._export import export, floor_decimal, table, tsv_lines
from unicr.runs._job import Job, Terms
from unicr.runs._logs import LogRow, read_log, recertify
from unicr.runs._manifest import EVERY_INPUT, THIS_INPUT, Manifest
from unicr.runs._preflight import preflight, range_warning
from unicr.runs._reopen import NOTHING, Own
from unicr.runs._run import Row, Run, load_run
from unicr.runs._scores import load_scores, scores_of
from unicr.runs._settings import changes, in_todays_words
from unicr.runs._sign import seals, sign, signed_by
from unicr.runs._verify import Problem, Search, caught, difference, replay, verify
from unicr.runs._votes import Failed, Input

__all__ = [
    "EVERY_INPUT",
    "NOTHING",
    "THIS_INPUT",
    "Database",
    "Executor",
    "Failed",
    "Input",
    "Job",
    "LogRow",
    "Manifest",
    "Own",
    "Problem",
    "Row",
    "Run",
    "Search",
    "Terms",
    "Work",
    "begin",
    "carried_out",
    "caught",
    "certify_run",
    "changes",
    "conversations",
    "difference",
    "execute",
    "export",
    "floor_decimal",
    "going_on",
    "in_todays_words",
    "load_run",
    "load_scores",
    "preflight",
    "range_warning",
    "read_log",
    "recertify",
    "replay",
    "row_of",
    "scores_of",
    "seals",
    "sign",
    "signed_by",
    "table",
    "tsv_lines",
    "verify",
    "write",
]
