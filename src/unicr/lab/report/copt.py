"""C-OPT for people: the table of robustness scores, the best of each norm, and its picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread

from unicr.lab.c_opt import COpt, ShapeScore, Trained, find_best_shape
from unicr.lab.report.plots import figure
from unicr.lab.report.tables import as_csv, format_table
from unicr.progress import Bar
from unicr.text import number, round_down

GAUSSIAN = (("beta", 2.0),)
DIGITS = 4
LOOK = 2.0  # seconds between looks at the files of points


class SearchBar(Bar):
    """Points with the estimated end, also inside a point, whichever process is at work on it."""

    def __init__(self, total: int) -> None:
        super().__init__("training and certifying", total)
        self._end = Event()
        self._thread: Thread | None = None

    def of(self, copt: COpt) -> COpt:
        """Watch this search."""
        self._thread = Thread(target=self._watch, args=(copt,), daemon=True)
        self._thread.start()
        return copt

    def add(self, result: Trained) -> None:
        """One line for each point that is done, with the accuracy of its training."""
        if result.failed is not None:
            words = f"failed: {result.failed}"
        elif result.best is not None and result.best["accuracy"] is not None:
            words = f"accuracy {result.best['accuracy']:.1%} under noise, certified"
        else:
            words = "trained and certified"
        self.say(f"{result.point.name}: {words}")

    def _watch(self, copt: COpt) -> None:
        """Look now and then how far the files of the points have come."""
        while not self._end.wait(LOOK):
            self.update("points trained and certified", done=copt.done())

    def __exit__(self, *error: object) -> None:
        self._end.set()
        if self._thread is not None:
            self._thread.join()
        super().__exit__(*error)


def copt_table(lines: Sequence[ShapeScore], norms: Sequence[str]) -> str:
    """A row for each shape and a column for each norm, in Markdown; the best of a norm is bold."""
    best = {norm: find_best_shape(lines, norm) for norm in norms}
    rows = [
        [
            *(number(value) for _, value in line.shape),
            *(f"**{_cell(line, n)}**" if line is best[n] else _cell(line, n) for n in norms),
        ]
        for line in lines
    ]
    head = [*(name for name, _ in lines[0].shape), *(f"l{norm}" for norm in norms)]
    failures = [f"- {reason}" for line in lines for reason in line.failures]
    table = format_table(head, rows, "markdown")
    return "\n".join([table, *(["", "Failed:", "", *failures] if failures else [])])


def _cell(line: ShapeScore, norm: str) -> str:
    value = line.scores[norm]
    return "failed" if value is None else round_down(value, DIGITS)


def copt_csv(lines: Sequence[ShapeScore], norms: Sequence[str]) -> str:
    """The same for a program: every digit of the scores, an empty cell where a training failed."""
    best = {norm: find_best_shape(lines, norm) for norm in norms}
    records = [
        {
            **{name: number(value) for name, value in line.shape},
            **{f"l{norm}": line.scores[norm] for norm in norms},
            **{f"best_l{norm}": int(line is best[norm]) for norm in norms},
        }
        for line in lines
    ]
    return as_csv(records) + "\n"


def best_text(lines: Sequence[ShapeScore], norms: Sequence[str]) -> str:
    """The best shape of each norm in one line each."""
    texts = []
    for norm in norms:
        best = find_best_shape(lines, norm)
        if best is None:
            texts.append(f"l{norm}: every shape has a training that failed")
            continue
        shape = ", ".join(f"{name}={number(value)}" for name, value in best.shape)
        texts.append(f"l{norm}: best at {shape} with robustness score {_cell(best, norm)}")
    return "\n".join(texts)


def draw_copt(lines: Sequence[ShapeScore], norms: Sequence[str], path: Path) -> None:
    """Score against the parameter, each norm as a share of the Gaussian's score or of its best."""
    single = len(lines[0].shape) == 1
    gaussian = next((line for line in lines if line.shape == GAUSSIAN), None)
    with figure(path) as axes:
        for norm in norms:
            best = find_best_shape(lines, norm)
            by_gaussian = gaussian is not None and bool(gaussian.scores[norm])
            reference = gaussian if by_gaussian else best
            unit = reference.scores[norm] if reference is not None else None
            if not unit:
                continue
            at, values = [], []
            for i, line in enumerate(lines):
                value = line.scores[norm]
                if value is not None:
                    at.append(line.shape[0][1] if single else float(i))
                    values.append(value / unit)
            label = f"l{norm}, of {'β = 2' if by_gaussian else 'its best'} ({round_down(unit, 4)})"
            axes.plot(at, values, marker="o", label=label)
        axes.set_ylabel("robustness score, relative")
        if single:
            axes.set_xlabel(lines[0].shape[0][0])
        else:
            texts = [", ".join(f"{k}={v:.4g}" for k, v in line.shape) for line in lines]
            axes.set_xticks(range(len(lines)), texts, rotation=60, ha="right", fontsize=7)
        axes.set_ylim(bottom=0)
        if axes.get_legend_handles_labels()[0]:
            axes.legend()


def write_copt(lines: Sequence[ShapeScore], norms: Sequence[str], folder: Path) -> str:
    """table.md, table.csv and c-opt.png in the folder of a search; the Markdown table."""
    table = copt_table(lines, norms)
    (folder / "table.md").write_text(f"{table}\n\n{best_text(lines, norms)}\n")
    (folder / "table.csv").write_text(copt_csv(lines, norms))
    draw_copt(lines, norms, folder / "c-opt.png")
    return table
