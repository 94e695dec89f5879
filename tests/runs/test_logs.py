"""Published logs: read with care about rounding, and carried to other norms."""

import math
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests.cli.command import run
from unicr import noise
from unicr.cli import app
from unicr.errors import RunError, UnicrError
from unicr.norms import Norm
from unicr.radius import certified_radius
from unicr.runs import (
    floor_decimal,
    load_scores,
    paired,
    read_intervals,
    read_log,
    recertify,
    recertify_two,
)

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


def test_gaussian_radii_are_carried_as_balls_and_never_become_infinite(tmp_path: Path) -> None:
    """At r/σ = 3.81/0.45 and 3.81/0.12, Φ(r/σ) is 1 in floating point: no p_A may be asked for."""
    rows = read_log(write(tmp_path, "0\t3\t3\t3.81\t1\t1", "1\t3\t3\t12.345678\t1\t1"))
    for sigma in (0.12, 0.45, 1.0):
        for p, factor in ((math.inf, 150528**-0.5), (2, 1.0), (3, 150528 ** (1 / 3 - 1 / 2))):
            new = recertify(rows, noise.gaussian(sigma=sigma), Norm(p), 150528)
            for old, row in zip(rows, new, strict=True):
                assert row.radius == pytest.approx(old.radius * factor, rel=1e-12)
                assert row.radius <= old.radius * factor


def test_a_p_a_that_no_votes_give_is_refused(tmp_path: Path) -> None:
    """Under other noises p_A is needed: one beyond 1 − 10^-12 says that the noise is another."""
    rows = read_log(write(tmp_path, "0\t3\t3\t0.5\t1\t1", "7\t3\t3\t40.0\t1\t1"))
    with pytest.raises(RunError, match=r"input 7: .* no number of votes"):
        recertify(rows, noise.laplace(sigma=0.5), Norm(1), 784, origin=Norm(1))
    file = tmp_path / "log"
    file.write_text("idx\tlabel\tpredict\tcorrect\tp_A_bar\n3\t1\t1\t1\t0.99999999999999999\n")
    with pytest.raises(RunError, match=r"input 3: .* no number of votes"):
        recertify(read_log(file), noise.gaussian(sigma=1), Norm(2), 784)


def test_a_wrong_sigma_is_seen_where_the_log_has_p_a(tmp_path: Path) -> None:
    """p_A = .9 gives 1.2816 at σ = 1: neither 2.5631 (σ = 2) nor a smaller radius beside it."""
    file = tmp_path / "log"
    head = "idx\tlabel\tpredict\tradius\tcorrect\tp_A_bar\n"
    file.write_text(f"{head}0\t3\t3\t1.2816\t1\t0.900000\n4\t3\t-1\t0.0\t0\t0.300000\n")
    rows = read_log(file)
    assert recertify(rows, noise.gaussian(sigma=1), Norm(2), 784)[0].radius <= 1.28156
    for law in (noise.gaussian(sigma=2), noise.gaussian(sigma=0.9)):
        with pytest.raises(RunError, match=r"input 0: .* contradict each other"):
            recertify(rows, law, Norm(2), 784)
    file.write_text(f"{head}0\t3\t3\t0.2000\t1\t0.999000\n")
    with pytest.raises(RunError, match="contradict each other"):
        recertify(read_log(file), noise.gaussian(sigma=1), Norm(2), 784)
    # Laplace noise in l1: p_A = .6 allows no radius above 0.1578 whatever the method
    file.write_text(f"{head}0\t3\t3\t0.2000\t1\t0.600000\n")
    with pytest.raises(RunError, match="contradict each other"):
        recertify(read_log(file), noise.laplace(sigma=1), Norm(1), 784, origin=Norm(1))


def test_the_count_that_printed_a_radius_is_inferred(tmp_path: Path) -> None:
    """All of 100,000 votes at α = .001 give 3.8115σ, which '{:.3}' prints as 3.81."""
    counts = (100_000, 99_999, 99_990, 60_000)
    radii = [stats.norm.ppf(stats.beta.ppf(0.001, k, 100_001 - k)) for k in counts]
    lines = [f"{i}\t3\t3\t{r:.3}\t1\t1" for i, r in enumerate(radii)]
    rows, law = read_log(write(tmp_path, *lines)), noise.gaussian(sigma=1)
    assert rows[0].radius == pytest.approx(3.805)
    new = recertify(rows, law, Norm(2), 3072, n=100_000, alpha=0.001)
    assert new[0].radius == pytest.approx(radii[0], rel=1e-9)
    assert new[1].radius == pytest.approx(radii[1], rel=1e-9)
    for old, row, true in zip(rows, new, radii, strict=True):
        assert old.radius <= row.radius <= true * (1 + 1e-12)
    carried = recertify(rows, law, Norm(math.inf), 3072, n=100_000, alpha=0.001)
    assert carried[0].radius == pytest.approx(radii[0] / 3072**0.5, rel=1e-9)


