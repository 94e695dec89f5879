"""What is wrong with the user's words, files or machine is one line and exit code 2."""

from __future__ import annotations

import gzip
import json
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.cli.command import Done, run
from unicr import load_run


def header(shape: tuple[int, ...], kind: str = "<f4") -> bytes:
    """The head of a .npy file that claims to hold an array of this shape."""
    words = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode()
    words += b" " * (63 - (10 + len(words)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(words)) + words


def certify(data: Path, *more: object, model: object = "builtin:mnist-mlp-0.5") -> Done:
    few = ("--n", 100, "--n0", 10, "--max", 3, "--norm", 2, "--out", data.parent / "run")
    return run(
        *("certify", "--model", model, "--data", data, "--noise", "gaussian(sigma=0.5)", *few),
        *more,
    )


def images(folder: Path, count: int = 5) -> Path:
    path = folder / "images.npz"
    pixels = np.random.default_rng(0).integers(0, 256, (count, 28, 28), dtype=np.uint8)
    np.savez(path, images=pixels, labels=np.arange(count))
    return path


def zipped(path: Path, content: bytes, zeros: int = 0) -> Path:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("images.npy", "w", force_zip64=True) as part,
    ):
        part.write(content)
        for _ in range(zeros >> 20):
            part.write(bytes(1 << 20))
    return path


def test_arrays_that_cannot_be(tmp_path: Path) -> None:
    for name in ("empty.npy", "empty.npz"):
        (tmp_path / name).touch()
        certify(tmp_path / name).check_refused(name, "cannot be read")
    (tmp_path / "large.npy").write_bytes(header((10**12, 28, 28)))
    certify(tmp_path / "large.npy").check_refused("large.npy cannot be read")
    certify(zipped(tmp_path / "large.npz", header((10**12, 28, 28)))).check_refused("large.npz")
    (tmp_path / "labels.npy").write_bytes(header((10**15,), "<i8"))
    certify(images(tmp_path), "--labels", tmp_path / "labels.npy").check_refused("labels.npy")


def test_decompression_bombs(tmp_path: Path) -> None:
    size = 257 << 20
    bomb = zipped(tmp_path / "bomb.npz", header((size >> 10, 1, 32, 32), "|u1"), size)
    assert bomb.stat().st_size < 1e6
    certify(bomb).check_refused("bomb.npz", "decompression bomb")
    idx = tmp_path / "t10k-images-idx3-ubyte.gz"
    head = struct.pack(">BBBBIII", 0, 0, 8, 3, size >> 10, 32, 32)
    packer = zlib.compressobj(wbits=31)
    idx.write_bytes(
        packer.compress(head)
        + b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20))
        + packer.flush()
    )
    certify(idx).check_refused("t10k-images-idx3-ubyte.gz", "decompression bomb")
    idx.write_bytes(gzip.compress(struct.pack(">BBBBIII", 0, 0, 8, 3, *[2**32 - 1] * 3)))
    certify(idx).check_refused("of memory, but this machine has")
    idx.write_bytes(gzip.compress(struct.pack(">BBBB", 0, 0, 8, 255) + b"\xff" * 1020))
    certify(idx).check_refused("header for 255 axes")


