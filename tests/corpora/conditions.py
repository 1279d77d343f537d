"""Conditions over the values of a table's own columns, in DuckDB's text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

MAX_COLUMNS = 12
_FORMS = (
    "{c} = {v}",
    "{c} <> {v}",
    "{c} < {v}",
    "{c} >= {v}",
    "{c} IN ({v}, {w})",
    "NOT {c} > {w}",
)


def conditions(rows: pa.Table) -> Iterator[str]:
    """Conditions by the least, the greatest and a middle value of each of the first columns."""
    for name, column in list(zip(rows.column_names, rows.columns, strict=True))[:MAX_COLUMNS]:
        quoted = '"' + name.replace('"', '""') + '"'
        yield f"{quoted} IS NULL"
        yield f"{quoted} IS NOT NULL"
        if pa.types.is_nested(column.type):
            continue
        texts = [text for value in _samples(column) if (text := _literal(value)) is not None]
        for value, other in zip(texts, texts[1:] + texts[:1], strict=True):
            yield from (form.format(c=quoted, v=value, w=other) for form in _FORMS)


def _samples(column: pa.ChunkedArray) -> list[Any]:
    values = column.drop_null()
    if not len(values):
        return []
    try:
        values = values.take(pc.sort_indices(values))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a type without an order there
        return []
    places = dict.fromkeys((0, len(values) // 2, len(values) - 1))
    try:
        return list(dict.fromkeys(values[place].as_py() for place in places))
    except OverflowError:  # times that Python's types cannot hold
        return []


def _literal(value: Any) -> str | None:
    """The value as DuckDB writes it; None for a type that no constant is written for."""
    return _LITERALS[type(value)](value) if type(value) in _LITERALS else None


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _of_float(value: float) -> str:
    return f"{str(value)!r}::DOUBLE" if math.isfinite(value) else f"'{value}'::DOUBLE"


_LITERALS: Final[Mapping[type, Callable[[Any], str]]] = MappingProxyType(
    {
        bool: lambda value: str(value).upper(),
        int: str,
        float: _of_float,
        Decimal: lambda value: format(value, "f"),
        str: _quoted,
        date: lambda value: f"DATE '{value.isoformat()}'",
        datetime: lambda value: (
            f"{'TIMESTAMP' if value.tzinfo is None else 'TIMESTAMPTZ'} '{value.isoformat(' ')}'"
        ),
    }
)
