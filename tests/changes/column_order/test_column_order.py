"""With `column_order="each"`, a late event changes the columns that nothing newer has set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve import Table
from rowsieve.changes.event_order.too_late import floor_of
from rowsieve.errors import (
    InvalidData,
    InvalidInput,
    InvalidSchemaChange,
    RowsieveError,
    SchemaMismatch,
    UnsupportedOperation,
    UnsupportedProtocol,
)
from rowsieve.providers.datafusion import SessionContext
from rowsieve.types.ordering.column_order import COLUMN_ORDER
from tests.profiles import examples
from tests.small_tables import fresh_uri, meddled

SCHEMA = pa.schema([("id", pa.int64()), ("lsn", pa.int64()), ("a", pa.int64()), ("b", pa.string())])
EACH = {"column_order": "each"}
Change = dict[str, Any]


def by_column(schema: pa.Schema = SCHEMA, **options: Any) -> Table:
    return rs.create_table(
        fresh_uri(), schema, key=["id"], sequence=["lsn"], properties=EACH, **options
    )


def apply(table: Table, *changes: Change) -> int:
    """Apply changes of the row 1 as one batch, and return how many were late."""
    rows = [{"id": 1, "op": "u", **change} for change in changes]
    return table.apply_changes(rows, op="op", missing="keep").rows_late


def rows(table: Table) -> list[Change]:
    """The rows without the column of the order."""
    names = [name for name in table.schema.names if name != COLUMN_ORDER]
    return sorted(table.scan(columns=names).to_arrow().to_pylist(), key=lambda row: row["id"])


def folded(changes: Sequence[Change], names: Sequence[str] = ("a", "b")) -> list[Change]:
    """The rows after all changes in the order of their sequence: the law."""
    stored: dict[int, Change] = {}
    for change in sorted(changes, key=lambda change: change["lsn"]):
        given = {name: value for name, value in change.items() if name != "op"}
        if change.get("op") == "d":
            stored.pop(change["id"], None)
        else:
            empty = {"id": change["id"], "lsn": None, **dict.fromkeys(names)}
            stored[change["id"]] = {**stored.get(change["id"], empty), **given}
    return [stored[id_] for id_ in sorted(stored)]


EVENTS: tuple[Change, ...] = (
    {"lsn": 10, "a": 1, "b": "x"},
    {"lsn": 20, "op": "d"},
    {"lsn": 30, "a": 3},
    {"lsn": 40, "b": "y"},
)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_every_order_of_events_gives_one_row(order: tuple[int, ...]) -> None:
    table = by_column()
    for place in order:
        apply(table, EVENTS[place])
    assert rows(table) == [{"id": 1, "lsn": 40, "a": 3, "b": "y"}]


def events() -> st.SearchStrategy[list[Change]]:
    """Changes of three rows, each with a sequence of its own, in any order."""
    columns = {"a": st.sampled_from([None, 1, 5]), "b": st.sampled_from([None, "x", "y"])}
    change = st.fixed_dictionaries({"id": st.integers(0, 2)}, optional=columns)
    deleted = st.builds(lambda id_: {"id": id_, "op": "d"}, st.integers(0, 2))
    return st.lists(st.one_of(change, change, change, deleted), min_size=1, max_size=9).flatmap(
        lambda all_: st.permutations([{**row, "lsn": 10 * n} for n, row in enumerate(all_)])
    )


UPKEEP: tuple[Callable[[Table], object], ...] = (
    lambda _table: None,
    lambda table: table.compact(),
    lambda table: table.build_deletion_vectors(),
    lambda table: table.refresh(),
)


@examples(160)
@given(
    events(),
    st.lists(st.integers(1, 4), min_size=9, max_size=9),
    st.lists(st.sampled_from(UPKEEP), min_size=9, max_size=9),
    st.booleans(),
)
def test_any_order_cutting_and_repetition_gives_the_fold(
    changes: list[Change],
    sizes: list[int],
    upkeep: list[Callable[[Table], object]],
    repeats: bool,
) -> None:
    table, start = by_column(), 0
    for size, maintain in zip(sizes, upkeep, strict=True):
        batch = changes[start : start + size]
        start += size
        if batch:
            apply(table, *batch)
        maintain(table)
    if repeats:
        apply(table, *changes)
    assert rows(table) == folded(changes)
    assert table.count("a >= 1") == sum(1 for row in folded(changes) if row["a"])


def test_a_late_event_counts_as_late_only_if_it_changes_nothing() -> None:
    table = by_column()
    assert apply(table, {"lsn": 20, "a": 2}) == 0
    assert apply(table, {"lsn": 10, "a": 1, "b": "x"}) == 0  # b
    assert apply(table, {"lsn": 9, "a": 0}, {"lsn": 8, "b": "w"}, {"lsn": 11, "b": "z"}) == 2
    assert rows(table) == [{"id": 1, "lsn": 20, "a": 2, "b": "z"}]


def test_of_equal_sequences_of_a_value_the_later_commit_counts() -> None:
    table = by_column()
    apply(table, {"lsn": 10, "a": 1, "b": "x"})
    apply(table, {"lsn": 20, "b": "y"})
    assert apply(table, {"lsn": 10, "a": 7}) == 0
    assert rows(table) == [{"id": 1, "lsn": 20, "a": 7, "b": "y"}]
    assert apply(table, {"lsn": 20, "op": "d"}) == 0
    assert rows(table) == []
    assert apply(table, {"lsn": 20, "b": "z"}) == 0
    assert rows(table) == [{"id": 1, "lsn": 20, "a": None, "b": "z"}]


def test_upserts_of_whole_rows_and_deletes_by_key_are_events_too() -> None:
    table = by_column()
    table.upsert([{"id": 1, "lsn": 20, "a": 2}], columns="given")
    assert table.upsert([{"id": 1, "lsn": 10, "a": 1, "b": "x"}]).rows_late == 0
    assert rows(table) == [{"id": 1, "lsn": 20, "a": 2, "b": "x"}]
    assert table.delete(keys=[{"id": 1, "lsn": 15}]).rows_late == 0
    assert rows(table) == [{"id": 1, "lsn": 20, "a": 2, "b": None}]
    table.delete(keys=[{"id": 1}])  # the row that is there, with its sequence
    assert apply(table, {"lsn": 19, "b": "late"}) == 1
    assert rows(table) == []


def test_a_column_that_comes_later_was_set_by_no_event_yet() -> None:
    table = by_column()
    apply(table, {"lsn": 15, "op": "d"}, {"lsn": 20, "a": 2})
    late = [{"op": "u", "id": 1, "lsn": n, "c": n} for n in (16, 14)]
    for row in late:
        table.apply_changes([row], op="op", missing="keep", schema_mode="merge")
    assert rows(table) == [{"id": 1, "lsn": 20, "a": 2, "b": None, "c": 16}]


@pytest.mark.parametrize("whole_first", [True, False])
def test_a_whole_row_sets_columns_that_come_later(whole_first: bool) -> None:
    changes: list[Change] = [{"lsn": 20, "a": 2, "b": "x"}, {"lsn": 30, "a": 3}]
    table = by_column()
    for change in changes if whole_first else reversed(changes):
        apply(table, change)
    table.add_column("c", "int64")
    assert apply(table, {"lsn": 15, "c": 15}) == 1  # the row of 20 had the default
    assert rows(table) == [{"id": 1, "lsn": 30, "a": 3, "b": "x", "c": None}]
    assert apply(table, {"lsn": 25, "c": 25}) == 0
    assert rows(table)[0]["c"] == 25


def test_key_and_sequence_are_renamed_and_the_values_keep_their_sequences() -> None:
    table = by_column()
    apply(table, {"lsn": 20, "a": 2}, {"lsn": 10, "b": "x"})
    with table.alter() as change:
        change.rename_column("id", "key")
        change.rename_column("lsn", "at")
    table.rename_column("at", "id")  # a name that the key had
    late = [{"key": 1, "id": 15, "a": 0, "b": "y"}, {"key": 2, "id": 1, "a": 1, "b": None}]
    table.upsert(late)
    names = ["key", "id", "a", "b"]
    expected = [(1, 20, 2, "y"), (2, 1, 1, None)]
    for compacted in (False, True):
        if compacted:
            table.compact()
        read = table.scan(columns=names, order_by_key=True).to_arrow().to_pylist()
        assert [tuple(row[name] for name in names) for row in read] == expected
    assert (table.key, table.sequence) == (("key",), ("id",))


def test_an_update_by_condition_keeps_the_sequences_of_its_row() -> None:
    table = by_column()
    apply(table, {"lsn": 10, "a": 1, "b": "x"})
    apply(table, {"lsn": 20, "a": 2})
    table.update({"b": "'assigned'"}, where="id = 1")
    assert apply(table, {"lsn": 9, "b": "late"}) == 1
    assert apply(table, {"lsn": 11, "b": "newer"}) == 0
    assert rows(table) == [{"id": 1, "lsn": 20, "a": 2, "b": "newer"}]
    with pytest.raises(UnsupportedOperation, match="cannot assign sequence column"):
        table.update({COLUMN_ORDER: "NULL"})


def by_update(table: rs.Table) -> None:
    table.update({"b": "'assigned'"}, where="id = 1")


def by_sql(table: rs.Table) -> None:
    session = SessionContext()
    session.register_table("t", table)
    session.sql("UPDATE t SET b = 'assigned' WHERE id = 1").collect()


def by_merge(table: rs.Table) -> None:
    table.merge([{"id": 1, "n": "assigned"}], on="id").when_matched_update({"b": "n"}).execute()


@pytest.mark.parametrize("update", [by_update, by_sql, by_merge])
def test_an_update_of_a_value_that_no_event_has_set_has_the_sequence_of_its_row(
    update: Callable[[rs.Table], None],
) -> None:
    """Invariant 38."""
    table = by_column()
    apply(table, {"lsn": 10, "op": "d"}, {"lsn": 20, "a": 2})
    whole = by_column()
    apply(whole, {"lsn": 20, "a": 2})
    for each in (table, whole):
        update(each)
        each.refresh()
    assert apply(table, {"lsn": 11, "b": "newer than the delete"}) == 0
    assert apply(whole, {"lsn": 19, "b": "late"}) == 1
    apply(whole, {"lsn": 5, "op": "d"})
    assert rows(whole) == [{"id": 1, "lsn": 20, "a": 2, "b": "assigned"}]
    assert apply(whole, {"lsn": 21, "b": "new"}) == 0
    assert rows(whole) == [{"id": 1, "lsn": 21, "a": 2, "b": "new"}]


def test_an_update_sets_a_column_that_came_later() -> None:
    table = by_column()
    apply(table, {"lsn": 20, "a": 2})
    table.add_column("c", "int64")
    table.update({"c": "5"})
    assert apply(table, {"lsn": 19, "c": 4, "b": "x"}) == 0
    assert rows(table) == [{"id": 1, "lsn": 20, "a": 2, "b": "x", "c": 5}]
    assert apply(table, {"lsn": 21, "c": 6}) == 0
    assert rows(table)[0]["c"] == 6


def test_overwrite_and_restore_win_over_everything_before() -> None:
    table = by_column()
    apply(table, {"lsn": 20, "a": 2})
    version = table.refresh()
    table.overwrite([{"id": 1, "lsn": 1, "a": 0, "b": "whole"}])
    apply(table, {"lsn": 2, "b": "after"})
    assert rows(table) == [{"id": 1, "lsn": 2, "a": 0, "b": "after"}]
    table.restore(version)
    assert apply(table, {"lsn": 3, "a": 3, "b": "x"}) == 0
    assert rows(table) == [{"id": 1, "lsn": 20, "a": 2, "b": "x"}]


def test_concurrent_events_of_one_row_both_count() -> None:
    table = by_column()
    apply(table, {"lsn": 10, "a": 1, "b": "x"})
    other, calls = rs.open_table(table.uri), 0

    def meddle(_number: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            apply(other, {"lsn": 30, "a": 3})

    apply(meddled(table, meddle), {"lsn": 20, "a": 2, "b": "y"})
    assert rows(rs.open_table(table.uri)) == [{"id": 1, "lsn": 30, "a": 3, "b": "y"}]


def test_statements_write_whole_rows() -> None:
    table = by_column()
    apply(table, {"lsn": 20, "a": 2})
    session = SessionContext()
    session.register_table("t", table)
    session.sql("INSERT INTO t VALUES (2, 5, 1, 'new')").collect()
    session.sql("INSERT OR REPLACE INTO t VALUES (1, 10, 1, 'late')").collect()
    assert rows(table)[0] == {"id": 1, "lsn": 20, "a": 2, "b": "late"}
    session.sql("UPDATE t SET lsn = 40, a = 4 WHERE id = 1").collect()
    table.refresh()
    assert apply(table, {"lsn": 30, "a": 3, "b": "late"}) == 1
    table.merge([{"id": 2, "lsn": 50, "a": 5, "b": "m"}]).when_matched_update_all(
        except_cols=["id"]
    ).execute()
    assert rows(table)[1] == {"id": 2, "lsn": 50, "a": 5, "b": "m"}
    with pytest.raises(UnsupportedOperation, match="only upsert and apply_changes write it"):
        session.sql(f"UPDATE t SET {COLUMN_ORDER} = NULL").collect()


def test_a_delete_that_is_forgotten_refuses_what_it_may_have_overtaken() -> None:
    table = by_column()
    apply(table, {"lsn": 20, "op": "d"}, {"id": 2, "lsn": 5, "a": 1})
    table.set_properties({"late_horizon": "0 seconds"})
    table.compact()
    assert floor_of(table.handle.newest) is not None
    with pytest.raises(InvalidData, match="not above the floor"):
        apply(table, {"lsn": 10, "a": 1})
    assert apply(table, {"lsn": 21, "a": 1}) == 0


@pytest.mark.parametrize("type_", [pa.timestamp("us", "UTC"), pa.decimal128(21, 2), pa.date32()])
def test_sequences_of_any_ordered_type(type_: pa.DataType) -> None:
    table = by_column(pa.schema([("id", pa.int64()), ("lsn", type_), ("a", pa.int64())]))
    numbers = pa.array([2, 1], pa.int32() if type_ == pa.date32() else pa.int64()).cast(type_)
    for place, name in ((0, "other"), (1, "a")):
        batch = {"op": ["u"], "id": [1], "lsn": numbers.slice(place, 1)}
        batch |= {"a": [7]} if name == "a" else {}
        table.apply_changes(pa.table(batch), op="op", missing="keep")
    assert table.scan(columns=["a", "lsn"]).to_arrow().to_pylist() == [
        {"a": 7, "lsn": numbers[0].as_py()}
    ]


def refused(message: str) -> Any:
    return pytest.raises(RowsieveError, match=message)


def test_what_an_order_by_column_needs_is_checked_before_anything_is_written() -> None:
    with refused("give sequence= as well"):
        rs.create_table(fresh_uri(), SCHEMA, key=["id"], properties=EACH)
    with refused("exclude each other"):
        rs.create_table(
            fresh_uri(),
            SCHEMA,
            key=["id"],
            sequence="lsn",
            properties={**EACH, "combine": "a: max"},
        )
    with refused("'b' is NOT NULL and has no default"):
        by_column(SCHEMA.set(3, pa.field("b", pa.string(), nullable=False)))
    with refused("reserve"):
        rs.create_table(fresh_uri(), pa.schema([(COLUMN_ORDER, pa.int64())]))
    plain = rs.create_table(fresh_uri(), SCHEMA, key=["id"], sequence="lsn")
    with pytest.raises(InvalidInput, match="is 'row' since the table was created"):
        plain.set_properties(EACH)
    with pytest.raises(InvalidSchemaChange, match="reserved"):
        plain.add_column(COLUMN_ORDER, pa.int64())
    table = by_column()
    with pytest.raises(InvalidSchemaChange, match="cannot be changed"):
        table.drop_column(COLUMN_ORDER)
    with pytest.raises(InvalidSchemaChange, match="cannot be changed"):
        table.rename_column(COLUMN_ORDER, "x")
    with refused("exclude each other"):
        table.set_properties({"combine": "a: max"})
    with pytest.raises(InvalidInput, match="combine= has rules"):
        table.upsert([{"id": 1, "lsn": 1, "a": 1}], columns="given", combine={"a": "max"})
    with pytest.raises(SchemaMismatch, match="Leave it out"):
        table.upsert([{"id": 1, "lsn": 1, "a": 1, "b": "x", COLUMN_ORDER: None}])
    with table.writer(durability="commit") as writer, refused("which a writer does not"):
        writer.upsert([{"id": 1, "lsn": 1, "a": 1, "b": "x"}]).result()
    assert table.version == 0


def test_an_older_writer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table = by_column()
    assert table.handle.newest.table.features == ("column_order", "event_order")
    monkeypatch.setattr("rowsieve.storage.log.commit_log.WRITER_VERSION", 12)
    with pytest.raises(UnsupportedProtocol, match="writer protocol 13"):
        apply(table, {"lsn": 1, "a": 1})


@pytest.mark.parametrize("way", ["merge", "from", "statement"])
def test_a_late_change_of_a_merge_counts_in_what_nothing_newer_has_set(way: str) -> None:
    table = by_column()
    for key in (1, 2):
        table.upsert([{"id": key, "lsn": 1, "a": 7, "b": "old"}])
        table.upsert([{"id": key, "lsn": 20, "b": "new"}], columns="given")
    source = pa.table({"id": [1, 2], "lsn": [18, 18], "a": [1, None], "b": ["late", None]})
    session = SessionContext()
    session.register_table("t", table)
    session.register_record_batches("s", [source.to_batches()])
    if way == "merge":
        merging = table.merge(source).when_matched_delete("source.a IS NULL")
        assert merging.when_matched_update_all().execute().rows_late == 0
    elif way == "from":
        session.sql("UPDATE t SET a = s.a, lsn = s.lsn FROM s WHERE t.id = s.id AND s.a = 1")
        session.sql("DELETE FROM t USING s WHERE t.id = s.id AND s.a IS NULL")
    else:
        session.sql(
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.a IS NULL THEN DELETE"
            " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
    table.refresh()
    assert rows(table) == [
        {"id": 1, "lsn": 20, "a": 1, "b": "new"},
        {"id": 2, "lsn": 20, "a": None, "b": "new"},
    ]
    for key in (1, 2):  # the merge has set the column at 18
        assert table.upsert([{"id": key, "lsn": 17, "a": 5}], columns="given").rows_late == 1


def test_a_merge_of_all_columns_leaves_out_that_of_the_order() -> None:
    table = by_column()
    apply(table, {"lsn": 1, "a": 1})
    source = [{"id": 1, "lsn": 2, "a": 2, "b": "x"}, {"id": 2, "lsn": 2, "a": 3, "b": "y"}]
    table.merge(source).when_matched_update_all().when_not_matched_insert_all().execute()
    assert rows(table) == source
