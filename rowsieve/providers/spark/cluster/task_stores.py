"""Opens stores in tasks: an executor that cannot reach one fails soon, by an error that says so.

Requests are repeated for minutes, and Spark repeats tasks. So the first use of a store in a process
of an executor asks it for an object that does not exist, by a client that gives up after some
seconds of retries. Only causes that concern each request of this machine are errors
(`Cause.concerns_machine`): a request that is denied, or that the server failed, says nothing of the
next one.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping
from typing import Final

from rowsieve.errors import StoreError
from rowsieve.objects import ObjectNotFound, ObjectStore, open_probe, open_store
from rowsieve.objects.request_failures import concerns_machine

_ABSENT: Final = "_rowsieve/reached"
_REACHED: Final[set[tuple[str, frozenset[tuple[str, str]]]]] = set()
"""Tables and options of which this process has reached the store."""


def task_store(uri: str, storage: Mapping[str, str]) -> ObjectStore:
    """Open a store in a task; StoreError with the machine and the remedy if it is out of reach."""
    check_reached(uri, storage)
    return open_store(uri, storage)


def check_reached(uri: str, storage: Mapping[str, str]) -> None:
    """Raise StoreError if this process cannot reach the store; it is asked once."""
    key = uri, frozenset(storage.items())
    if key in _REACHED or (probe := open_probe(uri, storage)) is None:
        return
    try:
        probe.get(_ABSENT)
    except ObjectNotFound:
        pass
    except StoreError as error:
        if concerns_machine(error.cause):
            raise StoreError(
                f"a task on {socket.gethostname()} ({sys.executable}) cannot reach the store: "
                f"{error}. rowsieve.providers.spark.check(spark, uri) tries each executor before "
                "a job",
                operation=error.operation,
                path=error.path,
                cause=error.cause,
            ) from None
    _REACHED.add(key)
