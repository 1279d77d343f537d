"""A merge changes matched rows at the sequences of the source, where the source has them."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Table
from rowsieve.errors import InvalidData, InvalidInput, KeyViolation, SchemaMismatch
from rowsieve.providers.datafusion import SessionContext
from rowsieve.providers.spark.writes.committing import merge_in_order
from rowsieve.providers.spark.writes.job import WriteJob
from rowsieve.types.schema import schema_to_json
from tests.changes.event_order.test_event_order import ordered, rows
from tests.profiles import few
from tests.small_tables import fresh_uri

START = ((1, 5, "a"), (2, 5, "b"))


def by_method(table: Table, source: list[dict[str, Any]], clause: str) -> None:
    """Merge by `Table.merge`."""
    merging = table.merge(source)
    if clause == "DELETE":
        merging.when_matched_delete().execute()
    else:
        merging.when_matched_update({"v": "source.v"}).execute()


def by_session(table: Table, source: list[dict[str, Any]], clause: str) -> None:
    """Merge by a statement."""
    session = SessionContext()
    session.register_table("t", table)
    session.register_record_batches("s", [pa.Table.from_pylist(source).to_batches()])
    action = "DELETE" if clause == "DELETE" else "UPDATE SET v = s.v"
    session.sql(f"MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN {action}").collect()
    table.refresh()


WAYS = [by_method, by_session]


@pytest.mark.parametrize("merge", WAYS)
def test_a_late_delete_has_no_effect(merge: Any) -> None:
    table = ordered(*START)
    merge(table, [{"id": 1, "lsn": 3, "v": "x"}], "DELETE")
    assert rows(table) == [(1, 5, "a"), (2, 5, "b")]
    merge(table, [{"id": 2, "lsn": 9, "v": "x"}], "DELETE")
    assert table.upsert([{"id": 2, "lsn": 8, "v": "late"}]).rows_late == 1
    assert rows(table) == [(1, 5, "a")]
    assert table.upsert([{"id": 2, "lsn": 10, "v": "new"}]).rows_late == 0


@pytest.mark.parametrize("merge", WAYS)
def test_a_late_update_of_some_columns_has_no_effect(merge: Any) -> None:
    table = ordered(*START)
    merge(table, [{"id": 1, "lsn": 3, "v": "x"}, {"id": 2, "lsn": 9, "v": "y"}], "UPDATE")
    assert rows(table) == [(1, 5, "a"), (2, 9, "y")]


@pytest.mark.parametrize("merge", WAYS)
@pytest.mark.parametrize("clause", ["DELETE", "UPDATE"])
def test_a_source_without_the_column_changes_the_row_that_is_there(merge: Any, clause: str) -> None:
    table = ordered(*START)
    merge(table, [{"id": 1, "v": "x"}], clause)
    assert rows(table) == ([] if clause == "DELETE" else [(1, 5, "x")]) + [(2, 5, "b")]
    assert table.upsert([{"id": 1, "lsn": 4, "v": "late"}]).rows_late == 1


@pytest.mark.parametrize("merge", WAYS)
@pytest.mark.parametrize("clause", ["DELETE", "UPDATE"])
def test_a_sequence_that_is_null_is_refused(merge: Any, clause: str) -> None:
    table = ordered(*START)
    source = [{"id": 1, "lsn": None, "v": "x"}, {"id": 2, "lsn": 9, "v": "y"}]
    with pytest.raises(InvalidData, match="lsn"):
        merge(table, source, clause)
    assert rows(table) == list(START)


def test_the_newest_of_several_deletes_counts() -> None:
    table = ordered(*START)
    source = [{"id": 1, "lsn": lsn} for lsn in (3, 9, 4)]
    table.merge(source).when_matched_delete().execute()
    assert table.upsert([{"id": 1, "lsn": 8, "v": "late"}]).rows_late == 1
    with pytest.raises(KeyViolation):
        table.merge([{"id": 2, "lsn": lsn} for lsn in (8, 9)]).when_matched_delete(
            "source.lsn > 7"
        ).execute()


def test_rows_that_the_source_has_not_are_deleted_as_they_are() -> None:
    table = ordered(*START, (3, 7, "c"))
    commit = (
        table.merge([{"id": 1, "lsn": 3}, {"id": 2, "lsn": 6}])
        .when_matched_delete()
        .when_not_matched_by_source_delete()
        .execute()
    )
    assert (commit.rows_late, rows(table)) == (1, [(1, 5, "a")])
    assert table.upsert([{"id": 3, "lsn": 6, "v": "late"}]).rows_late == 1
    assert table.upsert([{"id": 3, "lsn": 7, "v": "same"}]).rows_late == 0


def test_a_clause_may_say_the_sequence() -> None:
    table = ordered(*START)
    source = [{"id": 1, "lsn": 3, "v": "x"}]
    table.merge(source).when_matched_update({"v": "source.v", "lsn": "target.lsn"}).execute()
    assert rows(table) == [(1, 5, "x"), (2, 5, "b")]
    with pytest.raises(InvalidInput, match="except_cols= names 'lsn'"):
        table.merge(source).when_matched_update_all(except_cols=["lsn"])


def test_late_rows_of_a_conflict_have_no_effect() -> None:
    session, table = SessionContext(), ordered(*START)
    session.register_table("t", table)
    text = "INSERT INTO t VALUES (1, 4, 'late'), (2, 6, 'new') ON CONFLICT (id) DO UPDATE SET v = "
    assert session.sql(f"{text} excluded.v").to_pylist() == [{"count": 1}]
    table.refresh()
    assert rows(table) == [(1, 5, "a"), (2, 6, "new")]


def in_files() -> Table:
    schema = pa.schema([(name, pa.int64()) for name in ("id", "file", "at", "v")])
    table = rs.create_table(fresh_uri(), schema, key=["id"], sequence=["file", "at"])
    table.upsert([{"id": 1, "file": 2, "at": 5, "v": 0}])
    return table


def test_a_part_of_a_sequence_is_refused() -> None:
    table = in_files()
    with pytest.raises(SchemaMismatch, match=r"sequence columns \(at\) and lacks others"):
        table.merge([{"id": 1, "at": 9}]).when_matched_delete().execute()
    source = [{"id": 1, "file": 1, "at": 9, "v": 1}]
    with pytest.raises(InvalidInput, match=r"assigns \(at\) of the sequence columns"):
        table.merge(source).when_matched_update({"at": "source.at", "v": "source.v"}).execute()
    with pytest.raises(SchemaMismatch, match="has the columns AT, At for the sequence"):
        table.merge(
            pa.table({"id": [1], "file": [1], "AT": [9], "At": [9]})
        ).when_matched_delete().execute()
    table.merge(source).when_matched_delete().execute()
    assert table.count() == 1
    table.merge(pa.table({"id": [1], "FILE": [2], "at": [5]})).when_matched_delete().execute()
    assert table.count() == 0


@pytest.mark.parametrize("seed", range(few(40)))
def test_a_merge_does_what_upserts_and_deletes_do(seed: int) -> None:
    draw = random.Random(seed)
    ours, theirs = ordered(*START), ordered(*START)
    for step in range(8):
        id_, lsn, value = draw.randrange(1, 4), draw.randrange(12), f"v{step}"
        row = {"id": id_, "lsn": lsn, "v": value}
        present = theirs.count(f"id = {id_}") > 0
        if draw.random() < 0.4:
            ours.merge([row]).when_matched_delete().execute()
            late = theirs.delete(keys=[{"id": id_, "lsn": lsn}]).rows_late if present else 0
        else:
            merging = ours.merge([row]).when_matched_update({"v": "source.v"})
            merging.when_not_matched_insert_all().execute()
            late = theirs.upsert([row]).rows_late
        assert late in (0, 1)
        assert rows(ours) == rows(theirs)


def test_a_merge_of_spark_deletes_at_the_sequences_of_its_rows() -> None:
    table = ordered(*START)
    head = table.handle.newest
    job = WriteJob(
        table_uri=table.uri,
        storage={},
        operation="merge",
        table_uuid=head.table.uuid,
        base_version=head.version,
        schema_json=schema_to_json(head.schema),
        key=head.table.key,
        properties={},
        token=None,
        metadata={},
        done=False,
        op="gone",
        event_order=head.table.sequence,
    )
    sent = pa.table(
        {"id": [1, 2, 3], "lsn": [3, 9, 4], "v": [None, None, "c"], "gone": [True, True, False]}
    )
    merge_in_order(job, sent)
    table.refresh()
    assert rows(table) == [(1, 5, "a"), (3, 4, "c")]
    assert table.upsert([{"id": 2, "lsn": 8, "v": "late"}]).rows_late == 1
    with pytest.raises(KeyViolation):
        job.changes_of(sent.slice(0, 2).set_column(0, "id", pa.array([1, 1])))


# On: the key and a value, so that a key of the table may match no row of the source and yet be
# deleted as one that the source lacks, and inserted.
BY_VALUE = "target.id = source.id AND target.v = source.v"
REPLACED = [  # sequence of the source's row, the rows afterwards
    (7, [(1, 7, "new"), (2, 5, "b")]),
    (5, [(1, 5, "new"), (2, 5, "b")]),
    (3, [(2, 5, "b")]),
]


@pytest.mark.parametrize(("lsn", "expected"), REPLACED)
@pytest.mark.parametrize("update", ["all", "some"])
def test_a_row_that_replaces_a_deleted_one_counts_by_its_sequence(
    lsn: int, expected: list[Any], update: str
) -> None:
    table = ordered(*START)
    source = [{"id": 1, "lsn": lsn, "v": "new"}, {"id": 2, "lsn": 5, "v": "b"}]
    merging = table.merge(source, on=BY_VALUE).when_not_matched_insert_all()
    merging.when_not_matched_by_source_delete()
    if update == "all":
        merging.when_matched_update_all()
    else:
        merging.when_matched_update({"v": "source.v"})  # with the sequence of the source
    merging.execute()
    assert rows(table) == expected
    assert table.upsert([{"id": 1, "lsn": 4, "v": "late"}]).rows_late == 1


def test_a_row_that_replaces_a_deleted_one_needs_a_sequence() -> None:
    table = ordered(*START)
    merging = table.merge([{"id": 1, "lsn": None, "v": "new"}], on=BY_VALUE)
    merging.when_not_matched_insert_all().when_not_matched_by_source_delete()
    with pytest.raises(InvalidData, match="lsn"):
        merging.execute()
    assert rows(table) == list(START)


@pytest.mark.parametrize("lsn", [3, 9])
def test_a_key_that_one_row_deletes_and_another_inserts(lsn: int) -> None:
    """The first row matches id 1 by its value, and deletes it at 6; the other inserts id 1."""
    table = ordered(*START)
    source = [{"id": 9, "lsn": 6, "v": "a"}, {"id": 1, "lsn": lsn, "v": "new"}]
    merging = table.merge(source, on="target.v = source.v")
    merging.when_matched_delete().when_not_matched_insert_all().execute()
    assert rows(table) == ([] if lsn == 3 else [(1, 9, "new")]) + [(2, 5, "b")]
