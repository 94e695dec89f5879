"""Theorems as values: one list that everything reads, and radii against independent engines."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize

from unicr import noise
from unicr.errors import RadiusError
from unicr.norms import Norm, l1, l2, linf
from unicr.progress import OutOfTime
from unicr.radius import Evidence, Grade, Question, RadiusCurve, certified_radius
from unicr.radius import theorems as package
from unicr.radius._boundary import find_first_root
from unicr.radius._result import reconcile
from unicr.radius.theorems import find_exact_bound, list_theorems, prove
from unicr.radius.theorems.envelope import EnvelopeBound
from unicr.tradeoff import LeastTradeOff, compute_tradeoff
from unicr.tradeoff.internal import compute_margin

DOCS = Path(__file__).parents[2] / "docs" / "certificates.md"


MINE = """
from unicr.radius import Grade
from unicr.radius.theorems._base import Bound, Theorem


class Mine(Bound):
    def radius(self, evidence):
        return 100.0


def match(question):
    if question.noise.text.startswith("laplace") and question.dim == 6:
        return Mine(theorem="(zz) mine", grade=Grade.DECLARED, exact=True)


THEOREM = Theorem("zz", "mine", "Laplace noise in dimension 6", match)
"""


def forget() -> None:
    """Read the folder of theorems again."""
    package.THEOREMS.reload()
    package._find_exact.cache_clear()
    package._list_bounds.cache_clear()


def test_a_new_theorem_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by being there: it proves, and its name stands in the result."""
    one = noise.laplace(sigma=1)
    (tmp_path / "mine.py").write_text(MINE)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
            forget()
            proof = prove(Question(one, 2, 6), Evidence(0.9))
            assert proof.radius == pytest.approx(100.0 * one.scale, rel=2e-12)
            assert (proof.theorem, proof.grade) == ("(zz) mine", Grade.DECLARED)
            assert find_exact_bound(Question(one, 2, 7)) is None
    finally:
        forget()
    assert find_exact_bound(Question(one, 2, 6)) is None


def test_every_theorem_stands_in_the_table_of_the_docs() -> None:
    text = DOCS.read_text(encoding="utf-8")
    for one in list_theorems():
        if one.letter != "h":  # said in words below the table
            assert f"| {one.name} |" in text
    assert "+ (h) inclusion" in text
    assert "smallest scale" in text


@pytest.mark.parametrize(
    ("spec", "norm", "dim", "letter"),
    [
        ("gaussian(sigma=1)", Norm(3.0), 784, "d"),
        ("laplace(sigma=1)", l1, 784, "b"),
        ("laplace(sigma=1)", l2, 1, "b"),
        ("cauchy(scale=1)", linf, 784, "c"),
        ("cauchy(scale=1)", l2, 1, "c"),
        ("uniform(scale=1)", linf, 784, "k"),
        ("uniform(scale=1)", Norm(1.3), 784, "k"),
        ("laplace(sigma=1)", l2, 784, None),
        ("cauchy(scale=1)", l1, 784, None),
    ],
)
def test_what_is_exact_is_asked_of_one_list(
    spec: str, norm: Norm, dim: int, letter: str | None
) -> None:
    bound = find_exact_bound(Question(noise.parse(spec), norm, dim))
    assert (None if bound is None else bound.theorem[1]) == letter


@pytest.mark.parametrize("p", [0.5, 1.0, 1.05, 1.2, 1.5, 1.9, 2.0, 3.0, 8.0, math.inf])
@pytest.mark.parametrize("dim", [1, 2, 5, 784])
@pytest.mark.parametrize(("p_a", "p_b"), [(0.55, 0.45), (0.9, 0.1), (0.999, 0.001), (0.7, 0.1)])
def test_uniform_noise_is_exact_in_every_norm(p: float, dim: int, p_a: float, p_b: float) -> None:
    """No direction reaches the boundary earlier, and a numerical minimiser finds one just there.

    K ≥ 0 iff Π(1 − |δ_i|/2λ) ≥ 1 − (p_A − p_B)/2, here for λ = 1/2 and random directions.
    """
    one, norm = noise.uniform(scale=0.5), Norm(p)
    radius = certified_radius(one, norm, dim, p_a=p_a, p_b=p_b).proved
    goal = math.log1p(-0.5 * (p_a - p_b))
    rng = np.random.default_rng(3)
    reached = math.inf

    def boundary(direction: np.ndarray) -> float:
        unit = np.abs(direction) / norm(np.abs(direction))
        top = (1 - 1e-15) / unit.max()
        value = lambda r: float(np.sum(np.log1p(-np.minimum(r * unit, 1 - 1e-16)))) - goal  # noqa: E731
        return float(optimize.brentq(value, 0.0, top, xtol=1e-15, rtol=1e-13))

    for trial in range(40):
        direction = rng.standard_gamma(rng.choice([0.1, 1, 10]), dim) + 1e-9
        if trial < 2:
            direction = np.eye(dim)[0] + 1e-12 if trial else np.ones(dim)
        elif trial < 25:
            direction = np.ones(dim)
            direction[0] = 10 ** rng.uniform(0, 4)
        found = boundary(direction)
        assert found >= radius * (1 - 1e-9)
        reached = min(reached, found)
    assert reached <= radius * 1.02


