"""Constraints: every way to write obeys them, and a constraint is added only where it holds."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.changes.placed_commits import commit_added
from rowsieve.errors import (
    CommitConflict,
    ConstraintViolation,
    InvalidInput,
    InvalidPredicate,
    InvalidSchemaChange,
    UnknownColumn,
    UnsupportedProtocol,
)
from rowsieve.executor.execute import Execution
from rowsieve.providers.datafusion import SessionContext
from rowsieve.storage.snapshot import CONSTRAINTS_WRITER
from tests.change_feed.test_operations import Negate
from tests.duckdb_sessions import duckdb_session
from tests.profiles import examples
from tests.small_tables import KV, appended, apply, files, fresh_uri, keyed, kv, overtake, pairs

POSITIVE = "v > 0"


def constrained(make: Callable[..., rs.Table] = keyed) -> rs.Table:
    """Rows (1, 10), (2, 20) and (3, NULL), and the constraint that v > 0."""
    table = make({"k": [1, 2, 3], "v": [10, 20, None]})
    table.add_constraint("positive", POSITIVE)
    return table


def merged(table: rs.Table, values: str) -> None:
    session = SessionContext()
    session.register_table("t", table)
    session.sql(
        f"MERGE INTO t USING (VALUES {values}) s(k, w) ON t.k = s.k WHEN MATCHED THEN UPDATE SET "
        "v = w WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, w)"
    )


def inserted(table: rs.Table, values: str) -> None:
    session = SessionContext()
    session.register_table("t", table)
    session.sql(f"INSERT INTO t VALUES {values}")


BAD: dict[str, Callable[[rs.Table], Any]] = {
    "upsert": lambda t: t.upsert(kv((4, 1), (5, -1))),
    "apply_changes": lambda t: apply(t, ("u", 4, 1), ("u", 5, -1)),
    "update": lambda t: t.update({"v": "v - 15"}),
    "overwrite": lambda t: t.overwrite(kv((5, -1))),
    "overwrite by condition": lambda t: t.overwrite(kv((5, -1)), where="k >= 5"),
    "merge": lambda t: merged(t, "(1, 5), (5, -1)"),
    "insert": lambda t: inserted(t, "(5, -1)"),
}
BAD_WITHOUT_KEY: dict[str, Callable[[rs.Table], Any]] = {
    "append": lambda t: t.append(kv((4, 1), (5, -1))),
    **{name: BAD[name] for name in ("update", "overwrite", "overwrite by condition", "insert")},
}


@pytest.mark.parametrize("name", BAD)
def test_no_change_of_a_keyed_table_brings_a_violation(name: str) -> None:
    refused(constrained(), BAD[name])


@pytest.mark.parametrize("name", BAD_WITHOUT_KEY)
def test_no_change_of_a_table_without_a_key_brings_a_violation(name: str) -> None:
    refused(constrained(appended), BAD_WITHOUT_KEY[name])


def refused(table: rs.Table, change: Callable[[rs.Table], Any]) -> None:
    before, version = table.to_arrow(), table.version
    with pytest.raises(ConstraintViolation, match=r"'positive', CHECK \(v > 0\)") as raised:
        change(table)
    assert raised.value.name == "positive"
    table.refresh()
    assert (table.version, table.to_arrow()) == (version, before)


def test_the_message_names_the_rule_the_key_and_the_value() -> None:
    table = constrained()
    with pytest.raises(ConstraintViolation) as raised:
        table.upsert(kv((4, 1), (5, -1)))
    assert "a row with the key {'k': 5} has {'v': -1}" in str(raised.value)
    assert "nothing was committed" in str(raised.value)


def test_null_passes_and_so_do_rows_that_are_hidden() -> None:
    table = keyed({"k": [1, 2], "v": [-1, 5]})
    table.upsert(kv((1, 1)))
    table.add_constraint("positive", POSITIVE)
    table.upsert(kv((7, None), (8, 8)))
    table.compact()
    table.delete("k = 2")
    assert pairs(table) == [(1, 1), (7, None), (8, 8)]


def test_a_condition_that_fails_on_a_row_is_violated() -> None:
    table = keyed({"k": [1], "v": [1]})
    table.add_constraint("inverse", "10 / v > 1")
    with pytest.raises(ConstraintViolation, match=r"'inverse'.* cannot be evaluated on a row"):
        table.upsert(kv((2, 0)))
    other = keyed({"k": [1], "v": [0]})
    with pytest.raises(ConstraintViolation, match=r"'inverse'.* cannot be evaluated on a row"):
        other.add_constraint("inverse", "10 / v > 1")
    assert other.constraints == {}


def test_existing_rows_must_obey() -> None:
    table = keyed({"k": [1, 2], "v": [1, -2]})
    version = table.version
    with pytest.raises(ConstraintViolation, match=r"the key \{'k': 2\} has \{'v': -2\}"):
        table.add_constraint("positive", POSITIVE)
    assert (table.refresh(), table.constraints) == (version, {})
    table.delete("k = 2")
    table.add_constraint("positive", POSITIVE)
    assert table.constraints == {"positive": "v > 0"}


def test_statistics_prove_existing_rows_without_reading_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = keyed({"k": [1, 2], "v": [1, 2]}, {"k": [2, 3], "v": [4, None]})
    monkeypatch.setattr(Execution, "read", lambda self: pytest.fail("reads rows"))
    table.add_constraint("positive", POSITIVE)
    table.upsert(kv((9, 9)))


def test_bounds_prove_a_batch_before_its_rows_are_evaluated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = constrained()
    monkeypatch.setattr(
        "rowsieve.storage.constraints.matching", lambda *_: pytest.fail("evaluates rows")
    )
    table.upsert(kv((4, 1), (5, None)))


def test_a_write_that_began_before_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    for make, write in ((keyed, "upsert"), (appended, "append")):
        table = make({"k": [1], "v": [1]})
        with monkeypatch.context() as patch:
            overtake(table, patch, lambda other: other.add_constraint("positive", POSITIVE))
            with pytest.raises(ConstraintViolation, match="positive"):
                getattr(table, write)(kv((2, -1)))
        table.refresh()
        assert pairs(table) == [(1, 1)]


def test_a_write_that_began_before_is_committed_if_it_obeys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = keyed({"k": [1], "v": [1]})
    overtake(table, monkeypatch, lambda other: other.add_constraint("even", "v % 2 = 1"))
    table.upsert(kv((2, 3)))
    assert pairs(table) == [(1, 1), (2, 3)]


def test_an_overwrite_that_began_before_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed({"k": [1], "v": [1]})
    overtake(table, monkeypatch, lambda other: other.add_constraint("positive", POSITIVE))
    with pytest.raises(ConstraintViolation, match="positive"):
        table.overwrite(kv((2, -1)))
    assert pairs(rs.open_table(table.uri)) == [(1, 1)]


def test_the_proof_counts_what_was_committed_since(monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed({"k": [1], "v": [1]})
    overtake(table, monkeypatch, lambda other: other.upsert(kv((2, -1))))
    with pytest.raises(ConstraintViolation, match=r"\{'k': 2\}"):
        table.add_constraint("positive", POSITIVE)
    assert rs.open_table(table.uri).constraints == {}


def test_the_proof_counts_what_a_restore_has_shown_again(monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed({"k": [1], "v": [-1]})
    table.upsert(kv((1, 1)))
    overtake(table, monkeypatch, lambda other: other.restore(1))
    with pytest.raises(ConstraintViolation, match=r"\{'k': 1\}"):
        table.add_constraint("positive", POSITIVE)


def test_parts_written_elsewhere_before_the_constraint_are_refused() -> None:
    table = appended({"k": [1], "v": [1]})
    base = table.handle.latest()
    change = table.handle.change("append")
    from rowsieve.changes.data.ingest import Changes

    request = change.write(base, Changes(kv((2, -1)), None))
    good = change.write(base, Changes(kv((3, 3)), None))
    rs.open_table(table.uri).add_constraint("positive", POSITIVE)
    with pytest.raises(CommitConflict, match="after these rows were written"):
        commit_added(table.handle, base, request, 0.0)
    commit_added(table.handle, base, good, 0.0)
    assert pairs(table) == [(1, 1), (3, 3)]


def test_restore_and_cherry_pick_obey() -> None:
    table = keyed({"k": [1], "v": [1]}, {"k": [2], "v": [-2]})
    bad = table.version
    table.restore(1)
    table.add_constraint("positive", POSITIVE)
    with pytest.raises(ConstraintViolation, match=f"restore: version {bad}"):
        table.restore(bad)
    with pytest.raises(ConstraintViolation, match="positive"):
        table.cherry_pick(bad)
    table.restore(1)
    assert pairs(table) == [(1, 1)]
    assert table.constraints == {"positive": "v > 0"}


@pytest.mark.parametrize("copy", [True, False])
def test_imported_files_obey(tmp_path: Path, *, copy: bool) -> None:
    catalog = rs.Catalog(str(tmp_path / "lake"))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", KV)
    table.add_constraint("positive", POSITIVE)
    for name, value in (("good", 1), ("bad", -1)):
        (tmp_path / name).mkdir()
        pq.write_table(kv((value, value)), tmp_path / name / "f.parquet")
        call = f"CALL system.add_files('db.t', '{tmp_path / name}', copy => {copy})"
        if name == "bad":
            with pytest.raises(ConstraintViolation, match="positive"):
                catalog.call(call)
        else:
            catalog.call(call)
    table.refresh()
    assert pairs(table) == [(1, 1)]


def test_names_are_kept_by_field_and_a_used_column_stays() -> None:
    table = constrained()
    table.rename_column("v", "w")
    assert table.constraints == {"positive": "w > 0"}
    with pytest.raises(ConstraintViolation, match=r"w > 0"):
        table.upsert([{"k": 9, "w": -9}])
    with pytest.raises(InvalidSchemaChange, match=r"'positive', CHECK \(w > 0\), uses the column"):
        table.drop_column("w")
    with pytest.raises(InvalidSchemaChange, match="may mean something else"):
        table.widen_column("w", "decimal(30, 2)")
    table.add_column("v", "int64", default=-5)  # another column of that name
    table.drop_constraint("positive")
    table.drop_column("w")
    assert table.constraints == {}


def test_a_whole_number_may_become_wider() -> None:
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.int32())])
    table = keyed({"k": [1], "v": [1]}, schema=schema)
    table.add_constraint("positive", POSITIVE)
    table.widen_column("v", "int64")
    refused(table, lambda t: t.upsert(kv((2, -(2**40)))))


def test_a_column_that_is_added_has_a_constraint_with_it() -> None:
    table = keyed({"k": [1], "v": [1]})
    with pytest.raises(ConstraintViolation, match="'c'"):
        table.sql("ALTER TABLE this ADD COLUMN n bigint DEFAULT -1, ADD CONSTRAINT c CHECK (n > 0)")
    table.sql("ALTER TABLE this ADD COLUMN n bigint DEFAULT 1, ADD CONSTRAINT c CHECK (n > 0)")
    table.upsert(pa.table({"k": [2], "v": [1], "n": [None]}, schema=table.schema))
    with pytest.raises(ConstraintViolation, match="'c'"):
        table.upsert([{"k": 3, "v": 1, "n": 0}])


def test_sql_adds_and_drops() -> None:
    table = keyed({"k": [1], "v": [1]})
    with table.alter() as a:
        a.sql("""ADD CONSTRAINT "Pos (v)" CHECK (v > 0 AND (k < 9 OR k > 10))""")
    assert table.constraints == {"Pos (v)": "v > 0 AND (k < 9 OR k > 10)"}
    table.sql("ALTER TABLE this DROP CONSTRAINT IF EXISTS nothing")
    assert table.constraints.keys() == {"Pos (v)"}
    table.sql('ALTER TABLE this DROP CONSTRAINT "Pos (v)", ADD CONSTRAINT b CHECK (k > 0)')
    assert table.constraints == {"b": "k > 0"}


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("v > extract(year FROM now())", "depends on the time"),
        ("1 < 2", "uses no column"),
        ("v + 1", "not a condition"),
        ("v >", "."),
    ],
)
def test_conditions_that_depend_on_more_than_the_row_are_refused(
    condition: str, message: str
) -> None:
    table = keyed({"k": [1], "v": [1]})
    with pytest.raises(InvalidInput, match=message):
        table.add_constraint("c", condition)
    with pytest.raises((UnknownColumn, InvalidPredicate)):
        table.add_constraint("c", "absent > 0")
    assert table.constraints == {}


@pytest.mark.parametrize(
    ("condition", "dialect", "good", "bad"),
    [
        ("a > 0", "spark", {"a": 1}, {"a": 0}),
        ("a > 0", "datafusion", {"a": 1}, {"a": 0}),
        ("a > 0", "duckdb", {"a": 1}, {"a": 0}),
        (pc.field("a") > 0, "postgres", {"a": 1}, {"a": 0}),
        ("st.x > 0", "postgres", {"st": {"x": 1}}, {"st": {"x": 0}}),
        ("s ~ '^a'", "postgres", {"s": "ab"}, {"s": "ba"}),
        ("hour(at) < 5", "spark", {"at": 3_600_000_000}, {"at": 36_000_000_000}),
    ],
)
def test_a_condition_of_each_dialect_outlives_reopening(
    condition: Any, dialect: str, good: dict[str, Any], bad: dict[str, Any]
) -> None:
    schema = pa.schema(
        [
            ("k", pa.int64()),
            ("a", pa.int64()),
            ("s", pa.string()),
            ("st", pa.struct([("x", pa.int64())])),
            ("at", pa.timestamp("us", tz="UTC")),
        ]
    )
    rs.create_table(uri := fresh_uri(), schema, key=["k"]).add_constraint(
        "c", condition, dialect=dialect
    )
    table = rs.open_table(uri)
    table.upsert(pa.Table.from_pylist([{"k": 1, **good}, {"k": 2}], schema))
    with pytest.raises(ConstraintViolation, match="'c'"):
        table.upsert(pa.Table.from_pylist([{"k": 3, **bad}], schema))
    assert table.count() == 2


def test_a_field_that_a_constraint_uses_is_not_renamed() -> None:
    rows = pa.table({"k": [1], "st": [{"x": 1, "y": 2}]})
    table = rs.create_table(fresh_uri(), rows, key=["k"])
    table.add_constraint("c", "st.x > 0")
    for change in ("RENAME COLUMN st.x TO z", "DROP COLUMN st.x"):
        with pytest.raises(InvalidSchemaChange, match="'c', CHECK"):
            table.sql(f"ALTER TABLE this {change}")


@pytest.mark.parametrize("inline_bytes", [0, 16_384])
def test_other_fields_of_a_struct_may_change_beside_a_constraint(inline_bytes: int) -> None:
    struct = pa.struct([("x", pa.int32()), ("y", pa.int32()), ("z", pa.int32())])
    rows = pa.table({"k": [1], "st": pa.array([{"x": 1, "y": 2, "z": 3}], struct)})
    properties = {"inline_bytes": inline_bytes}
    table = rs.create_table(fresh_uri(), rows, key=["k"], properties=properties)
    table.add_constraint("c", "st.x > 0 OR st.x IS NULL")
    table.sql("ALTER TABLE this ADD COLUMN st.w bigint DEFAULT -1, DROP COLUMN st.y")
    table.rename_column("st.z", "y")
    table.widen_column("st.y", "decimal(20,4)")
    table.reorder_columns(["st.w", "st.x"])
    table.widen_column("st.x", "int64")
    row = {"w": 0, "x": 2, "y": -7, "new": -5}
    table.upsert([{"k": 2, "st": row}, {"k": 3, "st": None}], schema_mode="merge")
    with pytest.raises(ConstraintViolation, match="'c'"):
        table.upsert([{"k": 4, "st": {**row, "x": -(2**40)}}])
    with pytest.raises(InvalidSchemaChange, match="may mean something else"):
        table.widen_column("st.x", "decimal(30,2)")
    assert table.count("st.x <= 0") == 0
    assert table.count("st.w < 0") == 1
    table.add_constraint("whole", "st IS NOT NULL OR k = 3")
    with pytest.raises(InvalidSchemaChange, match="'whole'"):
        table.drop_column("st.new")


def test_names_are_unique_and_must_exist() -> None:
    table = constrained()
    with pytest.raises(InvalidInput, match="has a constraint 'positive' already"):
        table.add_constraint("Positive", "v > 1")
    with pytest.raises(InvalidInput, match="has no constraint 'other'; it has positive"):
        table.drop_constraint("other")
    version = table.version
    assert not table.drop_constraint("other", if_exists=True).committed
    assert table.version == version
    with pytest.raises(InvalidInput, match="add_constraint changes it"):
        table.set_properties({"rowsieve.constraints": "[]"})


def test_older_writers_refuse_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    table = constrained()
    table.drop_constraint("positive")
    assert table.handle.pinned.table.writer_version >= CONSTRAINTS_WRITER
    monkeypatch.setattr("rowsieve.storage.log.commit_log.WRITER_VERSION", CONSTRAINTS_WRITER - 1)
    before = files(table)
    with pytest.raises(UnsupportedProtocol, match=f"writer protocol {CONSTRAINTS_WRITER}"):
        table.upsert(kv((1, 1)))
    assert files(table) == before


def test_properties_and_clones_keep_constraints() -> None:
    table = constrained()
    table.set_properties({"checkpoint_interval": 3})
    for i in range(4):
        table.upsert(kv((i, 7)))
    copy = table.clone(fresh_uri())
    for each in (rs.open_table(table.uri), copy):
        assert each.constraints == {"positive": "v > 0"}
        with pytest.raises(ConstraintViolation):
            each.upsert(kv((1, -1)))


def test_a_procedure_that_changes_values_is_checked(tmp_path: Path) -> None:
    catalog = rs.Catalog(str(tmp_path / "lake"))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", KV, key=["k"])
    table.upsert(kv((1, 1), (2, None)))
    table.add_constraint("positive", POSITIVE)
    catalog.procedures.add(Negate())
    with pytest.raises(ConstraintViolation, match="positive"):
        catalog.call("CALL system.negate('db.t', options => map('rewrite-all', 'true'))")
    catalog.call("CALL system.rewrite_data_files('db.t', options => map('rewrite-all', 'true'))")
    table.refresh()
    assert pairs(table) == [(1, 1), (2, None)]


def test_a_violation_can_be_sent_to_another_process() -> None:
    with pytest.raises(ConstraintViolation) as raised:
        constrained().upsert(kv((5, -1)))
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), again.name) == (str(raised.value), "positive")


CONDITIONS = [
    "a > 0", "a > 0 AND b < 5", "a > 0 OR b IS NULL", "a IN (1, 2, 3)", "a NOT IN (1, 2)",
    "a BETWEEN b AND 4", "NOT (a = b)", "t LIKE 'x%'", "t IS NOT NULL", "a IS NULL OR a <> 2",
    "f > 0", "f <= 1.5 OR f IS NULL", "coalesce(a, b) > 0", "CASE WHEN a > 1 THEN b > 0 END",
    "a % 2 = 0", "length(t) < 3", "a IN (1, NULL)", "f = f", "t = 'x' OR a > 1",
]  # fmt: skip
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "a": st.sampled_from([None, -1, 0, 1, 2, 5]),
            "b": st.sampled_from([None, 0, 1, 6]),
            "f": st.sampled_from([None, float("nan"), -0.0, 0.0, 1.5, -2.0]),
            "t": st.sampled_from([None, "", "x", "xyz", "y"]),
        }
    ),
    min_size=1,
    max_size=4,
)
TYPES = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("f", pa.float64()), ("t", pa.string())])


@examples(120)
@given(condition=st.sampled_from(CONDITIONS), rows=ROWS, first=ROWS)
def test_a_check_accepts_what_duckdb_accepts(
    condition: str, rows: list[dict[str, Any]], first: list[dict[str, Any]]
) -> None:
    data, before = (pa.Table.from_pylist(each, TYPES) for each in (rows, first))
    session = duckdb_session()

    columns = "a BIGINT, b BIGINT, f DOUBLE, t VARCHAR"
    session.execute(f"CREATE OR REPLACE TEMP TABLE checked ({columns}, CHECK ({condition}))")

    def obeys(table: pa.Table) -> bool:
        session.register("data", table)
        try:
            session.execute("INSERT INTO checked SELECT * FROM data").fetchall()
        except duckdb.ConstraintException:
            return False
        return True

    table = rs.create_table(fresh_uri(), TYPES)
    table.append(before)
    if not obeys(before):
        with pytest.raises(ConstraintViolation):
            table.add_constraint("c", condition, dialect="duckdb")
        return
    table.add_constraint("c", condition, dialect="duckdb")
    if obeys(data):
        table.append(data)
        assert table.count() == len(first) + len(rows)
    else:
        with pytest.raises(ConstraintViolation):
            table.append(data)
        assert table.count() == len(first)


def test_a_name_is_dropped_in_any_case() -> None:
    table = constrained()
    table.drop_constraint("Positive")
    assert table.upsert(kv((4, -1))).rows_written == 1
