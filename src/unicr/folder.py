"""A folder that work is written into for long: whole files, one writer, settings that stay.

Trainings, searches, runs, attacks, memories and the paper's items all live in such folders. What
they share is here: a file is replaced as a whole (`replace_file`), several files with the one that
makes them count last (`Folder.replace_files`), nobody else writes meanwhile (`Lock`), and work goes
on with the settings that it was begun with or not at all (`refuse_changes`). A process that is
killed at any moment leaves the folder as it was or as it should be, never between.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import shutil
import stat
import tempfile
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from unicr.errors import RunError, UnicrError

NEW = ".new-"  # begins the names of what is not finished


@contextmanager
def replace_file(path: Path, kind: type[UnicrError] = RunError) -> Iterator[Path]:
    """A new file beside `path` to write to, which takes its place when the block ends well.

    It has the ending of `path`, as some writers want. It is on the disk before it takes the place,
    so that a power cut cannot leave an empty file under the name. What the system refuses is an
    error of this `kind`.
    """
    if not path.parent.is_dir():
        raise kind(f"cannot write {path.name}: there is no folder {path.parent}")
    beside = path.with_name(f"{NEW}{secrets.token_hex(6)}-{path.name}")
    try:
        yield beside
        with beside.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(beside, path)
    except OSError as error:
        raise kind(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def changes(
    old: Mapping[str, Any], new: Mapping[str, Any], free: Collection[str] = frozenset()
) -> str:
    """What differs between the settings of a folder and those given now; "" where nothing does."""
    differing = sorted(k for k in {*old, *new} - set(free) if old.get(k) != new.get(k))
    return "; ".join(f"{k}: {old.get(k)!r} there, {new.get(k)!r} now" for k in differing)


def refuse_changes(
    place: object,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    free: Collection[str] = frozenset(),
    cure: str = "use another folder",
) -> None:
    """A RunError that names every setting that differs; those in `free` may."""
    if differing := changes(old, plain(new), free):
        raise RunError(f"cannot resume {place} with other settings ({differing}): {cure}")


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as they are after a way through JSON: tuples are lists."""
    return dict(json.loads(json.dumps(values)))


def refuse_links(*paths: Path) -> None:
    """RunError if one of these is a link, or a file that has another name too.

    A folder may come from a stranger: whoever writes through a link in it writes elsewhere.
    """
    for path in paths:
        try:
            status = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        if stat.S_ISLNK(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink > 1):
            raise RunError(
                f"{path} is a symbolic link, and nothing is written through a link: copy the folder"
            )


class Lock:
    """The right to write `path`: one process at a time has it, and in it one owner.

    The system takes it from a process that ends, however it ends. It is a lock on a file beside
    `path`, of the kind that child processes do not inherit: a worker that outlives a killed parent
    keeps nobody out. Readers need no lock. On a disk that has no locks only this process is kept
    from writing twice.
    """

    _held: ClassVar[set[tuple[int, str]]] = set()
    _guard: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.with_name(f".{path.name}.lock")
        self._handle: int | None = None
        self._key = (0, "")

    def take(self) -> None:
        """Have the right from now on; RunError where somebody else has it."""
        if self._handle is not None:
            return
        # with the process: a forked child has a copy of the set, and none of the locks
        self._key = os.getpid(), str(self._file.resolve())
        with self._guard:
            if self._key in self._held:
                raise RunError(f"{self.path} is already being written to by this process")
            self._handle = self._open_locked()
            self._held.add(self._key)

    def _open_locked(self) -> int:
        while True:
            try:
                handle = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                raise RunError(
                    f"{self._file} is a symbolic link, and nothing is written through a link"
                ) from None
            try:
                refuse_links(self._file)  # the file is emptied below
                try:
                    fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    # a network disk without locks: better a run without one than none at all
                    if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
                        raise
                # The last owner removes the file. Whoever opened it before that has locked a file
                # without a name, which keeps nobody out, and tries again.
                if os.fstat(handle).st_nlink:
                    os.truncate(handle, 0)
                    os.write(handle, str(os.getpid()).encode())
                    return handle
            except (BlockingIOError, PermissionError):  # what POSIX allows for "locked"
                owner = os.pread(handle, 20, 0).decode(errors="replace")
                os.close(handle)
                raise RunError(
                    f"{self.path} is being written to by another "
                    f"process{f' ({owner})' if owner.isdigit() else ''}: wait until it ends"
                ) from None
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)

    def release(self) -> None:
        """Let others have it; nothing if it is not held."""
        with self._guard:
            if self._handle is None:
                return
            self._held.discard(self._key)
            with suppress(OSError):
                self._file.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = None


class Folder:
    """`path`, where `what` ("a training") is made; the JSON file `record` makes it count.

    A record is a JSON object whose `settings` decide the result.
    """

    def __init__(self, path: Path, what: str, record: str) -> None:
        self.path, self.what = path, what
        self.record = path / record

    @contextmanager
    def write(self) -> Iterator[None]:
        """The folder is made if need be, and for the length of the block nobody else writes to it.

        What a killed writer left unfinished is removed.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"cannot create the folder {self.path}: {error.strerror}") from None
        lock = Lock(self.record)
        try:
            lock.take()
        except OSError as error:
            raise RunError(f"cannot write to {self.path}: {error.strerror}") from None
        try:
            for rest in self.path.glob(f"{NEW}*"):
                if rest.is_dir():
                    shutil.rmtree(rest, ignore_errors=True)
                else:
                    rest.unlink(missing_ok=True)
            yield
        finally:
            lock.release()

    def begin(
        self, settings: Mapping[str, Any], *, resume: bool, free: Collection[str] = frozenset()
    ) -> dict[str, Any] | None:
        """The record that is there, None in a new folder.

        A RunError if there is one and nobody asked to `resume`, or where its settings are others
        than these (but for those in `free`).
        """
        old = self.read()
        if old is None:
            return None
        if not resume:
            raise RunError(
                f"{self.path} already contains {self.what}: use --resume, or another folder"
            )
        refuse_changes(self.path, old["settings"], settings, free)
        return old

    def read(self) -> dict[str, Any] | None:
        """The record; None if there is none."""
        try:
            if not self.record.is_file():
                return None
            record = json.loads(self.record.read_text(encoding="utf-8"))
            if not isinstance(record, dict) or not isinstance(record.get("settings"), dict):
                raise ValueError("it has no settings")
            return record
        except (OSError, ValueError, RecursionError) as error:
            raise RunError(f"cannot read {self.record}: {error}") from None

    def note(self, record: Mapping[str, Any]) -> None:
        """Write the record, as a whole."""
        write_json(self.record, record)

    @contextmanager
    def replace_files(self, remove: Iterable[str] = ()) -> Iterator[Path]:
        """A new folder to write files to, which take the places of those of the same name in this
        one when the block ends well, the record last; files named in `remove` go.

        The old record goes first: while files are moved there is none, and nothing counts.
        """
        fresh = Path(tempfile.mkdtemp(prefix=NEW, dir=self.path))
        try:
            yield fresh
            made = [p.relative_to(fresh) for p in sorted(fresh.rglob("*")) if p.is_file()]
            self.record.unlink(missing_ok=True)
            for old in {*remove} - {str(name) for name in made}:
                (self.path / old).unlink(missing_ok=True)
            for name in sorted(made, key=lambda name: str(name) == self.record.name):
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                os.replace(fresh / name, self.path / name)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


def write_json(path: Path, value: object) -> None:
    """Replace a JSON file as a whole."""
    with replace_file(path) as file:
        file.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
