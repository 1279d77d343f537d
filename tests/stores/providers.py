"""Providers of credentials that tests name: `tests.stores.providers:issued`."""

from __future__ import annotations

from typing import Any

from tests.stores.s3_server import SECRET

calls: list[str] = []


def issued() -> dict[str, Any]:
    """A new session with each call."""
    calls.append(f"session-{len(calls)}")
    return {
        "access_key_id": "AKIAISSUEDEXAMPLE",
        "secret_access_key": SECRET,
        "token": calls[-1],
        "expires_at": None,
    }


class Issuing:
    """The same, as an object."""

    def __call__(self) -> dict[str, Any]:
        return issued()
