"""Events of Debezium: all forms in which they come, all sources, and all operations."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import InvalidData, KeyViolation, SchemaMismatch, UnsupportedOperation
from tests.envelopes.events import (
    AFTER_STREAM,
    CRATES,
    STREAM,
    crate,
    crates,
    event,
    rows,
    texts,
)
from tests.small_tables import appended, fresh_uri

SCHEMA = {"type": "struct", "optional": False, "name": "shop.store.crates.Envelope", "fields": []}


def with_schema(events: Any) -> list[dict[str, Any]]:
    return [{"schema": SCHEMA, "payload": each} for each in events]


ROW = pa.struct(list(CRATES))
STRUCTS = pa.schema(
    [
        ("before", ROW),
        ("after", ROW),
        ("op", pa.string()),
        (
            "source",
            pa.struct([("lsn", pa.int64()), ("schema", pa.string()), ("table", pa.string())]),
        ),
    ]
)


def structs() -> pa.Table:
    events = [
        {**each, "source": {name: each["source"][name] for name in ("lsn", "schema", "table")}}
        for each in STREAM
    ]
    return pa.Table.from_pylist([{n: e[n] for n in STRUCTS.names} for e in events], STRUCTS)


FORMS: dict[str, Any] = {
    "texts": texts(*STREAM),
    "bytes": [json.dumps(each).encode() for each in STREAM],
    "dicts": list(STREAM),
    "lines": "\n".join(map(json.dumps, STREAM)),
    "lines with empty ones": "\n\n".join(map(json.dumps, STREAM)).encode() + b"\r\n",
    "an array": json.dumps(list(STREAM), indent=1),
    "with a schema": texts(*with_schema(STREAM)),
    "dicts with a schema": with_schema(STREAM),
    "a column of text": pa.table({"value": texts(*STREAM)}),
    "a column of another name": pa.table({"message": texts(*STREAM)}),
    "a column of bytes": pa.table({"value": pa.array(texts(*STREAM)).cast(pa.binary())}),
    "a column of large text": pa.table({"value": pa.array(texts(*STREAM), pa.large_string())}),
    "a topic of Kafka": pa.table(
        {
            "key": [b"{}"] * 5,
            "value": pa.array(texts(*STREAM)).cast(pa.binary()),
            "topic": ["shop.store.crates"] * 5,
            "partition": [0, 0, 1, 0, 1],
            "offset": [5, 6, 2, 7, 3],
        }
    ),
    "structs": structs(),
    "a column of structs": pa.table(
        {"value": pa.chunked_array([structs().to_struct_array().combine_chunks()])}
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_events_gives_the_same_rows(form: str) -> None:
    table = crates()
    applied = table.apply_events(FORMS[form], format="debezium")
    assert rows(table) == AFTER_STREAM
    assert (applied.changes, applied.skipped, applied.bad.num_rows) == (5, {}, 0)
    assert applied.commit.version == 1


@pytest.mark.parametrize("connector", ["postgresql", "mysql", "sqlserver", "oracle", "db2"])
def test_events_of_each_source_are_ordered_by_its_log(connector: str) -> None:
    ats = {id(each): at for at, each in enumerate(STREAM)}
    own = [
        event(each["op"], each["before"], each["after"], ats[id(each)] * 9, connector)
        for each in STREAM
    ]
    table = crates()
    table.apply_events(texts(*reversed(own)), format="debezium")
    assert rows(table) == AFTER_STREAM


def test_a_source_without_log_numbers_is_ordered_by_its_clock_with_a_warning() -> None:
    own = [event("c", None, crate(1, "old")), event("u", None, crate(1, "new"), 7)]
    for each in own:
        each["source"] |= {"connector": "vitess", "lsn": None}
    table = crates()
    with pytest.warns(UserWarning, match="ordered by ts_ms only"):
        table.apply_events(texts(*reversed(own)), format="debezium")
    assert rows(table)[0]["label"] == "new"


def test_events_without_any_order_may_change_a_row_once() -> None:
    def bare(row: dict[str, Any]) -> str:
        return json.dumps({"op": "c", "after": row})

    table = crates()
    table.apply_events([bare(crate(1)), bare(crate(2)), bare(crate(2))], format="debezium")
    assert [row["id"] for row in rows(table)] == [1, 2]
    with pytest.raises(
        KeyViolation, match=r"event 0, counted from 0, and event 1 .* have no order"
    ):
        table.apply_events([bare(crate(1, "a")), bare(crate(1, "b"))], format="debezium")


def test_two_changes_at_one_place_of_the_log_are_refused_unless_they_are_the_same() -> None:
    table = crates()
    one, same = event("c", None, crate(1, "plums")), event("c", None, crate(1, "plums"))
    table.apply_events(texts(one, same), format="debezium")
    other = event("u", None, crate(1, "figs"))
    with pytest.raises(KeyViolation, match=r"event [01], .* and event 2 .* have the same lsn"):
        table.apply_events(texts(one, same, other), format="debezium")
    assert table.version == 1


def test_an_update_of_the_key_deletes_the_old_row() -> None:
    table = crates()
    table.apply_events(
        texts(STREAM[1], event("u", crate(2), crate(8, "pears"), 9)), format="debezium"
    )
    assert rows(table) == [crate(8, "pears")]


def test_a_truncate_removes_what_was_before_it_and_nothing_after() -> None:
    table = crates()
    table.upsert(pa.table({"id": [70], "label": ["old"], "grams": [1]}))
    later = event("c", None, crate(5, "nuts"), 20)
    applied = table.apply_events(
        texts(later, *STREAM, event("t", None, None, 10)), format="debezium", token=("loader", 4)
    )
    assert rows(table) == [crate(5, "nuts")]
    assert applied.commit.operation == "overwrite"
    again = table.apply_events(texts(later), format="debezium", token=("loader", 4))
    assert again.commit.commit_id == applied.commit.commit_id


def test_a_truncate_alone_empties_the_table_in_one_commit() -> None:
    table = crates()
    table.apply_events(texts(*STREAM), format="debezium")
    table.apply_events(texts(event("t", None, None, 10)), format="debezium")
    assert (table.count(), table.version) == (0, 2)


def test_a_truncate_without_an_order_is_refused() -> None:
    with pytest.raises(KeyViolation, match="which of them a truncate removes is unknown"):
        crates().apply_events(['{"op":"t"}', '{"op":"c","after":{"id":1}}'], format="debezium")


@pytest.mark.filterwarnings("ignore:apply_events. .* ordered by ts_ms only")
@pytest.mark.parametrize("connector", ["postgresql", "mysql", "vitess"])
def test_a_truncate_and_a_change_at_one_place_are_refused(connector: str) -> None:
    table = crates()
    both = [event("t", None, None, 10, connector), event("c", None, crate(1), 10, connector)]
    with pytest.raises(KeyViolation, match=r"event 1, .* changes a row, and event 0 truncates"):
        table.apply_events(texts(*both), format="debezium")
    assert table.version == 0
    later = event("t", None, None, 11, connector)
    table.apply_events(texts(*both, later), format="debezium")
    assert rows(table) == []


def read_at(at: int, connector: str, label: str, mark: Any = "last") -> dict[str, Any]:
    one = event("r", None, crate(1, label), at, connector)
    one["source"] |= {"snapshot": mark}
    return one


@pytest.mark.parametrize("mark", ["true", "first", "last", True])
@pytest.mark.parametrize("connector", ["postgresql", "mysql", "sqlserver", "oracle", "db2"])
def test_a_row_of_the_snapshot_is_before_a_change_at_its_place(connector: str, mark: Any) -> None:
    read, change = (
        read_at(3, connector, "old", mark),
        event("u", None, crate(1, "new"), 3, connector),
    )
    for both in ([read, change], [change, read]):
        table = crates()
        table.apply_events(texts(*both), format="debezium")
        assert rows(table) == [crate(1, "new")]
    earlier = event("u", None, crate(1, "new"), 2, connector)
    table.apply_events(texts(read, earlier), format="debezium")
    assert rows(table) == [crate(1, "old")]


def test_an_incremental_snapshot_has_no_order_at_one_place() -> None:
    both = [read_at(3, "postgresql", "old", "incremental"), event("u", None, crate(1, "new"), 3)]
    with pytest.raises(KeyViolation, match="have the same lsn"):
        crates().apply_events(texts(*both), format="debezium")


def test_rows_without_a_place_in_the_log_of_mysql_are_not_mixed_with_its_changes() -> None:
    read = read_at(3, "mysql", "old", "incremental")
    read["source"] |= {"file": "", "pos": 0}
    change = event("u", None, crate(1, "new"), 3, "mysql")
    with pytest.raises(InvalidData, match=r"event 0, .* no file, .* in calls of their own"):
        crates().apply_events(texts(read, change), format="debezium")
    table = crates()
    with pytest.warns(UserWarning, match="ordered by ts_ms only"):
        table.apply_events(texts(read), format="debezium")
    assert rows(table) == [crate(1, "old")]


def test_binlogs_of_two_names_have_no_order() -> None:
    both = [event("u", None, crate(1, f"v{at}"), at, "mysql") for at in range(2)]
    both[1]["source"] |= {"file": "other.000001"}
    with pytest.raises(InvalidData, match=r"event 1, .* of the log 'other', .* of 'binlog'"):
        crates().apply_events(texts(*both), format="debezium")


FIRST_MESSAGES: dict[str, Any] = {
    "a logical message": {"op": "m", "ts_ms": 5, "source": {"connector": "postgresql", "lsn": 5}},
    "an event of another table": event("c", None, crate(9), 0, "postgresql", "boxes"),
    "an event of another log": {
        **event("c", None, crate(9), 0, "mysql", "boxes"),
        "source": {"connector": "mysql", "table": "boxes", "file": "other.000001", "pos": 4},
    },
    "a schema change": {
        "source": {"connector": "sqlserver", "commit_lsn": "0000002c:00000a30:0003"},
        "ddl": "ALTER TABLE boxes ADD lid TEXT",
    },
}


@pytest.mark.parametrize("with_schemas", [False, True])
@pytest.mark.parametrize("name", FIRST_MESSAGES)
def test_the_first_message_may_be_of_another_connector_than_the_changes(
    name: str, with_schemas: bool
) -> None:
    changes = [event("u", None, crate(1, f"v{at}"), at, "mysql") for at in (1, 2, 0)]
    for each in changes:
        each["source"]["ts_ms"] = 5  # the log alone orders them
    messages = [FIRST_MESSAGES[name], *changes]
    table = crates()
    applied = table.apply_events(
        texts(*(with_schema(messages) if with_schemas else messages)),
        format="debezium",
        source="shop.crates",
        on_bad="collect",
    )
    assert rows(table) == [crate(1, "v2")]
    assert applied.bad.num_rows == name.startswith("an event")


OTHER_MESSAGES: dict[str, tuple[Any, str]] = {
    "tombstone": (None, "tombstones"),
    "tombstone in a schema": ({"schema": None, "payload": None}, "tombstones"),
    "heartbeat": ({"ts_ms": 1_800_000_000_000}, "heartbeats"),
    "begin": (
        {"status": "BEGIN", "id": "571", "event_count": None, "ts_ms": 5},
        "transaction markers",
    ),
    "end": (
        {"status": "END", "id": "571", "data_collections": [{"event_count": 1}], "ts_ms": 5},
        "transaction markers",
    ),
    "ddl": (
        {
            "source": {"connector": "mysql", "db": "shop", "table": "crates"},
            "ts_ms": 5,
            "databaseName": "shop",
            "ddl": "ALTER TABLE crates ADD lid TEXT",
            "tableChanges": [],
        },
        "schema changes",
    ),
    "message": (
        {
            "op": "m",
            "ts_ms": 5,
            "source": {"lsn": 5},
            "message": {"prefix": "p", "content": "aGk="},
        },
        "logical messages",
    ),
}


@pytest.mark.parametrize("name", OTHER_MESSAGES)
def test_messages_that_change_no_row_are_counted(name: str) -> None:
    message, kind = OTHER_MESSAGES[name]
    table = crates()
    applied = table.apply_events(texts(STREAM[0], message, STREAM[1]), format="debezium")
    assert applied.skipped == {kind: 1}
    assert len(rows(table)) == 2
    nothing = table.apply_events(texts(message), format="debezium")
    assert not nothing.commit.committed


def test_no_events_commit_nothing() -> None:
    empty: tuple[Any, ...] = ([], "", b"\n", pa.table({"value": pa.array([], pa.string())}))
    for nothing in empty:
        assert not crates().apply_events(nothing, format="debezium").commit.committed


def test_names_of_columns_may_differ_in_case() -> None:
    def shout(row: dict[str, Any] | None) -> dict[str, Any] | None:
        return None if row is None else {name.upper(): value for name, value in row.items()}

    table = crates()
    own = [
        {**each, "after": shout(each["after"]), "before": shout(each["before"])} for each in STREAM
    ]
    table.apply_events(texts(*own), format="debezium")
    assert rows(table) == AFTER_STREAM


def test_a_name_that_two_columns_differ_from_in_case_is_unknown() -> None:
    schema = pa.schema([("id", pa.int64()), ("vx", pa.string()), ("VX", pa.string())])
    event_ = event("c", None, {"id": 1, "Vx": "x"})
    table = rowsieve.create_table(fresh_uri(), schema, key=["id"])
    with pytest.raises(InvalidData, match="unknown field `Vx`"):
        table.apply_events(texts(event_), format="debezium")
    with pytest.raises(SchemaMismatch, match="'Vx' that the table does not have"):
        table.apply_events(pa.Table.from_pylist([event_]), format="debezium")


@pytest.mark.parametrize("null", ["null", b"null", " null\r", "\tnull "])
def test_null_as_json_is_a_tombstone(null: Any) -> None:
    first = texts(STREAM[0])[0]
    assert first is not None
    lines = first.encode() + b"\n" + (null if isinstance(null, bytes) else null.encode()) + b"\n"
    kind = pa.binary() if isinstance(null, bytes) else pa.string()
    column = pa.table({"value": pa.array([first, null], kind)})
    for data in ([first, null], lines, f"[{first}, null]", column):
        applied = crates().apply_events(data, format="debezium")
        assert (applied.changes, applied.skipped) == (1, {"tombstones": 1})
    with pytest.raises(InvalidData, match=r"event 0, .*a tombstone of unwrapped events"):
        crates().apply_events([null], format="debezium-unwrapped")


def test_digits_are_never_lost() -> None:
    largest = 2**63 - 1
    table = crates()
    table.apply_events(
        texts(
            event("c", None, crate(largest, "a", 2**53 + 1), 2**61),
            event("u", None, crate(largest, "b", -(2**63)), 2**61 + 1),
        ),
        format="debezium",
    )
    assert rows(table) == [crate(largest, "b", -(2**63))]


def test_a_table_without_a_key_is_refused() -> None:
    with pytest.raises(UnsupportedOperation, match="has no key"):
        appended().apply_events(texts(*STREAM), format="debezium")


def test_a_column_that_the_table_lacks_is_refused() -> None:
    bad = event("c", None, {**crate(1), "lid": "oak"})
    with pytest.raises(InvalidData, match=r"event 1, .*unknown field `lid`"):
        crates().apply_events(texts(STREAM[0], bad), format="debezium")
    nested = structs().append_column("after2", structs().column("after"))
    wide = nested.drop_columns(["after", "after2"]).append_column(
        "after", pa.array([{"id": 1, "lid": "oak"}] * 5)
    )
    with pytest.raises(SchemaMismatch, match="'lid' that the table does not have"):
        crates().apply_events(wide, format="debezium")


def test_events_of_two_tables_are_refused() -> None:
    two = texts(STREAM[0], event("c", None, crate(1), 9, table="lids"))
    with pytest.raises(InvalidData, match=r"event 1, .*of the table shop\.store\.lids"):
        crates().apply_events(two, format="debezium")
    with pytest.raises(InvalidData, match=r"event 0, .*of the table shop\.store\.crates"):
        crates().apply_events(two[:1], format="debezium", source="lids")
    for name in ("crates", "store.crates", "shop.store.crates"):
        crates().apply_events(two[:1], format="debezium", source=name)


def cell(value: Any) -> dict[str, Any]:
    return {"value": value, "deletion_ts": None, "set": True}


CELLS = {"id": cell(1), "label": cell("figs"), "grams": cell(100)}


@pytest.mark.parametrize(
    ("connector", "after", "reason"),
    [
        ("mongodb", '{"_id": 1}', "an event of MongoDB"),
        ("mongodb", crate(1, "figs"), "an event of MongoDB"),
        ("cassandra", CELLS, "an event of Cassandra"),
        ("cassandra", crate(1, "figs"), "an event of Cassandra"),
    ],
)
def test_connectors_without_rows_are_refused_by_name(
    connector: str, after: Any, reason: str
) -> None:
    source = {"connector": connector, "keyspace": "store", "table": "crates", "pos": 54}
    odd = {"op": "c", "after": after, "source": source, "ts_ms": 1}
    table = crates()
    for data in (texts(odd), [odd], texts({"schema": {}, "payload": odd})):
        with pytest.raises(InvalidData, match=reason):
            table.apply_events(data, format="debezium")
        mixed = [*(texts(*STREAM) if isinstance(data[0], str) else STREAM), *data]
        applied = table.apply_events(mixed, format="debezium", on_bad="collect")
        assert applied.bad.column("event").to_pylist() == [len(STREAM)]
    assert rows(table) == AFTER_STREAM
    long = texts(*[{**odd, "source": source | {"lsn": at}} for at in range(600)])
    applied = table.apply_events(long, format="debezium", on_bad="collect")
    assert applied.bad.num_rows == 600


def test_structs_of_refused_connectors_are_bad() -> None:
    source = pa.struct([("connector", pa.string()), ("lsn", pa.int64())])
    schema = pa.schema([("op", pa.string()), ("after", ROW), ("source", source)])
    odd = {"op": "c", "after": crate(1), "source": {"connector": "mongodb", "lsn": 1}}
    with pytest.raises(InvalidData, match="an event of MongoDB"):
        crates().apply_events(pa.Table.from_pylist([odd], schema), format="debezium")


def unwrapped(each: dict[str, Any], deleted: str | None) -> dict[str, Any]:
    row = each["after"] or each["before"]
    flag = {} if deleted is None else {"__deleted": deleted}
    return {**row, "__op": each["op"], "__source_lsn": each["source"]["lsn"], **flag}


def flags(each: dict[str, Any]) -> str:
    return "true" if each["op"] == "d" else "false"


UNWRAPPED: dict[str, Any] = {
    "with __op": texts(*(unwrapped(each, None) for each in STREAM)),
    "with __deleted": texts(*(unwrapped(each, flags(each)) for each in STREAM)),
    "with other fields": texts(
        *({**unwrapped(each, flags(each)), "__ts_ms": 5, "__snapshot": "false"} for each in STREAM)
    ),
    "with a schema": texts(*with_schema([unwrapped(each, None) for each in STREAM])),
    "dicts": [unwrapped(each, flags(each)) for each in STREAM],
    "columns": pa.Table.from_pylist([unwrapped(each, flags(each)) for each in STREAM]),
}


@pytest.mark.parametrize("form", UNWRAPPED)
def test_unwrapped_events_give_the_same_rows(form: str) -> None:
    table = crates()
    data = UNWRAPPED[form]
    table.apply_events(data[::-1] if isinstance(data, list) else data, format="debezium-unwrapped")
    assert rows(table) == AFTER_STREAM


def test_only_a_flag_may_mark_a_delete_of_unwrapped_events() -> None:
    table = crates()
    plain = [{**crate(1, "plums"), "__lsn": 1}, {**crate(1), "__lsn": 2, "__deleted": True}]
    table.apply_events(texts(*plain), format="debezium-unwrapped")
    assert rows(table) == []


@pytest.mark.parametrize("flag", ["TRUE", "yes", 1, 0, ["true"], ""])
def test_an_unknown_flag_of_deletes_is_refused(flag: Any) -> None:
    row = {**crate(1, "plums"), "__lsn": 1, "__deleted": flag}
    with pytest.raises(InvalidData, match=r"event 0, .*the operation .*__deleted: .* is unknown"):
        crates().apply_events(texts(row), format="debezium-unwrapped")
    plain = [{**row, "__deleted": None}, {**crate(2), "__lsn": 2, "__deleted": False}]
    table = crates()
    table.apply_events(texts(*plain), format="debezium-unwrapped")
    assert table.count() == 2


def test_a_tombstone_of_unwrapped_events_is_refused() -> None:
    data = texts(unwrapped(STREAM[0], None), None)
    with pytest.raises(InvalidData, match=r"event 1, .*a tombstone of unwrapped events"):
        crates().apply_events(data, format="debezium-unwrapped")


def test_a_failed_call_changes_nothing_and_a_token_is_once(tmp_path: Any) -> None:
    table: Table = crates()
    with pytest.raises(InvalidData):
        table.apply_events([*texts(*STREAM), "{"], format="debezium", token=("loader", 1))
    assert table.version == 0
    first = table.apply_events(texts(*STREAM), format="debezium", token=("loader", 1))
    again = table.apply_events(["{"], format="debezium", token=("loader", 1))
    assert again.commit.commit_id == first.commit.commit_id


MARKER = "__debezium_unavailable_value"


def test_a_value_that_was_not_sent_stays_as_it_is() -> None:
    table = crates()
    table.apply_events(texts(*STREAM), format="debezium")
    unsent = event("u", None, crate(2, MARKER, 640), 5)
    absent = event("u", None, {"id": 3, "grams": 90}, 6)
    new = event("c", None, {"id": 9, "label": "nuts"}, 7)
    table.apply_events(texts(unsent, absent, new), format="debezium")
    assert rows(table) == [crate(2, "pears", 640), crate(3, "figs", 90), crate(9, "nuts", None)]


def test_a_value_that_was_not_sent_after_a_truncate_is_that_of_the_event_before() -> None:
    table = crates()
    table.apply_events(texts(*STREAM), format="debezium")
    table.apply_events(
        texts(
            event("t", None, None, 10),
            event("c", None, crate(2, "new", 1), 11),
            event("u", None, crate(2, MARKER, 2), 12),
        ),
        format="debezium",
    )
    assert rows(table) == [crate(2, "new", 2)]


def test_a_key_that_was_not_sent_is_refused() -> None:
    for row in ({"label": "nuts"}, crate(MARKER)):  # type: ignore[arg-type]
        with pytest.raises(InvalidData, match=r"event 0, .*key column 'id'"):
            crates().apply_events(texts(event("u", None, row)), format="debezium")
