"""Runs: a dataset certified into a folder that survives, resumes, exports and can be re-checked."""

from unicr.runs._certify import Job, begin, certify_run, conversations, prepare, row_of, write
from unicr.runs._execute import Executor, Work, execute
from unicr.runs._export import export, floor_decimal, tsv_lines
from unicr.runs._logs import LogRow, check_gaussian, read_log, recertify
from unicr.runs._scores import load_scores, scores_of
from unicr.runs._store import EVERY_INPUT, THIS_INPUT, Row, Store, changes
from unicr.runs._verify import Problem, noise_of, replay, verify
from unicr.runs._votes import Failed, Input

__all__ = [
    "EVERY_INPUT",
    "THIS_INPUT",
    "Executor",
    "Failed",
    "Input",
    "Job",
    "LogRow",
    "Problem",
    "Row",
    "Store",
    "Work",
    "begin",
    "certify_run",
    "changes",
    "check_gaussian",
    "conversations",
    "execute",
    "export",
    "floor_decimal",
    "load_scores",
    "noise_of",
    "prepare",
    "read_log",
    "recertify",
    "replay",
    "row_of",
    "scores_of",
    "tsv_lines",
    "verify",
    "write",
]
