"""Values that the source did not send: kept where a row has them, and never a silent NULL."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import uuid
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import InvalidData
from tests.envelopes.events import CRATES, crate, crates, event, rows, texts
from tests.small_tables import fresh_uri

MARKER: Any = "__debezium_unavailable_value"


def filled() -> Table:
    table = crates()
    table.upsert(pa.table({"id": [1], "label": ["plums"], "grams": [7]}))
    return table


def test_a_row_with_a_new_key_has_what_was_not_sent_from_the_row_before() -> None:
    for unsent in (crate(2, MARKER, 8), {"id": 2, "grams": 8}):
        for form in (texts, lambda *each: list(each)):
            table = filled()
            table.apply_events(form(event("u", crate(1, "plums", 7), unsent)), format="debezium")
            assert rows(table) == [crate(2, "plums", 8)]


@pytest.mark.parametrize("before", [crate(1, MARKER, 7), {"id": 1}, crate(1, None, 7)])
@pytest.mark.parametrize("after", [crate(2, MARKER, 8), {"id": 2, "grams": 8}])
def test_a_row_with_a_new_key_whose_value_is_unknown_is_refused(before: Any, after: Any) -> None:
    table = filled()
    moved = event("u", before, after)
    with pytest.raises(InvalidData, match="changes the key, and the value of the column 'label'"):
        table.apply_events(texts(moved), format="debezium")
    applied = table.apply_events(texts(moved), format="debezium", on_bad="collect")
    assert applied.bad.num_rows == 1
    assert rows(table) == [crate(1, "plums", 7)]


def test_an_event_of_wal2json_that_moves_a_row_needs_its_values() -> None:
    columns = [{"name": "id", "value": 2}, {"name": "grams", "value": 8}]
    old = [{"name": "id", "value": 1}]
    change = {"action": "U", "lsn": "0/5", "table": "t", "columns": columns, "identity": old}
    with pytest.raises(InvalidData, match="changes the key"):
        filled().apply_events(texts(change), format="wal2json")
    table = filled()
    old.append({"name": "label", "value": "plums"})
    table.apply_events(texts(change), format="wal2json")
    assert rows(table) == [crate(2, "plums", 8)]


@pytest.mark.parametrize("op", ["c", "r"])
def test_a_create_with_a_marker_is_refused(op: str) -> None:
    made = event(op, None, crate(2, MARKER, 8))
    for data in (texts(made), [made], pa.Table.from_pylist([made])):
        with pytest.raises(InvalidData, match="creates a row, and the value of the column 'label'"):
            filled().apply_events(data, format="debezium")
    row = {**crate(2, MARKER, 8), "__op": op, "__lsn": 5}
    with pytest.raises(InvalidData, match="creates a row"):
        filled().apply_events(texts(row), format="debezium-unwrapped")


def test_columns_of_the_order_are_not_missed_by_a_row_with_a_new_key() -> None:
    schema = CRATES.append(pa.field("lsn", pa.int64(), nullable=False))
    table = rowsieve.create_table(fresh_uri(), schema, key=["id"], sequence=["lsn"])
    table.apply_events(texts(event("c", None, crate(1, "a", 1), 0)), format="debezium")
    table.apply_events(texts(event("u", crate(1), crate(2, "a", 1), 1)), format="debezium")
    assert [(row["id"], row["lsn"]) for row in rows(table)] == [(2, 40_002)]


BYTES = MARKER.encode()
NAMED = str(uuid.UUID(bytes=hashlib.md5(BYTES).digest(), version=3))
DAYS = [dt.date(1970, 1, 1) + dt.timedelta(days=each) for each in BYTES]
KEPT: dict[str, tuple[Any, Any, Any]] = {
    "int32[]": (pa.list_(pa.int32()), [1, 2], list(BYTES)),
    "int64[]": (pa.list_(pa.int64()), [1, 2], list(BYTES)),
    "float64[]": (pa.list_(pa.float64()), [1.5], list(BYTES)),
    "date[]": (pa.list_(pa.date32()), [dt.date(2027, 1, 15)], list(BYTES)),
    "text[]": (pa.list_(pa.string()), ["a"], [MARKER]),
    "uuid[]": (pa.list_(pa.string()), ["a"], [NAMED]),
    "binary[]": (pa.list_(pa.binary()), [b"a"], [base64.b64encode(BYTES).decode()]),
    "hstore": (pa.map_(pa.string(), pa.string()), [("a", "b")], {MARKER: MARKER}),
    "binary": (pa.binary(), b"a", base64.b64encode(BYTES).decode()),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_marker_in_the_type_of_the_column_keeps_the_value(name: str) -> None:
    type_, value, marker = KEPT[name]
    schema = pa.schema([("id", pa.int64()), ("v", type_)])
    arrow = {"date[]": DAYS, "hstore": [(MARKER, MARKER)], "binary[]": [BYTES], "binary": BYTES}
    row = pa.struct([("id", pa.int64()), ("v", type_)])
    own = {"id": 1, "v": arrow.get(name, marker)}
    columns = {"op": ["u"], "after": pa.array([own], row)}
    change = {"op": "u", "after": {"id": 1, "v": marker}}
    same = change if name == "hstore" else {"op": "u", "after": own}
    for data in (texts(change), [change], [same], pa.table(columns)):
        table = rowsieve.create_table(fresh_uri(), schema, key=["id"])
        table.upsert(pa.table({"id": [1], "v": pa.array([value], type_)}))
        table.apply_events(data, format="debezium")
        assert rows(table) == [{"id": 1, "v": value}]


@pytest.mark.parametrize(
    "place",
    [
        {"x": -99_999_999, "y": -99_999_999.0, "wkb": "AQ==", "srid": None},
        {"wkb": "0101000020E6100000000000FC83D797C1000000FC83D797C1", "srid": 4326},
        {"wkb": "0101000020E61000000C21E7FDFF7F66401842CEFBFF7F5640", "srid": 4326},
    ],
)
def test_a_place_that_no_data_has_keeps_the_value(place: dict[str, Any]) -> None:
    table = rowsieve.create_table(
        fresh_uri(), pa.schema([("id", pa.int64()), ("v", pa.binary())]), key=["id"]
    )
    table.upsert(pa.table({"id": [1], "v": [b"a"]}))
    if "x" not in place:
        place = {**place, "wkb": base64.b64encode(bytes.fromhex(place["wkb"])).decode()}
    change = {"op": "u", "after": {"id": 1, "v": place}}
    for data in (texts(change), [change]):
        table.apply_events(data, format="debezium")
        assert rows(table) == [{"id": 1, "v": b"a"}]


def test_a_list_that_only_looks_like_a_marker_is_data() -> None:
    table = rowsieve.create_table(
        fresh_uri(), pa.schema([("id", pa.int64()), ("v", pa.list_(pa.int64()))]), key=["id"]
    )
    row = {"id": 1, "v": [*BYTES[:-1], 1]}
    table.apply_events(texts({"op": "u", "after": row}), format="debezium")
    assert rows(table) == [row]


PAIRS = pa.schema([("id", pa.int64()), ("k", pa.string()), ("v", pa.string())])


@pytest.mark.parametrize("before", [{"id": 1}, {"id": 1, "k": None}, {"id": 1, "k": MARKER}, {}])
def test_a_row_before_that_lacks_a_part_of_its_key_is_refused(before: Any) -> None:
    table = rowsieve.create_table(fresh_uri(), PAIRS, key=["id", "k"])
    table.apply_events(texts(event("c", None, {"id": 1, "k": "A", "v": "q"}, 1)), format="debezium")
    moved = event("u", before, {"id": 1, "k": "B", "v": "z"}, 2)
    with pytest.raises(InvalidData, match="the row before it lacks the key column"):
        table.apply_events(texts(moved), format="debezium")
    assert table.count() == 1


def test_a_row_before_that_has_only_what_changed_may_lack_a_part_of_its_key() -> None:
    table = rowsieve.create_table(fresh_uri(), PAIRS, key=["id", "k"])
    table.upsert(pa.table({"id": [1], "k": ["A"], "v": ["q"]}))
    change = {"type": "update", "data": {"id": 1, "k": "B", "v": "q"}, "old": {"k": "A"}}
    table.apply_events([json.dumps(change)], format="maxwell")
    assert rows(table) == [{"id": 1, "k": "B", "v": "q"}]
    change["old"] = {"id": 2, "k": None}
    with pytest.raises(InvalidData, match="lacks the key column 'k'"):
        table.apply_events([json.dumps(change)], format="maxwell")
