"""Events that bring columns and wider values change the table's columns in their commit."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import InvalidData, SchemaMismatch, UnsupportedOperation
from tests.envelopes.events import crate, crates, event, texts
from tests.small_tables import fresh_uri

INT = pa.int64()


def created(place: int, **row: Any) -> dict[str, Any]:
    return event("c", None, row, place)


def rows(table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.scan().to_arrow().sort_by("id").to_pylist()
    return found


def merged(table: Table, *events: Any, **options: Any) -> Table:
    given = {"format": "debezium", "schema_mode": "merge", **options}
    table.apply_events(
        events[0] if isinstance(events[0], str | pa.Table) else texts(*events), **given
    )
    return table


def test_events_before_and_after_a_new_column_are_one_commit() -> None:
    table = merged(
        crates(),
        created(1, **crate(1, "old")),
        created(2, **crate(2, "new"), colour="red", price=2.5, fragile=True, parts=[1, 2]),
        created(3, **crate(3, "odd"), colour=None, price=3),
    )
    assert table.version == 1
    assert rows(table) == [
        {**crate(1, "old"), "colour": None, "price": None, "fragile": None, "parts": None},
        {**crate(2, "new"), "colour": "red", "price": 2.5, "fragile": True, "parts": [1, 2]},
        {**crate(3, "odd"), "colour": None, "price": 3.0, "fragile": None, "parts": None},
    ]
    assert [str(table.schema.field(name).type) for name in ("colour", "price", "fragile")] == [
        "string", "double", "bool",
    ]  # fmt: skip
    with pytest.raises(InvalidData, match="does not fit the format"):
        crates().apply_events(texts(created(1, **crate(1), colour="red")), format="debezium")


def test_an_unknown_column_that_is_null_waits_for_its_first_value() -> None:
    table = merged(crates(), created(1, **crate(1), colour=None))
    assert table.schema.names == ["id", "label", "grams"]
    merged(table, created(2, **crate(2), colour="red"))
    assert [row["colour"] for row in rows(table)] == [None, "red"]


def test_a_column_that_the_source_dropped_becomes_null() -> None:
    table = merged(crates(), created(1, **crate(1, "a", 5)), created(2, **crate(2, "b", 6)))
    merged(table, event("u", crate(1, "a"), {"id": 1, "label": "c"}, 9))
    assert rows(table) == [crate(1, "c"), crate(2, "b", 6)]
    unavailable = {"id": 2, "label": "__debezium_unavailable_value"}
    merged(table, event("u", None, unavailable, 10))
    assert rows(table) == [crate(1, "c"), crate(2, "b")]


def test_a_name_that_only_rows_before_have_needs_no_column() -> None:
    table = merged(crates(), created(1, **crate(1, "a")), created(2, **crate(2, "b")))
    merged(table, event("d", {**crate(1, "a"), "colour": "red"}, None, 3))
    merged(table, event("u", {**crate(2, "b"), "colour": "red"}, crate(3, "c"), 4))
    assert rows(table) == [crate(3, "c")]
    deleted = event("d", {**crate(3, "c"), "colour": "red"}, None, 5)
    merged(table, deleted, created(6, **crate(4), colour="blue"))
    assert rows(table) == [{**crate(4), "colour": "blue"}]
    before = pa.array([{"id": 4, "price": 3}], pa.struct([("id", pa.int64()), ("price", INT)]))
    after = pa.array([{"id": 4, "label": "d"}], pa.struct([("id", INT), ("label", pa.string())]))
    merged(table, pa.table({"before": before, "after": after, "op": ["u"]}))
    assert rows(table) == [{**crate(4, "d"), "colour": None}]


def test_a_list_without_items_does_not_tell_the_type_of_a_column() -> None:
    table = crates()
    empty = created(1, **crate(1), tags=[])
    for unknown in (empty, created(1, **crate(1), tags={"first": None})):
        with pytest.raises(InvalidData, match="unknown field `tags`"):
            merged(table, unknown)
    assert table.version == 0
    merged(table, empty, created(2, **crate(2), tags=["x"]))
    assert [row["tags"] for row in rows(table)] == [[], ["x"]]


def test_a_column_is_widened_only_if_a_value_needs_it() -> None:
    schema = pa.schema(
        [("id", pa.int64()), ("small", pa.int16()), ("f", pa.float32()), ("n", pa.int32())]
    )
    table = rowsieve.create_table(fresh_uri(), schema, ["id"])
    merged(table, created(1, id=1, small=7, f=0.5, n=1), created(2, id=2, small=8, f=0.5, n=1))
    assert table.schema.types == schema.types
    merged(table, created(3, id=3, small=70_000, f=0.5, n=2.5), created(4, id=4, small=9, f=1, n=3))
    assert [str(type_) for type_ in table.schema.types] == ["int64", "int64", "float", "double"]
    assert [tuple(row.values()) for row in rows(table)] == [
        (1, 7, 0.5, 1.0),
        (2, 8, 0.5, 1.0),
        (3, 70_000, 0.5, 2.5),
        (4, 9, 1.0, 3.0),
    ]


DECLARED = {
    "type": "struct",
    "fields": [
        {
            "field": "after",
            "type": "struct",
            "fields": [
                {"field": "id", "type": "int64"},
                {"field": "day", "type": "int32", "name": "io.debezium.time.Date"},
                {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
                {"field": "count", "type": "int32"},
                {"field": "raw", "type": "bytes"},
                {
                    "field": "price",
                    "type": "bytes",
                    "name": "org.apache.kafka.connect.data.Decimal",
                    "parameters": {"scale": "2", "connect.decimal.precision": "9"},
                },
            ],
        }
    ],
}


def test_the_schema_of_the_events_says_what_new_columns_are() -> None:
    payload = created(1, id=1, day=19_000, at=1_000_000, count=3, raw="AQI=", price="BNI=")
    table = rowsieve.create_table(fresh_uri(), pa.schema([("id", pa.int64())]), ["id"])
    merged(table, {"schema": DECLARED, "payload": payload})
    assert [str(table.schema.field(n).type) for n in ("day", "at", "count", "raw", "price")] == [
        "date32[day]", "timestamp[us]", "int32", "binary", "decimal128(9, 2)",
    ]  # fmt: skip
    (row,) = rows(table)
    assert (row["count"], row["raw"], row["price"]) == (3, b"\x01\x02", Decimal("12.34"))
    assert (str(row["day"]), str(row["at"])) == ("2022-01-08", "1970-01-01 00:00:01")


def test_columns_of_structs_have_their_types() -> None:
    row = pa.struct([("id", pa.int64()), ("label", pa.string()), ("tags", pa.list_(pa.int8()))])
    data = pa.table(
        {
            "before": pa.nulls(1, row),
            "after": pa.array([{"id": 1, "label": "a", "tags": [1]}], row),
            "op": ["c"],
        }
    )
    table = merged(crates(), data)
    assert str(table.schema.field("tags").type) == "list<item: int8>"
    assert rows(table) == [{**crate(1, "a"), "tags": [1]}]


OTHERS: dict[str, Any] = {
    "debezium-unwrapped": {"id": 1, "label": "a", "grams": None, "colour": "red", "__op": "c"},
    "maxwell": {
        "database": "s", "table": "crates", "type": "insert", "ts": 5, "xid": 3, "commit": True,
        "data": {"id": 1, "label": "a", "grams": None, "colour": "red"},
    },
    "canal": {
        "database": "s", "table": "crates", "type": "INSERT", "isDdl": False, "es": 5, "id": 3,
        "data": [{"id": "1", "label": "a", "grams": None, "colour": "red"}],
    },
    "dms": {
        "data": {"id": 1, "label": "a", "grams": None, "colour": "red"},
        "metadata": {"operation": "insert", "schema-name": "s", "table-name": "crates"},
    },
    "dms-files": {"Op": "I", "id": 1, "label": "a", "grams": None, "colour": "red"},
    "wal2json": {
        "action": "I", "schema": "s", "table": "crates", "lsn": "0/1",
        "columns": [
            {"name": "id", "type": "bigint", "value": 1},
            {"name": "label", "type": "text", "value": "a"},
            {"name": "colour", "type": "text", "value": "red"},
        ],
    },
    "wal2json 1": {
        "nextlsn": "0/2",
        "change": [
            {
                "kind": "insert", "schema": "s", "table": "crates",
                "columnnames": ["id", "label", "colour"], "columnvalues": [1, "a", "red"],
            }
        ],
    },
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:apply_events. the events are ordered by")
@pytest.mark.parametrize("form", OTHERS)
def test_each_format_brings_columns(form: str) -> None:
    table = merged(crates(), OTHERS[form], format=form.split(maxsplit=1)[0])
    assert rows(table) == [{**crate(1, "a"), "colour": "red"}]


@pytest.mark.filterwarnings("ignore:apply_events. the events are ordered by")
def test_nested_values_of_maxwell_are_json() -> None:
    message = OTHERS["maxwell"]
    data = {**message["data"], "colour": {"name": "red"}}
    table = merged(crates(), {**message, "data": data}, format="maxwell")
    merged(table, {**message, "data": {"id": 2, "label": "b", "grams": None}}, format="maxwell")
    assert [row["colour"] for row in rows(table)] == ['{"name": "red"}', None]


@pytest.mark.parametrize("schema_mode", ["strict", "merge"])
def test_an_event_may_lack_a_column_of_json(schema_mode: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("doc", pa.json_()), ("n", pa.int64())])
    table = rowsieve.create_table(fresh_uri(), schema, ["id"])
    merged(table, created(1, id=1, doc='{"a": 1}', n=1))
    merged(table, event("u", None, {"id": 1, "n": 2}, 5), schema_mode=schema_mode)
    kept = '{"a": 1}' if schema_mode == "strict" else None
    assert rows(table) == [{"id": 1, "doc": kept, "n": 2}]


def test_many_tables_get_their_own_columns(tmp_path: Any) -> None:
    catalog = rowsieve.Catalog(tmp_path)
    for name in ("crates", "lids"):
        catalog.create_table(f"db.{name}", pa.schema([("id", pa.int64())]), ["id"])
    events = [
        event("c", None, {"id": 1, "crate": "a"}, 1, table="crates"),
        event("c", None, {"id": 1, "lid": 2}, 2, table="lids"),
    ]
    catalog.apply_events(
        texts(*events),
        format="debezium",
        table=lambda name: f"db.{name.split('.')[-1]}",
        schema_mode="merge",
    )
    assert rows(catalog.open_table("db.crates")) == [{"id": 1, "crate": "a"}]
    assert rows(catalog.open_table("db.lids")) == [{"id": 1, "lid": 2}]


def test_values_without_a_common_type_stay_bad() -> None:
    table = crates()
    mixed = [created(1, **crate(1), colour="red"), created(2, **crate(2), colour=7)]
    with pytest.raises(InvalidData, match="does not fit the format"):
        merged(table, json.dumps(mixed))
    assert (table.refresh(), table.schema.names) == (0, ["id", "label", "grams"])


@pytest.mark.parametrize("value", [2.5, 1e40])
def test_a_fraction_in_a_column_of_integers_names_the_way_out(value: float) -> None:
    table = crates()
    merged(table, created(0, id=1, price=2))
    odd = created(1, id=1, price=value)
    for data in (texts(odd), [odd]):
        with pytest.raises(InvalidData, match=r"column 'price' cannot be .*integers.*declare the"):
            table.apply_events(data, format="debezium", schema_mode="merge")
    merged(table, created(2, id=1, price=4.0))
    with pytest.raises(SchemaMismatch, match=r"'price' is int64 .* double .*widen_column to a dec"):
        table.upsert([{**crate(1), "price": 2.5}], schema_mode="merge")
    table.widen_column("price", pa.decimal128(38, 9))
    merged(table, created(3, id=1, price=2.5))
    assert rows(table)[0]["price"] == Decimal("2.5")


def test_a_truncate_with_new_columns_is_refused() -> None:
    table = crates()
    with pytest.raises(UnsupportedOperation, match="bring columns and truncate the table"):
        merged(table, event("t", None, None, 1), created(2, **crate(1), colour="red"))
    merged(table, event("t", None, None, 1), created(2, **crate(1, "a")))
    assert rows(table) == [crate(1, "a")]
