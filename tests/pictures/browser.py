"""A tab of a headless Chromium, driven by its DevTools protocol over two pipes.

`--remote-debugging-pipe` reads commands from descriptor 3 and writes answers and events to 4, each
a JSON object that ends with a NUL: no port and no library.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")
_ANSWER_S: Final = 60
_KEYS: Final = {  # name: (virtual key code, text)
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    " ": (32, " "),
    "ArrowDown": (40, ""),
}


class Tab:
    """One page; `run` evaluates JavaScript there, `press` is a key of a keyboard."""

    def __init__(self, send: Callable[..., Any]) -> None:
        self._send = send

    def open(self, address: str) -> None:
        """Load a page and wait until it is complete."""
        self._send("Page.navigate", url=address)
        self.wait_for(f"location.href === {json.dumps(address)}")
        self.wait_for("document.readyState === 'complete'")

    def wait_for(self, condition: str) -> None:
        """Wait until a JavaScript condition holds, also while the page changes."""
        deadline = time.monotonic() + _ANSWER_S
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < deadline, condition
            time.sleep(0.02)

    def run(self, script: str) -> Any:
        """The value of an expression; promises are awaited."""
        answer = self._send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press and release a key of `_KEYS`."""
        code, text = _KEYS[key]
        pressed = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self._send("Input.dispatchKeyEvent", type="keyDown", text=text, **pressed)
        self._send("Input.dispatchKeyEvent", type="keyUp", **pressed)

    def accessible(self) -> list[tuple[str, str]]:
        """Role and name of each node that a screen reader is given."""
        self._send("Accessibility.enable")
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in self._send("Accessibility.getFullAXTree")["nodes"]
            if not node["ignored"]
        ]


@contextlib.contextmanager
def open_tab(profile: Path, *, width: int = 1_000) -> Iterator[Tab]:
    """Start a browser with one tab, and end it."""
    assert CHROMIUM is not None
    to_browser, commands = os.pipe()
    answers, from_browser = os.pipe()

    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"),
        *(f"--user-data-dir={profile}", f"--window-size={width},900", "about:blank"),
    ]
    # A shell sets the two descriptors: dup2 in a child of several threads would be unsafe.
    shell = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
    process = subprocess.Popen(
        ["/bin/bash", "-c", shell, "bash", *command],
        pass_fds=(to_browser, from_browser),
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        with os.fdopen(commands, "wb", buffering=0) as sink, os.fdopen(answers, "rb") as source:
            yield _first_tab(_Connection(sink, source))
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class _Connection:
    """Numbered commands, and their answers in between of events."""

    def __init__(self, sink: Any, source: Any) -> None:
        self._sink, self._source = sink, source
        self._number = 0
        self._rest = b""

    def send(self, method: str, session: str | None = None, **params: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        self._sink.write(json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def _next(self) -> Any:
        while b"\0" not in self._rest:
            piece = self._source.read1()
            assert piece, "the browser ended"
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)


def _first_tab(connection: _Connection) -> Tab:
    targets = connection.send("Target.getTargets")["targetInfos"]
    target = next(each["targetId"] for each in targets if each["type"] == "page")
    session = connection.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def send(method: str, **params: Any) -> Any:
        return connection.send(method, session, **params)

    send("Page.enable")
    return Tab(send)
