"""Reads rows from a file or stdin, in the format that its suffix or `--format` names.

Soundness: text formats have no types. A column with a known type is read as that type, never
inferred ("007" stays text). Inferred types keep every digit and character: numbers with leading
zeros are text; a number that no type can represent, and bytes that are not UTF-8, are errors that
name the column.
"""

from __future__ import annotations

import re
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from rowsieve.errors import InvalidData, InvalidInput
from rowsieve.input_files.csv_files import (
    first_lost,
    first_rounded,
    inexact_columns,
    open_quote,
    parse_csv,
)
from rowsieve.input_files.json_files import (
    Documents,
    as_lines,
    documents,
    first_number,
    is_another,
    is_inexact,
    read_lines,
    refuse_deep,
)
from rowsieve.parquet.foreign_rows import ForeignRows
from rowsieve.types.encodings import logical_type
from rowsieve.types.numeric_bytes import is_stored

COMPRESSED: Final = (".gz", ".bz2", ".zst")
_FLOATS_WITH_16_DIGITS: Final = re.compile(rb"(?:[0-9]\.?){16}|[0-9][eE]")
_LARGE: Final = re.compile(rb"[0-9]{8}")  # a whole number that a float of 32 bits may not hold
_CHUNK_BYTES: Final = 1 << 18
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_WIDE_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")  # UTF-16 and UTF-32


@dataclass(frozen=True, slots=True)
class Hints:
    """What a message advises, in the words of the caller's interface."""

    format: str  # what names the format of a file
    column_type: str  # how to give a column its type; {name} is the column

    def with_type(self, name: str) -> str:
        """How to give the column its type."""
        return self.column_type.replace("{name}", name)


OPTIONS: Final = Hints(
    "its suffix, or --format,",
    "give its type, as in --type {name}=uint64 or --type '{name}=decimal(38,0)'",
)
"""The words of the command line."""


@dataclass(frozen=True, slots=True)
class Input:
    """A file, or stdin for the path `-`, and the options for reading it."""

    path: Path
    format: str | None = None
    delimiter: str | None = None
    nulls: Sequence[str] = ()
    check: Callable[[Documents], None] | None = None  # of JSON in which names may be absent
    hints: Hints = OPTIONS

    @property
    def name(self) -> str:
        """The name of the file in messages."""
        return "stdin" if self.is_stdin else str(self.path)

    @property
    def is_stdin(self) -> bool:
        """True if rows come from stdin."""
        return str(self.path) == "-"

    @property
    def is_buffered(self) -> bool:
        """True if opening reads the whole content, so that every part of it can be read."""
        return self.is_stdin

    def open(self) -> Any:
        """Open the file; decompresses it if the suffix names a compression."""
        if self.is_stdin:
            return pa.BufferReader(sys.stdin.buffer.read())
        if not self.is_pipe():
            return pa.input_stream(str(self.path), compression="detect")
        return pa.BufferReader(self.path.read_bytes())

    def is_pipe(self) -> bool:
        """Return whether this is a pipe, such as <(command); refuses devices (may be endless)."""
        mode = self.path.stat().st_mode
        if stat.S_ISREG(mode) or stat.S_ISFIFO(mode):
            return stat.S_ISFIFO(mode)
        raise InvalidInput(
            f"{self.path} is neither a regular file nor a pipe; give one of these, or - for stdin"
        )


@dataclass(frozen=True, slots=True)
class _JsonText(Input):
    """Lines of JSON that were read before."""

    text: bytes = b""

    def open(self) -> Any:
        """Open the text."""
        return pa.BufferReader(self.text)