def test_what_n_and_alpha_cannot_give_is_refused(tmp_path: Path) -> None:
    rows, law = read_log(write(tmp_path, "5\t3\t3\t3.91\t1\t1")), noise.gaussian(sigma=1)
    with pytest.raises(RunError, match=r"input 5: .*use alpha >= 0\.00899"):
        recertify(rows, law, Norm(2), 3072, n=100_000, alpha=0.001)
    assert recertify(rows, law, Norm(2), 3072, n=100_000, alpha=0.01)[0].radius > 3.909
    rows = read_log(write(tmp_path, "5\t3\t3\t3.78\t1\t1"))
    with pytest.raises(RunError, match="no count of"):
        recertify(rows, law, Norm(2), 3072, n=100_000, alpha=0.001)
    laplace = noise.laplace(sigma=2**0.5)  # -ln(2(1 - p)) at p = .001^(1/1000): 4.282
    rows = read_log(write(tmp_path, "5\t3\t3\t4.3000\t1\t1"))
    with pytest.raises(RunError, match=r"input 5: .*use alpha"):
        recertify(rows, laplace, Norm(1), 3072, origin=Norm(1), n=1000, alpha=0.001)


def test_an_input_without_a_majority_is_an_abstention(tmp_path: Path) -> None:
    """501 of 1,000 votes bound p_A by .452 at α = .001: no class is certified."""
    file = tmp_path / "log"
    head = "idx\tlabel\tpredict\tcorrect\traw_count\n"
    file.write_text(f"{head}0\t3\t3\t1\t501\n1\t3\t3\t1\t900\n2\t3\t5\t0\t900\n")
    for law in (noise.gaussian(sigma=1), noise.laplace(sigma=1)):
        new = recertify(read_log(file), law, Norm(1), 784, n=1000, alpha=0.001)
        assert [(row.predict, row.correct) for row in new] == [(-1, False), (3, True), (5, False)]
        assert new[0].radius == 0 < new[1].radius == new[2].radius


GENERAL = (
    "idx\tlabel\tpredict\tcount\tany_iid_distribution_bound\tgeneralized_gaussian_bound_over_c\t"
    "correct\ttime\n"
)


def test_counts_of_general_normal_logs_are_read(tmp_path: Path) -> None:
    """Levine et al. 2020 print votes and two bounds that are no radii of a certificate."""
    file = tmp_path / "sigma_0.50_p_1"
    file.write_text(
        f"{GENERAL}0\t3\t3\t9394\t78.118\t92.177\t1\t1\n20\t7\t-1\t5010\t0.0\t0.0\t0\t1\n"
    )
    rows = read_log(file)
    assert [row.count for row in rows] == [9394, 5010]
    law = noise.laplace(sigma=0.5)
    new = recertify(rows, law, Norm(1), 3072, n=10_000, alpha=0.001)
    p_a = stats.beta.ppf(0.001, 9394, 607)
    truth = -0.5 / 2**0.5 * math.log(2 * (1 - p_a))
    assert truth * (1 - 2e-3) <= new[0].radius <= truth
    assert new[1].predict == -1
    with pytest.raises(RunError, match="give the n and alpha of its counts"):
        recertify(rows, law, Norm(1), 3072)


def folder_of_arrays(folder: Path, n: int = 10_000) -> Path:
    """Results as rs4a saves them: float32 bounds and radii in arrays of double precision."""
    counts = np.array([[9000, 1000], [300, 9700], [5005, 4995], [10_000, 0]])
    best = counts.max(1)
    bounds = stats.beta.ppf(0.0005, best, n - best + 1).astype(np.float32).astype(float)
    radii = (0.5 / 2**0.5 * -np.log(2 * (1 - bounds)).clip(None, 0)).astype(np.float32)
    folder.mkdir()
    np.save(folder / "preds.npy", counts / n)
    np.save(folder / "labels.npy", np.array([0.0, 0.0, 0.0, 0.0]))
    np.save(folder / "prob_lb.npy", bounds)
    np.save(folder / "radius_l1.npy", np.abs(radii).astype(float))
    return folder


