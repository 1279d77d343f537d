"""Delta tables, read through our planner: the rows are those that deltalake reads."""

from __future__ import annotations

import json
import math
import struct
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyroaring
import pytest
from deltalake import DeltaTable, write_deltalake

import rowsieve as rs
from rowsieve.errors import InvalidInput, NotFound, UnsupportedOperation

ROWS = pa.table(
    {
        "id": [1, 2, 3, 4, 5, 6],
        "p": ["a b", "é%", "x=/y", None, "a b", "a%20b"],
        "day": [date(2020, 1, 1)] * 3 + [None] * 3,
        "f": [1.5, float("nan"), None, -0.0, 2.0, 3.0],
        "ts": pa.array([datetime(2020, 1, i, tzinfo=UTC) for i in range(1, 7)]),
        "local": pa.array([datetime(2020, 1, i) for i in range(1, 7)], pa.timestamp("us")),
    }
)
CONDITIONS = (
    *("id = 3", "id > 4", "p = 'a b'", "p IS NULL", "p LIKE 'a%'", "day = date '2020-01-01'"),
    *("f = 0", "f IS NULL", "f > 2", "ts >= timestamptz '2020-01-04 00:00:00+00'"),
    *("local < timestamp '2020-01-03'", "p <> 'x=/y' AND id < 6", "day IS NULL OR id = 1"),
)


def delta_rows(uri: Path, version: int | None = None) -> pa.Table:
    return pa.table(DeltaTable(uri, version=version).to_pyarrow_table())


