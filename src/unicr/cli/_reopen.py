"""Options with which the model and the data of a run are opened again."""

from __future__ import annotations

from dataclasses import dataclass, field

from unicr.cli._parameters import Loading, spread
from unicr.data import DataOptions
from unicr.runs import Trusted


@dataclass(frozen=True)
class RunOptions(Trusted):
    """`Trusted`, of which --trust takes one file at a time."""

    loading: Loading = field(default_factory=Loading)
    reading: DataOptions = field(default_factory=DataOptions)


spread(RunOptions, "Your own copy of the model and data (by default those that the run names)")
RUN = RunOptions()
