"""The memory against brute force in exact arithmetic, its file, and what it refuses."""

from __future__ import annotations

import math
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.guard.planted import certificate, exact, memory, nearer
from unicr.errors import CertifyError, RunError
from unicr.guard import Memory, Metric
from unicr.guard._memory import FIRST_STREAM
from unicr.norms import Norm, l2, parse_norm

Stored = tuple[NDArray[np.float32], float, int]

coordinates = st.integers(-8, 8).map(lambda k: k / 4) | st.floats(-2, 2, width=32)
events = st.lists(
    st.tuples(
        st.lists(coordinates, min_size=3, max_size=3),
        st.integers(-1, 2),
        st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.25, 2.0, math.inf]) | st.floats(0, 3),
    ),
    max_size=12,
)


def regions_of(store: Memory) -> list[Stored]:
    """What the file says, read without the memory's own code."""
    rows = store._db.execute("SELECT point, reach, class FROM regions ORDER BY number")
    return [(np.frombuffer(blob, "<f4"), reach, label) for blob, reach, label in rows]


def holds(norm: str, region: Stored, x: NDArray[np.float32]) -> bool:
    distance = exact(norm, region[0], x)
    return distance == 0 or nearer(norm, distance, region[1])


def assert_disjoint(norm: str, regions: list[Stored]) -> None:
    """What is promised of two regions of different classes is disjoint, in exact arithmetic.

    A promise is 4e-12 of the reach below it: that far a rounded distance may err.
    """
    shrink = Metric(parse_norm(norm)).shrink_radius
    for i, (a, r, label) in enumerate(regions):
        for b, s, other in regions[:i]:
            if label != other:
                assert np.any(a != b)
                both = Fraction(shrink(r)) + Fraction(shrink(s))
                assert exact(norm, a, b) >= (both * both if norm == "2" else both)


LONE = [([0.0, 0.0, 2.4142654e-17], 0, 2.0), ([0.0, 0.0, 2.0], 1, 0.0)]  # 2 − 2e-17 rounds to 2


@pytest.mark.parametrize("norm", ["1", "2", "inf"])
@example(LONE, [])
@given(events, st.lists(st.lists(coordinates, min_size=3, max_size=3), max_size=6))
@settings(max_examples=60, deadline=None)
def test_against_brute_force(
    norm: str, history: list[tuple[list[float], int, float]], queries: list[list[float]]
) -> None:
    given_answers: list[tuple[NDArray[np.float32], int, float]] = []
    with memory(3, norm) as store:
        for point, label, radius in history:
            x = np.array(point, np.float32)
            claimed = 0.0 if label < 0 else radius
            before = regions_of(store)
            inside = {region[2] for region in before if holds(norm, region, x)}
            answer = store.settle(x, certificate(label, claimed, norm=norm), 0)
            if inside and answer.source == "memory":
                assert answer.label in inside
                assert answer.label != label
                assert len(regions_of(store)) == len(before)
            else:
                assert answer.label == label
                last = regions_of(store)[-1]
                assert last[1] <= claimed
                assert_largest(norm, before, x, label, claimed, last[1])
            given_answers.append((x, answer.label, answer.radius))
        assert_disjoint(norm, regions_of(store))
        for x, label, _ in given_answers:
            again = store.look_up(x)
            assert again is not None
            assert again.label == label
        for point in [*queries, *(q for q, _, _ in history)]:
            z = np.array(point, np.float32)
            found = store.look_up(z)
            expected = {region[2] for region in regions_of(store) if holds(norm, region, z)}
            for x, label, radius in given_answers:
                if nearer(norm, exact(norm, x, z), radius):
                    assert found is not None
                    assert found.label == label
            if found is not None:
                assert found.label in expected


def assert_largest(
    norm: str, before: list[Stored], x: NDArray[np.float32], label: int, claimed: float, kept: float
) -> None:
    """No more was taken off than the nearest region of another class makes necessary."""
    ideal = claimed
    for c, reach, other in before:
        if other != label:
            distance = float(exact(norm, c, x))
            ideal = min(ideal, (math.sqrt(distance) if norm == "2" else distance) - reach)
    assert kept >= max(0.0, ideal) - 1e-9


