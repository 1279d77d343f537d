"""Values in opaque and in structured form, in parts of one table, are the same values."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.errors import CorruptData, InvalidInput, UnsupportedOperation, UnsupportedProtocol
from rowsieve.parquet.stored_forms import forms_by_name, in_form_of_type, newer_format
from rowsieve.types import numeric_bytes
from rowsieve.types.encodings import arrow_schema, schema_of
from rowsieve.types.logical import Field, Json, Numeric, String, Uuid
from rowsieve.types.opaque_forms import from_opaque, opaque, opaque_rows

NUMERIC = {b"ARROW:extension:name": b"rowsieve.numeric.1"}
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("n", pa.string(), metadata=NUMERIC),
        ("u", pa.uuid()),
        ("j", pa.json_()),
        ("i", pa.month_day_nano_interval()),
        ("s", pa.struct([("u", pa.uuid())])),
        ("x", pa.int64()),
    ]
)
NUMBERS = ("1e50", "-0.5", "NaN", "Infinity", "-Infinity", "0", "1.10", f"{2**200}", "-1e-300")


def row(i: int) -> dict[str, Any]:
    if i % 10 == 9:
        return {**dict.fromkeys(SCHEMA.names), "id": i}
    made = uuid.UUID(int=i * 2**100).bytes
    return {
        "id": i,
        "n": NUMBERS[i % len(NUMBERS)],
        "u": made,
        "j": f'{{"k": {i}, "é": "😀"}}',
        "i": (i, -i, i * 1000),
        "s": {"u": made},
        "x": i,
    }


def rows_of(ids: Iterator[int] | range) -> pa.Table:
    rows = [row(i) for i in ids]
    columns = []
    for field in SCHEMA:
        storage = field.type.storage_type if field.name in ("u", "j") else field.type
        if field.name == "s":
            storage = pa.struct([("u", pa.binary(16))])
        values = pa.array([each[field.name] for each in rows], storage)
        columns.append(values.cast(field.type) if storage != field.type else values)
    return pa.table(columns, schema=SCHEMA)


def shown(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def two_tables(folder: Path, key: list[str] | None, **properties: str) -> list[rs.Table]:
    """Two tables with the same changes; parts of the first have both forms."""
    tables = []
    for name, forms in (("mixed", "opaque"), ("plain", "structured")):
        table = rs.create_table(
            folder / name,
            rows_of(range(30)),
            key=key,
            properties={"value_forms": forms, **properties},
        )
        table.set_properties({"value_forms": "structured"})
        (table.upsert if key else table.append)(rows_of(range(20 if key else 30, 40)))
        table.set_properties({"value_forms": forms})
        (table.upsert if key else table.append)(rows_of(range(38 if key else 40, 50)))
        table.delete("id = 2 OR id = 45")
        tables.append(table)
    return tables


def forms(table: rs.Table, folder: Path) -> list[set[str]]:
    """The forms in each data file of the newest version."""
    found = []
    for path in sorted((folder / "data").glob("*.parquet")):
        if not path.name.endswith(".deletes.parquet"):
            stored = forms_by_name(pq.read_metadata(path))
            found.append({form.decode().removeprefix("rowsieve.") for form in stored.values()})
    assert table.count() == 48
    return found


CONDITIONS = (
    "n = 1e50",
    "n < 0",
    "n > 1e49 AND x <> 8",
    f"u = CAST('{uuid.UUID(int=33 * 2**100)}' AS uuid)",
    "j ->> 'k' = '21'",
    "i > INTERVAL '20 months'",
    "n IS NULL AND x IS NULL",
    "u IS NOT NULL AND x > 40",
)
OPAQUE = {"numeric.0", "uuid.0", "json.0", "interval.0"}
STRUCTURED = {"numeric.1", "uuid.1", "json.1", "interval.1"}


@pytest.mark.parametrize("names", ["user", "tag"])
@pytest.mark.parametrize("key", [None, ["id"]])
def test_parts_of_both_forms_are_one_table(
    key: list[str] | None, names: str, tmp_path: Path
) -> None:
    mixed, plain = two_tables(tmp_path, key, column_names=names)
    found = forms(mixed, tmp_path / "mixed")
    assert OPAQUE in found
    assert STRUCTURED in found
    assert OPAQUE not in forms(plain, tmp_path / "plain")
    assert shown(mixed.to_arrow()) == shown(plain.to_arrow())
    assert mixed.to_arrow().schema == plain.to_arrow().schema
    assert shown(mixed.to_dataset().to_table()) == shown(plain.to_arrow())
    for where in CONDITIONS:
        wanted = plain.scan(where, ["id"]).to_arrow()["id"].to_pylist()
        assert wanted, where
        for pruning in ("on", "soft", "off"):
            scan = mixed.scan(where, ["id"], pruning=pruning)
            assert sorted(scan.to_arrow()["id"].to_pylist()) == sorted(wanted), where
    context = datafusion.SessionContext()
    context.register_table("t", mixed)
    query = "SELECT id FROM t WHERE j IS NOT NULL AND x >= 47"
    assert sorted(each["id"] for each in context.sql(query).to_pylist()) == [47, 48]


@pytest.mark.parametrize("key", [None, ["id"]])
def test_compaction_writes_the_form_that_the_table_has(
    key: list[str] | None, tmp_path: Path
) -> None:
    mixed, plain = two_tables(tmp_path, key)
    mixed.set_properties({"value_forms": "structured"})
    mixed.compact()
    assert shown(mixed.to_arrow()) == shown(plain.to_arrow())
    parts = mixed.handle.pinned.parts
    assert set(parts.column("format_version").to_pylist()) == {1}
    assert set(parts.column("native_safe").to_pylist()) == {True}
    mixed.set_properties({"value_forms": "opaque"})
    assert not mixed.compact().committed  # what is structured stays so until it is rewritten


def test_compaction_rewrites_an_opaque_part_of_any_size(tmp_path: Path) -> None:
    properties = {"value_forms": "opaque", "target_part_bytes": "1"}
    rows = rows_of(range(30)).select(["id", "j"])  # Delta has these types
    table = rs.create_table(tmp_path / "t", rows, properties=properties)
    assert table.handle.pinned.parts.column("format_version").to_pylist() == [2]
    with pytest.raises(UnsupportedOperation, match=r"opaque values.*compact first"):
        table.publish("delta")
    assert not table.compact().committed
    table.unset_properties(["value_forms"])
    assert "no longer writes" in str(table.maintenance_advice())
    assert table.compact().committed
    assert table.handle.pinned.parts.column("format_version").to_pylist() == [1]
    assert shown(table.to_arrow()) == shown(table.scan(version=0).to_arrow())


def test_opaque_columns_have_no_statistics(tmp_path: Path) -> None:
    table = rs.create_table(
        tmp_path / "t", rows_of(range(30)), properties={"value_forms": "opaque"}
    )
    parts = table.handle.pinned.parts
    ids = {field.name: field.id for field in table.handle.pinned.schema}
    opaque_ids = {ids[name] for name in ("n", "u", "j", "i")}
    known = {
        int(name.split(".")[1]) for name in parts.table.column_names if name.startswith("stats.")
    }
    assert ids["x"] in known
    assert not known & opaque_ids
    (path,) = (tmp_path / "t/data").glob("*.parquet")
    metadata = pq.read_metadata(path)
    group = metadata.row_group(0)
    chunks = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    for name in ("n", "u", "j", "i"):
        assert chunks[name].physical_type == "BYTE_ARRAY"
        assert chunks[name].statistics is None
        assert not chunks[name].has_dictionary_page
    assert chunks["x"].statistics is not None
    assert metadata.metadata[b"rowsieve.format"] == b"2"


def test_key_columns_are_never_opaque(tmp_path: Path) -> None:
    rows = pa.table({"u": pa.array([uuid.UUID(int=i).bytes for i in (3, 1, 2)], pa.uuid())})
    table = rs.create_table(tmp_path / "t", rows, key=["u"], properties={"value_forms": "opaque"})
    (path,) = (tmp_path / "t/data").glob("*.parquet")
    assert list(forms_by_name(pq.read_metadata(path)).values()) == [b"rowsieve.uuid.1"]
    assert table.handle.pinned.parts.column("format_version").to_pylist() == [1]
    assert table.count(f"u = CAST('{uuid.UUID(int=2)}' AS uuid)") == 1


def test_the_forms_are_a_property_with_two_values(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="must be structured or opaque, not 'bytes'"):
        rs.create_table(tmp_path / "t", SCHEMA, properties={"value_forms": "bytes"})


def test_every_value_survives_its_opaque_form() -> None:
    numbers = pa.array([*NUMBERS, None, "1e131071", "-1e-16383", "123456789.5"], pa.string())
    schema, _ = schema_of(pa.schema([pa.field("n", pa.string(), metadata=NUMERIC)]))
    rows = pa.table([numeric_bytes.from_text(numbers)], schema=arrow_schema(schema))
    stored = opaque(schema, frozenset())
    for start in (0, 3):
        some = rows.slice(start)
        encoded = opaque_rows(some, schema, stored)
        assert encoded.schema.types == [pa.binary()]
        decoded = from_opaque(encoded.column(0), schema.fields[0])
        assert decoded.type == rows.schema.field(0).type
        assert repr(decoded.to_pylist()) == repr(some.column(0).to_pylist())
    plain, _ = schema_of(pa.schema([("a", pa.int64())]))
    assert opaque(plain, frozenset()) is plain


@pytest.mark.parametrize(
    ("type_", "value"),
    [(Uuid(), b"short"), (Json(), b"\xff"), (Numeric(), b"\x09"), (Numeric(), b"")],
)
def test_bytes_that_are_no_value_are_damage(type_: Any, value: bytes) -> None:
    field = Field(7, "c", type_)
    form = {Uuid: b"uuid", Json: b"json", Numeric: b"numeric"}[type(type_)]
    values = pa.chunked_array([pa.array([value, None], pa.binary())])
    with pytest.raises(CorruptData, match=r"data/x has bytes in column 'c' \(field id 7\)"):
        in_form_of_type(values, b"rowsieve." + form + b".0", field, "data/x")


@pytest.mark.parametrize(
    ("form", "type_", "known"),
    [
        (b"rowsieve.uuid.2", Uuid(), "rowsieve.uuid.1, rowsieve.uuid.0"),
        (b"rowsieve.numeric.0", Uuid(), "rowsieve.uuid.1"),
        (b"rowsieve.uuid.1", String(), "plain values"),
    ],
)
def test_a_form_that_is_not_known_is_refused(form: bytes, type_: Any, known: str) -> None:
    values = pa.chunked_array([pa.array([b"1" * 16])])
    with pytest.raises(UnsupportedProtocol, match=f"reads {known}.*upgrade"):
        in_form_of_type(values, form, Field(7, "c", type_), "data/x")


def test_a_file_of_a_newer_format_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("file_forms", "part_writer"):
        monkeypatch.setattr(f"rowsieve.storage.parts.{module}.STRUCTURED_FORMAT", 4)
    with monkeypatch.context() as patch:
        patch.setattr("rowsieve.storage.manifests.manifest_layout.FORMAT_VERSION", 4)
        table = rs.create_table(tmp_path / "t", pa.table({"id_in_format_4": [1]}))
        (path,) = (tmp_path / "t/data").glob("*.parquet")
        assert newer_format(pq.read_metadata(path)) == "4"
        with pytest.raises(UnsupportedProtocol, match=r"has the format 4.*only up to 3"):
            table.to_arrow()
    with pytest.raises(UnsupportedProtocol, match="format version 4"):
        rs.open_table(tmp_path / "t").to_arrow()


def test_numbers_are_not_read_from_bytes_that_are_not_canonical() -> None:
    exact = numeric_bytes.encoded(Decimal("1.5"))
    with pytest.raises(ValueError, match="canonical"):
        numeric_bytes.of_exact(pa.array([exact + b"\x00"], pa.binary()))
