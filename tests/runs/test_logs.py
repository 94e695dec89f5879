"""Published logs: read with care about rounding, and carried to other norms."""

import math
from pathlib import Path

import pytest
from scipy import stats

from unicr import noise
from unicr.errors import RunError
from unicr.norms import Norm
from unicr.radius import certified_radius
from unicr.runs import floor_decimal, load_scores, read_log, recertify

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


def test_the_precision_is_that_of_the_column(tmp_path: Path) -> None:
    """Python's '{:.3}' prints 1.00 as 1.0 and .01254 as 0.0125; '%.3f' prints .0054 as 0.005."""
    lines = ("0\t3\t3\t{}\t1\t1", "1\t3\t3\t{}\t1\t1", "2\t3\t3\t{}\t1\t1")
    truths = (0.99951, 0.012450001, 1.8550001)
    for form in ("{:.3}", "{:.3f}", "{:.6f}", "{:.5g}", "{}"):
        printed = [form.format(x) for x in truths]
        rows = read_log(write(tmp_path, *map(str.format, lines, printed)))
        for row, truth in zip(rows, truths, strict=True):
            assert row.radius <= truth
            worst = 0.0051 if "f" not in form else 0.0011
            assert row.radius >= truth - max(worst, 0.0051 * truth) * (truth > 0.1) - 0.0011
    rows = read_log(write(tmp_path, "0\t3\t3\t1.0\t1\t1", "1\t3\t3\t1.23\t1\t1"))
    assert rows[0].radius == pytest.approx(0.995)
    alone = read_log(write(tmp_path, "0\t3\t3\t1.0\t1\t1"))
    assert alone[0].radius == pytest.approx(0.95)


def test_logs_of_other_noises(tmp_path: Path) -> None:
    """The l1 radii of Laplace and uniform noise are closed forms of p_A; so they invert."""
    for law, p_of in (
        (noise.laplace(sigma=0.5), lambda r: 1 - math.exp(-r * math.sqrt(2) / 0.5) / 2),
        (noise.uniform(sigma=0.5), lambda r: (1 + r / (0.5 * math.sqrt(3))) / 2),
    ):
        rows = read_log(write(tmp_path, "0\t3\t3\t0.400000\t1\t1", "1\t3\t-1\t0.0\t0\t1"))
        new = recertify(rows, law, Norm(math.inf), 784, origin=Norm(1))
        truth = certified_radius(law, norm="inf", dim=784, p_a=p_of(rows[0].radius)).proved
        assert new[0].radius == pytest.approx(truth, rel=2e-3)
        assert new[0].radius <= truth
        assert new[1].radius == 0
    with pytest.raises(RunError, match="symmetric noise"):
        recertify(rows, noise.from_scipy(stats.gumbel_r()), Norm(1), 784)


def test_a_coarse_log_of_any_noise_never_gains(tmp_path: Path) -> None:
    """Carried to the norm it came from, no radius grows: the inversion is from below."""
    rows = read_log(write(tmp_path, "0\t3\t3\t0.300000\t1\t1", "1\t3\t3\t0.9\t1\t1"))
    for text, norm in (("laplace(sigma=1)", 1), ("gennorm(beta=1.5, sigma=1)", 1)):
        law = noise.parse(text)
        carried = recertify(rows, law, Norm(norm), 784, origin=Norm(norm))
        for old, new in zip(rows, carried, strict=True):
            assert new.radius <= old.radius
            assert new.radius == pytest.approx(old.radius, rel=2e-3)


def test_counts_and_bounds_in_a_log_are_used(tmp_path: Path) -> None:
    file = tmp_path / "log"
    head = "idx\tlabel\tpredict\tradius\tcorrect\traw_count\tp_A_bar\ttime\n"
    file.write_text(
        f"{head}0\t3\t3\t1.2\t1\t99400\t0.993200\t1\n1\t3\t-1\t0.0\t0\t40000\t0.39\t1\n"
    )
    rows = read_log(file)
    law = noise.gaussian(sigma=0.5)
    bound = recertify(rows, law, Norm(2), 3072)
    assert bound[0].radius == pytest.approx(0.5 * stats.norm.ppf(0.9931995), rel=2e-4)
    assert bound[0].radius <= 0.5 * stats.norm.ppf(0.9931995)
    counted = recertify(rows, law, Norm(2), 3072, n=100_000, alpha=0.001)
    p_a = stats.beta.ppf(0.001, 99400, 601)
    assert counted[0].radius == pytest.approx(0.5 * stats.norm.ppf(p_a), rel=2e-4)
    assert [row.radius for row in (bound[1], counted[1])] == [0, 0]
    with pytest.raises(RunError, match="counts from 0 to 5000"):
        recertify(rows, law, Norm(2), 3072, n=5000, alpha=0.001)
    file.write_text(file.read_text().replace("0.993200", "1.5"))
    with pytest.raises(RunError, match="line 2"):
        read_log(file)


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


@pytest.mark.skipif(not SHARED.is_dir(), reason="the published logs are not beside the project")
def test_the_average_radius_of_published_logs(tmp_path: Path) -> None:
    """The mean of the printed radii, less at most what three digits can hide; also unsuffixed."""
    for name in ("cifar10_resnet110_sigma_0.50", "imagenet_resnet50_sigma_0.50"):
        text = (SHARED / f"{name}.tsv").read_text()
        lines = [line.split("\t") for line in text.splitlines()[1:]]
        printed = sum(float(line[3]) * (line[4] == "1") for line in lines) / len(lines)
        (tmp_path / name).write_text(text)
        (scores,) = load_scores([tmp_path / name], None)["2"]
        assert scores.name == name
        assert printed * (1 - 0.005) < scores.average_radius <= printed
        assert scores.average_radius > printed - 0.5 * 10.0**-2 * 0.5


@pytest.mark.parametrize(
    "value", [0.1, 1 / 3, 2 / 3, 1.9999999, 1e-7, 123.456, 0.0, 0.3, 0.00123456789]
)
def test_decimals_are_rounded_down(value: float) -> None:
    text = floor_decimal(value)
    assert float(text) <= value
    assert value - float(text) < 1.000001e-6
    assert value - float(text) <= 1.000001e-5 * value  # six significant digits
    assert floor_decimal(math.inf) == "inf"