@pytest.mark.parametrize("p", ["0.5", "1", "2", "3", "inf"])
@pytest.mark.parametrize("dim", [20, 400])
def test_look_up_misses_nothing_in_many_dimensions(p: str, dim: int) -> None:
    """With and without the filter by 64 coordinates, against distances to all regions."""
    rng = np.random.default_rng(dim)
    norm = parse_norm(p)
    centres = rng.random((200, dim)).astype(np.float32)
    typical = norm(centres[0] - centres[1])
    with memory(dim, p) as store:
        for i, c in enumerate(centres):
            store.settle(c, certificate(i % 3, typical * rng.random(), norm=p), i)
        reach = np.array([r for _, r, _ in regions_of(store)])
        kept = [Metric(norm).radius(r) for r in reach]
        points, _, labels = zip(*regions_of(store), strict=True)
        hits = 0
        for _ in range(100):
            at = rng.integers(len(points))
            step = rng.normal(size=dim)
            z = (points[at] + step / norm(step) * kept[at] * 1.3 * rng.random()).astype(np.float32)
            away = np.array([norm(z.astype(float) - c) for c in points])
            inside = np.flatnonzero(away < kept)
            assert np.all(np.abs(away / np.maximum(kept, 1e-300) - 1) > 1e-9)
            found = store.look_up(z)
            assert (found is None) == (len(inside) == 0)
            if found is not None:
                hits += 1
                assert {labels[i] for i in inside} == {found.label}
                assert found.radius <= max(kept[i] - away[i] for i in inside) or norm.p < 1
        assert 20 < hits < 100


def test_below_one_regions_are_disjoint_where_the_norm_would_let_them_overlap() -> None:
    """‖(1, 1)‖_0.5 = 4, and the balls of radius 1.5 and 2.5 = 4 − 1.5 have common points."""
    half = Norm(0.5)
    with memory(2, "0.5") as store:
        store.settle(np.zeros(2), certificate(0, 1.5, norm="0.5"), 0)
        answer = store.settle(np.ones(2), certificate(1, 2.5, norm="0.5"), 1)
        common = np.array([1.2, 0.0], np.float32)
        assert half(common) < 1.5
        assert half(common - 1) < 2.5
        assert answer.radius == pytest.approx((2 - math.sqrt(1.5)) ** 2)
        assert answer.radius < half(common - 1)
        found = store.look_up(common)
        assert found is not None
        assert found.label == 0


def test_a_region_is_open() -> None:
    with memory(1) as store:
        store.settle([0.0], certificate(0, 1.0), 0)
        assert store.look_up([1.0]) is None
        assert store.look_up([np.nextafter(np.float32(1), np.float32(0))]) is not None
        on_the_edge = store.settle([1.0], certificate(1, 0.5), 1)
        assert (on_the_edge.label, on_the_edge.radius) == (1, 0.0)
        assert on_the_edge.shrunk_from == 0.5


def test_a_new_region_keeps_out_a_stored_centre_of_another_class() -> None:
    with memory(1) as store:
        store.settle([0.0], certificate(0, 0.0), 0)
        answer = store.settle([1.0], certificate(1, 5.0), 1)
        assert answer.shrunk_from == 5.0
        assert 1 - 1e-10 < answer.radius < 1
        at_zero = store.look_up([0.0])
        assert at_zero is not None
        assert at_zero.label == 0


def test_regions_of_one_class_may_overlap_and_the_deepest_answers() -> None:
    with memory(1) as store:
        store.settle([0.0], certificate(4, 1.0), 0)
        second = store.settle([0.5], certificate(4, 2.0), 1)
        assert second.shrunk_from is None
        found = store.look_up([0.4])
        assert found is not None
        assert found.region == 2
        assert found.radius == pytest.approx(1.9)
        assert found.radius < 1.9 + 1e-7


