"""Runs: a dataset certified into a folder that survives, resumes, exports and can be re-checked."""

from unicr.runs._certify import certify_into, certify_run, find_begun
from unicr.runs._commit import (
    Input,
    commit_again,
    copy_commitment,
    follow_commitment,
    read_commitment,
    write_commitment,
)
from unicr.runs._database import Database
from unicr.runs._evidence import cyclonedx, evidence, evidence_page
from unicr.runs._execute import Executor, Work, execute
from unicr.runs._export import COLUMNS, Column, Source, export, floor_decimal, sources, table
from unicr.runs._job import Job, Place, Terms
from unicr.runs._reopen import NO_TRUST, Trusted
from unicr.runs._require import Requirement
from unicr.runs._run import Row, Run, load_run, scores_of
from unicr.runs._scores import load_scores, score_log
from unicr.runs._sign import (
    STATEMENT,
    Stamp,
    check_signature,
    check_stamp,
    compute_seals,
    file_to_sign,
    read_public_key,
    sign,
    stamp,
    statement_problems,
)
from unicr.runs._spec import Execution, Spec
from unicr.runs._verify import (
    Problem,
    compute_detection,
    find_difference,
    prove_again,
    refuse_broken_seal,
    replay,
    verify,
)
from unicr.runs.logs import (
    LogRow,
    find_log_norm,
    paired,
    read_intervals,
    read_log,
    recertify,
    recertify_two,
)

__all__ = [
    "COLUMNS",
    "NO_TRUST",
    "STATEMENT",
    "Column",
    "Database",
    "Execution",
    "Executor",
    "Input",
    "Job",
    "LogRow",
    "Place",
    "Problem",
    "Requirement",
    "Row",
    "Run",
    "Source",
    "Spec",
    "Stamp",
    "Terms",
    "Trusted",
    "Work",
    "certify_into",
    "certify_run",
    "check_signature",
    "check_stamp",
    "commit_again",
    "compute_detection",
    "compute_seals",
    "copy_commitment",
    "cyclonedx",
    "evidence",
    "evidence_page",
    "execute",
    "export",
    "file_to_sign",
    "find_begun",
    "find_difference",
    "find_log_norm",
    "floor_decimal",
    "follow_commitment",
    "load_run",
    "load_scores",
    "paired",
    "prove_again",
    "read_commitment",
    "read_intervals",
    "read_log",
    "read_public_key",
    "recertify",
    "recertify_two",
    "refuse_broken_seal",
    "replay",
    "score_log",
    "scores_of",
    "sign",
    "sources",
    "stamp",
    "statement_problems",
    "table",
    "verify",
    "write_commitment",
]
