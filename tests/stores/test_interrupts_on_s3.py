"""Ctrl-C of a command that waits for a store which does not answer."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs
from tests import profiles
from tests.faults.vocabulary import Fault
from tests.stores.proxy import Proxy, Request, proxy_to
from tests.stores.s3_server import S3

BOUND_S = 60  # of what would hang for an hour


@pytest.fixture
def proxy(s3: S3) -> Iterator[Proxy]:
    with proxy_to(s3) as running:
        yield running


def is_data(request: Request) -> bool:
    return request.method == "PUT" and "/data/" in request.path


def is_entry(request: Request) -> bool:
    return request.method == "PUT" and request.is_entry


@pytest.mark.parametrize(
    ("command", "held", "said"),
    [
        ("inspect", lambda _: True, "nothing was changed"),
        ("upsert", is_entry, "version 1 exists, committed by this command or another"),
        pytest.param(
            "upsert",
            is_data,
            "nothing was committed",
            marks=pytest.mark.skipif(
                not profiles.IS_DEEP, reason="a process more: in the deep run"
            ),
        ),
    ],
    ids=["a read", "a put of the entry", "a put of data"],
)
def test_ctrl_c_does_not_wait_for_a_store_that_does_not_answer(
    command: str,
    held: Callable[[Request], bool],
    said: str,
    s3: S3,
    proxy: Proxy,
    tmp_path: Path,
) -> None:
    uri = s3.fresh_uri()
    rs.create_table(uri, pa.table({"id": [1]}), key=["id"], storage_options=s3.options)
    (tmp_path / "a.csv").write_text("id\n5\n")
    applied = threading.Event()

    def rule(request: Request) -> Fault | None:
        if not held(request):
            return None
        applied.set()
        return Fault.TIMEOUT_AFTER

    proxy.rule = rule
    options = {**S3(proxy.endpoint).options, "timeout": "1h"}
    arguments = [command, uri, *([str(tmp_path / "a.csv")] if command == "upsert" else [])]
    arguments += [f"--storage-option={name}={value}" for name, value in options.items()]
    running = subprocess.Popen(
        [sys.executable, "-m", "rowsieve", *arguments], stderr=subprocess.PIPE, text=True
    )
    try:
        assert applied.wait(BOUND_S)
        while held is is_entry and rs.open_table(uri, storage_options=s3.options).version == 0:
            pass  # the server is still applying it
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=BOUND_S)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 130
    assert told.startswith(f"rowsieve: interrupted: {said}")
    assert len(told.splitlines()) == 1
