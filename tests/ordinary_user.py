"""Run code as a user whom the permissions of files bind, even where the tests run as root."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_VERSION_3 = 0x20080522
_OVERRIDES = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Take root's right to pass over permissions from this thread; skips where that fails."""
    if os.geteuid():
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "capget"):
        pytest.skip("needs the capabilities of Linux, or a user who is not root")
    header, words = (ctypes.c_uint32 * 2)(_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, words) == 0
    before = words[0]
    words[0] = before & ~_OVERRIDES
    assert libc.capset(header, words) == 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        words[0] = before
        assert libc.capset(header, words) == 0
