"""Rows as text that looks like a data frame, and as HTML for notebooks.

Soundness: names and values are untrusted; see `rowsieve.types.cell_text`. HTML escapes everything.
"""

from __future__ import annotations

import html as markup
import shutil
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from rowsieve.shown import printable
from rowsieve.types.cell_text import cell
from rowsieve.types.shown_values import python_values
from rowsieve.value_texts import type_words, with_value_texts

MAX_CELL: Final = 36  # characters of one value
_GAP: Final = "  "
_LEFT_OUT: Final = "…"


class Rows:
    """A few rows that print like a data frame; `to_arrow()` and engines get them as Arrow data.

    Every other name is that of the `pyarrow.Table`: `rows["id"]`, `rows.num_rows`,
    `rows.to_pylist()`.
    """

    def __init__(self, rows: pa.Table, title: str = "") -> None:
        self._rows = rows
        self._title = title

    def to_arrow(self) -> pa.Table:
        """Return the rows."""
        return self._rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows as an Arrow C stream."""
        return self._rows.__arrow_c_stream__(requested_schema)

    def __getattr__(self, name: str) -> Any:
        """Return the attribute of the pyarrow Table with this name."""
        if name.startswith("_"):  # protocols of copies and of other libraries ask for these
            raise AttributeError(f"Rows has no attribute {name!r}")
        return getattr(self._rows, name)

    def __getitem__(self, key: int | str | slice) -> Any:
        """Return a column by its name or place, or a range of rows, as a pyarrow Table does."""
        return self._rows[key]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *filter(_is_public, dir(self._rows))})

    def __eq__(self, other: object) -> bool:
        return bool(self._rows == (other.to_arrow() if isinstance(other, Rows) else other))

    __hash__ = None  # type: ignore[assignment] # as a pyarrow Table, which compares its values

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def __repr__(self) -> str:
        return frame_text(self._rows, self._title)

    def _repr_html_(self) -> str:
        return frame_html(self._rows, self._title)


def _is_public(name: str) -> bool:
    return not name.startswith("_")


def frame_text(rows: pa.Table, title: str = "", width: int | None = None) -> str:
    """The rows below their names and types, as wide as the terminal; columns may be left out."""
    limit = shutil.get_terminal_size((100, 24)).columns if width is None else width
    columns = _columns(rows)
    shown, used = 0, 0
    for column in columns:
        used += max(map(_width, column)) + len(_GAP)
        if shown and used > limit + len(_GAP):
            break
        shown += 1
    lines = [printable(title)] if title else []
    padded = [_aligned(column) for column in columns[:shown]]
    lines += [_GAP.join(cells).rstrip() for cells in zip(*padded, strict=True)]
    if not columns:
        lines.append("no columns")
    more = [printable(field.name) for field in list(rows.schema)[shown:]]
    if more:
        lines.append(
            f"{_LEFT_OUT} and {len(more):,} more columns: {_short(', '.join(more), limit)}"
        )
    return "\n".join(lines)


def frame_html(rows: pa.Table, title: str = "") -> str:
    """The same as an HTML table, with all columns."""
    columns = _columns(rows)
    lines = [_html_row(cells, "td") for cells in list(zip(*columns, strict=True))[2:]]
    heads = [
        _html_row([column[place] for column in columns], "th", scope=" scope='col'")
        for place in (0, 1)
    ]
    caption = f"<caption>{markup.escape(printable(title))}</caption>" if title else ""
    head, body = "".join(heads), "".join(lines)
    return f"<table>{caption}<thead>{head}</thead><tbody>{body}</tbody></table>"


def _html_row(cells: Sequence[str], tag: str, scope: str = "") -> str:
    return f"<tr>{''.join(f'<{tag}{scope}>{markup.escape(c)}</{tag}>' for c in cells)}</tr>"


def _columns(rows: pa.Table) -> list[list[str]]:
    schema, batches = with_value_texts(rows.schema, iter(rows.to_batches()))
    texts = pa.Table.from_batches(batches, schema)
    fields = enumerate(rows.schema)
    return [_column(field, texts.column(i)) for i, field in fields]


def _column(field: pa.Field, values: Any) -> list[str]:
    """The name, the type and the cells of a column."""
    plain = python_values(values)
    cells = [_short(cell(value), MAX_CELL) for value in plain]
    return [_short(printable(field.name), MAX_CELL), _short(type_words(field), MAX_CELL), *cells]


def _aligned(column: Sequence[str]) -> Iterator[str]:
    width = max(map(_width, column))
    right = all(map(_looks_like_number, column[2:])) and len(column) > 2
    for each in column:
        pad = " " * (width - _width(each))
        yield pad + each if right else each + pad


def _looks_like_number(text: str) -> bool:
    return text == "NULL" or text[:1].isdigit() or (text[:1] == "-" and text[1:2].isdigit())


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + _LEFT_OUT


def _width(text: str) -> int:
    """The cells of a terminal that the text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))
