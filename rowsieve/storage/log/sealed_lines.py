"""The framing of the log's JSON files: one JSON object per line, then a checksum of the lines.

The first key of a line is its kind. `seal` writes a file, `unseal` reads it.

Soundness: a file that does not match its checksum, or is not a list of JSON objects, raises
CorruptData that names the file; no line of it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from rowsieve.checksums import checksum
from rowsieve.errors import CorruptData, InvalidInput

LARGEST_BYTES: Final = 64 * 1024 * 1024
_RESTORE: Final = "restore it from a copy of the table"
_DAMAGED: Final = f"{_RESTORE}; nothing was read from it"


def damaged(problem: str) -> CorruptData:
    """Build the error for a damaged file of a log; `problem` begins with the file."""
    return CorruptData(f"{problem}; {_RESTORE}")


def seal(lines: Sequence[Mapping[str, Any]]) -> bytes:
    """Encode the lines and append their checksum; InvalidInput if JSON cannot encode a value."""
    try:
        body = b"\n".join((*map(msgspec.json.encode, lines), b""))
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidInput(f"cannot be written to the log as JSON: {error}") from error
    return body + msgspec.json.encode({"checksum": checksum(body)}) + b"\n"


def unseal(data: bytes, where: str) -> list[tuple[str, dict[str, Any]]]:
    """Verify and decode a sealed file into (kind, line) pairs, without the checksum line."""
    if len(data) > LARGEST_BYTES:
        raise CorruptData(
            f"{where} has {len(data)} bytes, more than the limit of {LARGEST_BYTES}; {_DAMAGED}"
        )
    start_of_last = data.rfind(b"\n", 0, len(data) - 1) + 1
    body, last = data[:start_of_last], data[start_of_last:]
    stated = _object(last, where).get("checksum")
    if not data.endswith(b"\n") or stated != checksum(body):
        raise CorruptData(
            f"{where} does not match its checksum: it says {stated!r}, but its {len(body)} bytes "
            f"have {checksum(body)!r}; {_DAMAGED}"
        )
    lines = []
    for text in body.split(b"\n")[:-1]:
        line = _object(text, where)
        lines.append((next(iter(line)), line))
    return lines


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise CorruptData(f"{where} is not JSON lines: {error}; {_DAMAGED}") from error
    if not isinstance(value, dict) or not value:
        raise CorruptData(f"{where} has a line that is not a JSON object; {_DAMAGED}")
    return value
