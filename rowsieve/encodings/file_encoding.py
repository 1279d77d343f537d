"""Which forms of its rows a file has, as the list of parts says it.

    columns/7              only columns, of batch version 7
    both/7/msgpack/1       columns, and each row encoded by version 1 of the codec msgpack
    codec/7/msgpack/1      rows encoded by the codec, and as columns only those of the index

The batch version counts the writers of the columns: a table may declare that those of some batch
versions are wrong, and then its codec is read instead. The index are the columns that order the
versions of a row: the key, and the sequence of an event order. Every file has them as columns.

Soundness: a text of another form is an error, never "only columns".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from rowsieve.errors import CorruptData

Halves: TypeAlias = Literal["columns", "both", "codec"]
ReadEncoding: TypeAlias = Literal["columns", "codec", "shadow"]
OnDifference: TypeAlias = Literal["raise", "report"]

ROW_CODEC: Final = "row_codec"
WRITE_ENCODING: Final = "write_encoding"
READ_ENCODING: Final = "read_encoding"
ON_DIFFERENCE: Final = "on_encoding_difference"
BATCH_VERSION: Final = "batch_version"
IGNORED_BATCHES: Final = "ignored_batch_versions"
NAMES: Final = (
    ROW_CODEC, WRITE_ENCODING, READ_ENCODING, ON_DIFFERENCE, BATCH_VERSION, IGNORED_BATCHES,
)  # fmt: skip

_FORM: Final = re.compile(
    r"(?P<halves>columns|both|codec)/(?P<batch>[1-9]\d{0,8})"
    r"(?:/(?P<codec>[A-Za-z0-9_-]{1,200})/(?P<version>[1-9]\d{0,8}))?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class FileEncoding:
    """The forms of the rows of a file; `codec` and `version` are those of its codec, if any."""

    halves: Halves
    batch: int
    codec: str = ""
    version: int = 0

    @classmethod
    def parse(cls, text: str) -> FileEncoding:
        """Read the text; CorruptData for any other."""
        match = _FORM.fullmatch(text)
        if match is None or (match["halves"] == "columns") != (match["codec"] is None):
            raise CorruptData(f"a manifest has {text[:80]!r} as the encoding of a part")
        halves: Halves = match["halves"]  # type: ignore[assignment] # one of the three
        return cls(halves, int(match["batch"]), match["codec"] or "", int(match["version"] or 0))

    def __str__(self) -> str:
        if self.halves == "columns":
            return f"columns/{self.batch}"
        return f"{self.halves}/{self.batch}/{self.codec}/{self.version}"


def halves_to_write(properties: Mapping[str, str]) -> Halves:
    """The forms that files of a table with these properties get."""
    halves: Halves = properties.get(WRITE_ENCODING, "columns")  # type: ignore[assignment] # checked
    return halves


def batch_version(properties: Mapping[str, str]) -> int:
    """The batch version of new files."""
    return int(properties.get(BATCH_VERSION, "1"))


def ignored_batches(properties: Mapping[str, str]) -> frozenset[int]:
    """The batch versions whose columns are wrong."""
    text = properties.get(IGNORED_BATCHES, "")
    return frozenset(int(each) for each in text.split(",") if each.strip())


def has_encodings(properties: Mapping[str, str]) -> bool:
    """Return whether files of a table with these properties say what forms they have."""
    return any(name in properties for name in (ROW_CODEC, BATCH_VERSION, IGNORED_BATCHES))
