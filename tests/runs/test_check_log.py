"""`unicr check-log`: each anomaly that public logs have, made here in words of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from tests.cli.command import run

HEAD = "idx\tlabel\tpredict\tradius\tcorrect\ttime\n"
N, ALPHA, SIGMA = 1000, 0.001, 0.5
STATED = ["--noise", "gaussian(sigma=0.5)", "--n", N, "--alpha", ALPHA]


def radius(votes: int, alpha: float = ALPHA, n: int = N) -> float:
    """Cohen's radius of so many votes."""
    bound = stats.beta.ppf(alpha, votes, n - votes + 1)
    return float(SIGMA * stats.norm.ppf(bound))


def lines(size: int = 20, alpha: float = ALPHA) -> list[list[str]]:
    """An honest log: every 5th input, labels in turn, votes from 600 to 1,000, one abstention."""
    rows = []
    for i in range(size):
        label, votes = i % 4, 600 + (400 * i) // (size - 1)
        predict = label if i % 3 else (label + 1) % 4
        printed = f"{radius(votes, alpha):.3}"
        if i == 7:
            predict, printed = -1, "0.0"
        rows.append([str(5 * i), str(label), str(predict), printed, str(int(predict == label)), ""])
    return rows


def save(path: Path, rows: list[list[str]], head: str = HEAD) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head + "".join("\t".join(row) + "\n" for row in rows))
    return path


def findings(*words: object) -> dict[str, str]:
    """Kind and text of what is found in one log; the table and the exit code say the same."""
    done = run("check-log", *words, "--json")
    (log,) = json.loads(done.out)
    found = {one["kind"]: one["text"] for one in log["findings"]}
    assert done.code == (1 if found else 0)
    table = run("check-log", *words)
    assert table.code == done.code
    assert all(text in table.out for text in found.values())
    return found


def test_an_honest_log_has_no_findings(tmp_path: Path) -> None:
    log = save(tmp_path / "log", lines())
    assert findings(log, *STATED) == {}
    hits = [row for row in lines() if row[4] == "1"]
    mean = sum(float(row[3]) for row in hits) / 20
    beyond = sum(float(row[3]) >= 0.5 for row in hits) / 20
    stated = ["--accuracy", f"0={len(hits) / 20}", f"0.5={beyond:.2f}", "--average", f"{mean:.2f}"]
    assert findings(log, *STATED, *stated) == {}


def test_radii_above_what_n_and_alpha_can_give(tmp_path: Path) -> None:
    """Made at α = .01 and stated at .001, as nine of thirteen well-known logs are."""
    log = save(tmp_path / "log", lines(alpha=0.01))
    found = findings(log, *STATED)
    assert list(found) == ["radius"]
    assert "1 radii above" in found["radius"]
    assert "needs alpha >= 0.00" in found["radius"]
    assert found["radius"].endswith("all fit alpha=0.01")
    assert findings(log, *STATED[:-1], 0.01) == {}


def test_digits_that_no_count_gives(tmp_path: Path) -> None:
    """Between 999 and 1,000 votes of 1,000 no radius lies between 1.183 and 1.231."""
    rows = lines()
    rows[4][3:5] = ["1.21", rows[4][4]]
    found = findings(save(tmp_path / "log", rows), *STATED)
    assert list(found) == ["digits"]
    assert "input 20: between 1.205 and 1.215 lies no radius of any count" in found["digits"]


def test_another_sigma_is_seen(tmp_path: Path) -> None:
    found = findings(
        save(tmp_path / "log", lines()), *["--noise", "gaussian(sigma=0.25)"], *STATED[2:]
    )
    assert "no usual alpha fits" in found["radius"]


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("correct", {"row": 4, 4: "0"}, "input 20: correct is 0, predict 0 and label 0"),
        ("abstention", {"row": 7, 3: "0.3"}, "input 35: an abstention with a radius of 0.2"),
        ("doubled", {"row": 4, 0: "15"}, "1 inputs stand there more than once: 15"),
        ("order", {"row": 4, 0: "2"}, "the order goes back 1 times, first at input 2"),
        ("missing", {"row": 4, 0: "15"}, "every 5th input, but 1 are missing: 20"),
    ],
)
def test_rows_that_contradict_themselves(
    tmp_path: Path, kind: str, change: dict[Any, Any], words: str
) -> None:
    rows = lines()
    row = rows[change.pop("row")]
    for column, text in change.items():
        row[column] = text
    found = findings(save(tmp_path / "log", rows))
    assert words in found[kind]