def read_batches(path: Path, read: Callable[[Input], pa.Table]) -> Iterator[tuple[int, pa.Table]]:
    """Yield rows of JSON lines as they come, each batch with the number of its last line.

    `-` is stdin. InvalidData for a line that cannot be read; the lines before it are yielded first.
    """
    opened: AbstractContextManager[Any] = nullcontext(sys.stdin.buffer)
    if not (source := Input(path)).is_stdin:
        is_compressed = not source.is_pipe() and path.suffix.lower() in COMPRESSED
        opened = source.open() if is_compressed else path.open("rb")
    with opened as stream:
        done, begun = 0, list[bytes]()  # pieces of a line, which may be far longer than a chunk
        while chunk := _what_is_there(path, stream):
            whole, end, rest = chunk.rpartition(b"\n")
            if end:
                text = b"".join([*begun, whole])
                yield from _read_some(path, text, done, read)
                done, begun = done + text.count(b"\n") + 1, []
            begun.append(rest)
        yield from _read_some(path, b"".join(begun), done, read)


def _what_is_there(path: Path, stream: Any) -> bytes:
    """The next bytes, as soon as there are some; none at the end."""
    try:
        return bytes(getattr(stream, "read1", stream.read)(_CHUNK_BYTES))
    except OSError as error:  # such as a compressed file that is cut off
        raise InvalidData(f"{path} cannot be read: {error}") from error


def _read_some(
    path: Path, text: bytes, done: int, read: Callable[[Input], pa.Table]
) -> Iterator[tuple[int, pa.Table]]:
    """Read lines together; where one is invalid, each alone."""
    if not text.strip():
        return
    last = done + text.count(b"\n") + 1
    try:
        rows = read(_JsonText(path, "json", text=text))
    except InvalidData as error:
        if b"\n" not in text:
            raise InvalidData(f"line {last}: {error}") from error
        for place, line in enumerate(text.split(b"\n")):
            yield from _read_some(path, line, done + place, read)
    else:
        yield last, rows


def read_rows(source: Input, schema: pa.Schema | None = None) -> pa.Table:
    """Read all rows; `schema` has the types of known columns."""
    kind = _kind(source)
    try:
        return _READERS[kind](source, schema)
    except UnicodeDecodeError as error:
        raise _not_utf8(source, _undecoded(error)) from error
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidData(f"{source.name} cannot be read as {kind}: {error}") from error


def read_messages(source: Input, schema: pa.Schema) -> bytes | pa.Table:
    """Read events: the rows of a Parquet, Arrow or CSV file, or lines of JSON as they are."""
    suffixes = [suffix for suffix in source.path.suffixes if suffix not in COMPRESSED]
    kind = suffixes[-1][1:].lower() if suffixes else ""
    if kind in _READERS and _READERS[kind] is not _read_json and not source.is_stdin:
        return read_rows(source, schema)
    try:
        with source.open() as opened:
            text = bytes(opened.read())
    except (pa.ArrowException, OSError) as error:  # such as a compressed file that is cut off
        raise InvalidData(f"{source.name} cannot be read: {error}") from error
    _refuse_wide(source, text)
    return text


def _kind(source: Input) -> str:
    if source.format is not None:
        kind, hint = source.format, "--format"
    else:
        suffixes = [suffix.lower() for suffix in source.path.suffixes]
        if suffixes and suffixes[-1] in COMPRESSED:
            suffixes.pop()
        kind, hint = (suffixes[-1][1:] if suffixes else ""), source.hints.format
    if kind not in _READERS:
        raise InvalidInput(
            f"{source.name}: {hint} must name its format; {kind or 'none'!r} is not one of "
            f"{', '.join(_READERS)}"
        )
    if source.delimiter is not None and kind not in ("csv", "tsv"):
        raise InvalidInput(f"{source.name}: --delimiter applies to csv and tsv, not to {kind}")
    return kind


def _read_parquet(source: Input, schema: pa.Schema | None) -> pa.Table:
    known = {field.name: logical_type(field, lambda: 0) for field in schema or ()}
    with ForeignRows(source.open() if source.is_buffered else source.path, known) as rows:
        return rows.read()


def _read_ipc(source: Input, _schema: pa.Schema | None) -> pa.Table:
    with source.open() if source.is_buffered else pa.OSFile(str(source.path), "rb") as opened:
        try:
            return pa.ipc.open_file(opened).read_all()
        except pa.ArrowInvalid:
            opened.seek(0)
            return pa.ipc.open_stream(opened).read_all()


