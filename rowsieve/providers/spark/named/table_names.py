"""Finds the table of ours that a name in a statement of Spark's SQL means.

| name | table |
|---|---|
| `db.t` | of the catalog that the statement is given |
| `lake.db.t` | of that catalog, under any first name that Spark has no catalog for |
| ``rowsieve.`/path` `` | at a path or URI |
| ``db.`t@audit` `` | the branch or tag of this name |
| one of these, and `.snapshots`, `.files` and others | what is known of the table |
| ``db.`t$snapshots` `` | the same, as Paimon writes it |
| `information_schema.tables`, `lake.information_schema.tables` | of that catalog |

Soundness: a name of one part is Spark's, so temporary views and common table expressions are never
hidden. A name that Spark knows, too, is refused: neither of both tables is taken silently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException

from rowsieve.bridges.sql.spark.settings import CASE_SENSITIVE
from rowsieve.errors import InvalidInput, TableNotFound
from rowsieve.metadata_tables.information_schema import INFORMATION_SCHEMA, VIEWS, view_of
from rowsieve.metadata_tables.table_kinds import METADATA_TABLES, split_metadata_name
from rowsieve.opening import open_table
from rowsieve.providers.spark.reads.native_columns import quoted

if TYPE_CHECKING:
    import pyarrow as pa

    from rowsieve.table import Table

_BY_PATH: Final = "rowsieve"
_SHOWN: Final = 8  # names in a message
_OF_SPARK: Final = frozenset({"spark_catalog", "system", "global_temp"})


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table of ours, at its newest version, and the name by which a statement means it.

    `view` is one of `METADATA_TABLES`, or empty for the rows of the table. `home`: the catalog of
    ours that has the table, and its name there; None for one that is named by its path.
    """

    table: Table
    parts: tuple[str, ...]
    view: str = ""
    home: tuple[Any, str] | None = None

    @property
    def name(self) -> str:
        """The name, quoted."""
        return dotted(self.parts)


def dotted(parts: Sequence[str]) -> str:
    """The parts as one qualified name in Spark's SQL."""
    return ".".join(map(quoted, parts))


