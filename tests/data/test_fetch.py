"""`fetch` against a server on this machine: resume, wrong sums, several mirrors, no network."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from unicr.cli.data import app
from unicr.data import ARCHIVES, data_folder, fetch, load_dataset
from unicr.data._fetch import Archive
from unicr.errors import DataError
from unicr.progress import listen

CONTENT = bytes(range(256)) * 2000
FILE = "numbers-images-idx3-ubyte.gz"
DEAD = "http://127.0.0.1:9/"


class Server(ThreadingHTTPServer):
    """Serves `files`; `cut` ends a body early, `ranges` are the Range headers it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {"/" + FILE: CONTENT}
        self.cut: int | None = None
        self.resumable = True
        self.ranges: list[str | None] = []

    @property
    def mirror(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.ranges.append(asked)
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        start = int(asked[6:-1]) if asked and self.server.resumable else 0
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        end = None if self.server.cut is None else start + self.server.cut
        self.wfile.write(content[start:end])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def archives(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small = Archive({FILE: hashlib.sha256(CONTENT).hexdigest()}, (DEAD,))
    monkeypatch.setitem(ARCHIVES, "mnist", small)
    monkeypatch.setenv("UNICR_DATA_DIR", str(tmp_path / "place"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def test_a_file_is_fetched_once(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[str, float, float | None, str]] = []
    with listen(lambda *told: seen.append(told)):
        folder = fetch("mnist", tmp_path / "a", mirrors=(server.mirror,))
    assert (folder / FILE).read_bytes() == CONTENT
    task, size = f"{FILE}, MB", len(CONTENT) / 1e6
    assert seen[-1] == (task, size, size, task)
    fetch("mnist", tmp_path / "a", mirrors=(server.mirror,))
    assert len(server.ranges) == 1
    assert [file.name for file in folder.iterdir()] == [FILE]


def test_a_broken_download_goes_on_where_it_stopped(server: Server, tmp_path: Path) -> None:
    server.cut = 200_000
    with pytest.raises(DataError, match="closed after 200000 of 512000 bytes"):
        fetch("mnist", tmp_path, mirrors=(server.mirror,))
    assert (tmp_path / (FILE + ".part")).stat().st_size == 200_000
    assert not (tmp_path / FILE).exists()
    server.cut = None
    fetch("mnist", tmp_path, mirrors=(server.mirror,))
    assert server.ranges == [None, "bytes=200000-"]
    assert (tmp_path / FILE).read_bytes() == CONTENT
    assert not (tmp_path / (FILE + ".part")).exists()


def test_the_next_mirror_goes_on_too(server: Server, tmp_path: Path) -> None:
    server.files["/b/" + FILE] = CONTENT
    server.cut = 300_000
    second = server.mirror + "b/"
    fetch("mnist", tmp_path, mirrors=(DEAD, server.mirror + "none/", server.mirror, second, second))
    assert (tmp_path / FILE).read_bytes() == CONTENT
    assert server.ranges == [None, None, "bytes=300000-"]


@pytest.mark.parametrize("part", [b"wrong" * 1000, CONTENT + b"more", b"x" * len(CONTENT)])
@pytest.mark.parametrize("resumable", [True, False])
def test_a_bad_part_is_thrown_away(
    server: Server, tmp_path: Path, part: bytes, resumable: bool
) -> None:
    server.resumable = resumable
    (tmp_path / (FILE + ".part")).write_bytes(part)
    fetch("mnist", tmp_path, mirrors=(server.mirror,))
    assert (tmp_path / FILE).read_bytes() == CONTENT


def test_a_file_with_a_wrong_sum_does_not_count(server: Server, tmp_path: Path) -> None:
    server.files["/" + FILE] = CONTENT[:-1] + b"!"
    with pytest.raises(DataError, match="SHA-256 is not the published one"):
        fetch("mnist", tmp_path, mirrors=(server.mirror,))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / FILE).write_bytes(b"damaged by hand")
    server.files["/" + FILE] = CONTENT
    fetch("mnist", tmp_path, mirrors=(server.mirror,))
    assert (tmp_path / FILE).read_bytes() == CONTENT


def test_without_network_the_message_says_what_to_put_where(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        fetch("mnist", tmp_path / "here")
    message = str(caught.value)
    assert f"put {FILE} into {(tmp_path / 'here').resolve()}" in message
    assert DEAD + FILE in message
    (tmp_path / "here" / FILE).write_bytes(CONTENT)
    assert fetch("mnist", tmp_path / "here") == (tmp_path / "here").resolve()


def test_cifar_is_unpacked(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = io.BytesIO()
    record = bytes([3]) + bytes(3072)
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name in ("data/test_batch.bin", "data/../../outside"):
            info = tarfile.TarInfo(name)
            info.size = len(record)
            tar.addfile(info, io.BytesIO(record))
    server.files["/set.tar.gz"] = packed.getvalue()
    digest = hashlib.sha256(packed.getvalue()).hexdigest()
    archive = Archive({"set.tar.gz": digest}, (server.mirror,), ("data/test_batch.bin",))
    monkeypatch.setitem(ARCHIVES, "cifar10", archive)
    folder = fetch("cifar10", tmp_path / "in" / "here")
    assert load_dataset(folder / "data")[0][1] == 3
    assert not (tmp_path / "in" / "outside").exists()
    lacking = Archive({"set.tar.gz": digest}, (server.mirror,), ("data/none",))
    monkeypatch.setitem(ARCHIVES, "cifar10", lacking)
    with pytest.raises(DataError, match="cannot be unpacked"):
        fetch("cifar10", folder)


def test_names_of_fetched_sets_are_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="run `unicr data fetch mnist`"):
        load_dataset("mnist")
    with pytest.raises(DataError, match="there are mnist, fashion-mnist, cifar10"):
        fetch("svhn")
    folder = data_folder("mnist")
    folder.mkdir(parents=True)
    (folder / "t10k-images-idx3-ubyte").write_bytes(
        b"\0\0\x08\x03" + bytes([0, 0, 0, 1] * 3) + b"\xff"
    )
    assert load_dataset("mnist")[0][0].item() == 1.0
    monkeypatch.delenv("UNICR_DATA_DIR")
    assert data_folder("mnist").name == "mnist"


def test_the_command_prints_where_the_files_are(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(
        ARCHIVES, "mnist", Archive({FILE: hashlib.sha256(CONTENT).hexdigest()}, (server.mirror,))
    )
    app(["fetch", "mnist", "--dir", str(tmp_path)], result_action="return_value")
    written = capsys.readouterr()
    assert f"mnist is in {tmp_path}" in written.out
    assert f"--data {tmp_path}" in written.out
    assert written.err.strip() == ""
    assert (tmp_path / FILE).read_bytes() == CONTENT


def test_published_sums_are_sha256() -> None:
    for name in ("fashion-mnist", "cifar10"):
        for digest in ARCHIVES[name].files.values():
            assert len(bytes.fromhex(digest)) == 32
        assert len(ARCHIVES[name].mirrors) > 1
