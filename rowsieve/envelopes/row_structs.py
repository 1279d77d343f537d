"""The types of a table's rows in JSON: a struct with a slot for each column.

msgspec decodes into them, in C. A column that a row lacks stays `UNSET`, which is not NULL; a name
that the table lacks is an error. Numbers keep their digits: integers are of any size, and one with
a point or an exponent is a `NumberText` where the column is no float of 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import UNSET, Raw, UnsetType

from rowsieve.errors import UnsupportedOperation
from rowsieve.types import logical
from rowsieve.types.logical import Field

NO_TEXT: Final = Raw(b"")
_FLOATS: Final = float | int | str | None | UnsetType


class NumberText(str):
    """A number with a point or an exponent, as it is written in JSON."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class RowType:
    """The struct of a table's rows; `attributes` has its slot of each column, by name."""

    struct: Any
    attributes: Mapping[str, str]
    decoded: bool = False  # from dicts, not from text
    sources: frozenset[str] | None = None  # the only tables of the source whose rows these are
    documents: frozenset[str] = frozenset()  # columns of JSON, which stay text

    def values(self, rows: Iterable[Any], column: str) -> list[Any]:
        """The value of one column in each row, `UNSET` where a row lacks it."""
        values = list(map(attrgetter(self.attributes[column]), rows))
        if column in self.documents:
            return [UNSET if each is not None and not bytes(each) else each for each in values]
        return values


def integers(values: Sequence[int | None]) -> pa.Array:
    """Integers of Python as int64; OverflowError for one that is too large."""
    try:
        return pa.array(np.fromiter(values, np.int64, len(values)))  # half the time of pa.array
    except TypeError:  # NumPy cannot convert None
        return pa.array(values, pa.int64())


def row_type(
    fields: Iterable[Field],
    names: Mapping[str, str],
    *,
    decoded: bool,
    extra: Iterable[str] = (),
    ignored: Iterable[str] = (),
) -> RowType:
    """Return the struct of rows; `names` has what the events call a column, where it differs.

    Without fields, the struct takes any row and has nothing of it.

    `decoded`: rows come as dicts of values, not as text. `extra` are names of the envelope beside
    the columns, and `ignored` names that have no meaning.
    """
    fields = tuple(fields)
    slots: list[Any] = []
    attributes: dict[str, str] = {}
    for field in fields:
        _check_name(field.name)
        slot = attributes[field.name] = f"c{len(slots)}"
        slots.append(_slot(slot, names.get(field.name, field.name), _json_type(field, decoded)))
    taken = {names.get(name, name): slot for name, slot in attributes.items()}
    for name in dict.fromkeys([*extra, *ignored]):
        if name in taken:
            attributes.setdefault(name, taken[name])
            continue
        slot = attributes[name] = f"e{len(slots)}"
        slots.append(_slot(slot, name, (Any, UNSET)))
    struct = msgspec.defstruct("Row", slots, forbid_unknown_fields=bool(fields), gc=False)
    documents = frozenset(
        each.name for each in fields if isinstance(each.type, logical.Json) and not decoded
    )
    return RowType(struct, attributes, decoded, documents=documents)


def _slot(slot: str, name: str, kind: tuple[Any, Any]) -> tuple[str, Any, Any]:
    type_, default = kind
    return slot, type_, msgspec.field(default=default, name=name)


def _json_type(field: Field, decoded: bool) -> tuple[Any, Any]:
    match field.type:
        case logical.Float(bits=64) if not decoded:
            return _FLOATS, UNSET
        case logical.Json() if not decoded:
            return Raw, NO_TEXT
        case _:
            return Any, UNSET


def _check_name(name: str) -> None:
    if any(character in '"\\' or ord(character) < 32 for character in name):
        raise UnsupportedOperation(
            f"apply_events: the column {name!r} has a quote, a backslash or a control character in "
            "its name, which events of JSON are not read for; rename the column, or make Arrow "
            "rows of the events and use apply_changes"
        )