def test_folders_of_arrays_are_read(tmp_path: Path) -> None:
    folder = folder_of_arrays(tmp_path / "results")
    rows = read_log(folder, Norm(1))
    assert [row.predict for row in rows] == [0, 1, -1, 0]
    assert [row.correct for row in rows] == [True, False, False, True]
    truth = stats.beta.ppf(0.0005, 9000, 1001)
    assert rows[0].p_a is not None
    assert truth * (1 - 2e-7) < rows[0].p_a < truth
    new = recertify(rows, noise.laplace(sigma=0.5), Norm(1), 784, origin=Norm(1))
    expected = -0.5 / 2**0.5 * math.log(2 * (1 - truth))
    assert expected * (1 - 2e-3) <= new[0].radius <= expected
    (scores,) = load_scores([folder], "1")["1"]
    assert scores.certified_accuracy(0) == 0.5
    np.save(folder / "labels.npy", np.zeros(3))
    with pytest.raises(RunError, match="different lengths"):
        read_log(folder)
    (folder / "prob_lb.npy").write_bytes(pickle.dumps(3))
    with pytest.raises(RunError, match=r"cannot read .*prob_lb\.npy"):
        read_log(folder)
    (folder / "preds.npy").unlink()
    with pytest.raises(RunError, match=r"preds\.npy is missing"):
        read_log(folder)


def test_predictions_are_read_and_not_recertified(tmp_path: Path) -> None:
    file = tmp_path / "N_100"
    file.write_text("idx\tlabel\tpredict\tcorrect\ttime\n0\t0\t0\t1\t0:01\n100\t2\t395\t0\t0:01\n")
    (scores,) = load_scores([file], None)["2"]
    assert scores.certified_accuracy(0) == 0.5
    with pytest.raises(RunError, match="predictions only"):
        recertify(read_log(file), noise.gaussian(sigma=1), Norm(2), 784)


def test_a_log_without_rows_is_refused_and_harms_no_other(tmp_path: Path) -> None:
    good = write(tmp_path, "0\t3\t3\t0.972\t1\t0")
    empty = tmp_path / "empty.tsv"
    empty.write_text(HEAD)
    asked = ["--noise", "gaussian(sigma=1)", "--norm", "inf", "--dim", "784"]
    run("recertify", empty, *asked).check_refused("has a header but no rows")
    run("score", empty).check_refused("has a header but no rows")
    done = run("score", good, empty)
    assert done.code == 3
    assert "100.0 %" in done.out or "1.000" in done.out, done.out
    assert "empty.tsv has a header but no rows" in done.err


def test_a_pipe_is_no_log(tmp_path: Path) -> None:
    pipe = tmp_path / "log.tsv"
    os.mkfifo(pipe)
    with pytest.raises(RunError, match="not an ordinary file"):
        read_log(pipe)


TWO = "idx\tlabel\tpredict\tradius\tcorrect\ttime\tp_A_bar\tq_A_bar\n"
MNIST = noise.spherical_gg(k=380, sigma=1, dim=784)
# Li et al. 2022, github.com/llylly/DSRS, cohen-mnist-380-1.00, share 0.5: p_A, q_A, their radii
PAIRS = [
    (0.864204, 0.90751, 1.0664, 1.0664),
    (0.934573, 0.96715, 1.4663, 1.5),
    (0.965587, 0.987625, 1.7671, 1.85),
    (0.983652, 0.99454, 2.0756, 2.15),
    (0.991149, 0.998309, 2.3063, 2.45),
    (0.99871, 0.999742, 2.9359, 3.05),
]


