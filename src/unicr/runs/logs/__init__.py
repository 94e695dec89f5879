"""Published logs of other people's certificates: read, checked, and carried to other norms."""

from unicr.runs.logs._check import CheckedLog, Claim, Finding, check_logs, check_rows, find_logs
from unicr.runs.logs._read import LogRow, find_log_norm, paired, read_intervals, read_log
from unicr.runs.logs._recertify import recertify, recertify_two

__all__ = [
    "CheckedLog",
    "Claim",
    "Finding",
    "LogRow",
    "check_logs",
    "check_rows",
    "find_log_norm",
    "find_logs",
    "paired",
    "read_intervals",
    "read_log",
    "recertify",
    "recertify_two",
]
