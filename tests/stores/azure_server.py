"""Azurite, Microsoft's own emulator of Azure's blobs, on loopback; it comes from npm.

Starting and ending it are bounded: a server that does not listen in time is an error that tells
what it printed, and one that waits for its clients as it ends is killed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

CONTAINER = "tables"
# Azurite's account, which its documentation names.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_PACKAGE = "azurite@3.35.0"
_PROTOCOL = "2021-08-06"
_INSTALL_S, _START_S, _END_S = 300, 60, 5


@dataclass(frozen=True, slots=True)
class Azure:
    """Where a server is, and how tables on it are opened."""

    endpoint: str
    key: str = KEY

    @property
    def options(self) -> dict[str, str]:
        """`storage_options`, in the form that every caller takes."""
        return {
            "account_name": ACCOUNT,
            "account_key": self.key,
            "endpoint": f"{self.endpoint}/{ACCOUNT}",
            "allow_http": "true",
        }

    @property
    def environment(self) -> dict[str, str]:
        """The same as variables of the environment, for tests that pass no options."""
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": self.key,
            "AZURE_STORAGE_ENDPOINT": f"{self.endpoint}/{ACCOUNT}",
            "AZURE_ALLOW_HTTP": "true",
        }

    def fresh_uri(self) -> str:
        """A table that nobody has made."""
        return f"az://{CONTAINER}/{uuid.uuid4().hex}"


@contextmanager
def azure_server(folder: Path) -> Iterator[Azure]:
    """A server on a free port, with an empty container; it ends with the block.

    It is installed into `folder` unless `azurite-blob` is on the path. Skips where it cannot be.
    """
    port = _free_port()
    log = folder / "azurite.log"
    command = [*_command(folder), "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    with log.open("wb") as out:
        server = subprocess.Popen(
            [*command, "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_for(port, server, log)
        _make_container(f"http://127.0.0.1:{port}")
        yield Azure(f"http://127.0.0.1:{port}")
    finally:
        _end(server)


def _command(folder: Path) -> list[str]:
    """How it is started."""
    if (found := shutil.which("azurite-blob")) is not None:
        return [found]
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("azurite comes from npm, which is not on the path: install Node.js")
    arguments = ["install", "--no-audit", "--no-fund", "--silent", "--prefix", str(folder)]
    try:
        done = subprocess.run(
            [npm, *arguments, _PACKAGE],
            check=False,
            timeout=_INSTALL_S,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not install {_PACKAGE} in {_INSTALL_S} s")
    if done.returncode:
        pytest.skip(f"npm cannot install {_PACKAGE}: {(done.stderr or done.stdout).strip()[-300:]}")
    return [node, str(folder / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js")]


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    ends = time.monotonic() + _START_S
    while time.monotonic() < ends and server.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"azurite does not listen: {log.read_text(errors='replace')[-2000:]}")


def _end(server: subprocess.Popen[bytes]) -> None:
    """End it; it waits for connections that clients keep open, so not for long."""
    server.terminate()
    try:
        server.wait(_END_S)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _make_container(endpoint: str) -> None:
    """PUT of the container, signed with the account's key as the protocol says."""
    date = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    headers = f"x-ms-date:{date}\nx-ms-version:{_PROTOCOL}\n"
    resource = f"/{ACCOUNT}/{ACCOUNT}/{CONTAINER}\nrestype:container"
    signed = "PUT" + "\n" * 12 + headers + resource
    digest = hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()
    request = urllib.request.Request(
        f"{endpoint}/{ACCOUNT}/{CONTAINER}?restype=container",
        method="PUT",
        headers={
            "x-ms-date": date,
            "x-ms-version": _PROTOCOL,
            "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}",
        },
    )
    urllib.request.urlopen(request, timeout=30).close()
