"""Fields inside structs, lists and maps are added, dropped, renamed and widened by their paths."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import datafusion
import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import (
    CommitConflict,
    InvalidInput,
    InvalidSchemaChange,
    RowsieveError,
    SchemaMismatch,
    UnknownColumn,
    UnsupportedOperation,
    UnsupportedProtocol,
)
from tests.small_tables import overtake

PRUNING: tuple[Literal["on", "soft", "off"], ...] = ("on", "soft", "off")
ADDRESS = pa.struct([("street", pa.string()), ("zip", pa.int32()), ("old", pa.string())])
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("address", ADDRESS),
        ("tags", pa.list_(pa.int32())),
        ("items", pa.list_(pa.struct([("sku", pa.string()), ("n", pa.int16())]))),
        ("m", pa.map_(pa.string(), pa.struct([("q", pa.float32()), ("r", pa.bool_())]))),
    ]
)
ROWS: list[dict[str, Any]] = [
    {
        "id": 1,
        "address": {"street": "a", "zip": 10, "old": "x"},
        "tags": [1, None],
        "items": [{"sku": "s", "n": 1}, None],
        "m": [("k", {"q": 0.5, "r": True})],
    },
    {"id": 2, "address": None, "tags": None, "items": None, "m": None},
    {
        "id": 3,
        "address": {"street": None, "zip": 30, "old": None},
        "tags": [],
        "items": [],
        "m": [("k", None), ("l", {"q": None, "r": None})],
    },
    {"id": 4, "address": {"street": "d", "zip": None, "old": "y"}, "tags": [4]},
]


pytestmark = pytest.mark.usefixtures("row_groups_of_three")


@pytest.fixture(params=("keyed", "plain"))
def table(request: pytest.FixtureRequest) -> Table:
    key = ["id"] if request.param == "keyed" else None
    made = rowsieve.create_table(f"memory:///fields-{uuid.uuid4().hex}", SCHEMA, key=key)
    put(made, ROWS[:3])
    put(made, ROWS[3:])
    return made


def put(table: Table, rows: list[dict[str, Any]]) -> None:
    types = pa.schema([pa.field(each.name, each.type) for each in table.schema])
    data = pa.Table.from_pylist(rows, schema=types)
    if table.key:
        table.upsert(data)
    else:
        table.append(data)


def read(table: Table, where: str | None = None, **options: Any) -> list[dict[str, Any]]:
    """The rows by id; the same with pruning, without it, in DataFusion and as a dataset."""
    found = [
        sorted(
            table.scan(where, pruning=pruning, **options).to_arrow().to_pylist(),
            key=lambda row: row["id"],
        )
        for pruning in PRUNING
    ]
    assert found[0] == found[1] == found[2]
    if not options and where is None:
        dataset = table.to_dataset().to_table().to_pylist()
        assert sorted(dataset, key=lambda row: row["id"]) == found[0]
        context = datafusion.SessionContext()
        context.register_table("t", table)
        assert context.sql("SELECT * FROM t ORDER BY id").to_pylist() == found[0]
    return found[0]


def column(table: Table, name: str, where: str | None = None) -> list[Any]:
    return [row[name] for row in read(table, where)]


def ids(table: Table, where: str) -> list[int]:
    return [row["id"] for row in read(table, where)]


def test_a_field_of_a_struct_is_added_with_its_default(table: Table) -> None:
    table.add_column("address.city", "string", default="Rome", after="street")
    assert [field.name for field in table.schema.field("address").type] == [
        "street",
        "city",
        "zip",
        "old",
    ]
    assert column(table, "address") == [
        {"street": "a", "city": "Rome", "zip": 10, "old": "x"},
        None,
        {"street": None, "city": "Rome", "zip": 30, "old": None},
        {"street": "d", "city": "Rome", "zip": None, "old": "y"},
    ]
    put(table, [{"id": 5, "address": {"street": "e", "city": None, "zip": 1, "old": "z"}}])
    assert ids(table, "address.city = 'Rome'") == [1, 3, 4]
    assert ids(table, "address.city IS NULL") == [2, 5]
    assert ids(table, "address.city IS NOT NULL") == [1, 3, 4]
    assert ids(table, "address.city <> 'Rome'") == []
    assert table.scan("address.city = 'Oslo'").plan().splits == ()
    before = read(table)
    assert table.compact().committed
    assert read(table) == before


def test_engines_see_no_default_where_the_struct_is_null(table: Table) -> None:
    table.add_column("address.city", "string", default="Rome")
    expected = [(1, "Rome"), (2, None), (3, "Rome"), (4, "Rome")]
    for _ in range(2):
        context = datafusion.SessionContext()
        context.register_table("t", table)
        found = context.sql("SELECT id, address['city'] AS city FROM t ORDER BY id").to_pylist()
        assert [tuple(row.values()) for row in found] == expected
        with duckdb.connect() as duck:
            duck.register("t", table.to_dataset())
            duck.execute("SELECT id, address.city FROM t ORDER BY id")
            assert duck.fetchall() == expected
        address = table.scan(order_by_key=bool(table.key)).to_arrow().column("address")
        cities = pc.struct_field(address, "city").to_pylist()
        assert sorted(cities, key=repr) == [*["Rome"] * 3, None]
        table.compact()


def test_a_null_struct_has_no_value_in_its_not_null_fields(tmp_path: Path) -> None:
    member = pa.field("a", pa.int64(), nullable=False)
    inner = pa.field("inner", pa.struct([member]), nullable=False)
    schema = pa.schema([("id", pa.int64()), ("s", pa.struct([member, inner]))])
    given = pa.Table.from_pylist(
        [{"id": 1, "s": {"a": 4, "inner": {"a": 6}}}, {"id": 2, "s": None}], schema
    )
    pq.write_table(given, tmp_path / "a.parquet")  # which has 0 where the struct is NULL
    made = rowsieve.create_table(tmp_path / "own", given)
    opened = rowsieve.open_parquet(tmp_path / "a.parquet")
    imported = rowsieve.from_parquet(tmp_path / "a.parquet", tmp_path / "imported")
    for table in (made, imported):
        table.add_column("s.b", "int64", default=5, nullable=False)
    expected = [(1, 4, 6), (2, None, None)]
    for table in (made, opened, imported):
        for _ in range(2):
            context = datafusion.SessionContext()
            context.register_table("t", table)
            text = "SELECT id, s['a'] AS a, s['inner']['a'] AS b FROM t ORDER BY id"
            assert [tuple(row.values()) for row in context.sql(text).to_pylist()] == expected
            assert context.sql("SELECT id FROM t WHERE s['a'] IS NULL").to_pylist() == [{"id": 2}]
            assert table.scan("s.a IS NULL").to_arrow()["id"].to_pylist() == [2]
            assert table.scan("s.inner.a <= 0").to_arrow().num_rows == 0
            pq.write_table(table.to_arrow(), tmp_path / "copy")
            if table is not opened:
                assert table.count("s.b IS NULL") == table.count("s.b = 5") == 1
                found = context.sql("SELECT count(s['b']) AS n FROM t").to_pylist()
                assert found == [{"n": 1}]
    with pytest.raises(SchemaMismatch, match="NOT NULL"):
        made.append([{"id": 3, "s": {"a": None, "b": 1, "inner": {"a": 1}}}])


def test_a_dropped_field_does_not_answer_for_one_added_under_its_name(table: Table) -> None:
    # trap T19, inside a struct
    table.drop_column("address.zip")
    table.add_column("address.zip", "int32", default=77)
    assert [None if row is None else row["zip"] for row in column(table, "address")] == [
        77,
        None,
        77,
        77,
    ]
    assert ids(table, "address.zip = 10") == []
    assert ids(table, "address.zip = 77") == [1, 3, 4]
    assert table.delete("address.zip = 10").committed is False
    assert [row["address"]["zip"] for row in read(table, "id = 1", version=0)] == []
    assert [row["address"]["zip"] for row in read(table, "id = 1", version=2)] == [10]
    put(table, [{"id": 6, "address": {"street": "", "old": "", "zip": 10}}])
    assert ids(table, "address.zip = 10") == [6]


def test_a_field_that_comes_back_in_its_place_is_another_one(table: Table) -> None:
    # trap T19: name, type and place are those of the dropped field, the id is not
    table.drop_column("address.old")
    table.add_column("address.old", "string", default="new")
    assert [row and row["old"] for row in column(table, "address")] == ["new", None, "new", "new"]
    assert ids(table, "address.old = 'x'") == []
    assert ids(table, "address.old = 'new'") == [1, 3, 4]


def test_a_field_is_renamed_and_keeps_its_statistics(table: Table) -> None:
    table.rename_column("address.zip", "plz")
    table.rename_column("address.old", "zip")
    assert column(table, "address")[0] == {"street": "a", "plz": 10, "zip": "x"}
    assert ids(table, "address.plz = 30") == [3]
    assert ids(table, "address.zip = 'y'") == [4]
    assert table.scan("address.plz = 31").plan().splits == ()
    with pytest.raises(UnknownColumn):
        table.rename_column("address.old", "x")


def test_fields_are_widened_wherever_they_are(table: Table) -> None:
    with table.alter() as change:
        change.widen_column("address.zip", "int64").widen_column("tags.element", "int64")
        change.widen_column("items.element.n", "int32").widen_column("m.value.q", "float64")
    before = read(table, version=2)
    assert read(table) == before
    assert table.schema.field("tags").type.value_type == pa.int64()
    put(table, [{"id": 7, "address": {"zip": 2**40}, "tags": [2**40], "items": [{"n": 2**20}]}])
    assert ids(table, "address.zip > 10") == [3, 7]
    assert ids(table, "address.zip = 10") == [1]
    assert ids(table, f"address.zip = {2**40}") == [7]
    assert table.compact().committed
    assert read(table)[:4] == before


def test_fields_inside_lists_and_maps_come_and_go(table: Table) -> None:
    with table.alter() as change:
        change.add_column("items.element.price", "decimal(5,2)", default=1)
        change.drop_column("items.element.sku").rename_column("items.element.n", "count")
        change.add_column("m.value.s", "date", default=dt.date(2026, 11, 23))
        change.drop_column("m.value.q").drop_column("m.value.r")
    first, *others = column(table, "items")
    assert [str(item["price"]) if item else None for item in first] == ["1.00", None]
    assert first[0]["count"] == 1
    assert others == [None, [], None]
    assert column(table, "m") == [
        [("k", {"s": dt.date(2026, 11, 23)})],
        None,
        [("k", None), ("l", {"s": dt.date(2026, 11, 23)})],
        None,
    ]
    before = read(table)
    assert table.compact().committed
    assert read(table) == before


def test_a_struct_whose_old_fields_are_all_gone_is_null_where_it_was(table: Table) -> None:
    with table.alter() as change:
        change.add_column("address.new", "int64", default=5, nullable=False)
        for name in ("street", "zip", "old"):
            change.drop_column(f"address.{name}")
    assert column(table, "address") == [{"new": 5}, None, {"new": 5}, {"new": 5}]
    assert ids(table, "address IS NULL") == [2]
    assert ids(table, "address.new = 5") == [1, 3, 4]
    assert ids(table, "address.new IS NULL") == [2]


def test_a_field_of_an_added_struct_has_three_ages(table: Table) -> None:
    table.add_column("s", pa.struct([("a", pa.int64())]))
    put(table, [{"id": 5, "s": {"a": 1}}, {"id": 6}])
    table.add_column("s.b", "int64", default=9)
    put(table, [{"id": 7, "s": {"a": 2, "b": 3}}])
    assert column(table, "s")[:4] == [None] * 4
    assert column(table, "s")[4:] == [{"a": 1, "b": 9}, None, {"a": 2, "b": 3}]
    assert ids(table, "s.b = 9") == [5]
    splits = table.scan("s.b = 9").plan().splits  # older parts have NULL, newer ones 3
    assert sum(len(piece.parts) for split in splits for piece in split.pieces) == 1
    assert ids(table, "s.b IS NULL") == [1, 2, 3, 4, 6]
    assert ids(table, "s.b IS NOT NULL") == [5, 7]
    assert ids(table, "s.b < 9") == [7]
    table.add_column("s.c", pa.struct([("d", pa.string())]))
    table.add_column("s.c.e", "string", default="?")
    assert column(table, "s")[4] == {"a": 1, "b": 9, "c": None}
    put(table, [{"id": 8, "s": {"a": 2, "b": 3, "c": {"d": "x", "e": "y"}}}])
    assert ids(table, "s.c.e = '?'") == []
    assert ids(table, "s.c.e = 'y'") == [8]


def test_an_append_may_lack_a_field_that_was_added(table: Table) -> None:
    narrow = pa.table({"id": [9], "address": [{"zip": 1, "street": "q", "old": "o"}]})
    for name in ("tags", "items", "m"):
        table.drop_column(name)
    table.add_column("address.city", "string", default="Rome")
    if table.key:
        with pytest.raises(SchemaMismatch, match="lacks"):
            table.upsert(narrow)
        return
    table.append(narrow)
    table.set_default("address.city", "Oslo")
    narrow = narrow.set_column(0, "id", pa.array([10]))
    table.append(narrow)
    assert [row["city"] for row in column(table, "address", "id >= 9")] == ["Rome", "Oslo"]
    with pytest.raises(SchemaMismatch, match="street"):
        table.append(pa.table({"id": [11], "address": [{"zip": 1}]}))


def test_null_may_be_allowed_in_fields() -> None:
    item = pa.field("element", pa.int64(), nullable=False)
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("l", pa.list_(item)),
            ("s", pa.struct([pa.field("a", pa.int64(), nullable=False)])),
        ]
    )
    made = rowsieve.create_table(f"memory:///fields-{uuid.uuid4().hex}", schema)
    made.append(pa.table({"id": [1], "l": [[1]], "s": [{"a": 1}]}))
    with pytest.raises(SchemaMismatch):
        made.append(pa.table({"id": [2], "l": [[None, 1]], "s": [{"a": 1}]}))
    made.relax_not_null("l.element")
    made.relax_not_null("s.a")
    made.append(pa.Table.from_pylist([{"id": 2, "l": [None], "s": {"a": None}}]))
    assert column(made, "l") == [[1], [None]]
    assert ids(made, "s.a IS NULL") == [2]


def test_fields_are_put_in_an_order_wherever_they_are(table: Table) -> None:
    before = {name: column(table, name) for name in ("address", "items")}
    table.reorder_columns(["address.zip"])
    table.reorder_columns(["items.element.n"])
    table.sql("ALTER TABLE this ADD COLUMN address.first int FIRST")
    assert [field.name for field in table.schema.field("address").type] == [
        "first", "zip", "street", "old",
    ]  # fmt: skip
    table.drop_column("address.first")
    for _ in range(2):
        assert {name: column(table, name) for name in before} == before
        assert ids(table, "address.zip > 15") == [3]
        table.compact()
    for order, why in [
        (["address.zip", "id"], "different columns"),
        (["address.zip", "address.zip"], "twice"),
        (["address.zip"], "already"),
        (["tags.element"], "only a struct"),
    ]:
        with pytest.raises(InvalidSchemaChange, match=why):
            table.reorder_columns(order)


def test_data_and_schemas_bring_fields(table: Table) -> None:
    wanted = pa.schema(
        [
            (
                "ADDRESS",
                pa.struct([("zip", pa.int64()), ("Street", pa.string()), ("x", pa.int8())]),
            ),
            ("items", pa.large_list(pa.struct([("n", pa.int32()), ("y", pa.string())]))),
        ]
    )
    assert table.evolve(wanted).committed
    assert table.evolve(wanted).committed is False
    address = table.schema.field("address").type
    assert [(field.name, field.type) for field in address] == [
        ("street", pa.string()),
        ("zip", pa.int64()),
        ("old", pa.string()),
        ("x", pa.int8()),
    ]
    with pytest.raises(InvalidSchemaChange, match=r"'address\.zip'"):
        table.evolve(pa.schema([("address", pa.struct([("zip", pa.string())]))]))
    with pytest.raises(InvalidSchemaChange, match="'tags'"):
        table.evolve(pa.schema([("tags", pa.struct([("zip", pa.string())]))]))
    new = {"street": "n", "zip": 1, "old": "", "x": 1, "more": True}
    data = pa.Table.from_pylist(
        [{"id": 20, "address": new, "tags": None, "items": None, "m": None}],
        schema=pa.schema(
            [
                ("id", pa.int64()),
                ("address", pa.struct([*address, ("more", pa.bool_())])),
                *((name, table.schema.field(name).type) for name in ("tags", "items", "m")),
            ]
        ),
    )
    write = table.upsert if table.key else table.append
    with pytest.raises(SchemaMismatch, match="more"):
        write(data)
    write(data, schema_mode="merge")
    assert column(table, "address", "address.more") == [new]
    assert ids(table, "address.more IS NULL") == [1, 2, 3, 4]


def test_sql_changes_fields(table: Table) -> None:
    with table.alter() as change:
        change.sql("ADD COLUMN address.city text DEFAULT 'Rome', DROP COLUMN address.old")
        change.sql("ALTER COLUMN tags.element TYPE bigint, RENAME COLUMN address.zip TO plz")
    assert column(table, "address")[0] == {"street": "a", "plz": 10, "city": "Rome"}
    assert table.schema.field("tags").type.value_type == pa.int64()


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        pytest.param(
            lambda t: t.add_column("adress.city", "string"), UnknownColumn, "adress", id="no parent"
        ),
        pytest.param(
            lambda t: t.add_column("tags.city", "string"), InvalidSchemaChange, "only a struct",
            id="list",
        ),
        pytest.param(
            lambda t: t.add_column("id.city", "string"), InvalidSchemaChange, "only a struct",
            id="flat",
        ),
        pytest.param(
            lambda t: t.add_column("address.Zip", "string"), InvalidSchemaChange, "already",
            id="name",
        ),
        pytest.param(
            lambda t: t.add_column("address.c", "int64", nullable=False), InvalidSchemaChange,
            "NOT NULL", id="not null",
        ),
        pytest.param(
            lambda t: t.add_column("address.c", "int64", after="id"), UnknownColumn, "id",
            id="after",
        ),
        pytest.param(
            lambda t: t.drop_column("tags.element"), InvalidSchemaChange, "only a struct",
            id="element",
        ),
        pytest.param(
            lambda t: t.drop_column("m.key"), InvalidSchemaChange, "key of a map", id="key"
        ),
        pytest.param(
            lambda t: t.rename_column("m.value", "v"), InvalidSchemaChange, "only a struct",
            id="value",
        ),
        pytest.param(
            lambda t: t.drop_column("address.cty"), UnknownColumn, "no field 'cty'", id="unknown"
        ),
        pytest.param(
            lambda t: t.drop_column("id.cty"), UnknownColumn, "which is int64", id="inside flat"
        ),
        pytest.param(
            lambda t: t.widen_column("address.zip", "int16"), InvalidSchemaChange, "not every",
            id="narrower",
        ),
        pytest.param(
            lambda t: t.widen_column("tags", pa.list_(pa.int64())), InvalidSchemaChange,
            "by their paths", id="whole",
        ),
        pytest.param(
            lambda t: t.relax_not_null("m.key"), InvalidSchemaChange, "key of a map", id="null key"
        ),
        pytest.param(
            lambda t: t.set_default("tags.element", 5), InvalidSchemaChange, "only a struct",
            id="default of items",
        ),
        pytest.param(
            lambda t: t.alter().sql("RENAME COLUMN address.zip TO address.b"), InvalidInput,
            "is a path", id="path for a name",
        ),
    ],
)  # fmt: skip
def test_what_is_not_allowed_says_why(
    table: Table, change: Callable[[Table], Any], kind: type[RowsieveError], words: str
) -> None:
    version = table.version
    with pytest.raises(kind, match=words):
        change(table)
    assert table.refresh() == version


def test_the_last_field_of_a_struct_stays(table: Table) -> None:
    table.drop_column("m.value.q")
    with pytest.raises(InvalidSchemaChange, match="last field"):
        table.drop_column("m.value.r")


def test_names_with_dots_are_columns_or_paths() -> None:
    made = rowsieve.create_table(
        f"memory:///fields-{uuid.uuid4().hex}",
        pa.table({"a.b": [1], "a": [{"b": 2, "c.d": 3}]}),
    )
    made.rename_column("a.b", "x.y")
    made.rename_column(["a", "b"], "z")
    made.drop_column("a.c.d")
    assert made.to_arrow().to_pylist() == [{"x.y": 1, "a": {"z": 2}}]
    with pytest.raises(UnknownColumn, match="to name a column with a dot"):
        made.add_column("q.r", "int64")
    with pytest.raises(InvalidInput, match="empty list"):
        made.drop_column([])
    made.add_column(["a", "c.e"], "int64")
    made.drop_column("a.c.e")
    with made.alter() as change:
        change.sql('ADD COLUMN "q.r" bigint DEFAULT 4')
    assert made.to_arrow().to_pylist() == [{"x.y": 1, "a": {"z": 2}, "q.r": 4}]


def test_a_version_with_a_dropped_field_is_not_restored(table: Table) -> None:
    version = table.version
    table.add_column("address.city", "string", default="Rome")
    put(table, [{"id": 8, "address": {"city": "Oslo"}}])
    table.rename_column("address.zip", "plz")
    table.widen_column("address.plz", "int64")
    table.restore(version)
    assert [row and row["city"] for row in column(table, "address")] == [
        "Rome",
        None,
        "Rome",
        "Rome",
    ]
    assert ids(table, "address.plz = 10") == [1]
    table.drop_column("address.old")
    with pytest.raises(UnsupportedOperation, match="dropped old in address"):
        table.restore(version)


@pytest.mark.parametrize("compacts", [False, True])
@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        pytest.param(
            lambda t: t.add_column("address.city", "string", default="Rome"),
            {"street": "e", "zip": 8, "old": "o", "city": "Rome"},
            id="add",
        ),
        pytest.param(
            lambda t: t.rename_column("address.zip", "plz"),
            {"street": "e", "plz": 8, "old": "o"},
            id="rename",
        ),
        pytest.param(lambda t: t.drop_column("address.zip"), None, id="drop"),
        pytest.param(lambda t: t.widen_column("address.zip", "int64"), None, id="widen"),
    ],
)
def test_rows_written_before_a_change_of_fields(
    table: Table,
    monkeypatch: pytest.MonkeyPatch,
    theirs: Callable[[Table], Any],
    expected: dict[str, Any] | None,
    compacts: bool,
) -> None:
    # invariants, rule 14
    overtake(table, monkeypatch, theirs)
    if compacts:
        before = read(rowsieve.open_table(table.uri), columns=["id", "tags"])
        assert table.compact().committed
        assert read(table, columns=["id", "tags"]) == before
        assert (column(table, "address")[0] or {}).get("city", "Rome") == "Rome"
        return
    row = {"id": 8, "address": {"street": "e", "zip": 8, "old": "o"}}
    if expected is None:
        with pytest.raises(CommitConflict, match="in 'address' the field 'zip'"):
            put(table, [row])
        return
    put(table, [row])
    assert column(table, "address", "id = 8") == [expected]


def test_a_reader_that_does_not_know_fields_refuses_the_table(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.rename_column("tags", "labels")
    table.add_column("address.city", "string", default="Rome")
    monkeypatch.setattr("rowsieve.storage.log.log_entry.FEATURES", frozenset({"schema_changes"}))
    with pytest.raises(UnsupportedProtocol, match="field_changes"):
        rowsieve.open_table(table.uri)
