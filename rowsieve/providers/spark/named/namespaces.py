"""Runs statements on the namespaces of a catalog of ours: SHOW TABLES, CREATE SCHEMA and others.

A namespace is ours if its name has the catalog's in front, or if a catalog of ours has it and Spark
no database of this name.
"""

from __future__ import annotations

import fnmatch
from typing import Any, Final

import pyarrow as pa

from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.providers.spark.named.definitions import kind_of
from rowsieve.providers.spark.named.table_names import Names, dotted
from rowsieve.providers.spark.plans import items

_SHOW_SPACES: Final = "ShowNamespacesCommand"
_KINDS: Final = frozenset({"ShowTables", _SHOW_SPACES, "CreateNamespace", "DropNamespace"})


def run_on_namespace(names: Names, kind: str, plan: Any) -> pa.Table | None:
    """Run a statement; return its rows, without columns if it has none. None for one of Spark's."""
    if kind not in _KINDS or (parts := _parts_of(plan)) is None:
        return None
    if kind == _SHOW_SPACES:
        if len(parts) != 1 or (catalog := names.catalog(parts[0])) is None:
            return None
        spaces = _like(catalog.namespaces(), plan)
        return pa.table({"namespace": pa.array(spaces, pa.string())})
    places = names.spaces(parts)
    if not places:
        return None
    if len(places) > 1:
        raise InvalidInput(
            f"sql: {dotted(parts)} is a namespace of several catalogs; nothing was run. Name one "
            "of them: catalog.namespace"
        )
    catalog, space = places[0]
    match kind:
        case "ShowTables":
            tables = [name.partition(".")[2] for name in catalog.tables(space)]
            shown = _like(tables, plan)
            columns = {"namespace": pa.array([space] * len(shown), pa.string())}
            columns["tableName"] = pa.array(shown, pa.string())
            return pa.table({**columns, "isTemporary": pa.array([False] * len(shown), pa.bool_())})
        case "CreateNamespace":
            if plan.properties().size():
                raise UnsupportedOperation(
                    f"sql: CREATE SCHEMA {dotted(parts)} takes no COMMENT, LOCATION and properties;"
                    " nothing was created"
                )
            catalog.create_namespace(space, if_exists="ignore" if plan.ifNotExists() else "error")
        case _:
            if_absent = "ignore" if plan.ifExists() else "error"
            catalog.drop_namespace(space, cascade=bool(plan.cascade()), if_absent=if_absent)
    return pa.table({})


def _parts_of(plan: Any) -> list[str] | None:
    """The name of the namespace of a statement; None if it has none."""
    for child in items(plan.children()):
        match kind_of(child):
            case "UnresolvedNamespace":
                return [str(part) for part in items(child.multipartIdentifier())]
            case "UnresolvedIdentifier":
                return [str(part) for part in items(child.nameParts())]
    return None


def _like(names: list[str], plan: Any) -> list[str]:
    """The names that match the pattern of a SHOW: `*` is any text, `|` separates patterns."""
    pattern = plan.pattern()
    if not pattern.isDefined():
        return names
    patterns = str(pattern.get()).lower().split("|")
    return [
        name
        for name in names
        if any(fnmatch.fnmatchcase(name.lower(), each.strip()) for each in patterns)
    ]