@pytest.mark.parametrize(("spec", "p"), [("uniform(scale=1)", 2.0), ("uniform(scale=1)", math.inf)])
def test_uniform_noise_against_composition(spec: str, p: float) -> None:
    one = noise.parse(spec)
    closed = certified_radius(one, p, 60, p_a=0.8, p_b=0.1).proved
    composed = certified_radius(one, p, 60, p_a=0.8, p_b=0.1, engine="numeric")
    assert composed.searched == pytest.approx(closed, rel=2e-4)


def test_certainty_is_infinite_only_where_the_density_is_positive_everywhere() -> None:
    half_line = noise.from_density(lambda x: -x, support=(0, math.inf))
    found = certified_radius(half_line, 1, 1, p_a=1.0)
    assert found.proved == pytest.approx(math.log(2), rel=1e-3)
    assert found.proved <= math.log(2) * (1 + 1e-9)
    hole = noise.from_density(
        lambda x: np.where(np.abs(x) < 1, -np.inf, -np.abs(x)), points=(-1.0, 1.0)
    )
    assert 2 < certified_radius(hole, 1, 1, p_a=1.0).proved < math.inf
    assert certified_radius(noise.sech(sigma=1), 1, 3, p_a=1.0).proved == math.inf


def test_one_dimension_takes_the_worse_sign() -> None:
    """Gumbel at p_A = 0.9: the quantile and the median, on both sides."""
    from scipy import stats

    law = stats.gumbel_r()
    found = certified_radius(noise.from_scipy(law), 2, 1, p_a=0.9)
    truth = min(law.ppf(0.9) - law.median(), law.median() - law.ppf(0.1))
    assert found.theorem.startswith("(a) one dimension")
    assert found.proved == pytest.approx(truth, rel=1e-4)
    assert found.proved <= truth * (1 + 1e-9)


def two_humps() -> noise.IID:
    """Symmetric, not unimodal: K is not monotone, and nothing names the worst shift."""
    humps = noise.from_density(lambda x: np.logaddexp(-((x - 3) ** 2) * 8, -((x + 3) ** 2) * 8))
    assert not humps.facts.unimodal
    return humps


def test_two_humps_in_one_dimension_have_no_exact_theorem() -> None:
    assert find_exact_bound(Question(two_humps(), l2, 1)) is None


@pytest.mark.slow
def test_a_curve_in_one_dimension_proves_no_more_than_the_radius() -> None:
    humps = two_humps()
    direct = certified_radius(humps, 2, 1, p_a=0.9)
    assert direct.proved <= direct.searched
    assert float(RadiusCurve(humps, 2, 1)(0.9)) <= direct.proved * (1 + 1e-9)


def test_a_proof_above_the_search_is_an_error_that_names_both() -> None:
    assert reconcile(1.00002, "(x) test", 1.0, "search", 1e-4) == 1.00002
    assert reconcile(0.5, "(x) test", 1.0, "search", 1e-4) == 1.0
    with pytest.raises(RadiusError, match=r"\(x\) test gives the radius 1\.5, .* only 1\.0"):
        reconcile(1.5, "(x) test", 1.0, "search", 1e-4)


class Broken(package.Bound):
    """A theorem that cannot be computed."""

    def radius(self, evidence: Evidence) -> float:
        raise ValueError("a flow needs finite bends")


class Endless(package.Bound):
    """A theorem during which time is over."""

    def radius(self, evidence: Evidence) -> float:
        raise OutOfTime


class Small(package.Bound):
    """A theorem that proves a radius."""

    def radius(self, evidence: Evidence) -> float:
        return 0.25


def prove_by(monkeypatch: pytest.MonkeyPatch, *kinds: type[package.Bound]) -> package.Proof:
    """What is proved where these are all the theorems there are."""
    bounds = tuple(kind(theorem=f"(z) {kind.__name__}", grade=Grade.DECLARED) for kind in kinds)
    monkeypatch.setattr(package, "list_bounds", lambda question, *, laws: bounds)
    return prove(Question(noise.laplace(scale=1), 2, 6), Evidence(0.9))


def test_a_theorem_that_cannot_be_computed_takes_no_other_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for kinds in ((Broken, Small), (Small, Broken)):
        proof = prove_by(monkeypatch, *kinds)
        assert proof.theorem == "(z) Small"
        assert proof.complete
        assert 0.2499 < proof.radius <= 0.25
    with pytest.raises(RadiusError, match=r"\(z\) Broken .*a flow needs finite bends"):
        prove_by(monkeypatch, Broken)


def test_what_is_proved_when_time_is_over_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = prove_by(monkeypatch, Small, Endless, Broken)
    assert proof.theorem == "(z) Small"
    assert not proof.complete
    with pytest.raises(OutOfTime):
        prove_by(monkeypatch, Endless, Small)