def _delimiter(source: Input) -> str:
    """The delimiter that was given, or that of the kind of file."""
    delimiter = source.delimiter
    if delimiter is None:
        return "\t" if _kind(source) == "tsv" else ","
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise InvalidInput(
            f"--delimiter is one ASCII character, no quote and no end of a line, not {delimiter!r}"
        )
    return delimiter


def _read_csv(source: Input, schema: pa.Schema | None) -> pa.Table:
    """An empty field is NULL, `""` is empty text."""
    delimiter = _delimiter(source)
    with source.open() as opened:
        text = opened.read()
    _refuse_wide(source, text)
    if not text.endswith((b"\n", b"\r")) and text:
        text += b"\n"  # pyarrow reads no lone header, and an empty last field as if it was quoted
    if (line := open_quote(text, delimiter)) is not None:
        raise InvalidData(
            f"{source.name}: the quote that opens in line {line} is not closed, so all rows after "
            "it would be read as one field; close it, or check whether the file is complete"
        )
    known = {field.name: field.type for field in _flat(schema)}
    parse = partial(
        parse_csv, text, delimiter=delimiter, nulls=source.nulls, block_bytes=_block_bytes(text)
    )
    try:
        table = parse(known)
    except pa.ArrowInvalid:
        text.decode()  # pyarrow names neither the line nor what to do
        raise
    if len(set(table.column_names)) < table.num_columns:
        return table  # every use of it refuses names that are there twice
    _refuse_lost_digits(source, text, table, known, parse)
    guessed = table.select([name for name in table.column_names if name not in known])
    for field in guessed.schema:
        if pa.types.is_binary(field.type):
            text.decode()
            raise _not_utf8(source, f"column {field.name!r} holds other bytes")
    if all(pa.types.is_string(type_) for type_ in guessed.schema.types):
        return table
    texts = parse({**known, **dict.fromkeys(guessed.column_names, pa.string())})
    inexact = inexact_columns(guessed, texts)
    numbers = [field.name for field in guessed.schema if pa.types.is_floating(field.type)]
    for name in numbers:
        if name not in inexact and (rounding := first_rounded(texts[name])) is not None:
            raise _too_many_digits(source, name, rounding[1], f", row {rounding[0]}")
    return parse({**known, **dict.fromkeys(inexact, pa.string())}) if inexact else table


def _refuse_lost_digits(
    source: Input,
    text: bytes,
    table: pa.Table,
    known: Mapping[str, pa.DataType],
    parse: Callable[[Mapping[str, pa.DataType]], pa.Table],
) -> None:
    """Raise InvalidData for whole numbers that columns of floats do not hold exactly."""
    floats = [name for name in known if name in table.column_names and _is_float(known[name])]
    if not floats or not _LARGE.search(text):
        return
    as_text = parse({**known, **dict.fromkeys(floats, pa.string())})
    for name in floats:
        if (lost := first_lost(as_text[name], table[name])) is not None:
            raise _lost(source, name, known[name], lost[1], f", row {lost[0]}")


def _block_bytes(text: bytes) -> int:
    """The block size: a row must fit in a block, so it is the file's size, up to 2 GiB."""
    return min(max(1 << 20, len(text)), 2**31 - 1)


def _read_json(source: Input, schema: pa.Schema | None) -> pa.Table:
    fields = [field.remove_metadata() for field in _readable_from_text(schema)]
    with source.open() as opened:
        text = opened.read()
    _refuse_wide(source, text)
    text.decode()  # pyarrow does not check UTF-8
    refuse_deep(text)
    is_blank, text = not text.strip(), as_lines(text.removeprefix(_BYTE_ORDER_MARK))
    if not text and not is_blank:  # an array without rows
        return pa.schema(fields).empty_table()
    lines = text or b"\n"  # pyarrow refuses a text without bytes
    table = read_lines(lines, fields, _block_bytes(lines), source.check)
    known = {field.name for field in fields}
    guessed = [field for field in table.schema if field.name not in known]
    _refuse_rounded_json(source, text, guessed, fields)
    return table