def test_an_abstention_is_an_answer_that_other_regions_keep_clear_of() -> None:
    with memory(1) as store:
        nothing = store.settle([0.0], certificate(-1, 0.0), 0)
        assert (nothing.label, nothing.radius, nothing.guarantee) == (-1, 0.0, "abstain")
        store.settle([0.5], certificate(1, 3.0), 1)
        again, near = store.look_up([0.0]), store.look_up([0.001])
        assert again is not None
        assert again.label == -1
        assert near is not None
        assert near.label == 1


def test_an_abstention_inside_a_region_gets_the_class_of_the_region() -> None:
    with memory(1) as store:
        store.settle([0.0], certificate(3, 1.0), 0)
        answer = store.settle([0.5], certificate(-1, 0.0), 1)
        assert (answer.label, answer.source, len(store)) == (3, "memory", 1)


def test_an_infinite_region_answers_everything() -> None:
    with memory(2) as store:
        assert store.settle(np.zeros(2), certificate(1, math.inf), 0).to_dict()["radius"] == "inf"
        answer = store.settle(np.full(2, 1e30), certificate(0, 1.0), 1)
        assert (answer.label, answer.source, answer.radius) == (1, "memory", math.inf)


def test_guarantee_is_proved_where_the_region_lies_in_the_proved_radius() -> None:
    with memory(1) as store:
        assert store.settle([0.0], certificate(0, 1.0, proved=0.5), 0).guarantee == "approximate"
        shrunk = store.settle([1.4], certificate(1, 1.0, proved=0.5), 1)
        assert shrunk.guarantee == "proved"
        assert store.settle([9.0], certificate(0, 1.0), 2).guarantee == "proved"
        inside = store.look_up([0.1])
        assert inside is not None
        assert inside.guarantee == "approximate"


def test_scope_says_whose_noise() -> None:
    with memory(1) as store:
        own = store.settle([0.0], certificate(0, 1.0, noise="gaussian(sigma=2)"), 0)
        assert own.scope == own.to_dict()["scope"] == "this input's noise"
        inside = store.look_up([0.5])
        assert inside is not None
        assert inside.scope == "region 1's noise"
        assert inside.noise == "gaussian(sigma=2)"
        assert store.settle([9.0], certificate(0, 1.0), 1).scope == "the run's noise"


def test_streams_never_repeat_and_every_begun_certificate_counts() -> None:
    with memory(1) as store:
        assert store.spent == 0
        store.plant([0.0], certificate(0, 1.0, alpha=0.01), 7)
        streams = [store.reserve(0.001) for _ in range(3)]
        assert streams == [FIRST_STREAM, FIRST_STREAM + 1, FIRST_STREAM + 2]
        store.plant([5.0], certificate(-1, 0.0, alpha=0.01), 8)
        store.plant([0.1], certificate(2, 1.0, alpha=0.01), 9)
        assert store.spent == pytest.approx(0.033)


def test_planting_again_changes_nothing() -> None:
    with memory(1) as store:
        assert store.plant([0.0], certificate(0, 1.0), 0) is not None
        assert store.plant([0.0], certificate(0, 1.0), 0) is None
        assert len(store) == 1
        assert store.spent == 0.001
        with pytest.raises(RunError, match="input number -1"):
            store.plant([0.0], certificate(0, 1.0), -1)


