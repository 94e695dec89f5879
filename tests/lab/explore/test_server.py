"""The explorer's server: bound to this machine, careful about who asks, and kind about mistakes."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from scipy import stats

from unicr.cli import app
from unicr.errors import UnicrError
from unicr.lab.explore import Explorer, _server, answer

GAUSSIAN = "/api/radius?family=gaussian&sigma=1&norm=2&dim=10&pa=0.9"


@pytest.fixture(scope="module")
def server() -> Iterator[Explorer]:
    with Explorer(0) as one:
        thread = threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield one
        one.shutdown()
        thread.join()


def ask(
    server: Explorer, path: str, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, headers=named)
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply.status, {k.lower(): v for k, v in reply.getheaders()}, body


def test_it_listens_on_this_machine_only(server: Explorer) -> None:
    assert server.socket.getsockname() == ("127.0.0.1", server.server_port)
    assert server.url == f"http://127.0.0.1:{server.server_port}/"


@pytest.mark.parametrize(
    ("path", "kind", "holds"),
    [
        ("/", "text/html; charset=utf-8", b"<title>unicr explorer"),
        ("/explore.css", "text/css; charset=utf-8", b"--accent"),
        ("/explore.js", "text/javascript; charset=utf-8", b"use strict"),
        ("/explore.svg", "image/svg+xml", b"<svg"),
    ],
)
def test_the_page_is_served_whole_and_locked_in(
    server: Explorer, path: str, kind: str, holds: bytes
) -> None:
    status, headers, body = ask(server, path)
    assert status == 200
    assert headers["content-type"] == kind
    assert int(headers["content-length"]) == len(body)
    assert holds in body
    assert "default-src 'self'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    without_names = body.replace(b"http://www.w3.org/2000/svg", b"")
    assert b"http://" not in without_names
    assert b"https://" not in without_names


def test_a_good_question_is_answered(server: Explorer) -> None:
    status, headers, body = ask(server, GAUSSIAN)
    assert status == 200
    assert headers["content-type"] == "application/json"
    assert json.loads(body)["proved"] == pytest.approx(stats.norm.ppf(0.9))


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (GAUSSIAN.replace("0.9", "1.9"), "p_a=1.9"),
        (GAUSSIAN.replace("gaussian", "laplas"), "unknown family"),
        ("/api/density?family=typed&sigma=1&expression=__import__('os')", "unknown name"),
        ("/api/density?family=typed&sigma=1&expression=exp(x**2)", "cannot be used as a density"),
        ("/api/density?nonsense", "name=value"),
        (GAUSSIAN + "&pa=0.8", "twice"),
        ("/api/radius", "family"),
    ],
)
def test_a_bad_question_gets_its_reason(server: Explorer, path: str, reason: str) -> None:
    status, headers, body = ask(server, path)
    assert status == 400
    assert headers["content-type"] == "application/json"
    assert reason in json.loads(body)["error"]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", ""])
def test_other_hosts_are_refused(server: Explorer, host: str) -> None:
    for path in ("/", GAUSSIAN):
        status, _, body = ask(server, path, Host=host)
        assert status == 403
        assert "127.0.0.1" in json.loads(body)["error"]


@pytest.mark.parametrize(
    ("line", "hosts", "status"),
    [
        ("GET / HTTP/1.1", ["HERE"], 200),
        ("GET / HTTP/1.1", ["HERE", "evil.example"], 403),
        ("GET / HTTP/1.1", [], 403),
        ("GET http://evil.example/ HTTP/1.1", ["HERE"], 400),
        ("GET http://[::1 HTTP/1.1", ["HERE"], 400),
        ("GET * HTTP/1.1", ["HERE"], 400),
    ],
)
def test_requests_that_no_browser_writes(
    server: Explorer, line: str, hosts: list[str], status: int
) -> None:
    """A second Host was not looked at, and half an address ended the answer in a traceback."""
    here = f"127.0.0.1:{server.server_port}"
    heads = [f"Host: {host}".replace("HERE", here) for host in hosts]
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as connection:
        connection.sendall("\r\n".join([line, *heads, "", ""]).encode())
        assert connection.makefile("rb").readline().split()[1] == str(status).encode()


def test_localhost_is_this_machine(server: Explorer) -> None:
    assert ask(server, GAUSSIAN, Host=f"localhost:{server.server_port}")[0] == 200


def test_other_pages_may_not_ask(server: Explorer) -> None:
    assert ask(server, GAUSSIAN, Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(server, GAUSSIAN, Sec_Fetch_Site="same-origin")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
def test_only_get(server: Explorer, method: str) -> None:
    status, headers, _ = ask(server, GAUSSIAN, method)
    assert status == 405
    assert headers["allow"] == "GET"


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/%2e%2e/_server.py",
        "/_server.py",
        "/explore.html/../_server.py",
        "//etc/passwd",
        "/api/",
        "/api/../explore.js",
        "/api/answer",
        "/favicon.ico",
    ],
)
def test_nothing_else_is_there(server: Explorer, path: str) -> None:
    assert ask(server, path)[0] == 404


def test_long_requests_are_refused(server: Explorer) -> None:
    status, _, body = ask(server, GAUSSIAN + "&x=" + "y" * 5000)
    assert status == 414
    assert "4000" in json.loads(body)["error"]


def test_a_question_nobody_waits_for_is_dropped(
    server: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every slot taken, one client gives up and another stays: only that one is answered."""
    asked: list[dict[str, str]] = []
    dropped = threading.Event()
    real_turn = _server._Handler._take_turn

    def watched_answer(question: str, query: dict[str, str]) -> Any:
        asked.append(query)
        return answer(question, query)

    def watched_turn(self: _server._Handler) -> None:
        try:
            real_turn(self)
        except _server._Gone:
            dropped.set()
            raise

    monkeypatch.setattr(_server, "answer", watched_answer)
    monkeypatch.setattr(_server._Handler, "_take_turn", watched_turn)
    for _ in range(_server.AT_ONCE):
        assert server.slots.acquire(timeout=60)
    replies: list[int] = []
    stays = threading.Thread(target=lambda: replies.append(ask(server, GAUSSIAN)[0]))
    try:
        stays.start()
        leaves = socket.create_connection(("127.0.0.1", server.server_port))
        request = f"GET {GAUSSIAN.replace('0.9', '0.6')} HTTP/1.1\r\n"
        leaves.sendall(f"{request}Host: 127.0.0.1:{server.server_port}\r\n\r\n".encode())
        leaves.close()
        assert dropped.wait(60)
        assert asked == []
    finally:
        for _ in range(_server.AT_ONCE):
            server.slots.release()
    stays.join()
    assert replies == [200]
    assert [query["pa"] for query in asked] == ["0.9"]


