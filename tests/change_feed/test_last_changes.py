"""The version that last changed a row outlives compaction, and selects rows without the feed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve import Table
from rowsieve.errors import InvalidInput, UnsupportedOperation, VersionNotFound
from rowsieve.procedures.built_ins.rewrite_data_files import RewriteDataFiles
from rowsieve.providers.datafusion import SessionContext
from tests.duckdb_sessions import duckdb_session
from tests.profiles import examples
from tests.small_tables import fresh_uri

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
KEPT = {"row_versions": "kept"}


def kept(**options: Any) -> Table:
    options = {"key": ["id"], "properties": KEPT, **options}
    return rs.create_table(fresh_uri(), SCHEMA, **options)


def put(table: Table, *ids: int, v: str = "x") -> None:
    table.upsert({"id": list(ids), "v": [f"{v}{i}" for i in ids]})


def versions(table: Table, since: int = 0, **options: Any) -> dict[int, int]:
    rows = table.last_changed(since, **options).read_all()
    return dict(zip(*(rows.column(n).to_pylist() for n in ("id", "_commit_version")), strict=True))


def test_compaction_keeps_the_version_of_each_row() -> None:
    table = kept()
    put(table, 1, 2, 3)
    put(table, 2)
    table.update({"v": "'u'"}, where="id = 3")
    put(table, 4)
    expected = {1: 1, 2: 2, 3: 3, 4: 4}
    assert versions(table) == expected
    for _ in range(2):
        assert table.compact().committed
        assert len(table.handle.newest.parts) == 1
        assert versions(table) == expected
        assert versions(table, 2) == {i: v for i, v in expected.items() if v > 2}
        assert versions(table, table.version) == {}
        expected |= {2: table.version + 1}
        put(table, 2)
    assert versions(table, 4) == {2: 8}
    table.vacuum(retain_last=1, grace_s=0)
    assert versions(table, 3) == {2: 8, 4: 4}
    assert versions(table, 0, where="v <> 'x4'") == {1: 1, 2: 8, 3: 3}
    assert table.last_changed(3, columns=["v"]).read_all().column_names == ["v", "_commit_version"]


def test_every_reader_still_reads_the_table() -> None:
    table = kept()
    put(table, 1, 2)
    put(table, 2, 3)
    table.compact()
    expected = {"id": [1, 2, 3], "v": ["x1", "x2", "x3"]}
    assert table.schema.names == ["id", "v"]
    assert table.scan(order_by_key=True).to_arrow().to_pydict() == expected
    for session in (datafusion.SessionContext(), SessionContext()):
        session.register_table("t", table)
        read = session.sql("SELECT * FROM t WHERE id > 0 ORDER BY id").to_arrow_table()
        assert read.to_pydict() == expected
    data = table.to_dataset()  # noqa: F841 - DuckDB finds it by its name
    read = duckdb_session().sql("SELECT * FROM data ORDER BY id").to_arrow_table()
    assert read.to_pydict() == expected
    assert table.changes(1).read_all().num_rows == 5
    table.add_column("w", pa.int64(), default=5)
    put_wide = {"id": [4], "v": ["x4"], "w": [6]}
    table.upsert(put_wide)
    table.compact()
    assert versions(table) == {1: 1, 2: 2, 3: 2, 4: 5}
    assert table.scan("id = 3").to_arrow().to_pylist() == [{"id": 3, "v": "x3", "w": 5}]


def test_a_row_that_a_restore_brings_back_was_changed_by_it() -> None:
    table = kept()
    put(table, 1, 2)
    put(table, 1, v="y")
    table.restore(1)
    assert versions(table, 2) == {1: 3, 2: 3}
    put(table, 2)
    table.compact()
    assert versions(table, 3) == {2: 4}
    assert versions(table, 2) == {1: 3, 2: 4}


def test_a_row_that_a_branch_brings_was_changed_by_its_publication() -> None:
    table = kept()
    put(table, 1, 2)
    branch = table.branch("audit")
    put(branch, 2, 3)
    branch.compact()
    put(table.branch("other"), 9)
    table.compact()
    version = table.refresh()
    table.fast_forward("audit")
    assert set(versions(table, version)) == {1, 2, 3}
    put(table, 1)
    assert set(versions(table, table.version - 1)) == {1}
    put(branch, 4)
    before = table.version
    assert versions(table, before) == {}


@pytest.mark.parametrize("key", [["id"], None])
def test_rewrites_in_tasks_keep_versions(tmp_path: Path, key: list[str] | None) -> None:
    catalog = rs.Catalog(tmp_path)
    table = catalog.create_table("db.t", SCHEMA, key, properties=KEPT)
    for n in range(4):
        rows = {"id": [n, n + 10], "v": ["a", "b"]}
        (table.upsert if key else table.append)(rows)
    table.delete("id = 2")
    expected = {0: 1, 10: 1, 1: 2, 11: 2, 12: 3, 3: 4, 13: 4}
    catalog.call("CALL system.rewrite_data_files('db.t', options => map('rewrite-all', 'true'))")
    table.refresh()
    assert len(table.handle.newest.parts) == 1
    assert versions(table) == expected
    assert versions(table, 3) == {3: 4, 13: 4}


class Upper(RewriteDataFiles):
    name = "upper"
    meaning = "write texts in capitals"

    def changed(self, rows: Any, notes: Any) -> Any:
        del notes
        place = rows.schema.get_field_index("v")
        return rows.set_column(place, rows.schema.field(place), pc.utf8_upper(rows.column(place)))


def test_a_procedure_that_changes_values_changes_all_rows(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path)
    table = catalog.create_table("db.t", SCHEMA, ["id"], properties=KEPT)
    put(table, 1)
    put(table, 2)
    catalog.procedures.add(Upper())
    catalog.call("CALL system.upper('db.t', options => map('rewrite-all', 'true'))")
    version = table.refresh()
    assert table.scan(order_by_key=True).to_arrow().column("v").to_pylist() == ["X1", "X2"]
    assert versions(table, 2) == {1: version, 2: version}
    put(table, 3)
    assert versions(table, version) == {3: version + 1}


def test_versions_are_known_from_when_they_are_kept() -> None:
    table = rs.create_table(fresh_uri(), SCHEMA, ["id"])
    put(table, 1)
    put(table, 2)
    with pytest.raises(UnsupportedOperation, match="set the property row_versions = 'kept'"):
        table.last_changed(0)
    table.set_properties(KEPT)
    put(table, 3)
    table.compact()
    assert versions(table, 3) == {3: 4}
    with pytest.raises(UnsupportedOperation, match="kept since version 3"):
        table.last_changed(2)
    for wrong, error in ((-1, InvalidInput), (99, VersionNotFound)):
        with pytest.raises(error):
            table.last_changed(wrong)
    with pytest.raises(InvalidInput, match="row_versions"):
        table.set_properties({"row_versions": "sometimes"})
    table.unset_properties(["row_versions"])
    put(table, 1)
    table.compact()
    table.set_properties(KEPT)
    with pytest.raises(UnsupportedOperation, match="kept since version 9"):
        table.last_changed(3)


def test_parts_of_older_commits_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    table = kept(properties={**KEPT, "target_part_bytes": 400})
    for n in range(6):
        put(table, n * 10, n * 10 + 1)
    read: list[str] = []
    store = table.handle.store
    get = type(store).get_range

    def noted(store: Any, path: str, *rest: Any) -> Any:
        read.append(path)
        return get(store, path, *rest)

    monkeypatch.setattr(type(store), "get_range", noted)
    assert versions(table, 5) == {50: 6, 51: 6}
    assert len(set(read)) <= 1


def test_sql_asks_for_rows_changed_since_a_version() -> None:
    table = kept()
    put(table, 1, 2, 3)
    put(table, 2)
    put(table, 3)
    table.compact()
    session = SessionContext()
    session.register_table("t", table)

    def ask(query: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in session.sql(query).to_arrow_table().to_pylist()]

    assert ask("SELECT * FROM last_changed('t', 1) ORDER BY id") == [(2, "x2", 2), (3, "x3", 3)]
    assert ask("SELECT v FROM last_changed('t', 0) WHERE _commit_version = 2") == [("x2",)]
    assert ask("SELECT count(*) FROM last_changed('t', 0) WHERE id < 3 OR _commit_version > 2") == [
        (3,)
    ]
    joined = "SELECT t.id FROM t JOIN last_changed('t', 2) c ON c.id = t.id"
    assert ask(joined) == [(3,)]
    put(table, 9)
    assert ask("SELECT id FROM last_changed('t', 3)") == [(9,)]
    for query, what in (
        ("SELECT * FROM last_changed('t')", "as constants: last_changed"),
        ("SELECT * FROM last_changed('no', 1)", "has no Rowsieve table 'no'"),
        ("SELECT * FROM last_changed('t', 99)", "since=99 is after it"),
    ):
        with pytest.raises((InvalidInput, VersionNotFound), match=what):
            ask(query)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "delete", "update", "compact", "restore", "rewrite"]),
        st.lists(st.integers(0, 8), min_size=1, max_size=4, unique=True),
    ),
    max_size=14,
)


@examples(160)
@given(steps=STEPS, event_order=st.booleans())
def test_rows_changed_since_each_version_are_those_of_a_dictionary(
    steps: list[tuple[str, list[int]]], event_order: bool
) -> None:
    schema = SCHEMA.append(pa.field("lsn", pa.int64()))
    table = rs.create_table(
        fresh_uri(), schema, ["id"], properties=KEPT, sequence=["lsn"] if event_order else None
    )
    model: dict[int, int] = {}
    states: dict[int, set[int]] = {0: set()}
    for n, (step, ids) in enumerate(steps):
        before = table.version
        if step == "put":
            table.upsert({"id": ids, "v": ["v"] * len(ids), "lsn": [n] * len(ids)})
            changed = set(ids)
        elif step == "delete":
            table.delete(f"id = {ids[0]}")
            model.pop(ids[0], None)
            changed = set()
        elif step == "update":
            changed = set(ids) & set(model)
            table.update({"v": "'u'"}, where=f"id IN ({', '.join(map(str, ids))})")
        elif step == "restore":
            version = sorted(states)[ids[0] % len(states)]
            table.restore(version)
            model = dict.fromkeys(states[version], 0)
            changed = set(states[version])
        else:
            table.compact()
            changed = set()
        version = table.refresh()
        if version > before:
            model |= dict.fromkeys(changed, version)
        states[version] = set(model)
    for since in range(table.version + 1):
        assert versions(table, since) == {i: v for i, v in model.items() if v > since}