def test_columns_that_contradict_each_other(tmp_path: Path) -> None:
    head = HEAD.replace("\n", "\tp_A_bar\traw_count\n")
    rows = []
    for i, row in enumerate(lines()):
        votes = 600 + (400 * i) // 19
        rows.append([*row, f"{stats.beta.ppf(ALPHA, votes, N - votes + 1):.5f}", str(votes)])
    log = save(tmp_path / "log", rows, head)
    assert findings(log, *STATED) == {}
    rows[5][7], rows[6][7], rows[8][6] = "640", "1001", "0.9"
    found = findings(save(tmp_path / "log", rows, head), *STATED)
    assert sorted(found) == ["bounds", "columns", "counts"]
    assert "input 30: 1001 votes of 1000" in found["counts"]
    assert "input 40: radius" in found["columns"]
    assert "2 p_A_bar" in found["bounds"]


def test_sums_that_differ_from_the_rows(tmp_path: Path) -> None:
    log = save(tmp_path / "log", lines())
    found = findings(log, "--accuracy", "0=0.99")
    assert "by the rows, 0.99 is stated" in found["summary"]
    assert "average radius is" in findings(log, "--average", "0.9")["summary"]
    run("check-log", log, "--accuracy", "half").check_refused("RADIUS=ACCURACY")


def test_a_folder_is_compared_with_itself(tmp_path: Path) -> None:
    """One log stops early, one has a foreign label, one is of other data; σ is in their names."""
    whole, short, foreign = lines(40), lines(40)[:34], lines(40)
    foreign[9][1:3], foreign[9][4] = ["3", "3"], "1"
    other = [[row[0], str(9 - int(row[1])), "-1", "0.0", "0", ""] for row in lines(20)]
    for name, rows in (("a", whole), ("b", whole), ("short", short), ("labels", foreign)):
        save(tmp_path / "cifar" / name / "sigma_0.50", rows)
    save(tmp_path / "other" / "sigma_0.50", other)
    save(tmp_path / "empty" / "sigma_0.50", [])
    (tmp_path / "README").write_text("no log\n")
    stated = ["--noise", "gaussian(sigma={sigma})", *STATED[2:]]
    done = run("check-log", tmp_path, *stated, "--json")
    found = {
        Path(log["log"]).parent.name: [one["kind"] for one in log["findings"]]
        for log in json.loads(done.out)
    }
    assert done.code == 1
    assert found == {
        "a": [], "b": [], "short": ["short"], "labels": ["labels"], "other": [],
        "empty": ["unreadable"],
    }  # fmt: skip
    text = run("check-log", tmp_path, *stated).out
    assert "34 inputs where other logs of the same data have 40" in text
    assert "first input 45: 3 here, 1 there" in text
    assert "6 logs, 3 with findings" in text


def test_what_cannot_be_checked_is_refused(tmp_path: Path) -> None:
    log = save(tmp_path / "log", lines())
    run("check-log", log, "--n", "100").check_refused("--n and --alpha together")
    run("check-log", tmp_path / "none").check_refused("the file does not exist")
    empty = tmp_path / "empty"
    empty.mkdir()
    run("check-log", empty).check_refused("there is no log in")
    found = findings(log, "--noise", "gaussian(sigma={sigma})")
    assert "no part sigma_NUMBER" in found["unreadable"]
    found = findings(log, "--noise", "gaussian(sigma=0.5)", "--norm", "inf")
    assert "--dim" in found["unreadable"]
