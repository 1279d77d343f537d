"""What one process of Spark is and can do; it is sent by value, so nothing of ours is imported.

A process without the package cannot import this module: `checks` sends the function itself.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import queue
import socket
import sys
import threading
import uuid
from collections.abc import Mapping


def probed(
    uri: str | None, options: Mapping[str, str], longest_s: float, *, writes: bool
) -> dict[str, str]:
    """Versions, and what is wrong under `problem`; empty if nothing is."""
    facts = {
        "host": socket.gethostname(),
        "process": str(os.getpid()),
        "executable": sys.executable,
        "python": platform.python_version(),
        "problem": "",
    }
    for name in ("rowsieve", "pyarrow", "obstore"):
        try:
            importlib.import_module(name)
            facts[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            facts[name] = str(getattr(sys.modules[name], "__version__", "sent along"))
        except ImportError as error:
            facts[name] = ""
            facts["problem"] = f"cannot import {name}: {error}"
    if uri is None or facts["problem"]:
        return facts
    answers: queue.Queue[str] = queue.Queue()

    def reach() -> None:
        try:
            import rowsieve  # noqa: PLC0415 - a process may lack it
            from rowsieve.objects import open_store  # noqa: PLC0415 - as above

            rowsieve.open_table(uri, storage_options=dict(options))
            if writes:
                store, path = open_store(uri, dict(options)), f"data/probe-{uuid.uuid4().hex}"
                store.put_new(path, b"probe")
                store.delete([path])
            answers.put("")
        except Exception as error:
            answers.put(f"{type(error).__name__}: {error}")

    threading.Thread(target=reach, daemon=True).start()
    try:
        facts["problem"] = answers.get(timeout=longest_s)
    except queue.Empty:
        facts["problem"] = f"{uri} did not answer within {longest_s:.0f} s"
    return facts