def _refuse_rounded_json(
    source: Input, text: bytes, guessed: Sequence[pa.Field], known: Sequence[pa.Field]
) -> None:
    """Refuse numbers, at any depth, that inferred doubles round, or that known floats lose."""
    floats = [field for field in known if _has_floats(field.type)] if _LARGE.search(text) else []
    inferred = guessed if _FLOATS_WITH_16_DIGITS.search(text) else ()
    if not floats and not inferred:
        return
    for row in documents(text):
        for field in inferred:
            if number := first_number(row.get(field.name), field.type, is_inexact):
                raise _too_many_digits(source, field.name, number, "")
        for field in floats:
            if number := first_number(row.get(field.name), field.type, is_another):
                raise _lost(source, field.name, field.type, number, "")


def _is_float(type_: pa.DataType) -> bool:
    return type_ in (pa.float32(), pa.float64())


def _has_floats(type_: pa.DataType) -> bool:
    if pa.types.is_list(type_):
        return _has_floats(type_.value_type)
    if pa.types.is_struct(type_):
        return any(_has_floats(member.type) for member in type_)
    return _is_float(type_)


def _lost(source: Input, name: str, type_: pa.DataType, text: str, place: str) -> InvalidData:
    return InvalidData(
        f"{source.name}: column {name!r}{place}: {text} is a whole number that the column's type "
        f"{type_} does not hold; write the number that is meant, or give the table a wider column"
    )


def _too_many_digits(source: Input, name: str, text: str, place: str) -> InvalidData:
    return InvalidData(
        f"{source.name}: column {name!r}{place}: {text.strip()} has more digits than a float can "
        f"hold; {source.hints.with_type(name)}"
    )


def _refuse_wide(source: Input, text: bytes) -> None:
    if text[:2] in _WIDE_MARKS:
        raise _not_utf8(source, "it begins with the mark of UTF-16", "UTF-16")
    if 0 in text[:4]:
        order = "BE" if text[0] == 0 else "LE"
        raise _not_utf8(source, "it begins as UTF-16 does", f"UTF-16{order}")


def _undecoded(error: UnicodeDecodeError) -> str:
    """The first bytes that are not UTF-8, with their line, from 1."""
    line = 1 + error.object.count(b"\n", 0, error.start)
    return f"line {line} has the byte 0x{error.object[error.start]:02x} ({error.reason})"


def _not_utf8(source: Input, why: str, encoding: str = "LATIN1") -> InvalidData:
    return InvalidData(
        f"{source.name} is not UTF-8: {why}; convert it first, as in iconv -f {encoding} -t UTF-8"
    )


def _readable_from_text(schema: pa.Schema | None) -> list[pa.Field]:
    """The columns that text can represent; UUIDs are bytes, which it cannot.

    Unbounded numbers are read as text, whose digits a float would lose.
    """
    fields: list[pa.Field] = [
        field.with_type(pa.string()) if is_stored(field.type) else field for field in schema or ()
    ]
    return [field for field in fields if not pa.types.is_fixed_size_binary(field.type)]


def _flat(schema: pa.Schema | None) -> list[pa.Field]:
    return [field for field in _readable_from_text(schema) if not pa.types.is_nested(field.type)]


_READERS: Mapping[str, Callable[[Input, pa.Schema | None], pa.Table]] = {
    "parquet": _read_parquet,
    "csv": _read_csv,
    "tsv": _read_csv,
    "json": _read_json,
    "jsonl": _read_json,
    "ndjson": _read_json,
    "arrow": _read_ipc,
    "ipc": _read_ipc,
    "feather": _read_ipc,
}
FORMATS: Final = tuple(_READERS)
"""The suffixes of the files that are read."""