@pytest.mark.slow
def test_a_log_with_votes_under_two_laws(tmp_path: Path) -> None:
    """Published MNIST pairs: near their radii (steps of 0.05), mean gain at least theirs."""
    file = tmp_path / "log.tsv"
    lines = [f"{i}\t1\t1\t{r}\t1\t0\t{p:.6f}\t{q:.6f}\n" for i, (p, q, r, _) in enumerate(PAIRS)]
    file.write_text(TWO + "".join([*lines, "9\t1\t-1\t0.0\t0\t0\t0.300000\t0.400000\n"]))
    *found, last = recertify_two(read_log(file), MNIST, Norm(2), 0.5)
    assert last.radius == 0
    for row, (_, _, single, both) in zip(found, PAIRS, strict=True):
        assert both - 0.006 <= row.radius <= both + 0.05
        assert row.radius >= single - 0.002
    assert sum(r.radius for r in found) >= sum(both for *_, both in PAIRS)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--dim", "784", "--n", "100", "--alpha", "0.1"], "leave --from, --n and --searched out"),
        (["--dim", "784", "--searched"], "leave --from, --n and --searched out"),
        (["--dim", "784", "--from", "1"], "leave --from, --n and --searched out"),
        (["--dim", "3072"], "has dimension 784, not 3072"),
    ],
)
def test_what_two_laws_do_not_use_is_refused(tmp_path: Path, more: list[str], reason: str) -> None:
    file = write(tmp_path, "0\t3\t3\t0.972\t1\t0")
    asked = ["recertify", str(file), "--noise", MNIST.text, "--norm", "2", "--share", "0.5", *more]
    with pytest.raises(UnicrError, match=reason):
        app(asked, exit_on_error=False, print_error=False)


@pytest.mark.parametrize("p_q", ["1.2\t0.9", "0.9\t-0.1", "0.9\tnan", "inf\t0.9"])
def test_what_is_no_probability_is_named(tmp_path: Path, p_q: str) -> None:
    file = tmp_path / "log.tsv"
    file.write_text(f"{TWO}0\t1\t1\t0.5\t1\t0\t{p_q}\n")
    with pytest.raises(RunError, match=r"line 2: [pq]_A_bar=.* is no probability"):
        read_log(file)


def test_a_second_log_is_another_file_and_needs_its_share(tmp_path: Path) -> None:
    first = sampled(tmp_path / "p.txt", 1)
    asked = ["recertify", str(first), "--noise", MNIST.text, "--norm", "2", "--dim", "784"]
    for more, reason in (
        (["--second", str(first), "--share", "0.5"], "itself, but it must be the log"),
        (["--second", str(first)], "give its share with --share"),
        (["--share", "0.5"], "the second one with --second"),
    ):
        with pytest.raises(UnicrError, match=reason):
            app([*asked, *more], exit_on_error=False, print_error=False)


def test_a_log_without_q_a_is_refused_in_one_line(tmp_path: Path) -> None:
    rows = read_log(write(tmp_path, "0\t3\t3\t0.972\t1\t0"))
    with pytest.raises(
        RunError, match="the columns p_A_bar and q_A_bar, but the log does not have both"
    ):
        recertify_two(rows, MNIST, Norm(2), 0.5)


# Li et al. 2022, ResNet-50 on ImageNet, spherical_gg(k=75260, sigma=0.5), share 0.5: index, p_A,
# q_A, their radius from p_A alone and from both (the last line is made up)
IMAGENET = [
    (500, 0.9996678, 0.9998341, 1.5706, 1.5706),
    (1000, 0.9981128, 0.9998341, 1.3315, 1.4),
    (1500, 0.9671503, 0.9953484, 0.8389, 0.9),
    (2500, 0.5964001, 0.7739797, 0.1101, 0.1101),
    (6500, 0.9750790, 0.9981128, 0.8949, 1.0),
    (8000, 0.9961657, 0.9997427, 1.2235, 1.35),
    (10500, 0.9213716, 0.9670461, 0.6425, 0.65),
    (18000, 0.9905184, 0.9995994, 1.0739, 1.2),
    (26000, 0.9597447, 0.9992409, 0.7960, 1.0),
    (27500, 0.31, 0.4, 0.0, 0.0),
]


def sampled(path: Path, column: int, std: str = "0.5", rows: int = 10) -> Path:
    """A file as DSRS's sampler writes it."""
    head = f"\nx disttype general-gaussian\nx k 75260\nx std {std}\nx N 50000\nx alpha 0.0005\n\n"
    lines = (f"o {one[0]} {one[column]!r} 1\n" for one in IMAGENET[:rows])
    path.write_text(head + "".join(lines))
    return path


