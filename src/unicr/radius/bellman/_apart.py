"""One scale of the Bellman bound with jumps apart: flows of finite pairs, read beside the jumps.

Every cell of shifts is stood for by one pair (`_jumps.py`), whose finite part goes into a flow; the
jumps of all coordinates are bounded by what they may cost, and meet the flow where the criterion is
read: T ≥ e^(−a) T′(α e^b) for the worst (a, b) of a staircase (docs/theory.md#jumps-apart).
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from unicr.noise import IID
from unicr.radius.bellman._construct import Generators
from unicr.radius.bellman._jumps import list_corners, list_laws, make_steps, split_law
from unicr.radius.bellman._kernel import make_step_kernels
from unicr.radius.bellman._sheet import (
    BLUR_SHARE,
    BUDGET_CHARGE,
    BUDGETS,
    DUST,
    SMOOTH_SHARE,
    WINDOW,
    Grids,
    Sheet,
)
from unicr.tradeoff import RatioLaw
from unicr.values import Array

# These numbers decide how much is proved, not whether it is true.
STEP = 0.025  # log of the ratio of neighbouring shifts where they matter
WIDE_STEP = 0.1  # and elsewhere
NEAR = 3.0  # times the shift of the all-equal direction, or less by so much: there they matter
LARGE = 0.12  # of r: above it too
WIDEST = 0.45  # of the mesh: a log-ratio beyond it counts as a jump


class StepGrids(Grids):
    """Steps with their costs and kernels."""

    between = False

    def __init__(self, sheet: ApartSheet, effort: int) -> None:
        p, dim, r = sheet.p, sheet.dim, sheet.r
        least, equal = (0.25 * DUST / dim) ** (1 / p) * r, r * dim ** (-1 / p)
        u = [least]
        while u[-1] < r:
            close = equal / NEAR <= u[-1] <= NEAR * equal or u[-1] >= LARGE * r
            u.append(min(u[-1] * math.exp((STEP if close else WIDE_STEP) / effort), r))
        self.shifts = np.array(u)
        self.steps = make_steps(sheet.unit, tuple(u), sheet.widest)
        # a step of the cell (u_{k−1}, u_k] costs what u_{k−1} does, the first one nothing but κ
        self.costs = np.append(0.0, self.shifts[:-1]) ** p + sheet.kappa
        self.shares = np.zeros(len(u) - 1)
        self.kernels = make_step_kernels(self.steps.finite, sheet.mesh, SMOOTH_SHARE * sheet.shift)
        self.generators = Generators(self.kernels, self.costs, sheet.mesh)
        self.count = BUDGETS * (3 + effort) // 4
        self.blurred = BLUR_SHARE * sheet.shift / effort


class ApartSheet(Sheet):
    """A sheet whose flows hold finite pairs only."""

    @property
    def widest(self) -> float:
        """The largest finite |L|, but for a constant."""
        return WIDEST * float(self.mesh.points[-1] - self.mesh.points[0])

    def _make_grids(self, effort: int) -> StepGrids:
        return StepGrids(self, effort)

    def _bound_gaps(self) -> Array:
        return np.ones(len(self.largest) - 1)  # no chord between two largest coordinates

    def _split_first(self, i: int) -> tuple[list[RatioLaw], Array]:
        """The finite pair of the largest coordinate a_i and its jump, for each sign."""
        split = [split_law(law, self.widest) for law in list_laws(self.unit, self.largest[i])]
        return [law for law, _ in split], np.array([[j.gone, j.left] for _, j in split])

    def _list_first_laws(self, i: int) -> list[RatioLaw]:
        return self._split_first(i)[0]

    def _bound_cell(self, i: int, r: float, levels: list[float] | None) -> float:
        """As in `Sheet`, at the worst corner of the staircase of jumps."""
        budgets, _ = self._cut_cell(i, r)
        budgets = budgets * (1 + BUDGET_CHARGE)
        at = 0 if i == 0 else i + 1
        flow, gamma = self.flows[at], self.mesh.gamma
        grids = cast(StepGrids, self.grids[flow.effort])  # made by `_make_grids`
        top = min(int(np.searchsorted(grids.shifts, self.largest[i + 1])) + 1, len(grids.shifts))
        jumps, costs = grids.steps.jumps[:top], grids.costs[:top]
        first = np.zeros((1, 2)) if i == 0 else self._split_first(at)[1]
        lowest = math.inf
        for row, budget in enumerate(budgets):
            gone, left = list_corners(jumps, costs, first, float(budget))
            values = flow.read(budgets[row : row + 1], slice(None))[0]
            total = np.zeros(len(gone))
            for level in levels if levels is not None else [None]:
                total += self._read_line(values, gamma, gone, left, level)
            # no number is no bound
            lowest = min(lowest, float(np.min(np.where(np.isnan(total), -np.inf, total))))
        return lowest

    def _read_line(
        self, values: Array, gamma: Array, gone: Array, left: Array, level: float | None
    ) -> Array:
        """The best line at every corner: T at the level, or the largest α with T(α) ≥ 1/2."""
        middle = len(gone) // 2
        q, p = np.exp(-gone), np.exp(left)

        def lines(at: slice, columns: slice) -> Array:
            if level is None:
                top = 1.0 - values[columns] - 0.5 / q[at, None]
                return top / (gamma[columns] * p[at, None])
            return q[at, None] * (1.0 - values[columns] - gamma[columns] * p[at, None] * level)

        j = int(np.argmax(lines(slice(middle, middle + 1), slice(None))[0]))
        window = slice(max(0, j - 4 * WINDOW), j + 4 * WINDOW + 1)
        return np.max(lines(slice(None), window), axis=1)


def balance_jumps(unit: IID, p: float, dim: int, r: float) -> float:
    """The κ for which equal coordinates show most, jumps and information, for their cost."""
    u = r * dim ** (-1 / p)

    def shown(at: float) -> float:
        split = [split_law(law, math.inf) for law in list_laws(unit, at)]
        return max(
            jump.gone + jump.left + float(np.sum(law.mass * law.loss)) for law, jump in split
        )

    low, high = shown(u / 1.05), shown(1.05 * u)
    if not 0 < low < high < math.inf:
        return 0.0
    return (p * math.log(1.05**2) / math.log(high / low) - 1.0) * u**p
