"""Providers of credentials that tests name: `tests.stores.providers:issued`."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any
from urllib.parse import urlencode

from tests.stores.azure_server import ACCOUNT, KEY
from tests.stores.s3_server import SECRET

calls: list[str] = []
_RIGHTS = {"sp": "rwdlacup", "ss": "b", "srt": "sco", "st": "", "sip": "", "spr": ""}
_VERSION = "2018-11-09"


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


def google_session() -> dict[str, Any]:
    """A new token of Google's with each call."""
    calls.append(f"session-{len(calls)}")
    return {"token": calls[-1], "expires_at": None}


def azure_session() -> dict[str, Any]:
    """A new signature for Azure's account with each call; the end of the first one has passed."""
    ends = f"{2100 + len(calls) if calls else 2001}-01-01T00:00:00Z"
    fields = {**_RIGHTS, "se": ends, "sv": _VERSION}
    names = ("sp", "ss", "srt", "st", "se", "sip", "spr", "sv")
    signed = "\n".join([ACCOUNT, *map(fields.__getitem__, names), ""])
    digest = hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()
    calls.append(base64.b64encode(digest).decode())
    given = {name: value for name, value in fields.items() if value}
    return {"sas_token": urlencode({**given, "sig": calls[-1]}), "expires_at": None}
