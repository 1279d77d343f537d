"""Decode all messages at once, and continue after those that cannot be decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

DECODING_ERRORS: Final = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)


def decode_each(
    decode: Callable[[Any], Any], messages: Iterable[Any]
) -> tuple[list[Any], dict[int, Exception]]:
    """Return what `decode` makes of each message, None where it failed, and the errors by place.

    The loop is in C; it stops at a message that fails, and goes on with the next one.
    """
    results: list[Any] = []
    failures: dict[int, Exception] = {}
    rest = iter(messages)
    while True:
        try:
            results.extend(map(decode, rest))
        except DECODING_ERRORS as error:
            failures[len(results)] = error
            results.append(None)
        else:
            return results, failures
