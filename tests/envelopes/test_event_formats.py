"""Maxwell, Canal, AWS DMS and wal2json tell one story, and leave the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve.envelopes.event_formats import FORMATS
from rowsieve.errors import InvalidData, KeyViolation, SchemaMismatch
from tests.envelopes.events import CRATES, crate, crates, rows, texts
from tests.small_tables import fresh_uri

pytestmark = pytest.mark.filterwarnings("ignore:apply_events. .* ordered by timestamp only")

# A crate is packed, relabelled, renumbered from 2 to 9; another one is thrown away.
FINAL = [crate(9, "pears", 650)]


def maxwell(kind: str, at: int, data: Any, old: Any = None) -> dict[str, Any]:
    head = {"database": "shop", "table": "crates", "type": kind, "ts": 1_800_000_000}
    place = {"xid": 23_396, "xoffset": at, "position": f"binlog.000009:{800 + at}"}
    return {**head, **place, "data": data, **({} if old is None else {"old": old})}


def canal(kind: str, at: int, data: Any, old: Any = None) -> dict[str, Any]:
    head = {"database": "shop", "table": "crates", "type": kind, "isDdl": False, "pkNames": ["id"]}
    types = {"mysqlType": {"id": "bigint"}, "sqlType": {"id": -5}, "sql": ""}
    written = None if data is None else [{n: v and str(v) for n, v in row.items()} for row in data]
    return {
        **head,
        **types,
        "es": 1_800_000_000_000 + at,
        "ts": 1,
        "id": at,
        "data": written,
        "old": old,
    }


def dms(kind: str, at: int, data: Any, before: Any = None) -> dict[str, Any]:
    metadata = {
        "timestamp": f"2027-01-15T08:00:0{at}.000001Z",
        "record-type": "data",
        "operation": kind,
        "partition-key-type": "primary-key",
        "schema-name": "shop",
        "table-name": "crates",
        "transaction-id": 9,
    }
    return {"data": data, "metadata": metadata, **({"before-image": before} if before else {})}


def named(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "type": "text", "value": value} for name, value in row.items()]


def by_row(action: str, at: int, after: Any, before: Any = None) -> dict[str, Any]:
    message: dict[str, Any] = {"action": action, "schema": "store", "table": "crates"}
    message |= {"lsn": f"0/16B37{at:02X}", "xid": 7}
    if after is not None:
        message["columns"] = named(after)
    if before is not None:
        message["identity"] = named(before)
    return message


def change(kind: str, after: Any, before: Any = None) -> dict[str, Any]:
    one: dict[str, Any] = {"kind": kind, "schema": "store", "table": "crates"}
    if after is not None:
        one |= {"columnnames": list(after), "columnvalues": list(after.values())}
    if before is not None:
        one["oldkeys"] = {"keynames": list(before), "keyvalues": list(before.values())}
    return one


def file_row(op: str, at: int, row: dict[str, Any]) -> dict[str, Any]:
    return {"Op": op, "AR_H_CHANGE_SEQ": f"2027011508000000000000000000000000{at}", **row}


STORIES: dict[str, tuple[list[Any], list[Any], dict[str, int]]] = {
    "maxwell": (
        [
            maxwell("insert", 1, crate(1, "plums", 900)),
            maxwell("insert", 2, crate(2, "pears", 700)),
            maxwell("update", 3, crate(2, "pears", 650), {"grams": 700}),
            maxwell("update", 4, crate(9, "pears", 650), {"id": 2}),
            maxwell("delete", 5, crate(1, "plums", 900)),
        ],
        [
            {"type": "bootstrap-start", "database": "shop", "table": "crates", "data": {}},
            {"type": "table-alter", "database": "shop", "table": "crates", "sql": "ALTER …"},
        ],
        {"bootstrap markers": 1, "schema changes": 1},
    ),
    "canal": (
        [
            canal("INSERT", 1, [crate(1, "plums", 900), crate(2, "pears", 700)]),
            canal("UPDATE", 3, [crate(2, "pears", 650)], [{"grams": "700"}]),
            canal("UPDATE", 4, [crate(9, "pears", 650)], [{"id": "2"}]),
            canal("DELETE", 5, [crate(1, "plums", 900)]),
        ],
        [
            {**canal("ALTER", 6, None), "isDdl": True, "sql": "ALTER …"},
            {"type": "TIDB_WATERMARK", "isDdl": False, "_tidb": {"watermarkTs": 5}},
        ],
        {"schema changes": 1, "heartbeats": 1},
    ),
    "dms": (
        [
            dms("load", 1, crate(1, "plums", 900)),
            dms("insert", 2, crate(2, "pears", 700)),
            dms("update", 3, crate(2, "pears", 650)),
            dms("update", 4, crate(9, "pears", 650), {"id": 2}),
            dms("delete", 5, {"id": 1}),
        ],
        [
            {"metadata": {"operation": "create-table", "record-type": "control"}},
            {"metadata": {"record-type": "control"}},
        ],
        {"schema changes": 2},
    ),
    "dms-files": (
        [
            {**crate(2, "pears", 1)},
            file_row("I", 1, crate(1, "plums", 900)),
            file_row("D", 3, crate(2, "pears", 650)),
            file_row("I", 4, crate(9, "pears", 650)),
            file_row("D", 5, crate(1)),
        ],
        [],
        {},
    ),
    "wal2json": (
        [
            by_row("I", 1, crate(1, "plums", 900)),
            by_row("I", 2, crate(2, "pears", 700)),
            by_row("U", 3, {"id": 2, "grams": 650}, {"id": 2}),
            by_row("U", 4, crate(9, "pears", 650), {"id": 2}),
            by_row("D", 5, None, {"id": 1}),
        ],
        [{"action": "B", "xid": 7}, {"action": "C", "xid": 7}, {"action": "M", "prefix": "p"}],
        {"transaction markers": 2, "logical messages": 1},
    ),
}
BY_TRANSACTION = [
    {
        "xid": 7,
        "nextlsn": "0/16B3790",
        "change": [
            change("insert", crate(1, "plums", 900)),
            change("insert", crate(2, "pears", 700)),
            change("update", {"id": 2, "grams": 650}, {"id": 2}),
        ],
    },
    {"nextlsn": "0/16B37A0", "change": []},
    {
        "nextlsn": "0/16B37B0",
        "change": [
            change("update", crate(9, "pears", 650), {"id": 2}),
            change("delete", None, {"id": 1}),
        ],
    },
]


@pytest.mark.parametrize("form", ["texts", "dicts", "backwards", "alone"])
@pytest.mark.parametrize("name", STORIES)
def test_each_format_tells_the_story(name: str, form: str) -> None:
    events, others, skipped = STORIES[name]
    table = crates()
    calls: list[list[Any]] = {
        "texts": [texts(*events, *others)],
        "dicts": [[*others, *events]],
        "backwards": [texts(*reversed([*events, *others]))],
        "alone": [texts(each) for each in [*events, *others]],
    }[form]
    total: dict[str, int] = {}
    for call in calls:
        applied = table.apply_events(call, format=name)  # type: ignore[arg-type]
        for kind, count in applied.skipped.items():
            total[kind] = total.get(kind, 0) + count
    assert rows(table) == FINAL
    assert total == skipped


def test_the_first_format_of_wal2json_has_a_transaction_in_a_message() -> None:
    for data in (texts(*BY_TRANSACTION), BY_TRANSACTION, texts(*reversed(BY_TRANSACTION))):
        table = crates()
        applied = table.apply_events(data, format="wal2json")
        assert rows(table) == FINAL
        assert applied.skipped == {"transaction markers": 1}


TRUNCATES = {
    "canal": {**canal("TRUNCATE", 9, None), "isDdl": True},
    "dms": dms("truncate-table", 9, None),
    "wal2json": by_row("T", 9, None),
}


@pytest.mark.parametrize("name", TRUNCATES)
def test_a_truncate_empties_the_table(name: str) -> None:
    table = crates()
    table.upsert(pa.table({"id": [70], "label": ["old"], "grams": [1]}))
    events = [*STORIES[name][0], TRUNCATES[name]]
    table.apply_events(texts(*events), format=name)  # type: ignore[arg-type]
    assert rows(table) == []


BAD: dict[str, tuple[str, Any, str]] = {
    "maxwell: unknown": ("maxwell", maxwell("upsert", 1, crate(1)), "operation 'upsert'"),
    "maxwell: no data": ("maxwell", maxwell("insert", 1, None), "no row after"),
    "maxwell: no type": ("maxwell", {"database": "shop"}, "has no operation"),
    "canal: old": ("canal", canal("UPDATE", 1, [crate(1)], [{}, {}]), "1 rows in 'data' and 2"),
    "canal: no rows": ("canal", canal("INSERT", 1, []), "0 rows in 'data'"),
    "canal: data is no list": ("canal", {**canal("INSERT", 1, None), "data": {"id": 1}}, "array"),
    "dms: no operation": ("dms", {"data": crate(1), "metadata": {}}, "has no operation"),
    "dms: key": ("dms", dms("delete", 1, {"label": "x"}), "key column 'id'"),
    "wal2json: no columns": ("wal2json", by_row("I", 1, None), "no row after"),
    "wal2json: no identity": ("wal2json", by_row("D", 1, None), "no row before"),
    "wal2json: column twice": (
        "wal2json",
        {"action": "I", "columns": [{"name": "id", "value": 1}] * 2, "lsn": "0/1"},
        "2 names of columns",
    ),
    "wal2json: column": ("wal2json", by_row("I", 1, {"id": 1, "lid": 1}), "unknown field `lid`"),
    "wal2json 1: values": (
        "wal2json",
        {"nextlsn": "0/1", "change": [{**change("insert", {"id": 1}), "columnvalues": []}]},
        "1 names of columns, and 0 values",
    ),
    "dms-files: op": ("dms-files", file_row("X", 1, crate(1)), "operation 'X'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_event_of_each_format_is_named(name: str) -> None:
    format_, event, text = BAD[name]
    good = STORIES[format_][0][0] if name != "wal2json 1: values" else BY_TRANSACTION[0]
    table = crates()
    with pytest.raises(InvalidData, match="event 1, counted from 0") as raised:
        table.apply_events(texts(good, event), format=format_)  # type: ignore[arg-type]
    assert text in str(raised.value)
    assert table.version == 0


def test_rows_without_a_place_in_the_log_are_not_mixed_with_those_of_the_log() -> None:
    bootstrap = {**maxwell("bootstrap-insert", 0, crate(4)), "position": None, "xid": None}
    with pytest.raises(InvalidData, match=r"event 1, .* it has no position"):
        crates().apply_events(texts(STORIES["maxwell"][0][0], bootstrap), format="maxwell")
    table = crates()
    del bootstrap["xoffset"]
    with pytest.warns(UserWarning, match="ordered by ts only"):
        table.apply_events(texts(bootstrap), format="maxwell")
    assert rows(table) == [crate(4)]


def test_seconds_do_not_order_two_changes_of_a_row() -> None:
    two = [maxwell("insert", 0, crate(1, label)) for label in "ab"]
    for each in two:
        del each["xid"], each["position"], each["xoffset"]
    with pytest.raises(KeyViolation, match="have the same ts"):
        crates().apply_events(texts(*two), format="maxwell")


@pytest.mark.filterwarnings("ignore:apply_events. .* ordered by xid, xoffset only")
@pytest.mark.parametrize("form", ["texts", "structs"])
@pytest.mark.parametrize("without", [(), ("position",), ("position", "xoffset")])
def test_the_last_row_of_a_transaction_of_maxwell_has_no_number(
    without: tuple[str, ...], form: str
) -> None:
    first, last = (maxwell("insert", 0, crate(1, label)) for label in ("first", "last"))
    del last["xoffset"]
    first["commit"], last["commit"] = None, True
    for each in (first, last):
        for name in without:
            each.pop(name, None)
    for both in ([first, last], [last, first]):
        table = crates()
        data = texts(*both) if form == "texts" else pa.Table.from_pylist(both)
        table.apply_events(data, format="maxwell")
        assert rows(table) == [crate(1, "last")]


def test_late_rows_of_a_transaction_of_maxwell_are_late() -> None:
    fields = [pa.field(name, pa.int64(), nullable=False) for name in ("xid", "xoffset")]
    table = rowsieve.create_table(
        fresh_uri(), pa.schema([*CRATES, *fields]), key=["id"], sequence=["xid", "xoffset"]
    )
    first, last = (maxwell("insert", 0, crate(1, label)) for label in ("first", "last"))
    del last["xoffset"], first["position"], last["position"]
    for each in ({**last, "commit": True}, first):
        with pytest.warns(UserWarning, match="ordered by xid"):
            table.apply_events(texts(each), format="maxwell")
    assert rows(table)[0]["label"] == "last"


def committed(label: str, transaction: Any, record: int, id_: int = 1) -> dict[str, Any]:
    one = dms("update", 1, crate(id_, label))
    one["metadata"] |= {
        "commit-timestamp": "2027-01-15T08:00:01.000000Z",
        "transaction-id": transaction,
        "transaction-record-id": record,
    }
    return one


def test_records_are_numbered_within_a_transaction_of_dms() -> None:
    def apply(*events: Any) -> list[dict[str, Any]]:
        table = crates()
        table.apply_events(texts(*events), format="dms")
        return rows(table)

    a, b = committed("a", 1, 1), committed("b", 1, 10)
    assert apply(b, a) == [crate(1, "b")]
    assert apply(b, a, b, committed("x", 2, 3, id_=2)) == [crate(1, "b"), crate(2, "x")]
    for others in ([committed("c", 2, 1)], [committed("a", 2, 1), committed("b", 2, 2)]):
        with pytest.raises(KeyViolation, match="of two transactions with the same commit-time"):
            apply(*others, a, b)
    later = committed("c", 2, 1)
    later["metadata"]["commit-timestamp"] = "2027-01-15T08:00:02Z"
    assert apply(later, a, b) == [crate(1, "c")]


def test_structs_of_dms_have_the_names_of_its_json() -> None:
    moved = committed("b", 1, 2, id_=9)
    moved["before-image"] = {"id": 1}
    both = [moved, committed("a", 1, 1)]
    for data in (texts(*both), pa.Table.from_pylist(both)):
        table = crates()
        table.apply_events(data, format="dms")
        assert rows(table) == [crate(9, "b")]
    with pytest.raises(InvalidData, match=r"of the table shop\.crates, and not of shop\.other"):
        crates().apply_events(pa.Table.from_pylist(both), format="dms", source="shop.other")


def test_a_truncate_among_transactions_of_one_time_is_refused() -> None:
    truncate = dms("truncate-table", 1, None)
    truncate["metadata"] = committed("", 2, 1)["metadata"] | {"operation": "truncate-table"}
    with pytest.raises(KeyViolation, match="of two transactions with the same commit-time"):
        crates().apply_events(texts(truncate, committed("a", 1, 2)), format="dms")
    table = crates()
    table.apply_events(texts(truncate, committed("a", 2, 2)), format="dms")
    assert rows(table) == [crate(1, "a")]


def test_records_of_dms_without_a_commit_are_not_mixed_with_others() -> None:
    control = {"metadata": {**dms("truncate-table", 2, None)["metadata"], "record-type": "control"}}
    for other in (control, dms("load", 0, crate(3))):
        table = crates()
        with pytest.raises(InvalidData, match=r"event 1, .* no commit-timestamp, .* of their own"):
            table.apply_events(texts(committed("a", 1, 1), other), format="dms")
    table.apply_events(texts(committed("a", 1, 1)), format="dms")
    table.apply_events(texts(control), format="dms")
    assert rows(table) == []


def test_a_transaction_of_wal2json_without_a_place_in_the_log_has_an_order() -> None:
    messages: list[Any] = BY_TRANSACTION
    first, _, second = ({"change": each["change"]} for each in messages)
    table = crates()
    for each in (first, second):
        table.apply_events(texts(each), format="wal2json")
    assert rows(table) == FINAL
    for data in (texts(first, second), texts(second, first), texts(first, first)):
        with pytest.raises(KeyViolation, match="are in two messages without nextlsn"):
            crates().apply_events(data, format="wal2json")
    ordered = rowsieve.create_table(
        fresh_uri(),
        pa.schema([*CRATES, pa.field("lsn", pa.int64(), nullable=False)]),
        key=["id"],
        sequence="lsn",
    )
    with pytest.raises(SchemaMismatch, match="the events are none"):
        ordered.apply_events(texts(first), format="wal2json")


def test_logs_of_two_names_have_no_order() -> None:
    other = {**maxwell("insert", 1, crate(1, "b")), "position": "mysql-bin.000001:4"}
    with pytest.raises(InvalidData, match=r"event 1, .* log 'mysql-bin', .* of 'binlog'"):
        crates().apply_events(texts(maxwell("insert", 1, crate(1)), other), format="maxwell")


def test_every_format_is_in_the_reference() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/event-formats.md").read_text()
    assert [name for name in FORMATS if f"| `{name}` |" not in page] == []


def test_rows_in_arrow_have_the_names_that_the_tool_gives_them() -> None:
    """`before-image`, `commit-timestamp`: what texts and dicts say, structs say, too."""
    events = [
        dms("load", 1, crate(1, "plums", 900)),
        dms("update", 2, crate(9, "pears"), {"id": 1}),
    ]
    older = dms("update", 3, crate(9, "older"), {"id": 9})
    for number, each in enumerate([*events, older], start=1):
        each["metadata"]["commit-timestamp"] = f"2027-01-15T08:00:0{number}Z"
        each["metadata"]["transaction-record-id"] = number
    older["metadata"]["commit-timestamp"] = "2027-01-15T08:00:01.5Z"
    events = [events[1], older, events[0]]  # the first one has all columns
    tables = [crates(), crates()]
    tables[0].apply_events(events, format="dms")
    tables[1].apply_events(pa.Table.from_pylist(events), format="dms")
    assert rows(tables[0]) == rows(tables[1])
    assert [row["label"] for row in rows(tables[1])] == ["pears"]
