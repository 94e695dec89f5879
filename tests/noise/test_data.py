"""A noise as data: the same law comes back bit for bit, and a forged one does not come back."""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import special, stats

from unicr import noise
from unicr.errors import NoiseError
from unicr.law.internal import write_floats
from unicr.noise import IID, Noise
from unicr.noise._data import _digest
from unicr.radius import certified_radius

Array = NDArray[np.float64]
X = np.concatenate([np.linspace(-6, 6, 241), [-1e3, 1e-12, 40.0, math.inf]])
U = np.array([1e-15, 1e-9, 1e-3, 0.2, 0.5, 0.77, 1 - 1e-6])

FAMILIES = {
    name: noise.parse(text)
    for name, text in {
        "gaussian": "gaussian(sigma=0.5)",
        "laplace": "laplace(scale=0.7)",
        "sech": "sech(sigma=1)",
        "gennorm": "gennorm(beta=1.5, sigma=0.1)",
        "cauchy": "cauchy(scale=0.3)",
        "pareto": "pareto(beta=3, scale=0.5)",
        "lapgauss": "lapgauss(beta=0.5, sigma=1)",
        "expmix": "expmix(beta=0.25, sigma=1)",
        "uniform": "uniform(sigma=1)",
        "splitting": "splitting(scale=0.5)",
        "spherical_gg": "spherical_gg(k=3, sigma=0.5, dim=12)",
        "spherical_exp": "spherical_exp(k=1.5, scale=2, dim=12)",
        "ball": "ball(sigma=1, dim=12)",
        "l1_exp": "l1_exp(k=2, j=1, sigma=1, dim=12)",
        "linf_exp": "linf_exp(k=1, j=0, sigma=0.5, dim=12)",
        "linf_pareto": "linf_pareto(a=22, sigma=1, dim=12)",
        "truncated": "cauchy(scale=0.3).truncated(-1, 2)",
        "twice": "laplace(sigma=1).truncated(4).truncated(-1, 3) * 2",
        "anisotropic": "gaussian(sigma=1)",
    }.items()
}
for name, family in noise.FAMILIES.items():
    FAMILIES.setdefault(name, noise.parse(family.example))
FAMILIES["anisotropic"] = noise.Anisotropic(noise.laplace(sigma=0.3), np.linspace(0.5, 2, 12))


def tent(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(1 - np.abs(x), 0.0)))