def test_slow_curves_keep_no_other_question_waiting(
    server: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More curves than slots are under way for as long as the test likes; all else is answered,
    and no slot is lost or given back twice.
    """
    go_on, begun = threading.Event(), threading.Semaphore(0)

    def slow_curve(question: str, query: dict[str, str]) -> Any:
        if question == "curve":
            begun.release()
            assert go_on.wait(60)
        return answer(question, query)

    monkeypatch.setattr(_server, "answer", slow_curve)
    monkeypatch.setattr(_server, "LONG", 0.05)
    replies: list[int] = []
    curve = GAUSSIAN.replace("radius", "curve")
    threads = [
        threading.Thread(target=lambda: replies.append(ask(server, curve)[0]))
        for _ in range(_server.AT_ONCE + 2)
    ]
    try:
        for thread in threads:
            thread.start()
        for _ in threads:
            assert begun.acquire(timeout=60)
        assert ask(server, GAUSSIAN)[0] == 200
        assert ask(server, "/api/density?family=laplace&sigma=1")[0] == 200
        assert replies == []
    finally:
        go_on.set()
    for thread in threads:
        thread.join()
    assert replies == [200] * len(threads)
    for _ in range(_server.AT_ONCE):
        assert server.slots.acquire(timeout=60)
    assert not server.slots.acquire(blocking=False)
    for _ in range(_server.AT_ONCE):
        server.slots.release()


def test_ports_that_cannot_be_used_are_named(server: Explorer) -> None:
    with pytest.raises(UnicrError, match=f"cannot use port {server.server_port}"):
        Explorer(server.server_port)
    with pytest.raises(UnicrError, match="port=70000"):
        Explorer(70000)


@pytest.mark.parametrize("flags", [[], ["--no-browser"]])
def test_the_command_prints_and_opens_the_address(
    flags: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    answered: list[int] = []

    def serve_one(self: Explorer, poll_interval: float = 0.5) -> None:
        asking = threading.Thread(target=lambda: answered.append(ask(self, "/")[0]))
        asking.start()
        self.handle_request()
        asking.join()
        raise KeyboardInterrupt

    monkeypatch.setattr(Explorer, "serve_forever", serve_one)
    monkeypatch.setattr("webbrowser.open", opened.append)
    app(["explore", *flags], exit_on_error=False, print_error=False)
    address = capsys.readouterr().out.split()[2]
    assert address.startswith("http://127.0.0.1:")
    assert answered == [200]
    assert opened == ([] if flags else [address])
