"""In a table with an event order, the version of a key with the greatest sequence is its row."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Table
from rowsieve.errors import (
    InvalidData,
    InvalidInput,
    InvalidSchemaChange,
    KeyViolation,
    RowsieveError,
    SchemaMismatch,
    UnsupportedOperation,
)
from tests.small_tables import fresh_uri

SCHEMA = pa.schema([("id", pa.int64()), ("lsn", pa.int64()), ("v", pa.string())])
Event = tuple[int, int, str | None]
"""(id, lsn, v); without v the event deletes the row."""


def ordered(*events: Event, schema: pa.Schema = SCHEMA, **options: Any) -> Table:
    table = rs.create_table(fresh_uri(), schema, key=["id"], sequence=["lsn"], **options)
    if events:
        apply(table, *events)
    return table


def apply(table: Table, *events: Event) -> int:
    """Apply the events as one batch; return how many of them were late."""
    rows = [
        {"id": id_, "lsn": lsn, "v": v, "op": "d" if v is None else "u"} for id_, lsn, v in events
    ]
    return table.apply_changes(rows, op="op").rows_late


def rows(table: Table) -> list[tuple[int, int, str]]:
    return sorted((r["id"], r["lsn"], r["v"]) for r in table.scan().to_arrow().to_pylist())


EVENTS: tuple[Event, ...] = ((1, 10, "a"), (1, 20, "b"), (1, 30, None), (1, 25, "zombie"))


@pytest.mark.parametrize("events", list(permutations(EVENTS)))
def test_every_order_of_events_gives_one_table(events: tuple[Event, ...]) -> None:
    table = ordered()
    late = sum(apply(table, event) for event in events)
    assert rows(table) == []
    applied = [e[1] for i, e in enumerate(events) if e[1] == max(f[1] for f in events[: i + 1])]
    assert late == len(events) - len(applied)
    apply(table, (1, 31, "new"))
    assert rows(table) == [(1, 31, "new")]


def test_a_late_event_changes_nothing_and_emits_nothing() -> None:
    table = ordered((1, 20, "b"))
    version = table.version
    commit = table.apply_changes([{"id": 1, "lsn": 10, "v": "a", "op": "u"}], op="op")
    assert (commit.committed, commit.rows_late) == (False, 1)
    assert "1 rows were late" in repr(commit)
    commit = table.upsert([{"id": 1, "lsn": 15, "v": "a"}, {"id": 2, "lsn": 1, "v": "n"}])
    assert (commit.committed, commit.rows_late, commit.rows_written) == (True, 1, 1)
    assert rows(table) == [(1, 20, "b"), (2, 1, "n")]
    assert table.history(1)[0].rows_late == 1
    feed = table.changes(version + 1).read_all().to_pylist()
    assert [(change["id"], change["lsn"]) for change in feed] == [(2, 1)]


def test_of_equal_sequences_the_later_commit_wins() -> None:
    table = ordered((1, 20, "b"))
    assert apply(table, (1, 20, "c")) == 0
    assert rows(table) == [(1, 20, "c")]
    apply(table, (1, 20, None))
    assert rows(table) == []


def test_in_a_batch_identical_changes_collapse_and_different_ones_are_refused() -> None:
    table = ordered()
    apply(table, (1, 20, "b"), (1, 20, "b"), (1, 10, "a"))
    assert rows(table) == [(1, 20, "b")]
    with pytest.raises(KeyViolation, match="the same 'lsn'"):
        apply(table, (1, 30, "c"), (1, 30, "d"))
    with pytest.raises(KeyViolation, match="the same 'lsn'"):
        apply(table, (1, 30, "c"), (1, 30, None))
    data = [{"id": 1, "lsn": 40, "v": "x"}, {"id": 1, "lsn": 40, "v": "y"}]
    with pytest.raises(KeyViolation, match="the same 'lsn'"):
        table.upsert(data)
    table.upsert(data, on_duplicate="last")
    assert rows(table) == [(1, 40, "y")]
    table.upsert([{"id": 1, "lsn": 60, "v": "later"}, {"id": 1, "lsn": 50, "v": "sooner"}])
    assert rows(table) == [(1, 60, "later")]


def test_changes_by_condition_keep_the_sequence_of_the_row_that_they_saw() -> None:
    table = ordered((1, 20, "b"), (2, 20, "b"))
    table.update({"v": "'updated'"}, where="id = 1")
    table.delete("id = 2")
    assert apply(table, (1, 19, "late"), (2, 19, "late")) == 2
    assert rows(table) == [(1, 20, "updated")]
    assert apply(table, (1, 21, "new"), (2, 21, "new")) == 0
    assert rows(table) == [(1, 21, "new"), (2, 21, "new")]
    with pytest.raises(UnsupportedOperation, match="cannot assign sequence column 'lsn'"):
        table.update({"lsn": 5})


def test_a_delete_by_key_brings_a_sequence_or_takes_the_newest() -> None:
    table = ordered((1, 20, "b"), (2, 20, "b"), (3, 20, "b"))
    commit = table.delete(keys=[{"id": 1, "lsn": 10}, {"id": 2, "lsn": 30}, {"id": 9, "lsn": 50}])
    assert (commit.rows_late, commit.rows_deleted) == (1, 2)
    table.delete(keys=[{"id": 1}, {"id": 8}])
    assert apply(table, (1, 19, "l"), (2, 29, "l"), (9, 49, "l"), (8, 1, "n")) == 3
    assert rows(table) == [(3, 20, "b"), (8, 1, "n")]
    assert not table.delete(keys=[{"id": 7}]).committed


def test_restore_and_overwrite_win_over_everything_before() -> None:
    table = ordered((1, 10, "a"))
    version = table.version
    apply(table, (1, 30, "b"), (2, 30, "b"))
    table.restore(version)
    assert rows(table) == [(1, 10, "a")]
    assert apply(table, (1, 20, "c"), (2, 5, "c")) == 0  # nothing after the restored version counts
    assert rows(table) == [(1, 20, "c"), (2, 5, "c")]
    table.overwrite([{"id": 1, "lsn": 7, "v": "o"}])
    assert apply(table, (1, 6, "late"), (2, 4, "new")) == 1
    assert rows(table) == [(1, 7, "o"), (2, 4, "new")]


def test_an_overwrite_by_condition_wins_with_lower_sequences() -> None:
    table = ordered((1, 90, "a"), (2, 90, "a"), (3, 90, "a"))
    table.overwrite([{"id": 1, "lsn": 50, "v": "o"}], where="id <= 2")
    assert rows(table) == [(1, 50, "o"), (3, 90, "a")]
    assert apply(table, (1, 40, "late"), (2, 89, "late")) == 2
    assert apply(table, (1, 60, "new"), (2, 90, "new")) == 0
    assert rows(table) == [(1, 60, "new"), (2, 90, "new"), (3, 90, "a")]
    table.overwrite([{"id": 3, "lsn": 50, "v": "o"}], where="id = 3")
    assert apply(table, (3, 60, "new")) == 0
    assert rows(table)[-1] == (3, 60, "new")


def test_sequences_of_several_columns_are_compared_one_after_the_other() -> None:
    schema = pa.schema([("id", pa.int64()), ("file", pa.string()), ("pos", pa.int64())])
    table = rs.create_table(fresh_uri(), schema, key=["id"], sequence=["file", "pos"])

    def write(file: str, pos: int) -> int:
        return table.upsert([{"id": 1, "file": file, "pos": pos}]).rows_late

    assert [write("bin.2", 5), write("bin.1", 99), write("bin.2", 4), write("bin.2", 6)] == [
        0, 1, 1, 0,
    ]  # fmt: skip
    assert write("bin.3", 0) == 0
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "file": "bin.3", "pos": 0}]
    events = [{"id": 2, "file": "bin.2", "pos": 1}, {"id": 3, "file": "bin.1", "pos": 9}]
    table.upsert(events)  # the greatest sequence of the part has the lesser position
    assert table.upsert([{"id": 2, "file": "bin.1", "pos": 99}]).rows_late == 1


def test_deletes_count_for_the_bound_of_their_part() -> None:
    table = ordered((1, 10, "a"), (2, 50, None))
    assert apply(table, (2, 40, "late")) == 1
    assert rows(table) == [(1, 10, "a")]


def test_a_batch_in_order_reads_no_file() -> None:
    table = ordered(*((i, i, "a") for i in range(100)))
    reads: list[str] = []
    store = table.handle.store
    get = store.get_range

    def noting(path: str, *args: Any, **kwargs: Any) -> Any:
        reads.append(path)
        return get(path, *args, **kwargs)

    store.get_range = noting  # type: ignore[method-assign]
    apply(table, *((i, 100 + i, "b") for i in range(100)))
    assert not [path for path in reads if path.startswith("data/")]
    apply(table, (5, 50, "late"))
    assert [path for path in reads if path.startswith("data/")]


BAD: list[Any] = [
    pytest.param({"id": 1, "v": "a"}, SchemaMismatch, "lsn", id="lacking"),
    pytest.param({"id": 1, "lsn": None, "v": "a"}, RowsieveError, "lsn", id="null"),
    pytest.param({"id": 1, "lsn": "x", "v": "a"}, RowsieveError, "lsn", id="another type"),
]


@pytest.mark.parametrize(("row", "error", "words"), BAD)
def test_bad_sequences_are_refused(row: dict[str, Any], error: type, words: str) -> None:
    table = ordered((1, 1, "a"))
    version = table.version
    calls: list[Callable[[], Any]] = [
        lambda: table.upsert([row]),
        lambda: table.apply_changes([{**row, "op": "u"}], op="op"),
        lambda: table.apply_changes([{**row, "op": "d"}], op="op"),
        lambda: table.overwrite([row]),
    ]
    for call in calls:
        with pytest.raises(error, match=words):
            call()
    assert table.refresh() == version


def test_nan_and_numbers_in_text_are_refused() -> None:
    floats = ordered(schema=pa.schema([("id", pa.int64()), ("lsn", pa.float64())]))
    with pytest.raises(InvalidData, match="NaN, which has no order"):
        floats.upsert(pa.table({"id": [1], "lsn": [float("nan")]}))
    texts = ordered(schema=pa.schema([("id", pa.int64()), ("lsn", pa.string())]))
    for text in ("9", "0/16B3748", "-1", "+9"):
        with pytest.raises(InvalidData, match="is a number"):
            texts.upsert([{"id": 1, "lsn": text}])
    assert texts.version == 0


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (("2c:a30:3", "100:0:1"), "another length"),
        (("000000a0:00000a30:0003", "000000FF:00000a30:0003"), "capital hexadecimal digits"),
        (("0xa", "0xB"), "capital hexadecimal digits"),
        (("2026-1-9", "2026-1-10"), "another length"),
        (("9.5", "10.5"), "another length"),
        (("v 9", "v10"), None),
        (("binlog.000009:9", "binlog.000009:10"), "another length"),
        (("0000002c:00000a30:0003", "0000002c:00000a31:0001"), None),
        (("2026-01-01T10:00:00Z", "2026-01-01T10:00:01Z"), None),
        ((b"9", b"10"), "another length"),
        ((b"\x00\x09", b"\x01\x00"), None),
    ],
)
def test_text_and_bytes_have_one_length_in_a_batch_and_in_the_table(
    values: tuple[Any, Any], words: str | None
) -> None:
    type_ = pa.string() if isinstance(values[0], str) else pa.binary()
    schema = pa.schema([("id", pa.int64()), ("lsn", type_)])
    batches = ordered(schema=schema), ordered(schema=schema)
    rows = [{"id": number, "lsn": value} for number, value in enumerate(values)]
    if words is None:
        assert batches[0].upsert([{**row, "id": 1} for row in rows]).rows_written == 1
        assert [batches[1].upsert([{**row, "id": 1}]).rows_late for row in rows] == [0, 0]
        return
    with pytest.raises(InvalidData, match=words):
        batches[0].upsert(rows)
    one_key = [{**row, "id": 1, "op": "u"} for row in rows]
    ways: tuple[Literal["all", "given"], ...] = ("all", "given")
    for columns in ways:
        with pytest.raises(InvalidData, match=words):
            batches[0].upsert(pa.Table.from_pylist(one_key).drop(["op"]), columns=columns)
    cases: list[tuple[str, Literal["error", "keep"]]] = [
        ("u", "error"),
        ("u", "keep"),
        ("d", "error"),
    ]
    for op, missing in cases:
        changes = [{**row, "op": op} for row in one_key]
        with pytest.raises(InvalidData, match=words):
            batches[0].apply_changes(changes, op="op", missing=missing)
    batches[1].upsert(rows[:1])
    with pytest.raises(InvalidData, match=words):
        batches[1].upsert(rows[1:])
    assert (batches[0].version, batches[1].version) == (0, 1)


def test_capital_hexadecimal_digits_are_refused_though_no_stored_bound_has_a_letter() -> None:
    """The greatest text of the part would not show the capitals, and 'fe' is above 'FF'."""
    table = ordered(schema=pa.schema([("id", pa.int64()), ("lsn", pa.string())]))
    with pytest.raises(InvalidData, match="capital hexadecimal digits"):
        table.upsert([{"id": 1, "lsn": "000000FF:1"}, {"id": 2, "lsn": "00000100:1"}])
    table.upsert([{"id": 1, "lsn": "000000ff:1"}, {"id": 2, "lsn": "00000100:1"}])
    assert table.upsert([{"id": 1, "lsn": "000000fe:1"}]).rows_late == 1
    with pytest.raises(InvalidData, match="capital hexadecimal digits"):
        table.delete(keys=[{"id": 1, "lsn": "000000FE:1"}])


@pytest.mark.parametrize("durability", ["wal", "commit"])
def test_texts_of_a_writer_have_one_length_before_they_are_committed(
    durability: Literal["wal", "commit"], tmp_path: Path
) -> None:
    schema = pa.schema([("id", pa.int64()), ("lsn", pa.string())])
    table = ordered(schema=schema)
    options: dict[str, Any] = {"durability": durability, "flush_interval_s": 3600.0}
    if durability == "wal":
        options["wal_dir"] = str(tmp_path / "wal")
    with table.writer(**options) as writer:
        newer = writer.upsert([{"id": 1, "lsn": "log.1:10"}])
        older = writer.upsert([{"id": 1, "lsn": "log.1:9"}])
        whole = writer.upsert(pa.table({"id": [1, 2], "lsn": ["log.1:8", "log.1:9"]}))
        newer.result()
        for refused in (older, whole):
            with pytest.raises(InvalidData, match="another length"):
                refused.result()
    table.refresh()
    assert table.to_arrow().to_pylist() == [{"id": 1, "lsn": "log.1:10"}]


def test_a_sequence_is_checked_when_a_table_is_created() -> None:
    def create(key: list[str] | None, sequence: Any, type_: Any = "int64") -> None:
        rs.create_table(
            fresh_uri(), pa.schema([("id", "int64"), ("s", type_)]), key, sequence=sequence
        )

    cases: list[tuple[Callable[[], None], str]] = [
        (lambda: create(None, ["s"]), "give key= as well"),
        (lambda: create(["id"], ["id"]), "names a column twice, or one of the key"),
        (lambda: create(["id"], ["s", "s"]), "names a column twice"),
        (lambda: create(["id"], 3), "a name, or a list of names"),
        (lambda: create(["id"], ["s"], pa.bool_()), "cannot order the versions"),
        (lambda: create(["id"], ["s"], pa.list_(pa.int64())), "cannot order the versions"),
    ]
    for call, words in cases:
        with pytest.raises(InvalidInput, match=words):
            call()


def test_one_sequence_column_is_named_without_a_list() -> None:
    schema = pa.schema([("id", pa.int64()), ("s", pa.int64())])
    table = rs.create_table(fresh_uri(), schema, ["id"], sequence="s")
    table.upsert([{"id": 1, "s": 2}])
    assert table.upsert([{"id": 1, "s": 1}]).rows_late == 1


def test_another_sequence_than_the_tables_is_refused() -> None:
    table = ordered((1, 1, "a"))
    event = {"id": 1, "lsn": 2, "v": "b", "op": "u"}
    with pytest.raises(InvalidInput, match=r"is not the table's, which orders changes by \(lsn\)"):
        table.apply_changes([event], op="op", sequence="v")
    table.apply_changes([event], op="op", sequence="lsn")
    assert rows(table) == [(1, 2, "b")]
    plain = rs.create_table(fresh_uri(), SCHEMA, key=["id"])
    with pytest.raises(InvalidInput, match="sequence= is missing"):
        plain.apply_changes([event], op="op")


def test_sequence_columns_are_renamed_and_widened_but_neither_dropped_nor_nullable() -> None:
    schema = pa.schema([("id", pa.int64()), ("lsn", pa.int32()), ("v", pa.string())])
    table = ordered((1, 20, "a"), (2, 20, None), schema=schema)
    changes: list[Callable[[], Any]] = [
        lambda: table.drop_column("lsn"),
        lambda: table.relax_not_null("lsn"),
    ]
    for change in changes:
        with pytest.raises(InvalidSchemaChange, match="to the sequence"):
            change()
    table.rename_column("lsn", "pos")
    table.widen_column("pos", pa.int64())
    data = [{"id": i, "pos": 19, "v": "late"} for i in (1, 2)]
    assert table.upsert(data).rows_late == 2
    assert table.upsert([{"id": 2, "pos": 2**40, "v": "new"}]).rows_late == 0
    assert table.count() == 2


def test_a_table_without_an_order_is_written_as_before() -> None:
    table = rs.create_table(fresh_uri(), SCHEMA, key=["id"])
    info = table.handle.newest.table
    assert (info.writer_version, info.features, info.sequence) == (2, (), ())
    assert ordered().handle.newest.table.features == ("event_order",)


DAY = dt.date(2026, 1, 2)
NOON = dt.datetime(2026, 1, 2, 12)
TYPES: list[Any] = [
    pytest.param(pa.int8(), [-5, 3, 100], id="int8"),
    pytest.param(pa.int16(), [-5, 3, 1000], id="int16"),
    pytest.param(pa.uint32(), [0, 3, 2**32 - 1], id="uint32"),
    pytest.param(pa.uint64(), [0, 2**63, 2**64 - 1], id="uint64"),
    pytest.param(pa.float32(), [float("-inf"), -0.5, 2.0], id="float32"),
    pytest.param(pa.float64(), [-1e300, 0.0, float("inf")], id="float64"),
    pytest.param(pa.decimal128(38, 2), [Decimal("-1.10"), Decimal(2), Decimal(10)], id="decimal"),
    pytest.param(pa.date32(), [DAY, DAY.replace(day=10), DAY.replace(month=2)], id="date"),
    pytest.param(pa.time64("us"), [dt.time(1), dt.time(2), dt.time(10)], id="time"),
    pytest.param(
        pa.timestamp("us"), [dt.datetime(1960, 1, 1), NOON, NOON.replace(hour=13)], id="us"
    ),
    pytest.param(pa.timestamp("ns", "UTC"), [1, 1_000, 10**18], id="ns"),
    pytest.param(pa.string(), ["aab", "abc", "b00"], id="text"),
    pytest.param(pa.binary(), [b"\x00", b"\x01", b"\xff"], id="bytes"),
    pytest.param(pa.binary(2), [b"\x00\x01", b"\x01\x00", b"\xff\x00"], id="fixed bytes"),
    pytest.param(pa.uuid(), [bytes(16), b"\x01" + bytes(15), b"\xff" * 16], id="uuid"),
    pytest.param(pa.string(), ["a" * 5_000, "a" * 4_999 + "b", "b" * 5_000], id="long text"),
]


@pytest.mark.parametrize(("type_", "values"), TYPES)
def test_every_type_with_an_order_is_a_sequence(type_: pa.DataType, values: list[Any]) -> None:
    mark = {b"ARROW:extension:name": b"rowsieve.timestamp_ns.1"}
    is_nanos = pa.types.is_timestamp(type_) and type_.unit == "ns"
    field = pa.field("s", type_, metadata=mark if is_nanos else None)
    schema = pa.schema([("id", pa.int64()), field, ("v", pa.string())])
    table = rs.create_table(fresh_uri(), schema, key=["id"], sequence=["s"])

    def batch(place: int, v: str, *, op: str = "u") -> int:
        sequences = pa.array([values[place]] * 2, getattr(type_, "storage_type", type_))
        if isinstance(type_, pa.BaseExtensionType):
            sequences = pa.ExtensionArray.from_storage(type_, sequences)
        data = pa.table(
            {"id": [1, 2], "s": sequences, "v": [v, v], "op": [op, "u"]},
        )
        return table.apply_changes(data, op="op").rows_late

    assert batch(1, "second") == 0
    assert batch(0, "first") == 2
    assert batch(2, "third", op="d") == 0
    assert batch(1, "second") == 2
    table.compact()
    assert batch(1, "second") == 2
    assert table.scan(columns=["id", "v"]).to_arrow().to_pylist() == [{"id": 2, "v": "third"}]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(pa.array(['{"a":1}'] * 2, pa.json_()), id="json"),
        pytest.param(pa.array([b"0" * 16] * 2, pa.uuid()), id="uuid"),
        pytest.param(
            pa.array([pa.MonthDayNano([1, 2, 3000])] * 2, pa.month_day_nano_interval()),
            id="interval",
        ),
        pytest.param(pa.array([[float("nan"), None]] * 2), id="list"),
        pytest.param(pa.array([{"x": float("nan")}] * 2), id="struct"),
        pytest.param(
            pa.array([[("k", float("nan"))]] * 2, pa.map_(pa.string(), pa.float64())), id="map"
        ),
        pytest.param(pa.array(["a", "a"]).dictionary_encode(), id="dictionary"),
        pytest.param(pa.nulls(2, pa.float64()), id="null"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"missing": "keep"}], ids=["whole", "kept"])
def test_a_redelivered_change_of_any_type_collapses(
    value: pa.Array, options: dict[str, Any]
) -> None:
    events = pa.table(
        [pa.array([1, 1]), value, pa.array([5, 5]), pa.array(["u", "u"])], ["id", "x", "s", "op"]
    )
    schema = pa.schema([("id", pa.int64()), ("x", value.type), ("s", pa.int64())])
    for sequence in (None, "s"):
        table = rs.create_table(fresh_uri(), schema, ["id"], sequence=sequence)
        assert table.apply_changes(events, op="op", sequence="s", **options).rows_written == 1
