"""A time-stamp authority (RFC 3161) of the tests' own: openssl behind a small HTTP server."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

CONFIG = """
[tsa]
default_tsa = here
[here]
serial = {place}/serial
signer_cert = {place}/tsa.pem
certs = {place}/tsa.pem
signer_key = {place}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha384, sha512
accuracy = secs:1
"""


def openssl(*words: object) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def make_keys(place: Path) -> None:
    """A root (`ca.pem`) and a certificate under it that may date."""
    (place / "serial").write_text("01\n")
    (place / "tsa.cnf").write_text(CONFIG.format(place=place))
    (place / "ext").write_text(
        "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
        "extendedKeyUsage=critical,timeStamping\nsubjectKeyIdentifier=hash\n"
        "authorityKeyIdentifier=keyid\n"
    )
    new = ("-newkey", "rsa:2048", "-nodes")
    openssl("req", "-x509", *new, "-keyout", place / "ca.key", "-out", place / "ca.pem", "-days", 9,
            "-subj", "/CN=Test root", "-addext", "keyUsage=critical,keyCertSign")  # fmt: skip
    openssl("req", *new, "-keyout", place / "tsa.key", "-out", place / "tsa.csr",
            "-subj", "/CN=Test authority")  # fmt: skip
    openssl("x509", "-req", "-in", place / "tsa.csr", "-CA", place / "ca.pem", "-CAkey",
            place / "ca.key", "-CAcreateserial", "-out", place / "tsa.pem", "-days", 9,
            "-extfile", place / "ext")  # fmt: skip


@contextmanager
def authority(place: Path) -> Iterator[str]:
    """The address of an authority whose root is `place`/ca.pem."""
    make_keys(place)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = self.rfile.read(int(self.headers["Content-Length"]))
            with tempfile.TemporaryDirectory() as here:
                asked, answer = Path(here) / "q", Path(here) / "a"
                asked.write_bytes(query)
                openssl("ts", "-reply", "-config", place / "tsa.cnf", "-queryfile", asked,
                        "-out", answer)  # fmt: skip
                content = answer.read_bytes()
            self.send_response(200)
            self.send_header("Content-Type", "application/timestamp-reply")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
