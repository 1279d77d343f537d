"""A version published as Iceberg metadata has the same rows for readers of Iceberg."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.table import StaticTable

import rowsieve as rs
from rowsieve.errors import CorruptData, InvalidInput, UnsupportedOperation
from rowsieve.objects import LocalStore
from tests.faults.stores import EveryStore
from tests.profiles import examples

COUNT = 50
DEEP = pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.int64())))]))
ROWS = pa.table(
    {
        "id": pa.array(range(COUNT), pa.int64()),
        "i8": pa.array([i - 25 for i in range(COUNT)], pa.int8()),
        "u16": pa.array([65_535 - i for i in range(COUNT)], pa.uint16()),
        "f": [None if i % 3 else i / 4 - 3 for i in range(COUNT)],
        "f32": pa.array([math.nan if i % 5 else i / 4 + 1 for i in range(COUNT)], pa.float32()),
        "s": [f"é{i}" for i in range(COUNT)],
        "long": ["z" * 300 + str(i) for i in range(COUNT)],
        "b": [i % 2 == 0 for i in range(COUNT)],
        "bytes": [b"\xff" * i for i in range(COUNT)],
        "d": [date(1960 + i, 1, 1) for i in range(COUNT)],
        "t": [time(i % 24, 1, 2, i) for i in range(COUNT)],
        "ts": pa.array(
            [datetime(1960 + i, 1, 1, tzinfo=UTC) for i in range(COUNT)], pa.timestamp("us", "UTC")
        ),
        "local": pa.array([datetime(1960 + i, 1, 1) for i in range(COUNT)], pa.timestamp("us")),
        "dec": pa.array([Decimal(i - 20) / 4 for i in range(COUNT)], pa.decimal128(9, 2)),
        "big": pa.array([Decimal(i - 20) * 10**30 for i in range(COUNT)], pa.decimal128(38, 2)),
        "l": [[i, None] if i % 4 else None for i in range(COUNT)],
        "st": [{"x": i, "y": "z"} if i % 7 else None for i in range(COUNT)],
        "never": pa.StructArray.from_arrays(
            [pa.array(range(COUNT))],
            fields=[pa.field("x", pa.int64(), nullable=False)],
            mask=pa.array([i % 2 == 0 for i in range(COUNT)]),
        ),
        "deep": pa.array([[{"m": [("k", [i])]}] for i in range(COUNT)], DEEP),
        "m": pa.array([[("k", i)] for i in range(COUNT)], pa.map_(pa.string(), pa.int64())),
        "none": pa.nulls(COUNT, pa.int32()),
    },
)


def shown(rows: pa.Table, key: str = "id") -> list[str]:
    """The rows in order of the key, as text, in which NaN is itself."""
    return [repr(row) for row in sorted(rows.to_pylist(), key=lambda row: row[key])]


def iceberg(folder: Path, number: int | None = None) -> StaticTable:
    """The newest metadata of a folder, or that of a number."""
    hint = folder / "metadata/version-hint.text"
    number = int(hint.read_text()) if number is None else number
    return StaticTable.from_metadata(f"{folder}/metadata/v{number}.metadata.json")


@pytest.mark.parametrize("key", [None, ["id"]])
def test_readers_of_iceberg_read_the_same_rows(key: list[str] | None, tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, key=key)
    more = ROWS.slice(0, 5).set_column(0, "id", pa.array(range(100, 105), pa.int64()))
    (table.upsert if key else table.append)(more)
    table.publish("iceberg")
    rows = pa.concat_tables([ROWS, more])
    found = iceberg(tmp_path / "t")
    assert shown(found.scan().to_arrow()) == shown(rows)
    assert shown(rs.from_iceberg(found).to_arrow()) == shown(rows)
    assert found.schema().identifier_field_ids == ([1] if key else [])
    assert rs.open_table(tmp_path / "t").count() == COUNT + 5


Row = dict[str, Any]
FILTERS: dict[str, Callable[[Row], Any]] = {
    "f > 1.0": lambda r: r["f"] is not None and r["f"] > 1,
    "f is null": lambda r: r["f"] is None,
    "f32 is nan": lambda r: math.isnan(r["f32"]),
    "f32 <= 2.5": lambda r: r["f32"] <= 2.5,
    "u16 >= 65500": lambda r: r["u16"] >= 65_500,
    "i8 < -20": lambda r: r["i8"] < -20,
    "s = 'é7'": lambda r: r["s"] == "é7",
    "long > 'zzzz'": lambda r: r["long"] > "zzzz",
    "b = true": lambda r: r["b"],
    "d < '1970-01-01'": lambda r: r["d"] < date(1970, 1, 1),
    "ts >= '2001-01-01T00:00:00+00:00'": lambda r: r["ts"] >= datetime(2001, 1, 1, tzinfo=UTC),
    "local < '1960-06-01T00:00:00'": lambda r: r["local"] < datetime(1960, 6, 1),
    "dec < -4.25": lambda r: r["dec"] < Decimal("-4.25"),
    "dec > 0": lambda r: r["dec"] > 0,
    "none is not null": lambda r: False,
}


def test_bounds_lose_no_row_and_skip_files(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS.slice(0, 0))
    for start in range(0, COUNT, 5):
        table.append(ROWS.slice(start, 5))
    table.publish("iceberg")
    found, rows = iceberg(tmp_path / "t"), ROWS.to_pylist()
    read = 0
    for text, matches in FILTERS.items():
        scan = found.scan(text)
        ids = sorted(scan.to_arrow()["id"].to_pylist())
        assert ids == [row["id"] for row in rows if matches(row)], text
        read += len(list(scan.plan_files()))
    assert read < 10 * len(FILTERS) * 0.6


def test_bounds_are_values_or_missing(tmp_path: Path) -> None:
    """Engines answer MIN, MAX and COUNT from them."""
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
    table.publish("iceberg")
    (file,) = iceberg(tmp_path / "t").inspect.files().to_pylist()
    metrics = {name: found for name, found in file["readable_metrics"].items() if found}
    for name in ROWS.column_names:
        values = [value for value in ROWS[name].to_pylist() if value is not None]
        own = metrics[name]
        if name in ("l", "st", "never", "deep", "m"):
            assert set(own.values()) == {None}
            continue
        assert own["value_count"] == COUNT
        assert own["null_value_count"] == COUNT - len(values)
        if name in ("long", "bytes"):
            assert own["lower_bound"] <= min(values)
            assert own["upper_bound"] >= max(values)
        elif name in ("f32", "none", "f"):
            assert own["nan_value_count"] == {"f32": 40, "none": None, "f": 0}[name]
            assert (own["lower_bound"] is None) == (name != "f")
        else:
            assert (own["lower_bound"], own["upper_bound"]) == (min(values), max(values)), name


def test_files_without_statistics_have_no_metrics(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, properties={"statistics": "off"})
    table.publish("iceberg")
    found = iceberg(tmp_path / "t")
    (file,) = found.inspect.files().to_pylist()
    assert {fact for own in file["readable_metrics"].values() for fact in own.values()} == {None}
    for text, matches in FILTERS.items():
        found_ids = sorted(found.scan(text).to_arrow()["id"].to_pylist())
        assert found_ids == [row["id"] for row in ROWS.to_pylist() if matches(row)], text


def test_zeros_are_no_bounds(tmp_path: Path) -> None:
    """Readers disagree on the order of -0.0 and 0.0."""
    floats = {"low": [0.0, 1.0], "high": [-1.0, -0.0], "both": [-1.0, 1.0]}
    table = rs.create_table(tmp_path / "t", pa.table(floats))
    table.publish("iceberg")
    found = iceberg(tmp_path / "t")
    (file,) = found.inspect.files().to_pylist()
    bounds = [own["lower_bound"] for own in file["readable_metrics"].values()]
    assert bounds == [None, None, -1.0]
    assert found.scan("low <= 0").to_arrow().num_rows == 1
    assert found.scan("high >= 0").to_arrow().num_rows == 1


def test_each_publication_of_a_new_version_adds_a_snapshot(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
    versions: list[list[str]] = []
    numbers: list[int] = []
    for start in (100, 200, 300, 0, 10):
        more = ROWS.slice(0, 5).set_column(0, "id", pa.array(range(start, start + 5), pa.int64()))
        table.upsert(more)
        if start < 100:
            table.compact()
        numbers.append(table.publish("iceberg").number)
        assert table.publish("iceberg").number == numbers[-1] == table.version + 1
        versions.append(shown(table.to_arrow()))
    found = iceberg(tmp_path / "t")
    snapshots = found.snapshots()
    for snapshot, rows, number in zip(snapshots, versions, numbers, strict=True):
        assert shown(found.scan(snapshot_id=snapshot.snapshot_id).to_arrow()) == rows
        assert shown(iceberg(tmp_path / "t", number).scan().to_arrow()) == rows
    summaries = [snapshot.summary for snapshot in snapshots]
    operations = [None if each is None else each.operation.value for each in summaries]
    assert operations == ["append"] * 3 + ["overwrite"] * 2
    first = found.inspect.entries(snapshots[0].snapshot_id).to_pylist()
    second = found.inspect.entries(snapshots[1].snapshot_id).to_pylist()
    assert [entry["sequence_number"] for entry in first] == [1, 1]
    assert sorted(entry["sequence_number"] for entry in second) == [1, 1, 2]
    files = [len(list((tmp_path / "t/metadata").glob(f"*{end}"))) for end in ("-m0.avro", ".json")]
    assert files == [5, 5], "a manifest is written again only when it loses a file"


def deletes_of(table: StaticTable) -> dict[str, int]:
    files = table.inspect.delete_files().to_pylist()
    return {file["file_path"]: file["record_count"] for file in files}


def test_hidden_rows_are_position_deletes(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    table = rs.create_table(folder, ROWS, key=["id"])
    table.upsert(ROWS.slice(0, 5))
    table.delete("id IN (7, 49)")
    table.upsert(ROWS.slice(20, 2))
    table.publish("iceberg")
    first = iceberg(folder)
    assert shown(first.scan().to_arrow()) == shown(table.to_arrow())
    assert shown(rs.from_iceberg(first).to_arrow()) == shown(table.to_arrow())
    assert sorted(deletes_of(first).values()) == [9]
    assert first.scan("id < 8").to_arrow().num_rows == first.scan("id < 8").count() == 7
    table.upsert(ROWS.slice(0, 1).set_column(0, "id", pa.array([900], pa.int64())))
    table.publish("iceberg")
    assert deletes_of(iceberg(folder)) == deletes_of(first), "the same rows are hidden"
    table.delete("id < 5")
    table.publish("iceberg")
    third = iceberg(folder)
    assert shown(third.scan().to_arrow()) == shown(table.to_arrow())
    assert len(list(third.scan().plan_files())) == 3, "a file without visible rows is left out"
    table.restore(version=1)
    table.publish("iceberg")
    assert shown(iceberg(folder).scan().to_arrow()) == shown(table.to_arrow())
    table.compact()
    table.publish("iceberg")
    last = iceberg(folder)
    assert deletes_of(last) == {}
    assert shown(last.scan().to_arrow()) == shown(ROWS)
    operations = [each.summary and each.summary.operation.value for each in last.snapshots()]
    assert operations == ["overwrite", "append", "delete", "overwrite", "overwrite"]


@pytest.mark.parametrize("dropped", [0, 20])
def test_no_file_keeps_a_vector_that_no_entry_names(dropped: int, tmp_path: Path) -> None:
    """pyiceberg applies all vectors of a file that an entry names."""
    folder = tmp_path / "t"
    rows = pa.table({"id": range(10), "a": range(10)})
    table = rs.create_table(folder, rows, key=["id"], properties={"inline_bytes": 0})
    table.upsert(pa.table({"id": range(20, 30), "a": range(10)}))
    table.delete(f"id = {23 - dropped}")
    kept = table.version
    table.delete(f"id = {3 + dropped}")
    table.publish("iceberg")
    table.restore(kept)
    table.publish("iceberg")
    found = iceberg(folder)
    assert list(deletes_of(found).values()).count(1) == 1
    assert shown(found.scan().to_arrow()) == shown(table.to_arrow())
    assert shown(rs.from_iceberg(found).to_arrow()) == shown(table.to_arrow())


def test_entries_keep_their_snapshots_when_their_manifest_is_written_again(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS.slice(0, 5))
    table.append(ROWS.slice(5, 5))
    table.publish("iceberg")
    table.delete("id < 5 OR id = 7")
    table.publish("iceberg")
    found = iceberg(tmp_path / "t")
    first, second = (snapshot.snapshot_id for snapshot in found.snapshots())
    entries = found.inspect.entries().to_pylist()
    states = sorted((each["status"], each["sequence_number"]) for each in entries)
    assert states == [(0, 1), (1, 2), (2, 1)]
    assert {each["snapshot_id"] for each in entries} == {first, second}
    current = found.current_snapshot()
    assert current is not None
    manifests = current.manifests(found.io)
    counts = [(each.existing_files_count, each.deleted_files_count) for each in manifests]
    assert counts == [(1, 1), (0, 0)]
    contents = [b"content\x08data", b"content\x0edeletes"]  # as Avro's header has them
    for manifest, content in zip(manifests, contents, strict=True):
        assert content in Path(manifest.manifest_path).read_bytes()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "delete", "update", "compact", "restore", "publish"]),
        st.integers(0, 30),
        st.integers(1, 12),
    ),
    min_size=3,
    max_size=12,
)


@examples(25)
@given(steps=STEPS, with_key=st.booleans())
def test_random_changes_and_publications(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]], with_key: bool
) -> None:
    folder = tmp_path_factory.mktemp("t")
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])
    table = rs.create_table(folder, schema, key=["id"] if with_key else None)
    rows: list[tuple[int, int]] = []
    contents = [rows]
    published: dict[int, list[tuple[int, int]]] = {}
    for number, (step, start, count) in enumerate([*steps, ("publish", 0, 0)]):
        stop = start + count
        if step == "write":
            new = [(i, number) for i in range(start, stop)]
            data = pa.Table.from_pylist([{"id": i, "v": v} for i, v in new], schema=schema)
            (table.upsert if with_key else table.append)(data)
            old = [row for row in rows if not (with_key and start <= row[0] < stop)]
            rows = [*old, *new]
        elif step == "delete":
            table.delete(f"id >= {start} AND id < {stop}")
            rows = [row for row in rows if not start <= row[0] < stop]
        elif step == "update":
            table.update({"v": str(-number)}, where=f"id >= {start} AND id < {stop}")
            rows = [(i, -number) if start <= i < stop else (i, v) for i, v in rows]
        elif step == "compact":
            table.compact()
        elif step == "restore":
            version = start % (table.version + 1)
            table.restore(version=version)
            rows = contents[version]
        else:
            published[table.publish("iceberg").version] = sorted(rows)
            table.publish("delta")
        contents += [rows] * (table.version + 1 - len(contents))
    newest = iceberg(folder)
    for number, (snapshot, content) in enumerate(
        zip(newest.snapshots(), published.values(), strict=True)
    ):
        readings = (
            newest.scan(snapshot_id=snapshot.snapshot_id).to_arrow(),
            rs.from_iceberg(newest, snapshot.snapshot_id).to_arrow(),
            rs.from_delta(folder, number).to_arrow(),
        )
        for found in readings:
            pairs = zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)
            assert sorted(pairs) == content
    builder = QueryBuilder().register("t", DeltaTable(folder))
    last = pa.table(builder.execute("SELECT id, v FROM t").read_all())
    assert sorted(zip(last["id"].to_pylist(), last["v"].to_pylist(), strict=True)) == sorted(rows)
    imported = (
        rs.import_iceberg(newest, f"{folder}-iceberg"),
        rs.import_delta(folder, f"{folder}-delta"),
    )
    for table in imported:
        found = table.to_arrow()
        assert sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == content


def test_another_folder_has_the_metadata_alone(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t a%20b#é?", ROWS, key=["id"])
    table.publish("iceberg", tmp_path / "out #1%41")
    found = iceberg(tmp_path / "out #1%41")
    assert shown(found.scan().to_arrow()) == shown(ROWS)
    assert shown(rs.from_iceberg(found).to_arrow()) == shown(ROWS)
    assert [path.name for path in (tmp_path / "out #1%41").iterdir()] == ["metadata"]


def test_changed_columns_are_found_by_their_ids(tmp_path: Path) -> None:
    columns = ["id", "i8", "f32", "dec", "s", "st", "bytes"]
    table = rs.create_table(tmp_path / "t", ROWS.select(columns), key=["id"])
    table.publish("iceberg")
    with table.alter() as change:
        change.rename_column("s", "text").rename_column("st.x", "renamed").drop_column("bytes")
        change.widen_column("i8", "int64").widen_column("f32", "float64")
        change.widen_column("dec", "decimal(12,2)").add_column("bytes", "int32")
        change.add_column("st.z", "string").reorder_columns(["text"])
    more = table.to_arrow().slice(0, 5).to_pylist()
    rows = [{**row, "id": row["id"] + 100, "i8": 2**40, "bytes": 1} for row in more]
    table.upsert(pa.Table.from_pylist(rows, schema=table.schema))
    table.publish("iceberg")
    found = iceberg(tmp_path / "t")
    assert shown(found.scan().to_arrow()) == shown(table.to_arrow())
    assert found.scan("i8 > 1000").to_arrow().num_rows == 5
    assert found.scan("bytes is null").to_arrow().num_rows == COUNT
    before = found.scan(snapshot_id=found.snapshots()[0].snapshot_id).to_arrow()
    assert shown(before) == shown(ROWS.select(columns))


def test_files_with_tags_are_found_by_their_ids(tmp_path: Path) -> None:
    tags = {"column_names": "tag"}
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"], properties=tags)
    table.rename_column("s", "t.x")
    table.publish("iceberg")
    found = iceberg(tmp_path / "t").scan().to_arrow()
    assert shown(found) == shown(table.to_arrow())
    assert "t.x" in found.column_names


def test_versions_that_iceberg_cannot_have_are_refused(tmp_path: Path) -> None:
    evolved = rs.create_table(tmp_path / "b", ROWS.select(["id", "s", "d"]))
    evolved.add_column("x", "int64", default=5)
    with pytest.raises(UnsupportedOperation, match="without 'x', whose value there is not NULL"):
        evolved.publish("iceberg")
    evolved.drop_column("x")
    evolved.widen_column("d", "timestamp")
    with pytest.raises(UnsupportedOperation, match=r"'d' is date32.*cannot widen"):
        evolved.publish("iceberg")
    placed = rs.from_parquet(tmp_path / "b/data", tmp_path / "d")
    with pytest.raises(UnsupportedOperation, match="not its own"):
        placed.publish("iceberg")
    with pytest.raises(InvalidInput, match="format"):
        placed.publish("csv")  # type: ignore[arg-type]
    names = pa.schema([("a.b", pa.int64()), ("a", pa.struct([("b", pa.int64())]))])
    with pytest.raises(UnsupportedOperation, match=r"the name 'a\.b' in Iceberg"):
        rs.create_table(tmp_path / "e", names).publish("iceberg")


@pytest.mark.parametrize(
    "type_",
    [pa.uint32(), pa.uint64(), pa.month_day_nano_interval(), pa.decimal256(50, 2)],
    ids=str,
)
def test_types_that_iceberg_lacks_are_refused(type_: pa.DataType, tmp_path: Path) -> None:
    odd = rs.create_table(tmp_path / "t", pa.schema({"id": pa.int64(), "odd": type_}))
    with pytest.raises(UnsupportedOperation, match="'odd' has the type"):
        odd.publish("iceberg")
    assert not (tmp_path / "t/metadata").exists()


@pytest.mark.parametrize(
    ("before", "change", "reason"),
    [
        (pa.uint32(), lambda table: table.widen_column("odd", "int64"), "'odd' is uint32"),
        (
            pa.decimal128(5, 2),
            lambda table: table.widen_column("odd", "decimal(9,4)"),
            r"'odd' is decimal128\(5, 2\)",
        ),
        (pa.decimal256(50, 2), lambda table: table.drop_column("odd"), "no field id"),
    ],
    ids=["unsigned", "scale", "dropped"],
)
def test_files_that_iceberg_reads_otherwise_are_compacted_first(
    before: pa.DataType, change: Callable[[rs.Table], Any], reason: str, tmp_path: Path
) -> None:
    table = rs.create_table(tmp_path / "t", pa.schema([("id", pa.int64()), ("odd", before)]))
    table.append(pa.table({"id": [1, 2], "odd": pa.nulls(2, before)}))
    change(table)
    with pytest.raises(UnsupportedOperation, match=rf"{reason}.*compact first"):
        table.publish("iceberg")
    more = {"id": [3], "odd": pa.nulls(1)}
    table.append(pa.table(more).select(table.schema.names).cast(table.schema))
    table.compact()
    table.publish("iceberg")
    assert shown(iceberg(tmp_path / "t").scan().to_arrow()) == shown(table.to_arrow())


def test_opaque_values_are_compacted_first(tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "u": pa.array([b"u" * 16], pa.uuid())})
    table = rs.create_table(tmp_path / "t", rows, properties={"value_forms": "opaque"})
    with pytest.raises(UnsupportedOperation, match=r"opaque values.*compact first"):
        table.publish("iceberg")


def test_folder_of_another_writer_is_refused(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS)
    table.publish("iceberg", tmp_path / "out")
    other = rs.create_table(tmp_path / "u", ROWS)
    with pytest.raises(UnsupportedOperation, match="another writer or of another table"):
        other.publish("iceberg", tmp_path / "out")
    foreign = tmp_path / "foreign/metadata/00000-uuid.metadata.json"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("{}")
    with pytest.raises(UnsupportedOperation, match="another writer or of another table"):
        table.publish("iceberg", tmp_path / "foreign")


def test_of_two_publications_at_once_both_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = rs.create_table(tmp_path / "t", ROWS)
    EveryStore(monkeypatch, LocalStore).overtake(
        lambda: rs.open_table(tmp_path / "t").publish("iceberg"),
        "put_new",
        lambda path: path.endswith(".json"),
    )
    first, second = table.publish("iceberg"), table.publish("iceberg")
    assert first == second
    assert shown(iceberg(tmp_path / "t").scan().to_arrow()) == shown(ROWS)


def test_a_listing_that_lags_hides_no_publication_of_the_same_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the simulation: seed 18561."""
    table = rs.create_table(tmp_path / "t", ROWS)
    first = table.publish("iceberg")
    listed = LocalStore.list
    monkeypatch.setattr(
        LocalStore,
        "list",
        lambda store, prefix, *ends: [] if prefix == "metadata" else listed(store, prefix, *ends),
    )
    assert table.publish("iceberg") == first


