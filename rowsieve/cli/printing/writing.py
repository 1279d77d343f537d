"""Writes rows to stdout: as text for people, or batch by batch in a format for other programs.

Soundness: a value that a format cannot represent is written as the text of `cell_text.cell`, never
omitted or rounded. Parquet keeps the types.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import typer

from rowsieve.cli.options import SHOWN_ROWS, Format
from rowsieve.cli.output import print_json, print_table, print_vertically
from rowsieve.errors import InvalidInput
from rowsieve.executor.output_batches import take_first
from rowsieve.types.cell_text import cell
from rowsieve.types.shown_values import python_values
from rowsieve.value_texts import with_value_texts

Batches: TypeAlias = Iterator[pa.RecordBatch]


def show_rows(
    schema: pa.Schema,
    batches: Batches,
    output: Format,
    limit: int | None,
    *,
    wide: bool,
    vertical: bool = False,
    first: Sequence[str] = (),
) -> None:
    """Write the first `limit` rows; as text, the first 100 of them, and whether there are more.

    `first` are the columns that a narrow terminal shows before others.
    """
    if output != "parquet":
        schema, batches = with_value_texts(schema, batches)
    if output != "text":
        write_rows(schema, batches, output, limit)
        return
    wanted = SHOWN_ROWS if limit is None else limit
    rows = (row for batch in batches for row in _rows(batch))
    shown = list(islice(rows, wanted + 1))
    if vertical:
        print_vertically(schema.names, shown[:wanted], wide=wide)
    else:
        print_table(schema.names, shown[:wanted], wide=wide, first=first)
    more = ", more rows exist: use --limit to show them" if len(shown) > wanted else ""
    count = len(shown[:wanted])
    typer.echo(f"{count} {'row' if count == 1 else 'rows'}{more}")


def write_rows(schema: pa.Schema, batches: Batches, output: Format, limit: int | None) -> None:
    """Write the first `limit` rows in the format `output`, which is not text."""
    _WRITERS[output](schema, take_first(batches, limit))


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    return zip(*map(_values, batch.columns), strict=True)


def _values(column: pa.Array) -> list[Any]:
    """Return Python values; text for times with nanoseconds, which Python's types lack."""
    type_ = column.type
    if not (pa.types.is_timestamp(type_) and type_.unit == "ns"):
        return python_values(column)
    try:
        return list(column.cast(pa.timestamp("us", type_.tz)).to_pylist())
    except pa.ArrowInvalid:
        return list(column.cast(pa.string()).to_pylist())


def _json(schema: pa.Schema, batches: Batches) -> None:
    for batch in batches:
        for row in _rows(batch):
            print_json(dict(zip(schema.names, row, strict=True)))


def _markdown(schema: pa.Schema, batches: Batches) -> None:
    def line(texts: list[str]) -> str:
        return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"

    typer.echo(line([cell(name) for name in schema.names]))
    typer.echo("|" + "---|" * len(schema.names))
    for batch in batches:
        for row in _rows(batch):
            typer.echo(line([cell(value) for value in row]))


def _csv(schema: pa.Schema, batches: Batches) -> None:
    """Write CSV: an empty field is NULL, `""` is empty text; our commands read it like this."""
    fields = [_csv_field(field) for field in schema]
    with pyarrow.csv.CSVWriter(sys.stdout.buffer, pa.schema(fields)) as writer:
        for batch in batches:
            columns = [
                column.cast(field.type) if _has_text(column.type) else _as_text(column)
                for column, field in zip(batch.columns, fields, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)))


def _csv_field(field: pa.Field) -> pa.Field:
    type_ = field.type if _has_text(field.type) and not _is_view(field.type) else pa.string()
    return pa.field(field.name, type_)


def _has_text(type_: pa.DataType) -> bool:
    """Return whether pyarrow writes values of this type to CSV in a form that can be read back."""
    types = pa.types
    return bool(
        types.is_boolean(type_)
        or types.is_integer(type_)
        or types.is_floating(type_)
        or types.is_string(type_)
        or types.is_large_string(type_)
        or types.is_string_view(type_)
        or types.is_date(type_)
        or types.is_timestamp(type_)
        or types.is_time(type_)
        or types.is_decimal(type_)
        or types.is_null(type_)
    )


def _is_view(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(type_) or pa.types.is_binary_view(type_))


def _as_text(column: pa.Array) -> pa.Array:
    return pa.array([None if v is None else cell(v) for v in _values(column)], pa.string())


def _parquet(schema: pa.Schema, batches: Batches) -> None:
    if sys.stdout.isatty():
        raise InvalidInput(
            "--output parquet writes bytes: redirect them to a file, as in > rows.parquet"
        )
    plain = pa.schema([_parquet_field(field) for field in schema])
    with pq.ParquetWriter(sys.stdout.buffer, plain) as writer:
        for batch in batches:
            writer.write_batch(batch.cast(plain))


def _parquet_field(field: pa.Field) -> pa.Field:
    if pa.types.is_string_view(field.type):
        return field.with_type(pa.string())
    return field.with_type(pa.binary()) if pa.types.is_binary_view(field.type) else field


_WRITERS: Mapping[str, Callable[[pa.Schema, Batches], Any]] = {
    "csv": _csv,
    "json": _json,
    "markdown": _markdown,
    "parquet": _parquet,
}
