"""A `SessionContext` of DataFusion that pins and prunes our tables for each statement.

For each statement, the context refreshes the tables that the text names, pins their versions, and
skips the parts that the statement's conditions exclude. Our dataset reads the rows: DataFusion's
own Parquet reader takes a missing file for no rows and loses rows of ORDER BY with LIMIT.

Soundness: all scans of a statement read one version of a table (invariant 23). A registered name
stands for a dataset of one version, so an engine object that keeps it never changes its version.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import datafusion
import pyarrow as pa
from datafusion.catalog import Table as CatalogTable

from rowsieve.errors import InvalidInput, NotFound, UnsupportedOperation
from rowsieve.metrics import Reporter
from rowsieve.objects import ObjectStore
from rowsieve.planner.cache import PLANS
from rowsieve.planner.splits import split_bytes_for_cores
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.datafusion.catalog_tables import CatalogTables
from rowsieve.providers.datafusion.change_statements import changed_name, takes_name
from rowsieve.providers.datafusion.changes_function import NAME as CHANGES
from rowsieve.providers.datafusion.changes_function import ChangesFunction
from rowsieve.providers.datafusion.open_reads import OPEN_READS
from rowsieve.providers.datafusion.registered_table import (
    SMALLEST_SPLIT_BYTES,
    ReadOptions,
    TableDataset,
)
from rowsieve.providers.datafusion.run_change import changed_rows
from rowsieve.providers.datafusion.scan_conditions import conditions
from rowsieve.providers.datafusion.statement_queries import Changed
from rowsieve.providers.native_files.planned_parts import read_parts
from rowsieve.storage.snapshot import Snapshot
from rowsieve.table import Table
from rowsieve.types.encodings import zoned_schema

_NAME_PART: Final = re.compile(r'"(?:[^"]|"")*"|[^."]+')
_COMMENT: Final = re.compile(r"--[^\n]*(?:\n|$)|/\*.*?\*/", re.DOTALL)
_EXPLAIN: Final = re.compile(r"\s*explain\b", re.IGNORECASE)
_QUERY: Final = re.compile(r"[\s(]*(explain|select|with|values)\b", re.IGNORECASE)
_KEPT: Final = re.compile(
    r"\s*(prepare|create\s+(or\s+replace\s+)?(temp(orary)?\s+)?view)\b", re.IGNORECASE
)
_SETS: Final = re.compile(r"\s*(re)?set\b", re.IGNORECASE)
_STUB: Final = "/nonexistent/rowsieve.parquet"
_INFORMATION: Final = "datafusion.catalog.information_schema"
# Settings that give conditions another meaning: unless they have these values, none is used.
_USUAL: Final = {
    "datafusion.execution.enable_ansi_mode": "false",
    "datafusion.execution.time_zone": None,
    "datafusion.sql_parser.dialect": "generic",
    "datafusion.sql_parser.parse_float_as_decimal": "false",
}


class PinnedTable:
    """One version of a table for `TableDataset`, whatever the table reads now."""

    def __init__(self, table: Table, snapshot: Snapshot) -> None:
        self._table = table
        self._snapshot = snapshot
        self.uri = table.uri
        self.store: ObjectStore = table.store

    @property
    def reporter(self) -> Reporter | None:
        """The reporter of the table."""
        return self._table.reporter

    @property
    def engine_error(self) -> Exception | None:
        """The error behind one of DataFusion's."""
        return self._table.engine_error

    @engine_error.setter
    def engine_error(self, error: Exception | None) -> None:
        self._table.engine_error = error

    def snapshot_for_engines(self) -> Snapshot:
        """The version."""
        return self._snapshot


@dataclass(slots=True)
class OwnTable:
    """A table of ours, its name as it was registered, and the version that the name stands for."""

    given_name: str
    table: Table
    snapshot: Snapshot
    is_fixed: bool = False

    @property
    def last_name(self) -> str:
        """The last part of the name, as DataFusion knows it."""
        return name_parts(self.given_name)[-1]

    def provider(self, part_ids: frozenset[str] | None = None) -> Any:
        """The object to register; it has the rows of these parts alone if they are given."""
        pinned: Any = PinnedTable(self.table, self.snapshot)
        return CatalogTable(TableDataset(pinned, ReadOptions(), part_ids))

    def parts(self, condition: Predicate) -> frozenset[str]:
        """The parts that may have rows that meet the condition."""
        plan = PLANS.plan(
            self.snapshot,
            self.table.uri,
            predicate=condition,
            semantics=Semantics.DATAFUSION,
            now_us=time.time_ns() // 1000,
            split_bytes=split_bytes_for_cores(self.snapshot.parts, least=SMALLEST_SPLIT_BYTES),
            pruning=True,
        )[0]
        return frozenset(part.part_id for part in read_parts(plan))