def dip(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(2 * np.log(np.abs(x - 1)) - x**2)


def singular(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(-0.5 * np.log(np.abs(x)) - x**2)


DENSITIES: dict[str, Callable[[], IID]] = {
    "normal": lambda: noise.from_density(lambda x: -x * x / 2),
    "cubic": lambda: noise.from_density(lambda x: -(np.abs(x) ** 3), sigma=0.25),
    "gumbel": lambda: noise.from_scipy(stats.gumbel_r(0, 2)),
    "tent": lambda: noise.from_density(tent, scale=3),
    "dip": lambda: noise.from_density(dip),
    "cauchy": lambda: noise.from_density(lambda x: -np.log1p(x * x)),
    "half": lambda: noise.from_density(lambda x: -x, support=(0, math.inf)),
    "hollow": lambda: noise.from_density(lambda x: np.where(np.abs(x) > 1, -np.abs(x), -np.inf)),
    "two": lambda: noise.from_density(lambda x: np.logaddexp(-((x - 3) ** 2), -((x + 3) ** 2) / 2)),
    "singular": lambda: noise.from_density(singular),
    "step": lambda: noise.from_density(
        lambda x: -special.expit((np.abs(x) - 0.7) / 1e-3) - np.maximum(np.abs(x) - 1.5, 0),
        points=(-1.5, 1.5),
    ),
    "cut": lambda: noise.from_density(lambda x: -(np.abs(x) ** 0.5), name="mine").truncated(-2, 3),
}


@pytest.fixture(scope="module")
def densities() -> dict[str, IID]:
    return {name: make() for name, make in DENSITIES.items()}


def through_json(one: Noise) -> Noise:
    return noise.from_data(json.loads(json.dumps(noise.to_data(one))))


def assert_same(one: Noise, other: Noise) -> None:
    assert other == one
    assert other.text == one.text
    assert other.cache_key == one.cache_key
    assert other.facts == one.facts
    assert other.sigma == one.sigma
    shape = None if one.dim else 12
    for dtype in (torch.float32, torch.float64):
        draws = [n.sample(500, shape, seed=9, input_index=4, dtype=dtype) for n in (one, other)]
        assert torch.equal(*draws)
    assert torch.equal(one.log_prob(draws[0]), other.log_prob(draws[0]))
    if isinstance(one, IID):
        assert isinstance(other, IID)
        for name in ("logpdf", "cdf", "sf"):
            np.testing.assert_array_equal(getattr(one, name)(X), getattr(other, name)(X))
        for name in ("ppf", "isf"):
            np.testing.assert_array_equal(getattr(one, name)(U), getattr(other, name)(U))


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_comes_back_the_same(name: str) -> None:
    assert_same(FAMILIES[name], through_json(FAMILIES[name]))


@pytest.mark.parametrize("name", DENSITIES)
def test_a_density_comes_back_the_same_without_its_function(
    name: str, densities: dict[str, IID]
) -> None:
    one = densities[name]
    assert_same(one, through_json(one))
    assert_same(one * 0.3, through_json(one * 0.3))


@pytest.mark.parametrize("name", [name for name in DENSITIES if name != "dip"])  # dip: a minute
def test_radii_are_identical(name: str, densities: dict[str, IID]) -> None:
    one, other = densities[name], through_json(densities[name])
    radii = [certified_radius(n, norm=1, dim=1, p_a=0.9) for n in (one, other)]
    assert (radii[0].proved, radii[0].searched) == (radii[1].proved, radii[1].searched)


@pytest.mark.parametrize(
    "name",
    ["normal", "tent", pytest.param("gumbel", marks=[pytest.mark.slow, pytest.mark.important])],
)
def test_radii_are_identical_in_ten_dimensions(name: str, densities: dict[str, IID]) -> None:
    one, other = densities[name], through_json(densities[name])
    radii = [certified_radius(n, norm="inf", dim=10, p_a=0.8) for n in (one, other)]
    assert radii[0].searched > 0
    assert (radii[0].proved, radii[0].searched) == (radii[1].proved, radii[1].searched)


def test_a_noise_named_by_its_file_keeps_its_name(tmp_path: Any) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from unicr import noise\none = noise.from_density(lambda x: -x**4, name='q')\n"
    )
    one = noise.parse(f"{file}:one") * 2
    data = noise.to_data(one)
    file.write_text("raise SystemExit('the file was run')")
    other = noise.from_data(data)
    assert other.text == one.text == f"{file}:one * 2"
    assert_same(one, other)


def test_the_digest_is_that_of_canonical_json() -> None:
    data = noise.to_data(noise.gennorm(beta=1.5, sigma=2))
    assert data["noise"] == {"family": "gennorm", "beta": 1.5, "sigma": 2.0}
    text = '{"beta":1.5,"family":"gennorm","sigma":2.0}'
    assert data["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert noise.to_data(noise.gennorm(beta=1.5, sigma=3))["sha256"] != data["sha256"]


def test_equal_noises_have_equal_digests(densities: dict[str, IID]) -> None:
    for one in [*FAMILIES.values(), *densities.values()]:
        assert noise.to_data(one) == noise.to_data(through_json(one))


@pytest.mark.parametrize(
    "one",
    [
        noise.from_radial_density(lambda r: -r, dim=3),
        noise.Joint(
            lambda z: -z.square().sum(1) / 2,
            lambda n, g: torch.randn(n, 3, generator=g, dtype=torch.float64),
            dim=3,
        ),
    ],
    ids=["spherical", "joint"],
)
def test_functions_of_vectors_cannot_be_data(one: Noise) -> None:
    with pytest.raises(NoiseError, match="cannot be written to a file"):
        noise.to_data(one)


# ------------------------------------------------------------------------------ forgeries


def test_an_edit_without_a_new_digest_is_seen(densities: dict[str, IID]) -> None:
    data = noise.to_data(densities["tent"])
    data["noise"]["scale"] *= 1 + 1e-15
    with pytest.raises(NoiseError, match="was changed: its digest is"):
        noise.from_data(data)


def sealed(body: Any) -> dict[str, Any]:
    """What a forger would write: the digest fits the forged noise."""
    return {"format": 1, "noise": body, "sha256": _digest(body)}


LISTS = ("knots", "start", "end")


def lists_of(body: dict[str, Any]) -> Array:
    """Knots and the log-densities on both sides of each piece, as rows of equal length."""
    import base64

    rows = [np.frombuffer(base64.b64decode(body["table"][name]), "<f8") for name in LISTS]
    return np.stack([np.append(row, np.full(rows[0].size - row.size, np.nan)) for row in rows])


def forge(one: IID, change: Callable[[dict[str, Any], Array], None]) -> dict[str, Any]:
    body = copy.deepcopy(noise.to_data(one)["noise"])
    rows = lists_of(body)
    change(body, rows)
    for name, row, less in zip(LISTS, rows, (0, 1, 1), strict=True):
        body["table"][name] = write_floats(row[: row.size - less])
    return sealed(body)


def claim(fact: str) -> Callable[[dict[str, Any], Array], None]:
    return lambda body, rows: body["facts"].update({fact: True})


def put(row: int, place: int, value: float) -> Callable[[dict[str, Any], Array], None]:
    return lambda body, rows: rows.__setitem__((row, place), value)


def swap(body: dict[str, Any], rows: Array) -> None:
    rows[0, [3, 4]] = rows[0, [4, 3]]


FORGERIES: dict[str, tuple[str, Callable[[dict[str, Any], Array], None]]] = {
    "symmetric": ("two", claim("symmetric")),
    "log-concave": ("two", claim("log_concave")),
    "unimodal": ("two", claim("unimodal")),
    "bounded": ("two", claim("bounded")),
    "variance": ("cauchy", claim("finite_variance")),
    "positive": ("hollow", claim("positive")),
    "positive half": ("half", claim("positive")),
    "fact twice": ("two", lambda body, rows: body["facts"].update({"symmetric": "yes"})),
    "fact analytic": ("two", lambda body, rows: body["facts"].update({"source": "analytic"})),
    "no facts": ("two", lambda body, rows: body.update({"facts": {}})),
    "order": ("two", swap),
    "one knot twice": ("two", lambda body, rows: rows.__setitem__((0, 4), rows[0, 3])),
    "nan": ("two", put(1, 9, math.nan)),
    "infinite": ("two", put(1, 9, math.inf)),
    "half a hole": ("two", put(1, 9, -math.inf)),
    "far knot": ("two", put(0, -1, math.inf)),
    "huge": ("two", put(2, 5, 1e300)),
    "a dent in a normal": ("normal", lambda body, rows: rows.__setitem__((2, 5), rows[2, 5] - 1)),
    "one side": ("normal", lambda body, rows: rows.__setitem__((0, 0), rows[0, 0] * 1.01)),
    "std": ("two", lambda body, rows: body["table"].update(std=1.0)),
    "mean": ("two", lambda body, rows: body["table"].update(mean=1.0)),
    "rising tail": ("two", lambda body, rows: body["table"].update(rates=[-1.0, -1.0])),
    "flat tail": ("two", lambda body, rows: body["table"].update(rates=[1.0, 0.0])),
    "tail of a hole": ("two", lambda body, rows: rows.__setitem__((slice(1, 3), 0), -math.inf)),
    "scale": ("two", lambda body, rows: body.update(scale=-1.0)),
    "infinite scale": ("two", lambda body, rows: body.update(scale="inf")),
    "text scale": ("two", lambda body, rows: body.update(scale="1")),
    "extra": ("two", lambda body, rows: body.update(more=1)),
    "less": ("two", lambda body, rows: body["table"].pop("mean") and None),
    "a family's name": ("two", lambda body, rows: body.update(density="gaussian(sigma=1)")),
    "hidden name": ("two", lambda body, rows: body.update(density=" ( laplace(sigma=1) )")),
    "cut name": ("two", lambda body, rows: body.update(density="x.truncated(1)")),
    "scipy's name": ("two", lambda body, rows: body.update(density="scipy.norm(0, 1)")),
    "no such scipy": ("two", lambda body, rows: body.update(density="scipy.system(1)")),
    "long name": ("two", lambda body, rows: body.update(density="x" * 10_000)),
}


# Where a later check would refuse the same table, but not one whose density claims less.
NAMED = {"half a hole": "a piece is a density or a hole"}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_table_with_a_fitting_digest_is_refused(
    name: str, densities: dict[str, IID]
) -> None:
    which, change = FORGERIES[name]
    one = densities[which]
    assert noise.from_data(forge(one, lambda body, rows: None)) == one
    with pytest.raises(NoiseError, match=NAMED.get(name)):
        noise.from_data(forge(one, change))


@pytest.mark.parametrize(
    "data",
    [
        None,
        3,
        "gaussian(sigma=1)",
        [],
        {},
        {"format": 1},
        {"format": 2, "noise": {}, "sha256": ""},
        sealed(None),
        sealed([]),
        sealed({}),
        sealed({"family": "gaussian"}),
        sealed({"family": "gaussian", "sigma": "1"}),
        sealed({"family": "gaussian", "sigma": True}),
        sealed({"family": "gaussian", "sigma": 10**400}),
        sealed({"family": "gaussian", "sigma": "inf"}),
        sealed({"family": "gaussian", "sigma": -1}),
        sealed({"family": "gaussian", "sigma": 1, "self": 2}),
        sealed({"family": "__import__", "name": 1}),
        sealed({"family": ["gaussian"], "sigma": 1}),
        sealed({"family": "ball", "sigma": 1, "dim": 10**30}),
        sealed({"family": "ball", "sigma": 1, "dim": 1.5}),
        sealed({"density": "x", "scale": 1, "facts": {}, "table": {}}),
        sealed({"truncated": {"family": "gaussian", "sigma": 1}, "low": 3, "high": 1}),
        sealed({"truncated": {"family": "ball", "sigma": 1, "dim": 3}, "low": 0, "high": 1}),
        sealed({"anisotropic": {"family": "gaussian", "sigma": 1}, "scales": "not base64!"}),
        sealed({"anisotropic": {"family": "gaussian", "sigma": 1}, "scales": "AAAA"}),
        sealed({"written": "os:system", "times": 1, "noise": {"family": "gaussian", "sigma": 1}}),
        sealed({"written": "gaussian(sigma=9)", "times": 1, "noise": {"family": "gaussian"}}),
        sealed({"written": "a.py:x", "times": 0, "noise": {"family": "gaussian", "sigma": 1}}),
    ],
    ids=str,
)
def test_hostile_data_is_one_clear_error(data: Any) -> None:
    with pytest.raises(NoiseError) as caught:
        noise.from_data(data)
    assert "\n" not in str(caught.value)


def test_nesting_is_bounded() -> None:
    body: Any = {"family": "gaussian", "sigma": 1}
    for _ in range(300):
        body = {"truncated": body, "low": -1, "high": 1}
    with pytest.raises(NoiseError, match="nested"):
        noise.from_data(sealed(body))


@pytest.mark.parametrize("row", [0, 1, 2])
def test_random_edits_of_a_sealed_table_never_keep_a_shape_that_is_gone(
    densities: dict[str, IID], row: int
) -> None:
    """One number of an even log-concave table changed by the least: neither fact is left."""
    one = densities["normal"]
    rng = np.random.default_rng(5 + row)
    for _ in range(20):
        place = int(rng.integers(3, lists_of(noise.to_data(one)["noise"]).shape[1] - 3))

        def change(body: dict[str, Any], rows: Array, place: int = place) -> None:
            rows[row, place] = np.nextafter(rows[row, place], math.inf)

        with pytest.raises(NoiseError, match="claimed to be symmetric"):
            noise.from_data(forge(one, change))


# ------------------------------------------------------------------- tables made by hand


def handmade(
    pieces: list[tuple[float, float, float]], facts: dict[str, bool], rates: tuple[str, str]
) -> dict[str, Any]:
    """A stored density of (left, right, height) steps, with nothing between two that are apart."""
    knots, heights = [pieces[0][0]], []
    for left, right, height in pieces:
        if left > knots[-1]:
            knots.append(left)
            heights.append(-math.inf)
        knots.append(right)
        heights.append(math.log(height))
    edges, density = np.array(knots), np.exp(heights)
    mass = density * np.diff(edges) / np.sum(density * np.diff(edges))
    mean = float(mass @ (edges[1:] + edges[:-1])) / 2
    second = float(mass @ (edges[1:] ** 2 + edges[1:] * edges[:-1] + edges[:-1] ** 2)) / 3
    known = ("symmetric", "log_concave", "bounded", "finite_variance", "unimodal", "positive")
    table = {
        "knots": write_floats(edges),
        "start": write_floats(np.array(heights)),
        "end": write_floats(np.array(heights)),
        "rates": list(rates),
        "mean": mean,
        "std": math.sqrt(second),
    }
    claimed = {name: facts.get(name, False) for name in known}
    claimed["finite_variance"] = True
    body = {"density": "mine", "scale": 1.0, "table": table}
    return sealed({**body, "facts": {**claimed, "source": "table"}})


BLOCK = [(-1.0, 0.0, 0.5), (0.0, 1.0, 0.5)]
HOLE = [(-2.0, -1.0, 0.5), (1.0, 2.0, 0.5)]
ENDS = ("inf", "-inf")
SHAPES = ("symmetric", "unimodal", "log_concave")


def test_a_table_made_by_hand_is_read_where_it_is_true() -> None:
    """What the forgeries below are compared with."""
    facts = {**dict.fromkeys(SHAPES, True), "bounded": True}
    block = noise.from_data(handmade(BLOCK, facts, ENDS))
    ours = certified_radius(block, norm=1, dim=3, p_a=0.9)
    uniform = certified_radius(noise.uniform(scale=1), norm=1, dim=3, p_a=0.9)
    assert math.isclose(ours.proved, uniform.proved, rel_tol=1e-9)
    noise.from_data(handmade(HOLE, {"symmetric": True, "bounded": True}, ENDS))


@pytest.mark.parametrize("fact", ["unimodal", "log_concave"])
def test_no_hole_is_overlooked(fact: str) -> None:
    """Read as log-concave, such a table would have a radius beyond its own hole."""
    with pytest.raises(NoiseError, match=f"claimed to be {fact}"):
        noise.from_data(handmade(HOLE, {fact: True, "symmetric": True, "bounded": True}, ENDS))


def test_a_density_that_ends_is_not_endless() -> None:
    facts = {**dict.fromkeys(SHAPES, True), "positive": True}
    with pytest.raises(NoiseError, match="claimed to be positive"):
        noise.from_data(handmade(BLOCK, facts, ENDS))


def test_slow_bending_is_seen() -> None:
    """exp(-|x| + x²/10⁹), in straight pieces: log-convex on each side by less than a grid shows."""
    one = noise.from_density(lambda x: -np.abs(x), name="mine")

    def bend(body: dict[str, Any], rows: Array) -> None:
        body["table"]["rates"] = [1 - 1e-9, -(1 - 1e-9)]

    forged = forge(one, bend)
    with pytest.raises(NoiseError, match="claimed to be log_concave"):
        noise.from_data(forged)


def test_what_is_stored_of_one_noise_is_never_read_for_another(densities: dict[str, IID]) -> None:
    """Curves are kept on disk: neither a file's name nor a table with other facts may be mixed."""
    body = {"family": "gennorm", "beta": 3, "scale": 1}
    other = {"family": "cauchy", "scale": 1}
    ours, theirs = (
        noise.from_data(sealed({"written": "law.py:x", "times": 1, "noise": one}))
        for one in (body, other)
    )
    assert ours.text == theirs.text
    assert ours.cache_key != theirs.cache_key
    plain = densities["normal"]
    weaker = noise.from_data(forge(plain, lambda b, rows: b["facts"].update(unimodal=False)))
    assert isinstance(weaker, IID)
    assert weaker.unit.cache_key != plain.unit.cache_key
    assert weaker != plain
    block = handmade(BLOCK, {"symmetric": True, "bounded": True}, ENDS)
    modest = handmade(BLOCK, {"bounded": True}, ENDS)
    keys = [noise.from_data(one).cache_key for one in (block, modest)]
    assert keys[0] != keys[1]
