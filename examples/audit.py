"""For an auditor: check Gaussian certificates from scratch, without the package that made them.

    python examples/audit.py my-run               # a run folder
    python examples/audit.py my-run.jsonl         # or what `unicr export -o my-run.jsonl` wrote

Reads the vote counts and asks of every certificate: is the class the one that the first n0 votes
chose? Is the claimed p_A at most the Clopper–Pearson bound of the n fresh votes? Is the claimed
radius at most σ·(Φ⁻¹(p_A) − Φ⁻¹(p_B))/2, times d^(1/p − 1/2) in ℓp with p > 2? Only json, sqlite3,
numpy and scipy are used. For a run folder `unicr verify` then does the same by its own means.
Certificates with another noise, or with early stopping, are counted and left to `unicr verify`.
Exit code 1 if a certificate claims too much, or if nothing could be checked.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, stats

ROUNDING = 1e-9  # relative: two good implementations differ by less
CHECKED = ("fixed", "three", "union")  # rules with a fixed number of samples
GAUSSIAN = re.compile(r"gaussian\(sigma=([0-9.eE+-]+)\)")


def read_run(folder: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The certificates of a run folder, with its settings."""
    with sqlite3.connect(f"file:{folder / 'run.sqlite'}?mode=ro", uri=True) as db:
        db.row_factory = sqlite3.Row
        spec = {k: json.loads(v) for k, v in db.execute("SELECT key, value FROM spec")}
        rows = [dict(row) for row in db.execute("SELECT * FROM results ORDER BY idx")]
    db.close()
    return [read_row(row, spec) for row in rows], spec["plan"]


def read_row(row: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """What a row claims, with the votes that its transcript holds for the claim's noise."""
    if row["claims"] is None:
        return {**row, "status": "failed", "noise": spec["noise"]}
    claims = json.loads(row["claims"])
    found = {**row, **claims, "status": "certified" if claims["predict"] >= 0 else "abstained"}
    for name, purpose in (("selection", "choose"), ("counts", "bound")):
        answers = [
            np.array(one["counts"])
            for one in json.loads(row["transcript"])
            if (one["purpose"], one.get("noise")) == (purpose, claims["noise"])
        ]
        found[name] = np.sum(answers, axis=0).tolist() if answers else []
    return {**found, "noise": claims["noise"] or spec["noise"], "dim": math.prod(spec["shape"])}


def read_jsonl(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Exported certificates. The export does not hold the plan: equal n must mean a fixed n."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    made = [row for row in rows if row["status"] != "failed"]
    if any(row["scope"] != "every input" for row in made):
        raise SystemExit("a noise was chosen for each input: audit the run folder instead")
    fixed = len({row["n"] for row in made}) <= 1
    three = any(row["p_b"] < 1 - row["p_a"] for row in made)
    return rows, {"rule": {"name": ("three" if three else "fixed") if fixed else "early"}}


def at_least(k: int, n: int, alpha: float) -> float:
    """The p at which k or more of n votes have probability alpha: any smaller p is refuted."""
    if k == 0:
        return 0.0
    return float(optimize.brentq(lambda p: stats.binom.sf(k - 1, n, p) - alpha, 0, 1, xtol=1e-15))


def at_most(k: int, n: int, alpha: float) -> float:
    """The p at which k or fewer of n votes have probability alpha: any larger p is refuted."""
    if k == n:
        return 1.0
    return float(optimize.brentq(lambda p: stats.binom.cdf(k, n, p) - alpha, 0, 1, xtol=1e-15))


def rule_of(plan: dict[str, Any]) -> dict[str, Any]:
    """The sampling rule of a run."""
    return dict(plan["rule"])


def bounds(row: dict[str, Any], plan: dict[str, Any]) -> tuple[float, float]:
    """p_A from below and every other class from above, at total failure probability alpha."""
    order = np.argsort(-np.array(row["selection"]), kind="stable")
    counts = np.zeros(max(len(row["counts"]), len(order)), dtype=int)
    counts[: len(row["counts"])] = row["counts"]
    n, top = int(counts.sum()), int(counts[order[0]])
    rule = rule_of(plan)
    if rule["name"] != "three":
        p_a = at_least(top, n, row["alpha"] / rule.get("candidates", 1))
        return p_a, 1 - p_a
    third = row["alpha"] / 3
    second = int(counts[order[1]])
    p_a = at_least(top, n, third)
    p_b = max(at_most(second, n, third), at_most(n - top - second, n, third))
    return p_a, min(p_b, 1 - p_a)


def radius(sigma: float, norm: str, dim: int, p_a: float, p_b: float) -> float:
    """σ(Φ⁻¹(p_A) − Φ⁻¹(p_B))/2 in ℓp up to p = 2, less by d^(1/p − 1/2) beyond."""
    p = float(norm)
    factor = 1.0 if p <= 2 else dim ** (1 / p - 0.5)
    return float(sigma * factor * (stats.norm.ppf(p_a) - stats.norm.ppf(p_b)) / 2)


def complaint(row: dict[str, Any], plan: dict[str, Any], sigma: float) -> str | None:
    """What a certificate claims beyond its votes; None if it claims no more."""
    if sum(row["selection"]) != row["n0"] or sum(row["counts"]) != row["n"]:
        return "the votes are not as many as n0 and n say"
    p_a, p_b = bounds(row, plan)
    if row["p_a"] > p_a * (1 + ROUNDING) or row["p_b"] < p_b * (1 - ROUNDING):
        return f"p_A, p_B = {row['p_a']}, {row['p_b']} claimed; the votes give {p_a}, {p_b}"
    chosen = int(np.argsort(-np.array(row["selection"]), kind="stable")[0])
    if row["predict"] not in (chosen, -1):
        return f"class {row['predict']} claimed; the first votes chose {chosen}"
    for claim in row["radii"]:
        allowed = radius(sigma, claim["norm"], row["dim"], p_a, p_b)
        if row["predict"] == -1 or p_a <= p_b:
            allowed = 0.0
        if float(claim["radius"]) > allowed * (1 + ROUNDING):
            return f"radius {claim['radius']} in l{claim['norm']} claimed; {allowed} follows"
    return None


def audit(rows: list[dict[str, Any]], plan: dict[str, Any]) -> tuple[int, int, list[str]]:
    """How many certificates were checked, how many left out, and the complaints."""
    checked, left, complaints = 0, 0, []
    for row in rows:
        found = GAUSSIAN.fullmatch(row["noise"])
        if row["status"] == "failed" or rule_of(plan)["name"] not in CHECKED or found is None:
            left += 1
            continue
        checked += 1
        text = complaint(row, plan, float(found[1]))
        if text is not None:
            complaints.append(f"input {row['idx']}: {text}")
    return checked, left, complaints


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("certificates", type=Path, help="a run folder or an exported .jsonl file")
    path = parser.parse_args().certificates
    rows, plan = read_run(path) if path.is_dir() else read_jsonl(path)
    checked, left, complaints = audit(rows, plan)
    print("\n".join(complaints), end="\n" if complaints else "")
    print(f"{checked} certificates checked from scratch, {len(complaints)} claim too much")
    print(f"{left} left out: no certificate, another noise than Gaussian, or early stopping")
    bad = bool(complaints) or checked == 0
    if path.is_dir():
        print("unicr verify:", flush=True)
        bad |= subprocess.run([sys.executable, "-m", "unicr", "verify", str(path)]).returncode != 0
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
