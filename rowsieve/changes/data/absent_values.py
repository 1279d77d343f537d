"""Rows of dicts that lack a name: absent is not NULL, and a change must not make it NULL.

An upsert writes whole rows, so a row that lacks a column would replace its stored value by NULL.
An append gives a column that all rows lack its default; a row that lacks what other rows have gets
NULL only where NULL is the default. Values of a struct are dicts too, at any depth. A name that no
row has is not decided here: the data then lacks the column, as Arrow data may.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rowsieve.errors import SchemaMismatch
from rowsieve.types.logical import Field, List, LogicalType, Map, Struct
from rowsieve.types.schema import ColumnNames, Schema
from rowsieve.types.schema_cache import cached_by_schema

DELETES: Final = frozenset({"d", "delete"})
"""The actions of a change stream whose rows need no more than a key."""


@cached_by_schema
def nested_fields(schema: Schema) -> tuple[Field, ...]:
    """The columns of structs, lists and maps."""
    return tuple(each for each in schema.fields if isinstance(each.type, Struct | List | Map))


@dataclass(frozen=True, slots=True)
class RequiredNames:
    """The columns and fields that each row of a change must name if one row does.

    `appends`: only those with a default, as NULL is the value of the others. Rows whose value of
    `op` is in `DELETES` need no names. `keeps`: rows may lack columns, which keep their values, but
    not fields of structs.
    """

    schema: Schema
    operation: str
    appends: bool = False
    op: str | None = None
    keeps: bool = False

    def check_rows(self, rows: Sequence[Mapping[Any, Any]]) -> None:
        """Raise SchemaMismatch for a row that lacks a column, or a field, that other rows have."""
        if self.op is not None:
            rows = [row for row in rows if str(row.get(self.op)).lower() not in DELETES]
        _check_names(rows, self.schema.fields, "", self)

    def check_columns(self, columns: Mapping[str, Any]) -> None:
        """Raise SchemaMismatch for a struct in a list that lacks a field others have."""
        nested, names = nested_fields(self.schema), ColumnNames(self.schema.names)
        for column, values in columns.items():
            for field in nested if _is_list(values) else ():
                if field.name == names.column(str(column)):
                    _check_values(values, field.type, field.name, self)


def _check_names(
    rows: Sequence[Mapping[Any, Any]],
    fields: Sequence[Field],
    path: str,
    required: RequiredNames,
) -> None:
    layouts = {tuple(row): None for row in rows}  # of very many rows there are few
    columns = ColumnNames(field.name for field in fields)
    names = {name: columns.column(str(name)) for layout in layouts for name in layout}
    given = {layout: {names[name] for name in layout} for layout in layouts}
    for field in fields:
        having = [layout for layout in layouts if field.name in given[layout]]
        if not having:
            continue
        may_lack = required.keeps and not path
        may_lack = may_lack or (required.appends and field.default is None)
        if len(having) < len(layouts) and not may_lack:
            row = next(i for i, row in enumerate(rows) if field.name not in given[tuple(row)])
            raise _refusal(required, path, field, row, rows[row])
        if _has_structs(field.type):
            theirs = [each for each, column in names.items() if column == field.name]
            values = [row[each] for row in rows for each in theirs if each in row]
            _check_values(values, field.type, f"{path}{field.name}", required)


def _check_values(
    values: Iterable[Any], type_: LogicalType, path: str, required: RequiredNames
) -> None:
    match type_:
        case Struct(fields=fields):
            rows = [value for value in values if isinstance(value, Mapping)]
            _check_names(rows, fields, f"{path}.", required)
        case List(element=element) if _has_structs(element.type):
            items = [item for value in values if _is_list(value) for item in value]
            inner = f"{path}.{element.name}"
            _check_values(items, element.type, inner, required)
        case Map(value=item) if _has_structs(item.type):
            pairs = [_map_items(value) for value in values if value is not None]
            items = [item for each in pairs for item in each]
            _check_values(items, item.type, f"{path}.{item.name}", required)
        case _:
            pass


def _has_structs(type_: LogicalType) -> bool:
    match type_:
        case Struct():
            return True
        case List(element=element):
            return _has_structs(element.type)
        case Map(value=value):
            return _has_structs(value.type)
        case _:
            return False


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _map_items(value: Any) -> list[Any]:
    """The values of a map: a dict, or pairs; none of anything else, which is refused later."""
    if isinstance(value, Mapping):
        return list(value.values())
    pairs = value if _is_list(value) else ()
    return [pair[1] for pair in pairs if _is_list(pair) and len(pair) == 2]


def _refusal(
    required: RequiredNames, path: str, field: Field, row: int, names: Iterable[Any]
) -> SchemaMismatch:
    lacks = (
        f"a struct of the data lacks the field {path + field.name!r}"
        if path
        else f"row {row}, counted from 0, lacks the column {field.name!r}"
    )
    return SchemaMismatch(
        f"{required.operation}: {lacks}, which others have, and absent is not NULL; it has "
        f"({', '.join(map(repr, names))}), and nothing was written. Name it in each, as NULL "
        "(None) where it has no value"
    )