def in_order(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def check_same(uri: Path, expected: pa.Table, version: int | None = None) -> rs.Table:
    """Compare with rows read by another reader; the oracle filters them in a table of ours."""
    table = rs.from_delta(uri, version)
    assert in_order(table.to_arrow().cast(expected.schema)) == in_order(expected)
    memory = rs.create_table(f"memory:///{uuid.uuid4().hex}", expected)
    for condition in CONDITIONS if "p" in expected.column_names else ():
        full = memory.scan(condition, pruning="off").to_arrow()
        pruned = table.scan(condition, pruning="soft").to_arrow().cast(full.schema)
        assert in_order(pruned) == in_order(full), condition
        assert table.count(condition) == full.num_rows
    return table


@pytest.mark.parametrize("partitions", [None, ["p"], ["p", "day"]])
def test_rows_are_those_that_deltalake_reads(partitions: list[str] | None, tmp_path: Path) -> None:
    uri = tmp_path / "t é"
    write_deltalake(uri, ROWS, partition_by=partitions)
    write_deltalake(uri, ROWS.slice(2, 3), mode="append")
    DeltaTable(uri).delete("id = 3")
    table = check_same(uri, delta_rows(uri))
    check_same(uri, delta_rows(uri, 0), 0)
    if partitions:
        scan = table.scan("p = 'é%'")
        assert scan.to_arrow()["id"].to_pylist() == [2]
        assert scan.metrics.parts_considered - scan.metrics.parts_pruned == 1


def test_columns_that_were_added_are_null_in_older_files(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": pa.array([1], pa.int32())}))
    newer = pa.table({"id": pa.array([2], pa.int32()), "n": [[{"x": 1}]]})
    write_deltalake(tmp_path, newer, mode="append", schema_mode="merge")
    table = check_same(tmp_path, delta_rows(tmp_path))
    assert table.scan("n IS NULL").to_arrow()["id"].to_pylist() == [1]


# Logs as other writers make them


def z85(data: bytes) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    data += bytes(-len(data) % 4)
    written = ""
    for (number,) in struct.iter_unpack(">I", data):
        written += "".join(digits[number // 85**place % 85] for place in (4, 3, 2, 1, 0))
    return written


def vector(rows: list[int]) -> dict[str, Any]:
    data = struct.pack("<I", 1681511377) + pyroaring.BitMap64(rows).serialize()
    inline = {"storageType": "i", "pathOrInlineDv": z85(data), "sizeInBytes": len(data)}
    return {**inline, "cardinality": len(rows)}


def field(name: str, type_: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": True, "metadata": metadata}


def write_log(
    folder: Path,
    fields: list[dict[str, Any]],
    files: list[dict[str, Any]],
    features: list[str],
    **configuration: str,
) -> None:
    (folder / "_delta_log").mkdir()
    protocol: dict[str, Any] = {"minReaderVersion": 3, "minWriterVersion": 7}
    protocol |= {"readerFeatures": features, "writerFeatures": features}
    metadata = {
        "id": "0" * 8 + "-0000-0000-0000-" + "0" * 12,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": configuration,
        "createdTime": 0,
    }
    adds = [
        {"add": {"partitionValues": {}, "modificationTime": 0, "dataChange": True, **file}}
        for file in files
    ]
    lines = [{"protocol": protocol}, {"metaData": metadata}, *adds]
    text = "\n".join(map(json.dumps, lines))
    (folder / "_delta_log" / f"{0:020}.json").write_text(text)


def test_deletion_vectors_hide_rows(tmp_path: Path) -> None:
    rows = pa.table({"id": range(100)})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=30)
    pq.write_table(pa.table({"id": range(100, 110)}), tmp_path / "b.parquet")
    gone = [0, 29, 30, 31, 99]
    files: list[dict[str, Any]] = [
        {"path": f"{name}.parquet", "size": (tmp_path / f"{name}.parquet").stat().st_size}
        for name in "ab"
    ]
    files[0]["deletionVector"] = vector(gone)
    for file, count in zip(files, (100, 10), strict=True):
        file["stats"] = json.dumps({"numRecords": count})
    write_log(
        tmp_path, [field("id", "long")], files, ["deletionVectors"],
        **{"delta.enableDeletionVectors": "true"},
    )  # fmt: skip
    table = rs.from_delta(tmp_path)
    left = [i for i in range(110) if i not in gone]
    assert sorted(table.to_arrow()["id"].to_pylist()) == left
    assert table.count() == len(left)
    assert table.count("id BETWEEN 28 AND 33") == 3
    assert table.scan("id = 30").to_arrow().num_rows == 0
    assert table.scan("id <= 29", pruning="soft").count() == 28
    (split,) = table.scan("id = 31 OR id = 32").plan().splits_to_bytes()
    assert rs.read_split(split).read_all()["id"].to_pylist() == [32]


def test_int96_is_an_instant(tmp_path: Path) -> None:
    moment = datetime(2020, 1, 1, tzinfo=UTC)
    rows = pa.table({"ts": pa.array([moment, None], pa.timestamp("us", "UTC"))})
    pq.write_table(rows, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    size = (tmp_path / "a.parquet").stat().st_size
    write_log(tmp_path, [field("ts", "timestamp")], [{"path": "a.parquet", "size": size}], [])
    table = rs.from_delta(tmp_path)
    assert table.to_arrow()["ts"].to_pylist() == [moment, None]
    assert table.count("ts = timestamptz '2020-01-01 00:00:00+00'") == 1


def test_column_mapping_finds_columns_by_their_names_in_files(tmp_path: Path) -> None:
    rows = pa.table({"col-1": [1, 2], "b": ["dropped", "x"], "col-3": ["y", None]})
    pq.write_table(rows, tmp_path / "a.parquet")
    size = (tmp_path / "a.parquet").stat().st_size
    mapped = [
        field(name, type_, **{"delta.columnMapping.id": i, "delta.columnMapping.physicalName": own})
        for i, (name, type_, own) in enumerate(
            [("id", "long", "col-1"), ("b", "string", "col-3"), ("new", "long", "col-4")]
        )
    ]
    write_log(
        tmp_path, mapped, [{"path": "a.parquet", "size": size}], ["columnMapping"],
        **{"delta.columnMapping.mode": "name"},
    )  # fmt: skip
    try:
        DeltaTable(tmp_path)
    except Exception as error:
        with pytest.raises((UnsupportedOperation, NotFound)):
            rs.from_delta(tmp_path)
        pytest.skip(f"this deltalake does not read column mapping: {error}")
    table = rs.from_delta(tmp_path)
    assert table.to_arrow().to_pylist() == [
        {"id": 1, "b": "y", "new": None},
        {"id": 2, "b": None, "new": None},
    ]
    assert table.count("b = 'dropped'") == 0


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_columns_are_mapped_only_as_the_mode_says(mode: str, tmp_path: Path) -> None:
    ids = [{"PARQUET:field_id": "2"}, {"PARQUET:field_id": "1"}]
    columns = [pa.field(n, pa.int64(), metadata=m) for n, m in zip("ab", ids, strict=True)]
    pq.write_table(pa.table({"a": [1], "b": [2]}, pa.schema(columns)), tmp_path / "f.parquet")
    size = (tmp_path / "f.parquet").stat().st_size
    mapped = [
        field(
            name, "long", **{"delta.columnMapping.id": i, "delta.columnMapping.physicalName": own}
        )
        for i, name, own in ((1, "a", "b" if mode == "name" else "other"), (2, "b", "a"))
    ]
    features = [] if mode == "none" else ["columnMapping"]
    write_log(
        tmp_path, mapped, [{"path": "f.parquet", "size": size}], features,
        **({} if mode == "none" else {"delta.columnMapping.mode": mode}),
    )  # fmt: skip
    expected = [{"a": 1, "b": 2}] if mode == "none" else [{"a": 2, "b": 1}]
    assert rs.from_delta(tmp_path).to_arrow().to_pylist() == expected
    if mode == "none":
        assert delta_rows(tmp_path).to_pylist() == expected
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "f.parquet")
    if mode == "id":
        with pytest.raises(UnsupportedOperation, match="no field ids at 'a', 'b'"):
            rs.import_delta(tmp_path, tmp_path.with_suffix(".t"))


@pytest.mark.parametrize("imported", [False, True])
def test_fields_that_were_added_inside_columns_are_null_in_older_files(
    imported: bool, tmp_path: Path
) -> None:
    uri = str(tmp_path / "delta")
    old = {"id": 1, "s": {"u": 1}, "l": [{"q": 1}]}
    new = {"id": 2, "s": {"u": 2, "v": "x"}, "l": [{"q": 2, "r": 3}]}
    for row in (old, new):
        write_deltalake(uri, pa.Table.from_pylist([row]), mode="append", schema_mode="merge")
    opened = rs.import_delta(uri, tmp_path / "own") if imported else rs.from_delta(uri)
    expected = [{"id": 1, "s": {"u": 1, "v": None}, "l": [{"q": 1, "r": None}]}, new]
    for _ in range(2 if imported else 1):
        assert opened.to_arrow().sort_by("id").to_pylist() == expected
        assert opened.scan("(s).v = 'x'").to_arrow()["id"].to_pylist() == [2]
        assert opened.scan("(s).v IS NULL").to_arrow()["id"].to_pylist() == [1]
        if imported:
            opened.compact()


@pytest.mark.parametrize("mode", ["name", "id"])
def test_fields_inside_columns_are_mapped(mode: str, tmp_path: Path) -> None:
    """The file has other names inside `s`, a field that was dropped, and lacks one."""
    with_id = [
        pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(i)})
        for i, name in enumerate(("c-a", "gone", "c-b"), 2)
    ]
    whole = pa.field("c-s", pa.struct(with_id), metadata={"PARQUET:field_id": "1"})
    item = pa.field("c-x", pa.int64(), metadata={"PARQUET:field_id": "10"})
    listed = pa.field("c-l", pa.list_(pa.struct([item])), metadata={"PARQUET:field_id": "9"})
    row = {"c-s": {"c-a": 5, "gone": 6, "c-b": 7}, "c-l": [{"c-x": 8}]}
    rows = pa.Table.from_pylist([row], pa.schema([whole, listed]))
    pq.write_table(rows, tmp_path / "f.parquet")

    def mapped(name: str, type_: Any, number: int, own: str) -> dict[str, Any]:
        ids = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": own}
        return field(name, type_, **ids)

    names = [("gone", 2, "c-a"), ("b", 4, "c-b"), ("new", 8, "c-new")]
    inside = {"type": "struct", "fields": [mapped(n, "long", i, own) for n, i, own in names]}
    items = {"type": "array", "containsNull": True, "elementType": {
        "type": "struct", "fields": [mapped("x", "long", 10, "c-x")]
    }}  # fmt: skip
    write_log(
        tmp_path, [mapped("s", inside, 1, "c-s"), mapped("l", items, 9, "c-l")],
        [{"path": "f.parquet", "size": (tmp_path / "f.parquet").stat().st_size}],
        ["columnMapping"], **{"delta.columnMapping.mode": mode},
    )  # fmt: skip
    opened = rs.from_delta(tmp_path)
    assert opened.to_arrow().to_pylist() == [
        {"s": {"gone": 5, "b": 7, "new": None}, "l": [{"x": 8}]}
    ]
    assert opened.count("(s).gone = 6") == 0
    assert opened.count("(s).gone = 5 AND (s).new IS NULL AND (l[1]).x = 8") == 1


@pytest.mark.parametrize("imported", [False, True])
def test_files_from_before_a_type_was_widened(imported: bool, tmp_path: Path) -> None:
    folder = tmp_path / "delta"
    folder.mkdir()
    old = {
        "i": pa.array([1, None], pa.int32()),
        "n": pa.array([2**63 - 1, 3], pa.int64()),
        "d": pa.array([19_000, 0], pa.date32()),
        "s": pa.array([{"f": 7}, None], pa.struct([("f", pa.int8())])),
    }
    new = {
        "i": pa.array([1.5, math.nan]),
        "n": pa.array([Decimal("0.5"), None], pa.decimal128(22, 1)),
        "d": pa.array([1, -1], pa.timestamp("us")),
        "s": pa.array([{"f": 0.5}, {"f": -math.inf}], pa.struct([("f", pa.float64())])),
    }
    files = []
    for name, columns in (("a", old), ("b", new)):
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
        size = (folder / f"{name}.parquet").stat().st_size
        files.append({"path": f"{name}.parquet", "size": size})
    described = [
        field(
            "i", "double", **{"delta.typeChanges": [{"fromType": "integer", "toType": "double"}]}
        ),
        field("n", "decimal(22,1)"),
        field("d", "timestamp_ntz"),
        field("s", {"type": "struct", "fields": [field("f", "double")]}),
    ]
    write_log(
        folder, described, files, ["typeWidening", "timestampNtz"],
        **{"delta.enableTypeWidening": "true"},
    )  # fmt: skip
    opened = rs.import_delta(folder, tmp_path / "own") if imported else rs.from_delta(folder)
    assert opened.to_arrow()["n"].to_pylist() == [
        Decimal("9223372036854775807.0"), Decimal("3.0"), Decimal("0.5"), None
    ]  # fmt: skip
    for where, count in {
        "i = 1.5": 1,
        "i > 1": 2,
        "i IS NULL": 1,
        "n = 9223372036854775807": 1,
        "n < 1": 1,
        "d = TIMESTAMP '2022-01-08 00:00:00'": 1,
        "d < TIMESTAMP '1970-01-01 00:00:00.000001'": 2,
        "(s).f > 0": 2,
        "(s).f = 7": 1,
    }.items():
        for pruning in ("on", "soft", "off"):
            assert opened.scan(where, pruning=pruning).count() == count, (where, pruning)
    scan = opened.scan("n = 9223372036854775807")
    assert scan.to_arrow().num_rows == scan.metrics.parts_read == 1  # the other file is skipped


def test_widened_tables_that_may_have_vectors_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1.0]}), tmp_path / "a.parquet")
    size = (tmp_path / "a.parquet").stat().st_size
    features = ["typeWidening", "deletionVectors"]
    write_log(tmp_path, [field("id", "double")], [{"path": "a.parquet", "size": size}], features)
    with pytest.raises(UnsupportedOperation, match="deltalake cannot read"):
        rs.from_delta(tmp_path)