def test_the_hint_is_never_absent_and_ends_at_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
    table.publish("iceberg")
    hint = tmp_path / "t/metadata/version-hint.text"

    def overtake() -> None:
        """Another process publishes a newer version before this one writes the hint."""
        assert hint.read_text() == "1"
        other = rs.open_table(tmp_path / "t")
        other.delete("id = 8")
        other.publish("iceberg")

    table.delete("id = 7")
    EveryStore(monkeypatch, LocalStore).overtake(overtake, "put_hint")
    table.publish("iceberg")
    assert hint.read_text() == "3"


@pytest.mark.parametrize("hint", [None, "1", "", "9"])
@pytest.mark.parametrize("by", ["publish", "maintain"])
def test_a_hint_that_was_not_written_is_made_good(
    hint: str | None, by: str, tmp_path: Path
) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"], properties={"publish": "iceberg"})
    table.delete("id = 7")
    file = tmp_path / "t/metadata/version-hint.text"
    assert file.read_text() == "2"
    file.unlink()
    if hint is not None:
        file.write_text(hint)
    if by == "publish":
        table.publish("iceberg")
    else:
        table.maintain()
    assert file.read_text() == str(table.version + 1)


@pytest.mark.parametrize("pattern", ["*-m0.avro", "snap-*.avro"])
def test_a_missing_file_of_the_metadata_is_said(pattern: str, tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
    table.publish("iceberg")
    table.delete("id = 7")
    for file in (tmp_path / "t/metadata").glob(pattern):
        file.unlink()
    with pytest.raises(CorruptData, match=r"publish: metadata/.*avro .* is missing.*restore it"):
        table.publish("iceberg")