class SessionContext(datafusion.SessionContext):
    """DataFusion's `SessionContext`; each statement reads the newest versions of our tables.

    `pruning=False` skips no parts by conditions that DataFusion does not push to tables.
    Statements are planned one at a time.
    """

    def __init__(
        self,
        config: datafusion.SessionConfig | None = None,
        runtime: datafusion.RuntimeEnvBuilder | None = None,
        *,
        pruning: bool = True,
    ) -> None:
        super().__init__(config, runtime)
        self._own_tables: dict[str, OwnTable] = {}
        self._catalogs: dict[str, CatalogTables] = {}
        self._lock = threading.RLock()
        self._pruning = pruning
        self._settings = self._read_settings()
        self._planned: Mapping[str, OwnTable] = {}
        self._changes = ChangesFunction(self._version_of)
        self.register_udtf(datafusion.udtf(self._changes, CHANGES))

    @property
    def has_usual_settings(self) -> bool:
        """Whether conditions mean the same under the session's settings as in a new session."""
        return all(self._settings.get(name, name) == value for name, value in _USUAL.items())

    def register_table(self, name: str, table: Any) -> None:
        """Register a table; statements refresh a Rowsieve table that has no fixed version."""
        with self._lock:
            if not isinstance(table, Table):
                super().register_table(name, table)
                self._own_tables.pop(_plain(name), None)
                return
            OPEN_READS.wait_at_exit()
            fixed = bool(table._read_only)
            own = OwnTable(name, table, table.snapshot_for_engines(), fixed)
            super().register_table(name, own.provider())
            self._own_tables[_plain(name)] = own

    def deregister_table(self, name: str) -> None:
        """Remove a table from the session."""
        with self._lock:
            super().deregister_table(name)
            self._own_tables.pop(_plain(name), None)

    def register_catalog_provider(self, name: str, provider: Any) -> None:
        """Register a catalog; statements read the newest versions of our tables in it."""
        with self._lock:
            super().register_catalog_provider(name, provider)
            self._catalogs.pop(name, None)
            if isinstance(provider, CatalogTables):
                self._catalogs[name] = provider

    def own_catalogs(self) -> tuple[CatalogTables, ...]:
        """The Rowsieve catalogs of the session."""
        return tuple(self._catalogs.values())

    def sql(
        self,
        query: str,
        options: Any = None,
        param_values: dict[str, Any] | None = None,
        **named_params: Any,
    ) -> datafusion.DataFrame:
        """Plan a statement over the newest versions of our tables.

        A statement that changes one of them runs at once, once; its result is the number of rows.
        UnsupportedOperation for a view or a prepared statement over them, which would stay at the
        version of its creation.
        """
        self._changes.refusals.last = None
        try:
            return self._run(query, options, param_values, named_params)
        except Exception as error:
            if (refusal := self._changes.refusals.last) is not None and refusal is not error:
                raise refusal from error
            raise

    def _run(
        self,
        query: str,
        options: Any,
        param_values: dict[str, Any] | None,
        named_params: dict[str, Any],
    ) -> datafusion.DataFrame:
        """Run a statement that changes a table, or plan another one."""
        if (name := changed_name(query)) is not None:
            count = changed_rows(self, name, query, options, param_values, named_params)
            if count is not None:
                return super().sql(f"SELECT arrow_cast({count}, 'UInt64') AS count")

        def plan() -> datafusion.DataFrame:
            return super(SessionContext, self).sql(query, options, param_values, **named_params)

        texts = [str(v) for v in named_params.values() if not isinstance(v, datafusion.DataFrame)]
        statement = _COMMENT.sub(" ", query)
        with self._lock:
            named = self._refreshed(" ".join([query, *texts]))
            kept = [*named, *self._catalogs_in(query)]
            if kept and _KEPT.match(statement):
                raise UnsupportedOperation(
                    f"a view or prepared statement over {', '.join(sorted(kept))} would stay at "
                    "the version of today, while other statements read newer ones: run the query "
                    "itself, or give its result to register_view to keep its version"
                )
            if not named or not _QUERY.match(statement) or not self._skips():
                frame = plan()
                if _SETS.match(statement):
                    self._settings = self._read_settings()
                if name is not None and takes_name(query):
                    self._forget(name)  # the table stays where it is
                return frame
            chosen = self._chosen(named, plan)
            with self._swapped({name: named[name].provider(chosen[name]) for name in chosen}):
                frame = plan()
                return self._explained(frame, named, chosen) if _EXPLAIN.match(query) else frame

    def _catalogs_in(self, text: str) -> list[str]:
        """The names of our catalogs that the text may name."""
        default = self.full_name(("",))[0]
        plain = text.casefold().replace('""', '"')
        return [name for name in self._catalogs if name.casefold() in plain or name == default]

    def table(self, name: str) -> datafusion.DataFrame:
        """A DataFrame of a table; a Rowsieve table is refreshed first."""
        with self._lock:
            self._refreshed(name)
            return super().table(name)

    def _refreshed(self, text: str) -> dict[str, OwnTable]:
        """Refresh our tables that the text may name; return them by their registered names."""
        for catalog in self._catalogs.values():
            catalog.refresh()
        found = {}
        plain = text.casefold().replace('""', '"')
        for own in self._own_tables.values():
            last = _NAME_PART.findall(own.given_name)[-1].strip('"').replace('""', '"')
            if last.casefold() not in plain:
                continue
            own.table.refresh()
            snapshot = own.table.snapshot_for_engines()
            if snapshot.version != own.snapshot.version:
                own.snapshot = snapshot
                self._replace(own.given_name, own.provider())
            found[own.given_name] = own
        return found

    def _chosen(self, named: Mapping[str, OwnTable], plan: Any) -> dict[str, frozenset[str]]:
        """The parts to read of each table of which some can be skipped."""
        many = {n: own for n, own in named.items() if len(own.snapshot.parts.part_ids) > 1}
        stubs = {f"rowsieve_table_{i}": name for i, name in enumerate(many)}
        schemas = {stub: many[name].snapshot.schema for stub, name in stubs.items()}
        try:
            views = {name: self._stub(stub, schemas[stub]) for stub, name in stubs.items()}
            with self._swapped(views):
                found = conditions(plan().logical_plan(), schemas) if many else {}
        except Exception:  # the statement is planned again without advice, which reports errors
            return {}
        return {
            stubs[stub]: many[stubs[stub]].parts(condition)
            for stub, condition in found.items()
            if condition != TRUE
        }

    def _stub(self, name: str, schema: Any) -> Any:
        """A scan of no file, into which DataFusion pushes all conditions."""
        super().register_parquet(name, _STUB, schema=zoned_schema(schema))
        try:
            return super().table(name).into_view()
        finally:
            super().deregister_table(name)

    @contextmanager
    def _swapped(self, providers: Mapping[str, Any]) -> Iterator[None]:
        """Let names stand for these objects; afterwards, they stand for our tables again."""
        by_given = {own.given_name: own for own in self._own_tables.values()}
        try:
            for name, provider in providers.items():
                self._replace(name, provider)
            yield
        finally:
            for name in providers:
                self._replace(name, by_given[name].provider())

    def _replace(self, name: str, provider: Any) -> None:
        super().deregister_table(name)
        super().register_table(name, provider)

    def _explained(
        self,
        frame: datafusion.DataFrame,
        named: Mapping[str, OwnTable],
        chosen: Mapping[str, frozenset[str]],
    ) -> datafusion.DataFrame:
        """The result of EXPLAIN with a row that says which parts conditions leave."""
        plans = frame.to_arrow_table()
        lines = []
        for name, own in named.items():
            total = len(own.parts(TRUE))
            left = len(chosen[name]) if name in chosen else total
            version = own.snapshot.version
            lines.append(f"{name}: version {version}, conditions leave {left:,} of {total:,} parts")
        row = {"plan_type": ["rowsieve"], "plan": ["\n".join(lines)]}
        if plans.schema.names == list(row):
            plans = pa.concat_tables([plans, pa.table(row).cast(plans.schema)])
        return self.from_arrow(plans)

    def _skips(self) -> bool:
        """Whether conditions skip parts."""
        return self._pruning and self.has_usual_settings

    def _read_settings(self) -> dict[str, str | None]:
        show = super().sql
        try:
            found = show("SHOW ALL").to_pylist()
        except Exception:  # the settings are not shown unless another setting allows it
            show(f"SET {_INFORMATION} = true").collect()
            try:
                found = show("SHOW ALL").to_pylist()
            finally:
                show(f"SET {_INFORMATION} = false").collect()
        return {row["name"]: row["value"] for row in found}

    # For statements that change tables

    def pinned(self, table: Table, snapshot: Snapshot, near: Predicate) -> Any:
        """The object to register for one version of a table."""
        own = OwnTable("", table, snapshot)
        return own.provider(None if near == TRUE else own.parts(near))

    def planning(self) -> threading.RLock:
        """The lock that planning holds."""
        return self._lock

    def setting(self, name: str) -> str | None:
        """The value of a setting."""
        return self._settings.get(name)

    def changed_table(self, name: tuple[str, ...]) -> Changed | None:
        """The Rowsieve table with this name; None if it is another table or there is none."""
        full = self.full_name(name)
        for own in self._own_tables.values():
            if self.full_name(name_parts(own.given_name)) == full:
                return Changed(own.table, own.last_name)
        if (catalog := self._catalogs.get(full[0])) is None:
            return None
        with suppress(NotFound, InvalidInput):
            return Changed(
                catalog.catalog.open_table(".".join(full[1:])),
                full[-1],
                catalog,
                ".".join(full[1:]),
            )
        return None

    def _version_of(self, name: str) -> tuple[Table, Snapshot] | None:
        """The table with this name, and the version of it that the statement reads."""
        full = self.full_name(name_parts(name))
        for own in (*self._planned.values(), *self._own_tables.values()):
            if self.full_name(name_parts(own.given_name)) == full:
                return own.table, own.snapshot
        if (changed := self.changed_table(full)) is None:
            return None
        return changed.table, changed.table.snapshot_for_engines()

    def full_name(self, name: tuple[str, ...]) -> tuple[str, ...]:
        """The name with catalog and schema."""
        defaults = (
            self.setting("datafusion.catalog.default_catalog") or "datafusion",
            self.setting("datafusion.catalog.default_schema") or "public",
        )
        return (*defaults[: 3 - len(name)], *name) if len(name) < 3 else name

    def catalog_named(self, name: str) -> CatalogTables | None:
        """The Rowsieve catalog with this name."""
        return self._catalogs.get(name)

    def refreshed(self, text: str) -> dict[str, OwnTable]:
        """Refresh our tables that the text may name; return them as they are now."""
        with self._lock:
            return {name: replace(own) for name, own in self._refreshed(text).items()}

    def plan_alone(self, query: str, options: Any, values: Any, texts: Mapping[str, Any]) -> Any:
        """Plan a statement as DataFusion does, without running it."""
        with self._lock:
            return super().sql(query, options, values, **texts)

    def planned_at(
        self,
        query: str,
        named: Mapping[str, OwnTable],
        near: Mapping[str, Predicate],
        options: Any,
        values: Any,
        texts: Mapping[str, Any],
    ) -> datafusion.DataFrame:
        """Plan a query with our tables at these versions; `near` skips parts of some."""

        def plan() -> datafusion.DataFrame:
            return super(SessionContext, self).sql(query, options, values, **texts)

        with self._lock:
            at = {name: own.provider() for name, own in named.items()}
            with self._swapped(at):
                chosen = self._chosen(named, plan) if self._skips() else {}
            chosen |= {name: named[name].parts(each) for name, each in near.items()}
            with self._swapped({n: own.provider(chosen.get(n)) for n, own in named.items()}):
                self._planned = named
                try:
                    return plan()
                finally:
                    self._planned = {}

    def _forget(self, name: tuple[str, ...]) -> None:
        """Note that the name stands for our table no more."""
        full = self.full_name(name)
        for key, own in list(self._own_tables.items()):
            if self.full_name(name_parts(own.given_name)) == full:
                del self._own_tables[key]


def name_parts(name: str) -> tuple[str, ...]:
    """The parts of a name as DataFusion knows them: folded to lower case if not quoted."""
    parts = _NAME_PART.findall(name)
    return tuple(
        part[1:-1].replace('""', '"') if part[:1] == '"' else part.lower() for part in parts
    )


def _plain(name: str) -> str:
    return ".".join(name_parts(name))
