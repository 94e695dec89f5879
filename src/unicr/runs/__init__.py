"""Runs: a dataset certified into a folder that survives, resumes, exports and can be re-checked."""

from unicr.runs._certify import Job, certify_run, prepare
from unicr.runs._export import export, floor_decimal, tsv_lines
from unicr.runs._logs import LogRow, check_gaussian, read_log, recertify
from unicr.runs._store import Row, Store
from unicr.runs._verify import Problem, replay, verify

__all__ = [
    "Job",
    "LogRow",
    "Problem",
    "Row",
    "Store",
    "certify_run",
    "check_gaussian",
    "export",
    "floor_decimal",
    "prepare",
    "read_log",
    "recertify",
    "replay",
    "tsv_lines",
    "verify",
]
