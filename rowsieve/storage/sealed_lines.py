"""The frame of the log's JSON files: one JSON object a line, the last one a checksum of the rest.

Each line has a kind, its first key. `seal` writes, `unseal` reads.

Soundness: what does not match its checksum, or is no list of JSON objects, is CorruptData that
names the file; nothing of it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from rowsieve.checksums import checksum
from rowsieve.errors import CorruptData, InvalidInput

LARGEST_BYTES: Final = 64 * 1024 * 1024
_DAMAGED: Final = "restore it from a copy of the table; nothing was read from it"


def seal(lines: Sequence[Mapping[str, Any]]) -> bytes:
    """Encode the lines and append their checksum; InvalidInput for what JSON cannot hold."""
    try:
        body = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidInput(f"cannot be written to the log as JSON: {error}") from error
    return body + msgspec.json.encode({"checksum": checksum(body)}) + b"\n"


def unseal(data: bytes, where: str) -> list[tuple[str, dict[str, Any]]]:
    """Check and decode a sealed file into (kind, line), without the checksum line."""
    if len(data) > LARGEST_BYTES:
        raise CorruptData(f"{where} has {len(data)} bytes, more than any log file may have")
    start_of_last = data.rfind(b"\n", 0, len(data) - 1) + 1
    body, last = data[:start_of_last], data[start_of_last:]
    sealed = _object(last, where).get("checksum")
    if not data.endswith(b"\n") or sealed != checksum(body):
        raise CorruptData(
            f"{where} does not match its checksum: it says {sealed!r}, its {len(body)} bytes have "
            f"{checksum(body)!r}; {_DAMAGED}"
        )
    lines = [_object(line, where) for line in body.split(b"\n")[:-1]]
    return [(next(iter(line)), line) for line in lines]


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise CorruptData(f"{where} is not JSON lines: {error}; {_DAMAGED}") from error
    if not isinstance(value, dict) or not value:
        raise CorruptData(f"{where} has a line that is no JSON object; {_DAMAGED}")
    return value