@dataclass(slots=True)
class Names:
    """The names of one statement: all uses of a table, by any of its names, see one version.

    `catalogs` is a Rowsieve catalog, several by their first names, or None.
    """

    session: Any
    catalogs: Any
    _found: dict[tuple[str, ...], NamedTable | None] = field(default_factory=dict)
    _opened: dict[str, Table] = field(default_factory=dict)  # by the identity of the table
    _openers: dict[int, Any] = field(default_factory=dict)  # by the identity of the catalog

    def find(self, parts: Sequence[str]) -> NamedTable | None:
        """The table that a name means; None if it is Spark's. InvalidInput if it could be both."""
        key = tuple(parts)
        if key not in self._found:
            self._found[key] = self._find(key)
        return self._found[key]

    def required(self, parts: Sequence[str]) -> NamedTable | None:
        """The table that a name means; None if it may be Spark's. TableNotFound if it cannot."""
        named = self.find(parts)
        if named is None and (missing := self._missing(tuple(parts))) is not None:
            raise missing
        return named

    def _missing(self, parts: tuple[str, ...]) -> TableNotFound | None:
        """The error of a name that no table has, if only a table of ours could have it."""
        if self.catalogs is None or len(parts) < 2 or parts[0].lower() in (_BY_PATH, *_OF_SPARK):
            return None
        spaces = [
            (catalog, space)
            for catalog, namespace, _ in self._places(parts)
            for space in catalog.namespaces()
            if self._same(space, namespace)
        ]
        if len(parts) == 2 and not (spaces and not self._is_database_of_spark(parts[0])):
            return None
        if len(parts) > 2 and self._is_catalog_of_spark(parts[0]):
            return None
        begin = f"sql: there is no table {dotted(parts)}; nothing was changed. "
        if len(parts) > 2 and self.find(parts[:-1]) is not None:
            return TableNotFound(
                f"{begin}What is known of {dotted(parts[:-1])} is in its metadata tables "
                f"{', '.join(METADATA_TABLES)}"
            )
        if isinstance(self.catalogs, Mapping) and len(parts) == 3 and not list(self._places(parts)):
            known = ", ".join(self.catalogs)
            return TableNotFound(
                f"{begin}The Rowsieve catalogs are {known}, and Spark has no other"
            )
        tables = [name for catalog, space in spaces for name in catalog.tables(space)]
        if tables:
            return TableNotFound(f"{begin}The namespace has {_some(tables)}")
        others = [name for catalog in _all(self.catalogs) for name in catalog.namespaces()]
        return TableNotFound(f"{begin}Tables are in the namespaces {_some(others) or '(none yet)'}")

    def _is_database_of_spark(self, name: str) -> bool:
        return bool(self.session.catalog.databaseExists(quoted(name)))

    def spaces(self, parts: Sequence[str]) -> list[tuple[Any, str]]:
        """The catalogs of ours and their namespace that `lake.db` or `db` means; none for others.

        A namespace that the only catalog of the name does not have is in the list, too.
        """
        if len(parts) not in (1, 2):
            return []
        catalogs = [catalog for catalog, *_ in self._places((*parts, ""))]
        known = [
            (catalog, space)
            for catalog in catalogs
            for space in catalog.namespaces()
            if self._same(space, parts[-1])
        ]
        if len(parts) == 1 and (self._is_database_of_spark(parts[0]) or not known):
            return []
        return known or [(catalog, parts[-1]) for catalog in catalogs]

    def catalog(self, name: str) -> Any | None:
        """The catalog of ours of this name; None for one of Spark's, and a namespace."""
        if self.catalogs is None or self._is_catalog_of_spark(name):
            return None
        if not isinstance(self.catalogs, Mapping):
            return (
                None if self.spaces((name,)) or self._is_database_of_spark(name) else self.catalogs
            )
        return next((c for first, c in self.catalogs.items() if self._same(first, name)), None)

    def information(self, parts: Sequence[str]) -> pa.Table | None:
        """The rows of a view of the information schema of a Rowsieve catalog; None for others."""
        if len(parts) not in (2, 3) or parts[-2].lower() != INFORMATION_SCHEMA:
            return None
        catalogs = [catalog for catalog, *_ in self._places(parts)]
        if not catalogs or parts[-1].lower() not in VIEWS:
            return None
        if len(catalogs) > 1:
            raise _ambiguous(parts, "a view of several catalogs")
        if self.is_of_spark(parts):
            raise _ambiguous(parts, "a view of a Rowsieve catalog and a table of Spark's")
        name = parts[0] if len(parts) == 3 else _BY_PATH
        return view_of(catalogs[0], name, parts[-1])

    def place(self, parts: Sequence[str]) -> tuple[Any, str] | None:
        """The catalog of ours in which a statement creates a table, and its name there.

        None for a name of Spark's, and for one of two parts whose namespace several catalogs may
        get. A namespace that neither Spark nor the only catalog has is begun there.
        """
        places, free = [], []
        for catalog, namespace, name in self._places(parts):
            spaces = [each for each in catalog.namespaces() if self._same(each, namespace)]
            if len(parts) == 3 or spaces:
                places.append((catalog, f"{spaces[0] if spaces else namespace}.{name}"))
            elif parts[0].lower() not in (_BY_PATH, *_OF_SPARK):
                free.append((catalog, f"{namespace}.{name}"))
        if len(parts) == 2 and self._is_database_of_spark(parts[0]):
            if places:
                raise _ambiguous(parts, "a namespace of the catalog and a database of Spark's")
            return None
        if not places and len(free) == 1:
            return free[0]
        if len(places) > 1:
            raise _ambiguous(parts, "a namespace of several catalogs")
        return places[0] if places else None

    def at_path(self, parts: Sequence[str]) -> str | None:
        """The path of a name such as ``rowsieve.`/path` ``; None for another name."""
        is_path = len(parts) == 2 and parts[0].lower() == _BY_PATH and "/" in parts[1]
        return parts[1] if is_path else None

    def _find(self, parts: tuple[str, ...]) -> NamedTable | None:
        if len(parts) < 2 or parts[0].lower() in _OF_SPARK:
            return None
        candidates = list(self._candidates(parts))
        if not candidates:
            return None
        if len(candidates) > 1:
            raise _ambiguous(parts, "the name of several Rowsieve tables")
        if self.is_of_spark(parts):
            raise _ambiguous(parts, "a Rowsieve table and one of Spark's")
        return candidates[0]

    def _candidates(self, parts: tuple[str, ...]) -> Iterator[NamedTable]:
        for table, home in self._tables(parts):
            yield NamedTable(table, parts, "", home)
        for base, view in _metadata_names(parts):
            for table, home in self._tables(base):
                yield NamedTable(table, parts, view, home)

    def _tables(self, parts: tuple[str, ...]) -> Iterator[tuple[Table, tuple[Any, str] | None]]:
        if (path := self.at_path(parts)) is not None:
            yield self._once(open_table(path)), None
        for catalog, namespace, last in self._places(parts):
            name, at, ref = last.partition("@")
            for space in catalog.namespaces():
                if self._same(space, namespace):
                    for each in catalog.tables(space):
                        if self._same(each.partition(".")[2], name):
                            table = self._opener_of(catalog)(each, ref=ref if at else None)
                            yield self._once(table), (catalog, f"{each}{at}{ref}")

    def _opener_of(self, catalog: Any) -> Any:
        """What opens the tables of a catalog: those that share a log in one version of it."""
        if id(catalog) not in self._openers:
            self._openers[id(catalog)] = catalog.opener()
        return self._openers[id(catalog)]

    def _once(self, table: Table) -> Table:
        """The table as the statement opened it first, maybe by another name."""
        return self._opened.setdefault(table.handle.pinned.table.uuid, table)

    def _places(self, parts: Sequence[str]) -> Iterator[tuple[Any, str, str]]:
        """The catalogs that may have a table of this name, with its namespace and name there."""
        if self.catalogs is None or len(parts) not in (2, 3):
            return
        namespace, name = parts[-2:]
        if len(parts) == 3 and self._is_catalog_of_spark(parts[0]):
            if isinstance(self.catalogs, Mapping) and parts[0] in self.catalogs:
                raise _ambiguous(parts, "in a Rowsieve catalog and in one of Spark's")
            return
        if not isinstance(self.catalogs, Mapping):
            yield self.catalogs, namespace, name
            return
        for first, catalog in self.catalogs.items():
            if len(parts) == 2 or self._same(first, parts[0]):
                yield catalog, namespace, name

    def _is_catalog_of_spark(self, name: str) -> bool:
        if name.lower() in _OF_SPARK:
            return True
        return self.session.conf.get(f"spark.sql.catalog.{name}", None) is not None

    def is_of_spark(self, parts: Sequence[str]) -> bool:
        """Return whether Spark has a table of this name."""
        if len(parts) > 2 and not self._is_catalog_of_spark(parts[0]):
            return False
        try:
            return bool(self.session.catalog.tableExists(dotted(parts)))
        except PySparkException:  # a name that no table of its catalog can have
            return False

    def is_own_of_spark(self, parts: Sequence[str]) -> bool:
        """Return whether it is a table, and no temporary view, of Spark's own catalog."""
        if not parts or (len(parts) > 2 and parts[0].lower() != "spark_catalog"):
            return False
        if not self.is_of_spark(parts):
            return False
        table = self.session.catalog.getTable(dotted(parts))
        return not table.isTemporary and table.catalog == "spark_catalog"

    def _same(self, one: str, other: str) -> bool:
        if str(self.session.conf.get(CASE_SENSITIVE, "false")).lower() == "true":
            return one == other
        return one.lower() == other.lower()


def _metadata_names(parts: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The name of the table, and the metadata table of it, that a name may mean."""
    if len(parts) > 2 and (view := parts[-1].lower()) in METADATA_TABLES:
        yield parts[:-1], view
    if (split := split_metadata_name(parts[-1])) is not None:
        yield (*parts[:-1], split[0]), split[1]


def _all(catalogs: Any) -> list[Any]:
    return list(catalogs.values()) if isinstance(catalogs, Mapping) else [catalogs]


def _some(names: Sequence[str]) -> str:
    """The first names of a list, for a message."""
    more = f" and {len(names) - _SHOWN:,} others" if len(names) > _SHOWN else ""
    return ", ".join(sorted(names)[:_SHOWN]) + more


def _ambiguous(parts: Sequence[str], both: str) -> InvalidInput:
    return InvalidInput(
        f"sql: {dotted(parts)} is {both}; nothing was run. Name one of them: spark_catalog.db.t is "
        "Spark's, catalog.db.t is of a Rowsieve catalog, and rowsieve.`/path` is at a path"
    )
