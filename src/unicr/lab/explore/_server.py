"""The explorer's server: one page and its answers, on 127.0.0.1 and for nobody else.

Only GET, only a fixed list of paths, only under the names of this machine (a foreign Host header
is how DNS rebinding shows). Few answers are computed at a time, and one that nobody waits for any
more is dropped before it starts. One that takes long gives its turn back while it goes on, so that
slow curves keep no other question waiting.
"""

from __future__ import annotations

import json
import select
import socket
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from threading import Lock, Semaphore, Timer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from unicr.errors import UnicrError
from unicr.lab.explore._answers import QUESTIONS, answer

ADDRESS = "127.0.0.1"
LONGEST_REQUEST = 4000  # characters; the page asks with a few hundred
AT_ONCE = 2  # answers that are begun at the same time
LONG = 3.0  # seconds after which an answer no longer keeps others waiting
FILES = {
    "/": ("explore.html", "text/html; charset=utf-8"),
    "/explore.css": ("explore.css", "text/css; charset=utf-8"),
    "/explore.js": ("explore.js", "text/javascript; charset=utf-8"),
    "/explore.svg": ("explore.svg", "image/svg+xml"),
}
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Explorer(ThreadingHTTPServer):
    """The server, listening once made; port 0 takes a free one. `serve_forever` runs it."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int = 0) -> None:
        if not 0 <= port <= 65535:
            raise UnicrError(f"port={port} must lie between 0 (any free port) and 65535")
        self.slots = Semaphore(AT_ONCE)
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            raise UnicrError(
                f"cannot use port {port}: {error.strerror}; --port 0 takes a free one"
            ) from None

    @property
    def url(self) -> str:
        """The page's address."""
        return f"http://{ADDRESS}:{self.server_port}/"


class _Turn:
    """A slot that was taken, given back once: at the end of the block, or after LONG seconds."""

    def __init__(self, slots: Semaphore) -> None:
        self._slots, self._given_back, self._guard = slots, False, Lock()
        self._timer = Timer(LONG, self._give_back)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._give_back()

    def _give_back(self) -> None:
        with self._guard:
            if not self._given_back:
                self._given_back = True
                self._slots.release()


class _Gone(Exception):
    """The client has stopped waiting for its answer."""


class _Handler(BaseHTTPRequestHandler):
    server: Explorer
    server_version = "unicr"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        """One file of the page, or one answer."""
        names = (f"{ADDRESS}:{self.server.server_port}", f"localhost:{self.server.server_port}")
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0] not in names:
            self._refuse(HTTPStatus.FORBIDDEN, f"this server answers to {names[0]} only")
            return
        if len(self.path) > LONGEST_REQUEST:
            self._refuse(HTTPStatus.REQUEST_URI_TOO_LONG, f"at most {LONGEST_REQUEST} characters")
            return
        if not self.path.startswith("/"):  # the address of another server
            self._refuse(HTTPStatus.BAD_REQUEST, "only paths of this server are answered")
            return
        parts = urlsplit(self.path)
        question = parts.path.removeprefix("/api/")
        if parts.path in FILES:
            name, kind = FILES[parts.path]
            body = resources.files("unicr.lab.explore").joinpath(name).read_bytes()
            self._send(HTTPStatus.OK, kind, body)
        elif parts.path.startswith("/api/") and question in QUESTIONS:
            self._answer(question, parts.query)
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")

    def _only_get(self) -> None:
        self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is answered")

    do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = _only_get

    def _answer(self, question: str, query: str) -> None:
        if self.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            self._refuse(HTTPStatus.FORBIDDEN, "only the explorer's own page may ask")
            return
        try:
            words = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
        except ValueError:
            self._refuse(HTTPStatus.BAD_REQUEST, "cannot read the query: write name=value&…")
            return
        if len(dict(words)) < len(words):
            self._refuse(HTTPStatus.BAD_REQUEST, "the query gives one name twice")
            return
        try:
            self._take_turn()
        except _Gone:
            return
        try:
            with _Turn(self.server.slots):
                result = answer(question, dict(words))
        except UnicrError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
            return
        self._send_json(HTTPStatus.OK, result)

    def _take_turn(self) -> None:
        """Wait for a slot; _Gone where the one who asked leaves meanwhile."""
        while not self.server.slots.acquire(timeout=0.1):
            readable, _, _ = select.select([self.connection], [], [], 0)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise _Gone

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self._send_json(status, {"error": message})

    def _send_json(self, status: HTTPStatus, value: Any) -> None:
        self._send(status, "application/json", json.dumps(value, allow_nan=False).encode())

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        more = {"Allow": "GET"} if status is HTTPStatus.METHOD_NOT_ALLOWED else {}
        try:
            self.send_response(status)
            for name, value in {**HEADERS, **more}.items():
                self.send_header(name, value)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal shows the address only."""