@pytest.mark.parametrize(
    ("described", "path"),
    [
        (field("s", "string", __COLLATIONS={"s": "spark.UTF8_LCASE"}), "s"),
        (
            field(
                "l",
                {"type": "array", "elementType": "string", "containsNull": True},
                __COLLATIONS={"l.element": "icu.UNICODE_CI"},
            ),
            "l.element",
        ),
        (
            field(
                "m",
                {
                    "type": "array",
                    "containsNull": True,
                    "elementType": {
                        "type": "struct",
                        "fields": [field("t", "string", __COLLATIONS={"t": "icu.de"})],
                    },
                },
            ),
            "m.t",
        ),
    ],
)
def test_collations_are_refused_by_column(described: Any, path: str, tmp_path: Path) -> None:
    folder = tmp_path / "delta"
    folder.mkdir()
    plain = field("id", "long", __COLLATIONS={"id": "spark.UTF8_BINARY"})
    write_log(folder, [plain, described], [], [])
    message = f"column '{path}' has Spark's collation"
    with pytest.raises(UnsupportedOperation, match=message):
        rs.from_delta(folder)
    with pytest.raises(UnsupportedOperation, match=message):
        rs.import_delta(folder, tmp_path / "t")


def test_what_deltalake_refuses_late_is_an_error(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    size = (tmp_path / "a.parquet").stat().st_size
    file = {"path": "a.parquet", "size": size, "stats": json.dumps({"numRecords": 2})}
    file["deletionVector"] = vector([0, 7])  # beyond the rows
    write_log(
        tmp_path, [field("id", "long")], [file], ["deletionVectors"],
        **{"delta.enableDeletionVectors": "true"},
    )  # fmt: skip
    with pytest.raises(UnsupportedOperation, match="from_delta: deltalake cannot read"):
        rs.from_delta(tmp_path)
    with pytest.raises(UnsupportedOperation, match="import_delta: deltalake cannot read"):
        rs.import_delta(tmp_path, tmp_path.with_suffix(".t"))


def test_tables_that_are_not_there_are_errors(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no Delta table"):
        rs.from_delta(tmp_path)
    write_deltalake(tmp_path / "t", ROWS)
    with pytest.raises(NotFound, match="no version 7"):
        rs.from_delta(tmp_path / "t", 7)
    with pytest.raises(NotFound, match="no version -1"):
        rs.from_delta(tmp_path / "t", -1)
    with pytest.raises(InvalidInput, match="memory"):
        rs.from_delta("memory:///x")
    with pytest.raises(UnsupportedOperation, match="from_delta"):
        rs.from_delta(tmp_path / "t").append(ROWS)


@pytest.mark.parametrize("form", ["file:{}", "file://{}", "{}"])
def test_a_file_elsewhere_is_found_in_every_form_in_which_logs_name_it(
    form: str, tmp_path: Path
) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    other = tmp_path / "other place.parquet"
    pq.write_table(pa.table({"id": [2]}), other)
    added = {
        "path": form.format(str(other).replace(" ", "%20")),
        "partitionValues": {},
        "size": other.stat().st_size,
        "modificationTime": 0,
        "dataChange": True,
    }
    entry = tmp_path / "t" / "_delta_log" / f"{1:020}.json"
    entry.write_text(json.dumps({"add": added}))
    assert sorted(rs.from_delta(tmp_path / "t").to_arrow()["id"].to_pylist()) == [1, 2]
    imported = rs.import_delta(tmp_path / "t", tmp_path / "imported")
    assert imported.count("id = 2") == 1


def test_partition_values_of_bytes_are_unescaped(tmp_path: Path) -> None:
    values = [b"a", b"\x00\xff", b"\\", b"\xc3\xa9", None]
    uri = tmp_path / "t"
    write_deltalake(uri, pa.table({"p": values, "k": range(5)}), partition_by=["p"])
    table = rs.from_delta(uri)
    rows = sorted(table.to_arrow().to_pylist(), key=lambda row: row["k"])
    assert [row["p"] for row in rows] == values
    assert table.count("p = '\\x00ff'") == 1


@pytest.mark.parametrize("text", ["é", "a\\u0061", "\\x61"])
def test_bytes_in_the_log_that_writers_mean_in_several_ways_are_refused(
    text: str, tmp_path: Path
) -> None:
    uri = tmp_path / "t"
    write_deltalake(uri, pa.table({"p": [b"a"], "k": [1]}), partition_by=["p"])
    log = uri / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["partitionValues"]["p"] = text
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(UnsupportedOperation, match=r"binary column 'p'.*several ways"):
        rs.from_delta(uri)
