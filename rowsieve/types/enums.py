"""Enums: text with a declared list of labels, and its forms in Arrow, in the log and in SQL.

The labels have the order of their declaration, which is the order of the values in PostgreSQL. A
value is stored as its text, so every reader shows it. Soundness: labels are distinct, and an enum
may only get more of them, at the end: then no stored value and no comparison of two changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import SchemaMismatch
from rowsieve.types.logical import Enum

MAX_LABELS: Final = 10_000
MAX_BYTES: Final = 255  # of a label in UTF-8
LABELS_KEY: Final = b"ARROW:extension:metadata"
_POLARS_KEY: Final = b"_PL_ENUM_VALUES2"
_NAME: Final = re.compile(r"\s*enum\s*\((.*)\)\s*", re.DOTALL | re.IGNORECASE)
_LABEL: Final = re.compile(r"\s*'((?:[^']|'')*)'\s*(,|$)")


def enum_of(labels: Sequence[object], column: str) -> Enum:
    """Return the enum with these labels; SchemaMismatch, which names the column, if invalid.

    Labels are distinct text of at most 255 bytes without a zero byte; there are 1 to 10,000.
    """
    if not 1 <= len(labels) <= MAX_LABELS:
        raise _no_enum(column, f"it has {len(labels):,} labels; give it 1 to {MAX_LABELS:,}")
    for label in labels:
        if not isinstance(label, str) or "\0" in label or not _fits(label):
            raise _no_enum(
                column,
                f"{str(label)[:80]!r} is not a label: a label is text of at most {MAX_BYTES} "
                "bytes of UTF-8 without a zero byte",
            )
    texts = tuple(str(label) for label in labels)
    if len(set(texts)) < len(texts):
        twice = next(label for place, label in enumerate(texts) if label in texts[:place])
        raise _no_enum(column, f"it has the label {twice!r} twice; give each label once")
    return Enum(texts)


def declared(metadata: Mapping[bytes, bytes] | None, extension: bytes, column: str) -> Enum | None:
    """Return the enum that the metadata of an Arrow field declares, or None.

    It is of the extension `extension`, with a JSON list of the labels, or an Enum of Polars.
    """
    entries = metadata or {}
    if entries.get(b"ARROW:extension:name") == extension:
        return _of_json(entries.get(LABELS_KEY, b""), column)
    labels = _of_polars(entries[_POLARS_KEY]) if _POLARS_KEY in entries else None
    try:
        return None if labels is None else enum_of(labels, column)
    except SchemaMismatch:  # no label, too many or too long labels: the column is plain text
        return None


def as_json(type_: Enum) -> bytes:
    """Return the labels as the metadata of a field."""
    return json.dumps(type_.labels, ensure_ascii=False).encode()


def spelled(type_: Enum) -> str:
    """Return the type's name with all labels, as the log stores it: `enum('sad','ok')`."""
    texts = (label.replace("'", "''") for label in type_.labels)
    return f"enum({','.join(chr(39) + text + chr(39) for text in texts)})"


def named_enum(text: str, column: str = "enum") -> Enum | None:
    """Return the enum with this name, such as `enum('sad', 'ok')`; None if it is not one.

    SchemaMismatch for labels that no enum has.
    """
    if (match := _NAME.fullmatch(text)) is None:
        return None
    inner, labels, place = match[1], [], 0
    while (label := _LABEL.match(inner, place)) is not None:
        labels.append(label[1].replace("''", "'"))
        place = label.end()
        if not label[2]:
            return enum_of(labels, column) if place == len(inner) else None
    return None


def extends(old: Enum, new: Enum) -> bool:
    """Return whether `new` has the labels of `old`, in their order, and then possibly others."""
    return new.labels[: len(old.labels)] == old.labels


def check_labels(values: pa.Array, type_: Enum) -> None:
    """Raise ValueError for text that is not a label."""
    known = pc.is_in(values, value_set=pa.array(type_.labels, pa.string()), skip_nulls=True)
    wrong = values.filter(pc.and_(pc.invert(known), pc.is_valid(values)))
    if len(wrong):
        raise ValueError(f"{wrong[0].as_py()[:80]!r} is not one of its labels")


def as_dictionary(values: pa.Array, type_: Enum) -> pa.DictionaryArray:
    """Return the values as an ordered dictionary of all labels, as Polars and pandas know enums."""
    labels = pa.array(type_.labels, pa.string())
    width = pa.uint8() if len(labels) <= 0x100 else pa.uint16()
    codes = pc.index_in(values, value_set=labels).cast(width)
    return pa.DictionaryArray.from_arrays(codes, labels, ordered=True)


def polars_metadata(type_: Enum) -> dict[bytes, bytes]:
    """Return the metadata of a field by which Polars knows an Enum."""
    texts = [label.encode() for label in type_.labels]
    return {_POLARS_KEY: b"".join(b"%d;%b" % (len(text), text) for text in texts)}


def _fits(label: str) -> bool:
    try:
        return len(label.encode()) <= MAX_BYTES
    except UnicodeEncodeError:
        return False


def _of_json(text: bytes, column: str) -> Enum:
    try:
        labels = json.loads(text)
    except (ValueError, RecursionError):
        labels = None
    if not isinstance(labels, list):
        raise _no_enum(
            column,
            f"its metadata {LABELS_KEY.decode()!r} is {text[:80]!r}; write its labels as a JSON "
            'list, such as ["sad", "ok"]',
        )
    return enum_of(labels, column)


def _of_polars(text: bytes) -> list[str] | None:
    """Return the labels of `3;sad2;ok`: each after its length in bytes; None for other forms."""
    labels, place = [], 0
    while place < len(text):
        length, colon, _ = text[place : place + 10].partition(b";")
        start = place + len(length) + 1
        if not colon or not length.isdigit() or start + int(length) > len(text):
            return None
        place = start + int(length)
        try:
            labels.append(text[start:place].decode())
        except UnicodeDecodeError:
            return None
    return labels


def _no_enum(column: str, why: str) -> SchemaMismatch:
    return SchemaMismatch(f"column {column!r} cannot be an enum: {why}")
