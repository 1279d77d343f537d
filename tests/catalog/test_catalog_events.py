"""Events of many tables go to the tables of a catalog."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve.envelopes.bad_events import BAD_EVENTS
from rowsieve.errors import ConstraintViolation, InvalidData, InvalidInput, TableNotFound
from tests.envelopes.events import AFTER_STREAM, CRATES, STREAM, crate, event, rows, texts
from tests.small_tables import appended, fresh_uri

LIDS = pa.schema([("id", pa.int64()), ("wood", pa.string())])


@pytest.fixture
def catalog() -> rowsieve.Catalog:
    catalog = rowsieve.Catalog(fresh_uri())
    catalog.create_table("store.crates", CRATES, ["id"])
    catalog.create_table("store.lids", LIDS, ["id"])
    return catalog


def lid(id_: int, wood: str, at: int) -> Any:
    return event("c", None, {"id": id_, "wood": wood}, at, table="lids")


def place(source: str) -> str | None:
    database, _, name = source.partition(".")
    assert database == "shop"
    return None if name == "store.secrets" else name


def test_each_table_gets_its_events_in_one_commit(catalog: rowsieve.Catalog) -> None:
    secret = event("c", None, {"id": 1, "word": "x"}, 9, table="secrets")
    data = texts(STREAM[0], lid(1, "oak", 5), *STREAM[1:], None, secret, lid(2, "elm", 6))
    applied = catalog.apply_events(data, format="debezium", table=place)
    assert rows(catalog.open_table("store.crates")) == AFTER_STREAM
    assert rows(catalog.open_table("store.lids")) == [
        {"id": 1, "wood": "oak"},
        {"id": 2, "wood": "elm"},
    ]
    assert applied.skipped == {"tombstones": 1, "events of other tables": 1}
    assert {name: each.commit.version for name, each in applied.tables.items()} == {
        "store.crates": 1,
        "store.lids": 1,
    }


def test_a_bad_event_of_one_table_refuses_all(catalog: rowsieve.Catalog) -> None:
    data = texts(STREAM[0], lid(1, "oak", 5), event("c", None, crate(1, "x", 0), 6, table="lids"))
    with pytest.raises(InvalidData, match="event 2, counted from 0"):
        catalog.apply_events(data, format="debezium", table=place)
    assert catalog.open_table("store.crates").version == 0
    letters = appended(schema=BAD_EVENTS)
    applied = catalog.apply_events(
        [*data, "{"], format="debezium", table=place, on_bad="collect", bad=letters
    )
    assert letters.scan().to_arrow().column("event").to_pylist() == [2, 3]
    assert applied.bad.column("event").to_pylist() == [2, 3]
    assert rows(catalog.open_table("store.lids")) == [{"id": 1, "wood": "oak"}]


def test_a_transaction_of_wal2json_may_change_many_tables(catalog: rowsieve.Catalog) -> None:
    def change(table: str, row: dict[str, Any]) -> dict[str, Any]:
        values = {"columnnames": list(row), "columnvalues": list(row.values())}
        return {"kind": "insert", "schema": "store", "table": table, **values}

    both = [change("crates", crate(1)), change("lids", {"id": 7, "wood": "ash"})]
    message = json.dumps({"nextlsn": "0/1", "change": both})
    catalog.apply_events([message], format="wal2json", table=str)  # one message, two commits
    assert rows(catalog.open_table("store.crates")) == [crate(1)]
    assert rows(catalog.open_table("store.lids")) == [{"id": 7, "wood": "ash"}]


def test_what_table_returns_must_be_a_name_of_a_table(catalog: rowsieve.Catalog) -> None:
    data = texts(STREAM[0])
    with pytest.raises(TableNotFound):
        catalog.apply_events(data, format="debezium", table=lambda _: "store.none")
    with pytest.raises(InvalidInput, match="must return a name or None"):
        catalog.apply_events(data, format="debezium", table=len)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="do not name their table"):
        catalog.apply_events([crate(1)], format="dms-files", table=str)


def test_an_event_that_does_not_name_its_table_is_bad(catalog: rowsieve.Catalog) -> None:
    nameless = event("c", None, crate(7, "x", 0), 6)
    nameless.pop("source")
    half = event("c", None, crate(7, "x", 0), 6)
    half["source"] |= {"table": None}
    data = texts(nameless, STREAM[0], half)
    with pytest.raises(InvalidData, match=r"event 0, .*does not name the table of the source"):
        catalog.apply_events(data, format="debezium", table=place)
    applied = catalog.apply_events(data, format="debezium", table=place, on_bad="collect")
    assert applied.bad.column("event").to_pylist() == [0, 2]
    assert catalog.open_table("store.crates").count() == 1


def test_an_error_says_what_was_committed_before(catalog: rowsieve.Catalog) -> None:
    crates, lids = (catalog.open_table(f"store.{name}") for name in ("crates", "lids"))
    lids.add_constraint("no_pine", "wood <> 'pine'")
    data = texts(STREAM[0], lid(1, "pine", 5))
    for times in (1, 2):
        with pytest.raises(ConstraintViolation) as raised:
            catalog.apply_events(data, format="debezium", table=place, token=("feed", 1))
        (note,) = raised.value.__notes__
        assert "of the table store.lids. Committed before it: store.crates;" in note
        assert (crates.refresh(), lids.refresh()) == (1, 1), times
    lids.drop_constraint("no_pine")
    catalog.apply_events(data, format="debezium", table=place, token=("feed", 1))
    lids.refresh()
    assert (crates.refresh(), rows(lids)) == (1, [{"id": 1, "wood": "pine"}])