def test_a_radius_says_that_time_was_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice: while theorems are asked, and while the worst direction is searched."""
    whole = certified_radius(noise.gaussian(sigma=1), 2, 6, p_a=0.9)
    assert whole.complete
    assert "complete" not in whole.to_dict()

    def stop(*args: object, **kwargs: object) -> float:
        raise OutOfTime

    prove_little = lambda *args: 0.01  # noqa: E731
    for bellman, search in ((stop, prove_little), (prove_little, stop)):
        monkeypatch.setattr("unicr.radius.theorems.bellman.bellman_radius", bellman)
        monkeypatch.setattr("unicr.radius._radius.search_direction", search)
        found = certified_radius(noise.laplace(scale=1), 2, 6, p_a=0.9)
        assert not found.complete
        assert found.to_dict()["complete"] is False
        assert found.guarantee == "approximate"
        assert found.searched == found.proved > 0.01


@pytest.mark.parametrize("error", [OutOfTime, ValueError])
def test_a_part_of_a_sum_that_gives_nothing_takes_no_other_with_it(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """Laplace noise stands first and is given up in ℓ2; Gaussian noise has a formula there."""
    gaussian, laplace = noise.gaussian(sigma=1), noise.laplace(sigma=1)

    def stop(*args: object) -> float:
        raise error

    monkeypatch.setattr("unicr.radius.theorems.bellman.bellman_radius", stop)
    found = certified_radius(noise.Sum(laplace, gaussian), 2, 6, p_a=0.9)
    assert found.proved == certified_radius(gaussian, 2, 6, p_a=0.9).proved
    assert found.theorem == "(d) Gaussian, part of a sum"
    assert found.complete is (error is ValueError)


def test_p_b_of_all_theorems_agrees_with_the_binary_case() -> None:
    for spec, norm in (("laplace(sigma=1)", l1), ("uniform(sigma=1)", Norm(1.4))):
        question = Question(noise.parse(spec), norm, 20)
        binary = prove(question, Evidence(0.8)).radius
        near = prove(question, Evidence(0.8, 0.2 - 1e-12)).radius
        assert near == pytest.approx(binary, rel=1e-9)
        assert prove(question, Evidence(0.8, 0.1)).radius > binary


def test_first_root_of_a_straight_line_and_of_a_dip() -> None:
    root = find_first_root(lambda r: 1 - r, 1.0, 0.3, monotone=True)
    assert 1 - 2e-5 <= root <= 1
    for guess in (1e-3, 40.0):
        root = find_first_root(lambda r: 1 - r, 1.0, guess, monotone=True)
        assert 1 - 2e-5 <= root <= 1
    dip = find_first_root(lambda r: math.cos(r) + 0.5, 1.5, 1.0, monotone=False)
    assert 2 * math.pi / 3 * (1 - 2e-5) <= dip <= 2 * math.pi / 3
    steps = find_first_root(lambda r: 1.0 if r < 0.7 else -math.inf, 1.0, 1.0, monotone=True)
    assert 0.7 * (1 - 2e-5) <= steps < 0.7


@pytest.mark.parametrize("monotone", [True, False])
def test_a_root_that_never_comes_is_an_error_unless_infinity_is_true(monotone: bool) -> None:
    with pytest.raises(RadiusError, match="no perturbation up to"):
        find_first_root(lambda r: 1.0, 1.0, 1.0, monotone=monotone)
    assert find_first_root(lambda r: 1.0, 1.0, 1.0, monotone=monotone, endless=True) == math.inf


def test_a_root_of_a_real_boundary() -> None:
    one = noise.laplace(scale=1)
    value = lambda r: compute_margin(compute_tradeoff(one, [(r, 1)]), 0.9, 0.1)  # noqa: E731
    root = find_first_root(value, 1.2815515655446008, 1.0, monotone=True)
    assert root == pytest.approx(-math.log(0.2), rel=2e-5)


def test_a_range_of_signs_is_composed_of_all_coordinates() -> None:
    """Seven coordinates, two to five of which move down: below T of every such number."""
    law = noise.from_density(lambda x: -np.maximum(x, -3 * x), points=(0,))
    bound = EnvelopeBound(theorem="", grade=Grade.FLOATING_POINT, law=law, dim=7)
    least = bound._compose_signs(bound._make_laws(0.2), (2, 5))
    alpha = np.array([0.02, 0.1, 0.3, 0.5])
    for down in range(2, 6):
        moved = [(0.2, 7 - down), (-0.2, down)]
        assert np.all(least.beta(alpha) <= compute_tradeoff(law, moved).beta(alpha) + 1e-4)
    assert np.all(least.beta(alpha) > 0)


def test_the_least_of_several_is_below_each() -> None:
    law = noise.laplace(scale=1)
    parts = tuple(compute_tradeoff(law, [(u, 3)]) for u in (0.1, 0.4, 0.2))
    least, level = LeastTradeOff(parts), np.array([0.1, 0.3, 0.5])
    for part in parts:
        assert np.all(least.alpha(level) <= part.alpha(level))
        assert np.all(least.beta(level) <= part.beta(level))