def test_a_file_is_found_again(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "memory.sqlite"
    with Memory(file, norm=l2, shape=(1, 2), made_for={"model_hash": "m", "seed": 3}) as store:
        seed = store.seed
        store.settle(np.zeros((1, 2)), certificate(5, 1.0), store.reserve(0.001))
    with Memory(file, norm=l2, shape=(1, 2), made_for={"model_hash": "m", "seed": 3}) as store:
        assert store.seed == seed
        assert store.reserve(0.001) == FIRST_STREAM + 1
        found = store.look_up(np.full((1, 2), 0.3))
        assert found is not None
        assert found.label == 5
    Memory(file, norm=l2, shape=(1, 2), made_for={"model_hash": "m", "seed": 3}, seed=seed).close()


def test_new_memories_draw_their_own_seeds() -> None:
    with memory() as one, memory() as two, memory(seed=5) as three:
        assert one.seed != two.seed
        assert three.seed == 5


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"norm": parse_norm("1")}, "norm: '2' there, '1' now"),
        ({"shape": (3,)}, r"shape: \[2\] there, \[3\] now"),
        ({"made_for": {"model_hash": "b"}}, "model_hash: 'a' there, 'b' now"),
        ({"made_for": {}}, "model_hash: 'a' there, None now"),
        ({"seed": 2}, "another seed than 2"),
    ],
)
def test_a_memory_for_something_else_is_refused(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    arguments: dict[str, Any] = {"norm": l2, "shape": (2,), "made_for": {"model_hash": "a"}}
    Memory(tmp_path / "m", seed=1, **arguments).close()
    with pytest.raises(RunError, match=says):
        Memory(tmp_path / "m", **{**arguments, **change})


def test_what_is_no_memory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("this is no database, but it is long enough to look at" * 9)
    with pytest.raises(RunError, match=r"cannot open .*text"):
        Memory(tmp_path / "text", norm=l2, shape=(2,))
    with pytest.raises(RunError, match="text is a file"):
        Memory(tmp_path / "text" / "below", norm=l2, shape=(2,))
    with pytest.raises(RunError, match="cannot open"):
        Memory(tmp_path, norm=l2, shape=(2,))


def test_a_damaged_memory_is_noticed(tmp_path: Path) -> None:
    def broken(*statements: str) -> Memory:
        file = tmp_path / f"{len(list(tmp_path.iterdir()))}.sqlite"
        with Memory(file, norm=l2, shape=(1,)) as store:
            for at in range(3):
                store.plant([4.0 * at], certificate(at, 1.0), at)
        db = sqlite3.connect(file)
        for statement in statements:
            db.execute(statement)
        db.commit()
        db.close()
        return Memory(file, norm=l2, shape=(1,))

    unsealed = "DELETE FROM sealed"
    with (
        broken("UPDATE regions SET reach = 9", unsealed) as m,
        pytest.raises(RunError, match="damaged"),
    ):
        m.look_up([4.0])
    for change, at in [
        ("DELETE FROM regions WHERE number = 2", 3),
        ("UPDATE regions SET point = x'00'", 1),
    ]:
        with (
            broken(change, unsealed) as m,
            pytest.raises(RunError, match=f"damaged at region {at}"),
        ):
            m.look_up([4.0])
    with pytest.raises(RunError, match="does not count its certificates"):
        broken("DELETE FROM draws", unsealed)
    for change in (
        "UPDATE regions SET class = 7 WHERE number = 2",
        "DELETE FROM draws",
        "UPDATE about SET value = '5' WHERE key = 'guard_seed'",
    ):
        with pytest.raises(RunError, match="was changed after it was sealed"):
            broken(change)
    with broken(unsealed) as m:
        m._db.execute("DROP TABLE draws")
        with pytest.raises(RunError, match="cannot write"):
            m.reserve(0.1)
        with pytest.raises(RunError, match="cannot read"):
            _ = m.spent


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e39])
def test_what_is_not_finite_is_refused_and_nothing_stored(bad: float) -> None:
    with memory(2) as store:
        for use in (store.look_up, lambda x: store.settle(x, certificate(0, 1.0), 0)):
            with pytest.raises(CertifyError, match="not finite"):
                use([0.0, bad])
        with pytest.raises(CertifyError, match="not finite"):
            store.plant([0.0, bad], certificate(0, 1.0), 0)
        assert len(store) == 0
        assert store.spent == 0


def test_wrong_shape_and_wrong_certificate_are_refused() -> None:
    with memory(2) as store:
        with pytest.raises(CertifyError, match=r"shape \(3,\), but the memory holds .* \(2,\)"):
            store.look_up([0.0, 0.0, 0.0])
        with pytest.raises(CertifyError, match=r"no radius in l2; it has norms \['1'\]"):
            store.settle([0.0, 0.0], certificate(0, 1.0, norm="1"), 0)
        for radius in (math.nan, -1.0):
            with pytest.raises(CertifyError, match="the certificate has the radius"):
                store.settle([0.0, 0.0], certificate(0, radius), 0)
        assert len(store) == 0