def png_of(side: int) -> bytes:
    """A small PNG file that claims to be a square of this side."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n"
        + head
        + chunk(b"IDAT", zlib.compress(b"\0" * 99))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    "broken",
    [b"no image", png_of(10_000), png_of(60_000)],
    ids=["no image", "warned", "refused"],
)
def test_a_broken_first_image_is_one_failed_input(tmp_path: Path, broken: bytes) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "1.png").write_bytes(broken)
    for name in "234":
        pixels = np.random.default_rng(int(name)).integers(0, 256, (28, 28), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{name}.png")
    done = certify(folder)
    assert done.code == 3, done.err
    export = tmp_path / "rows.jsonl"
    assert run("export", tmp_path / "run", "-o", export).code == 0
    rows = [json.loads(line) for line in export.read_text().splitlines()]
    assert [row["status"] == "failed" for row in rows] == [True, False, False]
    assert "1.png is not a readable image" in str(rows[0])


def test_a_folder_of_broken_images_only(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "1.png").write_bytes(b"no image")
    certify(folder).check_refused("1.png is not a readable image")


def test_a_first_row_that_is_not_finite_is_one_failed_input(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(4, 784)).astype(np.float32)
    rows[0, 3] = np.nan
    np.savez(tmp_path / "rows.npz", x=rows, y=np.arange(4))
    assert certify(tmp_path / "rows.npz").code == 3


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (bytes(range(256)), "must be .npy, idx, or text"),
        (b"3\n4\n5\n6\n12\n", "13 classes"),
        (b"1e30\n0\n0\n0\n0\n", "contain 1e+30"),
        (b"inf\n0\n0\n0\n0\n", "must be whole numbers"),
        (b"-2\n0\n0\n0\n0\n", "contain -2"),
        (b"0\n1\n", "5 inputs but 2 labels"),
        (b"", "5 inputs but 0 labels"),
        (b"\0\0\x08\x01\0\0", "cut short"),
    ],
)
def test_labels_that_cannot_be(tmp_path: Path, content: bytes, words: str) -> None:
    labels = tmp_path / "labels"
    labels.write_bytes(content)
    certify(images(tmp_path), "--labels", labels).check_refused(words)


@pytest.mark.parametrize("dim", ["1.5", f"1{'0' * 30}", f"1{'0' * 400}", "0", "-3", "x", "nan", ""])
@pytest.mark.parametrize("noise", ["gaussian(sigma=1)", "laplace(sigma=1)"])
def test_dimensions_that_cannot_be(dim: str, noise: str) -> None:
    command = ("--noise", noise, "--norm", "1", f"--dim={dim}")
    run("radius", *command, "--pa", 0.9).check_refused("dim")
    run("curve", *command, "--out", "curve.csv").check_refused("dim")
    run("tightness", *command, "--formula", "cohen").check_refused("dim")


@pytest.mark.parametrize("option", ["n", "n0", "batch", "chunk", "skip", "max", "workers"])
def test_counts_are_whole(tmp_path: Path, option: str) -> None:
    for value in ("1.5", "1e30", "x"):
        certify(images(tmp_path), f"--{option}={value}").check_refused(option)


def test_whole_numbers_may_be_written_with_an_exponent() -> None:
    command = ("radius", "--noise", "gaussian(sigma=1)", "--norm", "1", "--pa", "0.9", "--json")
    assert run(*command, "--dim", "3e3").out == run(*command, "--dim", "3000").out != ""


@pytest.mark.parametrize(
    "body",
    ["import sys\nsys.exit(0)", "raise SystemExit", "class X(BaseException): pass\nraise X('no')"],
)
def test_a_user_s_file_cannot_end_the_program(tmp_path: Path, body: str) -> None:
    whole = tmp_path / "whole.py"
    whole.write_text(f"{body}\n")
    certify(images(tmp_path), model=f"{whole}:x").check_refused("whole.py failed to load")
    inside = tmp_path / "inside.py"
    lines = "\n".join("    " + line for line in body.splitlines())
    inside.write_text(f"def rule(batch):\n{lines}\n\ndef make():\n{lines}\n")
    certify(images(tmp_path), model=f"{inside}:rule").check_refused("inside.py:rule failed")
    certify(images(tmp_path), model=f"{inside}:make").check_refused("inside.py:make() failed")
    run(
        *("tightness", "--noise", "gaussian(sigma=1)", "--norm", "2", "--dim", "3"),
        *("--formula", f"{inside}:rule"),
    ).check_refused()


def test_a_place_that_cannot_be_written() -> None:
    command = ("curve", "--noise", "gaussian(sigma=1)", "--norm", "2", "--dim", "3")
    for place in ("/proc/curve.csv", "/proc/curve.png"):
        run(*command, "--out", place).check_refused("/proc/curve")


def test_more_samples_than_memory() -> None:
    run(
        *("radius", "--noise", "gaussian(sigma=1)", "--norm", "2", "--dim", "3", "--pa", "0.9"),
        *("--engine", "montecarlo", "--samples", 10**15),
    ).check_refused("memory")


@pytest.mark.parametrize(
    "arguments",
    [
        ("nothing",),
        ("radius",),
        ("radius", "--noise"),
        ("radius", "--noise", "gaussian(sigma=1)", "--norm", "2", "--pa", "x"),
        ("radius", "--noise", "gaussian(sigma=1)", "--norm", "2", "--pa", "1", "--engine", "no"),
        ("certify", "--nothing", "3"),
    ],
)
def test_words_that_are_no_command(arguments: tuple[str, ...]) -> None:
    run(*arguments).check_refused()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (
            ("radius", "--noise", "gaussian(sigma=1)", "--norm", 2, "--pa", 0.9, "--dim", 0),
            "--dim 0",
        ),
        (("train", "--data", "builtin:mnist", "--noise", "none", "--batch", 1), "--batch 1"),
    ],
)
def test_options_are_named_as_they_were_typed(
    words: tuple[object, ...], named: str, tmp_path: Path
) -> None:
    out = ("--out", tmp_path / "x") if words[0] == "train" else ()
    run(*words, *out).check_refused(named)


CONV = """
import torch

model = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 5), torch.nn.AdaptiveAvgPool2d(1)).eval()
"""


def test_images_with_their_channels_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "conv.py").write_text(CONV)
    model, rng = f"{tmp_path / 'conv.py'}:model", np.random.default_rng(0)
    np.savez(tmp_path / "last.npz", x=rng.random((4, 8, 9, 3)))
    certify(tmp_path / "last.npz", model=model).check_refused("np.moveaxis(x, -1, -3)")
    np.savez(tmp_path / "grey.npz", x=rng.random((4, 8, 9)))
    certify(tmp_path / "grey.npz", model=model).check_refused("x[:, None]")
    np.savez(tmp_path / "four.npz", x=rng.random((4, 4, 8, 8)))
    assert "transpose" not in certify(tmp_path / "four.npz", model=model).err


def test_labels_that_are_missing_or_words_are_told(tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((4, 1, 28, 28))
    np.savez(tmp_path / "bare.npz", x=x)
    ended = certify(tmp_path / "bare.npz")
    assert ended.code == 0
    assert "no label" in ended.err
    assert "--labels" in ended.err
    words = tmp_path / "words" / "words.npz"
    words.parent.mkdir()
    np.savez(words, x=x, y=np.array(["cat", "dog", "ant", "cat"]))
    certify(words).check_refused("cat, dog", "10 outputs", "--classes")
    names = ["dog", *(f"c{i}" for i in range(7)), "cat", "ant"]
    assert certify(words, "--classes", *names).code == 0
    with load_run(words.parent / "run") as kept:
        assert [row.label for row in kept.rows()] == [8, 0, 9]
    assert run("verify", words.parent / "run", "--replay", 2).code == 0


def test_options_and_endings_in_a_users_words(tmp_path: Path) -> None:
    law = ("--noise", "gaussian(sigma=1)", "--norm", 2, "--dim", 4)
    run("radius", *law, "--pa", 90).check_refused("--pa 90")
    run("curve", *law, "-o", tmp_path / "x").check_refused("one of .csv, .tex, .html, .png")
    run("noise", "show", law[1], "-o", tmp_path / "x").check_refused("one of .png, .svg, .pdf")
    (tmp_path / "semicolons.csv").write_text("a;b\n1,5;2\n")
    certify(tmp_path / "semicolons.csv").check_refused("commas")
    run("certify", "--model", "builtin:mnist-mlp-0.5", "--data", images(tmp_path), *law[:4],
        "--out", tmp_path / "images.npz").check_refused("is a file")  # fmt: skip
