"""Tables by name: created, dropped, renamed and registered, by several at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.catalog.catalog_log import CatalogLog, CatalogState
from rowsieve.errors import (
    CorruptData,
    InvalidInput,
    NamespaceExists,
    NamespaceNotFound,
    RowsieveError,
    TableExists,
    TableNotFound,
    UnsupportedOperation,
    UnsupportedProtocol,
)
from rowsieve.objects import open_store
from rowsieve.objects.store import Details
from rowsieve.storage.log.sealed_lines import seal
from tests.faults.listings import ChangedListings
from tests.faults.stores import FaultyStore
from tests.faults.vocabulary import Fault
from tests.profiles import examples
from tests.small_tables import fresh_uri

ONE = pa.table({"id": [1]})


@pytest.fixture
def catalog(tmp_path: Path) -> rs.Catalog:
    return rs.Catalog(tmp_path / "lake")


def ids(table: rs.Table) -> list[int]:
    found: list[int] = table.scan().to_arrow().column("id").to_pylist()
    return sorted(found)


def test_dropped_name_is_free_again_and_the_old_files_stay(catalog: rs.Catalog) -> None:
    old = catalog.create_table("db.t", ONE, ["id"])
    catalog.drop_table("db.t")
    assert catalog.tables() == []
    for call in (catalog.open_table, catalog.drop_table, catalog.uri_of):
        with pytest.raises(TableNotFound, match=r"db\.t"):
            call("db.t")
    new = catalog.create_table("db.t", pa.table({"id": [2]}), ["id"])
    assert (ids(new), ids(old)) == ([2], [1])
    assert ids(catalog.open_table("db.t")) == [2]
    assert catalog.tables() == ["db.t"]
    with pytest.raises(TableExists, match=r"db\.t exists already"):
        catalog.create_table("db.t", ONE)
    assert ids(catalog.create_table("db.t", ONE, if_exists="ignore")) == [2]


def test_purge_deletes_the_files_of_the_table_alone(catalog: rs.Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("db.t", ONE, ["id"])
    kept = catalog.create_table("db.u", ONE)
    foreign = rs.create_table(tmp_path / "foreign", ONE)
    catalog.register_table("db.foreign", foreign.uri)
    with pytest.raises(UnsupportedOperation, match="was registered"):
        catalog.drop_table("db.foreign", purge=True)
    with table.lease(), pytest.raises(UnsupportedOperation, match="a lease protects version 0"):
        catalog.drop_table("db.t", purge=True)
    assert catalog.tables() == ["db.foreign", "db.t", "db.u"]
    catalog.drop_table("db.t", purge=True)
    assert [path for path in (tmp_path / "lake/db/t").rglob("*") if path.is_file()] == []
    assert (ids(kept), ids(foreign)) == ([1], [1])
    assert ids(catalog.create_table("db.t", ONE)) == [1]


def test_renamed_table_keeps_its_rows_and_frees_its_name(catalog: rs.Catalog) -> None:
    catalog.create_table("db.t", ONE, ["id"])
    catalog.create_table("db.u", ONE)
    with pytest.raises(TableExists):
        catalog.rename_table("db.t", "db.u")
    with pytest.raises(TableNotFound):
        catalog.rename_table("db.x", "db.y")
    with pytest.raises(InvalidInput, match="has this name already"):
        catalog.rename_table("db.t", "db.t")
    catalog.rename_table("db.t", "other.t")
    assert catalog.tables() == ["db.u", "other.t"]
    assert catalog.tables("other") == ["other.t"]
    assert catalog.namespaces() == ["db", "other"]
    catalog.open_table("other.t").upsert(pa.table({"id": [5]}))
    catalog.create_table("db.t", pa.table({"id": [9]}))
    assert ids(catalog.open_table("other.t")) == [1, 5]
    assert ids(catalog.open_table("other.t@v0")) == [1]
    catalog.drop_table("db.t")
    catalog.rename_table("other.t", "db.t")
    assert ids(catalog.open_table("db.t")) == [1, 5]


def test_registered_table_has_a_name_and_stays_where_it_is(
    catalog: rs.Catalog, tmp_path: Path
) -> None:
    foreign = rs.create_table(tmp_path / "else where", ONE)
    catalog.register_table("db.foreign", foreign.uri)
    assert catalog.tables() == ["db.foreign"]
    assert catalog.uri_of("db.foreign") == foreign.uri
    assert ids(catalog.open_table("db.foreign")) == [1]
    with pytest.raises(TableExists):
        catalog.register_table("db.foreign", foreign.uri)
    with pytest.raises(TableNotFound):
        catalog.register_table("db.none", tmp_path / "nothing")
    catalog.drop_table("db.foreign")
    assert ids(rs.open_table(foreign.uri)) == [1]


@pytest.mark.parametrize(
    "name", ["t", "db.", ".t", "a.b.c", "db.t@v1", "db/x.t", "..", "db._t", "db.t t", "", "db.é"]
)
def test_wrong_names_are_refused(catalog: rs.Catalog, name: str) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: catalog.create_table(name, ONE),
        lambda: catalog.drop_table(name),
        lambda: catalog.rename_table("db.t", name),
        lambda: catalog.register_table(name, "nowhere"),
    ]
    for call in calls:
        with pytest.raises(InvalidInput):
            call()


def test_version_belongs_to_the_name_or_to_the_arguments(catalog: rs.Catalog) -> None:
    catalog.create_table("db.t", ONE)
    with pytest.raises(InvalidInput, match="names a version"):
        catalog.open_table("db.t@v0", version=0)
    with pytest.raises(RowsieveError, match="version 7"):
        catalog.open_table("db.t@v7")


def test_properties_of_the_catalog_are_those_of_new_tables(catalog: rs.Catalog) -> None:
    catalog.set_properties({"checkpoint_interval": 7, "pruning": "soft"})
    catalog.unset_properties(["pruning"])
    table = catalog.create_table("db.t", ONE, properties={"audit_percent": "1"})
    assert catalog.properties == {"checkpoint_interval": "7"}
    assert table.detail()["properties"] == {"checkpoint_interval": "7", "audit_percent": "1"}
    with pytest.raises(InvalidInput, match="no property 'pruning'"):
        catalog.unset_properties(["pruning"])
    with pytest.raises(InvalidInput, match="checkpoint_interval"):
        catalog.set_properties({"checkpoint_interval": "often"})


def outcome(call: Callable[[], Any]) -> type[Exception] | None:
    try:
        call()
    except RowsieveError as error:
        return type(error)
    return None


@pytest.mark.parametrize("dropped", [False, True])
def test_one_of_many_creators_wins(catalog: rs.Catalog, *, dropped: bool) -> None:
    if dropped:
        catalog.create_table("db.t", ONE)
        catalog.drop_table("db.t")
    with ThreadPoolExecutor(6) as pool:
        found = list(
            pool.map(
                lambda i: outcome(
                    lambda: rs.Catalog(catalog.uri).create_table("db.t", pa.table({"id": [i]}))
                ),
                range(6),
            )
        )
    assert found.count(None) == 1
    assert found.count(TableExists) == 5
    assert ids(catalog.open_table("db.t")) == [found.index(None)]


def test_rename_and_create_of_one_name_never_both_succeed(tmp_path: Path) -> None:
    for attempt in range(6):
        catalog = rs.Catalog(tmp_path / str(attempt))
        catalog.create_table("db.old", pa.table({"id": [1]}))
        other = rs.Catalog(catalog.uri)
        with ThreadPoolExecutor(2) as pool:
            renamed = pool.submit(outcome, partial(catalog.rename_table, "db.old", "db.t"))
            created = pool.submit(
                outcome, partial(other.create_table, "db.t", pa.table({"id": [2]}))
            )
        assert sorted([renamed.result() is None, created.result() is None]) == [False, True]
        assert ids(catalog.open_table("db.t")) == ([1] if renamed.result() is None else [2])


NAMES = st.sampled_from(["a.x", "a.y", "b.x"])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "drop", "rename", "write", "create space", "drop space"]),
        NAMES,
        NAMES,
    ),
    max_size=12,
)


class Names:
    """The model: the values of each table by name, and what is known of namespaces."""

    def __init__(self) -> None:
        self.tables: dict[str, list[int]] = {}
        self.with_folders: set[str] = set()
        self.standing: dict[str, bool] = {}

    def has_space(self, space: str) -> bool:
        """Whether there is a namespace."""
        if any(name.startswith(space) for name in self.tables):
            return True
        return self.standing.get(space, space in self.with_folders)

    def expected(self, kind: str, name: str, other: str) -> type[Exception] | None:
        """The error of a step."""
        space, cascade = name[0], other == "a.y"
        match kind:
            case "create":
                return TableExists if name in self.tables else None
            case "rename" if name == other:
                return InvalidInput
            case "rename" if name in self.tables and other in self.tables:
                return TableExists
            case "create space":
                return NamespaceExists if self.has_space(space) else None
            case "drop space" if not self.has_space(space):
                return NamespaceNotFound
            case "drop space":
                is_used = any(each.startswith(space) for each in self.tables)
                return UnsupportedOperation if is_used and not cascade else None
            case _:
                return None if name in self.tables else TableNotFound

    def do(self, kind: str, name: str, other: str, value: int) -> None:
        """A step that succeeds."""
        space = name[0]
        match kind:
            case "create":
                self.tables[name] = [value]
                self.with_folders.add(space)
            case "drop":
                del self.tables[name]
            case "rename":
                self.tables[other] = self.tables.pop(name)
            case "write":
                self.tables[name].append(value)
            case "create space":
                self.standing[space] = True
            case _:
                self.tables = {k: v for k, v in self.tables.items() if k[0] != space}
                self.standing[space] = False
        placed = {"create": name, "rename": other}.get(kind)
        if placed is not None and self.standing.get(placed[0]) is False:
            del self.standing[placed[0]]


def call_of(catalog: rs.Catalog, kind: str, name: str, other: str, value: int) -> Any:
    match kind:
        case "create":
            return catalog.create_table(name, pa.table({"id": [value]}))
        case "drop":
            return catalog.drop_table(name)
        case "rename":
            return catalog.rename_table(name, other)
        case "write":
            return catalog.open_table(name).append(pa.table({"id": [value]}))
        case "create space":
            return catalog.create_namespace(name[0])
        case _:
            return catalog.drop_namespace(name[0], cascade=other == "a.y")


@examples(30, promised=500)
@given(STEPS)
def test_names_behave_like_a_dictionary(steps: list[tuple[str, str, str]]) -> None:
    catalogs = [rs.Catalog(fresh_uri())]
    catalogs.append(rs.Catalog(catalogs[0].uri))
    model = Names()
    for step, (kind, name, other) in enumerate(steps):
        expected = model.expected(kind, name, other)
        assert outcome(partial(call_of, catalogs[step % 2], kind, name, other, step)) is expected
        if expected is None:
            model.do(kind, name, other, step)
        for each in catalogs:
            tables = {name: ids(each.open_table(name)) for name in each.tables()}
            assert tables == model.tables
            assert each.namespaces() == [space for space in "ab" if model.has_space(space)]


@pytest.mark.parametrize(
    "faults",
    [
        [Fault.LOST_ANSWER],
        [Fault.UNAVAILABLE],
        [Fault.EXISTS_AFTER],
        [Fault.UNAVAILABLE, Fault.LOST_ANSWER],
    ],
)
def test_unknown_outcome_of_a_put_is_looked_up(faults: list[Fault]) -> None:  # rule 1
    store = open_store(fresh_uri())
    unsure = FaultyStore(store)
    for fault in faults:
        unsure.meet_where(fault, "put_new", lambda path: path.startswith("_catalog"), times=1)
    log = CatalogLog(unsure)
    log.change("set", lambda now: CatalogState(now.locations, {"a": "1"}))
    assert CatalogLog(store).read().properties == {"a": "1"}
    assert CatalogLog(store).read().version == 1


def test_damaged_entries_are_refused(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path)
    catalog.create_table("db.t", ONE)
    path = tmp_path / "_catalog" / f"{1:020d}.json"
    whole = path.read_bytes()
    change = {"version": 1, "id": "a", "predecessor": None, "operation": "x", "timestamp_us": 1}
    empty: list[dict[str, Any]] = [{"locations": {}}, {"properties": {}}]
    path.write_bytes(whole[:-9] + whole[-8:])
    with pytest.raises(CorruptData):
        rs.Catalog(tmp_path).tables()
    cases: list[tuple[list[dict[str, Any]], type[Exception]]] = [
        ([{"change": {**change, "protocol": 9}}], UnsupportedProtocol),
        ([{"change": change}, *empty, {"namespaces": {"db": 1}}], CorruptData),
        ([{"change": change}], CorruptData),
        ([{"change": change}, {"locations": {"db.t": "../x"}}, {"properties": {}}], CorruptData),
        (
            [{"change": {**change, "version": 2}}, {"locations": {}}, {"properties": {}}],
            CorruptData,
        ),
    ]
    for lines, error in cases:
        path.write_bytes(seal(lines))
        with pytest.raises(error):
            rs.Catalog(tmp_path).tables()


@pytest.mark.parametrize("hidden", [1, 2, 3])
def test_an_entry_that_a_listing_does_not_show_yet_is_read(tmp_path: Path, hidden: int) -> None:
    """The entry after the known one, and the one after the newest that is listed (rule 5)."""
    store = open_store(str(tmp_path / "lake"))
    log = CatalogLog(store)
    for _ in range(hidden):
        log.change("set", lambda now: replace(now, properties={"n": str(now.version)}))
    newest = f"{hidden:020d}.json"

    def lagging(_prefix: str, details: Details) -> Details:
        return {path: each for path, each in details.items() if not path.endswith(newest)}

    seen = CatalogLog(ChangedListings(store, lagging))
    assert seen.read().version == hidden
