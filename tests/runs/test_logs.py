"""Published logs: read with care about rounding, and carried to other norms."""

import math
from pathlib import Path

import pytest

from unicr import noise
from unicr.errors import RunError
from unicr.norms import Norm
from unicr.runs import check_gaussian, floor_decimal, read_log, recertify

HEAD = "idx\tlabel\tpredict\tradius\tcorrect\ttime\n"
SHARED = Path(__file__).parents[3] / "shared" / "data" / "logs"


def write(folder: Path, *lines: str) -> Path:
    file = folder / "log.tsv"
    file.write_text(HEAD + "".join(line + "\n" for line in lines))
    return file


def test_a_printed_radius_may_have_been_rounded_up(tmp_path: Path) -> None:
    rows = read_log(write(tmp_path, "0\t3\t3\t0.972\t1\t0:00:16.5", "20\t7\t-1\t0.0\t0\t17.2"))
    assert rows[0].radius == pytest.approx(0.9715, abs=1e-12)
    assert rows[1].radius == 0
    assert rows[1].predict == -1
    assert rows[0].time == "0:00:16.5"


def test_gaussian_norms_from_an_l2_log(tmp_path: Path) -> None:
    rows = read_log(write(tmp_path, "0\t3\t3\t0.5000000\t1\t1", "1\t3\t2\t1.2345678\t0\t1"))
    law = noise.gaussian(sigma=0.5)
    for p, factor in ((math.inf, 3072**-0.5), (1, 1.0), (4, 3072**-0.25)):
        new = recertify(rows, law, Norm(p), 3072)
        for old, row in zip(rows, new, strict=True):
            assert row.radius <= old.radius * factor
            assert row.radius == pytest.approx(old.radius * factor, rel=1e-3)
            assert row.correct == old.correct


def test_other_noises_cannot_be_inverted() -> None:
    with pytest.raises(RunError, match="Gaussian"):
        check_gaussian(noise.laplace(sigma=1))


@pytest.mark.parametrize(
    "line",
    [
        *("0\t3\tx\t0.5\t1\t1", "0\t3\t3\tabc\t1\t1", "0\t3", "0\t3\t3\tnan\t1\t1"),
        *("0\t3\t3\tinf\t1\t1", "0\t3\t3\t-0.5\t1\t1", "0\t3\t3\t0.5", "0\t3\t3\t0.5\tyes\t1"),
        *("0\t3\t3\t0.5\t1\t1\t9", "0\t3\t3\tsNaN\t1\t1", "0\t3\t3\t1e999999\t1\t1"),
    ],
)
def test_damaged_lines_are_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(RunError, match="line 2"):
        read_log(write(tmp_path, line))


def test_missing_columns_and_files(tmp_path: Path) -> None:
    file = tmp_path / "log.tsv"
    file.write_text("idx\tradius\n0\t1\n")
    with pytest.raises(RunError, match="label"):
        read_log(file)
    with pytest.raises(RunError, match="cannot read"):
        read_log(tmp_path / "none.tsv")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the published logs are not beside the project")
@pytest.mark.parametrize("name", ["cifar10_resnet110_sigma_0.50", "imagenet_resnet50_sigma_0.50"])
def test_published_logs(name: str) -> None:
    rows = read_log(SHARED / f"{name}.tsv")
    assert len(rows) == 500
    assert max(row.radius for row in rows) < 2
    accuracy = sum(row.correct for row in rows) / 500
    assert 0.5 < accuracy < 0.7


@pytest.mark.parametrize("value", [0.1, 1 / 3, 2 / 3, 1.9999999, 1e-7, 123.456, 0.0, 0.3])
def test_decimals_are_rounded_down(value: float) -> None:
    text = floor_decimal(value)
    assert float(text) <= value
    assert value - float(text) < 1.000001e-6
    assert floor_decimal(math.inf) == "inf"