def test_files_of_their_sampler_are_read_and_paired(tmp_path: Path) -> None:
    first, second = sampled(tmp_path / "p.txt", 1), sampled(tmp_path / "q.txt", 2, rows=3)
    rows = paired(read_log(first), read_intervals(second, first))
    assert [row.idx for row in rows] == [one[0] for one in IMAGENET]
    assert [row.p_a for row in rows] == [one[1] for one in IMAGENET]
    assert [row.q_a for row in rows] == [one[2] for one in IMAGENET[:3]] + [0.0] * (len(rows) - 3)
    for row in rows:
        assert row.correct == (row.p_a is not None and row.p_a > 0.5) == (row.predict == 0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("o 1 0.5 1.2\n", "line 1"),
        ("o 1 nan 1\n", "line 1"),
        ("o 1 -0.1 1\n", "line 1"),
        ("o 1 0.9 0.8\n", "line 1"),
        ("x k 75260\no 1 0.9 1\nx k 1530\no 2 0.9 1\n", "two noises in its header"),
        ("x k 75260\n", "no line `o index low high`"),
        ("", "as the sampler of DSRS writes them"),
        ("o 1 0.9 1\n", "both files must be for the same noise"),
    ],
)
def test_bad_files_of_a_second_law_are_named(tmp_path: Path, text: str, reason: str) -> None:
    first, second = sampled(tmp_path / "p.txt", 1), tmp_path / "q.txt"
    second.write_text(text)
    with pytest.raises(RunError, match=reason):
        read_intervals(second, first if "same noise" in reason else None)
    with pytest.raises(RunError, match=r"'std': '0.4'.*the same noise"):
        read_intervals(sampled(tmp_path / "other.txt", 2, "0.4"), first)


def test_of_two_samplings_in_one_file_the_smaller_counts(tmp_path: Path) -> None:
    """Four of the published files were sampled twice, with the head once more in the middle."""
    file = tmp_path / "p.txt"
    head = "\nx disttype general-gaussian\nx k 380\nx std 1.0\nx N 1000\nx alpha 0.001\n\n"
    file.write_text(f"{head}o 0 0.98 1\no 10 0.4 1\n{head}o 0 0.99 1\no 10 0.3 1\no 20 0.9 1\n")
    assert [(row.idx, row.p_a) for row in read_log(file)] == [(0, 0.98), (10, 0.3), (20, 0.9)]


@pytest.mark.slow
def test_published_pairs_of_imagenet(tmp_path: Path) -> None:
    """Through the command: near their radii (steps of 0.05), the mean gain at least theirs."""
    first, second = sampled(tmp_path / "p.txt", 1), sampled(tmp_path / "q.txt", 2)
    law = "spherical_gg(k=75260, sigma=0.5, dim=150528)"
    common = ["recertify", str(first), "--noise", law, "--norm", "2", "--dim", "150528"]
    for more, name in (([], "one"), (["--share", "0.5", "--second", str(second)], "two")):
        app([*common, *more, "--out", str(tmp_path / name)], exit_on_error=False)
    one, two = ([row.radius for row in read_log(tmp_path / name)] for name in ("one", "two"))
    for alone, both, (*_, single, published) in zip(one, two, IMAGENET, strict=True):
        assert 0.99 * single <= alone <= 1.001 * single
        assert alone <= both
        assert published - 0.017 <= both <= published + 0.06
    assert sum(two) - sum(one) >= sum(published - single for *_, single, published in IMAGENET)


def test_a_log_keeps_its_norm(tmp_path: Path) -> None:
    """Radii in linf stood under the headline l2, as those of every log."""
    log = write(tmp_path, "0\t3\t3\t0.400000\t1\t1", "1\t3\t4\t0.2\t0\t1")
    out = tmp_path / "linf.tsv"
    words = ["--noise", "gaussian(sigma=0.5)", "--norm", "inf", "--dim", "3072"]
    assert run("recertify", log, *words, "--out", out).code in (0, None, "no exit")
    rows = read_log(out)
    assert [row.norm for row in rows] == ["inf", "inf"]
    assert [*load_scores([out], None)] == ["inf"]
    assert [*load_scores([log], None)] == ["2"]
    with pytest.raises(RunError, match="the log are in the norm inf, not 2"):
        load_scores([out], "2")
    run("recertify", out, *words).check_refused("the log are in the norm inf, not 2")
    mixed = tmp_path / "mixed.tsv"
    mixed.write_text(out.read_text().replace("\tinf\n", "\t2\n", 1))
    with pytest.raises(RunError, match=r"radii in several norms \(2, inf\)"):
        load_scores([mixed], None)
