"""Rows of codecs in engines, after changes of columns, in branches, and of wrong batch versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datafusion
import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import rowsieve as rs
from rowsieve import Table
from rowsieve.encodings import message_pack
from rowsieve.encodings.file_encoding import ReadEncoding
from rowsieve.errors import CorruptData, InvalidInput, UnsupportedOperation
from rowsieve.parquet.foreign_rows import ForeignRows
from rowsieve.providers.datafusion import SessionContext
from tests.encodings.tables_with_codecs import create, lying_in

READS: tuple[ReadEncoding, ...] = ("columns", "codec", "shadow")


def three_forms(folder: Path) -> tuple[Table, dict[int, str]]:
    """A table with a part of each form, some of whose rows a later commit hides."""
    table = create(folder, numbered(range(10)), key=True, write_encoding="codec")
    table.set_properties({"write_encoding": "both"})
    table.upsert(numbered(range(5, 20)))
    table.set_properties({"write_encoding": "columns"})
    table.upsert(numbered(range(15, 30)))
    table.delete("id = 4")
    return table, {n: f"s{n}" for n in range(30) if n != 4}


def numbered(ids: Any, prefix: str = "s") -> pa.Table:
    return pa.table({"id": list(ids), "n": list(ids), "s": [f"{prefix}{n}" for n in ids]})


def _duckdb(table: Table, query: str) -> list[tuple[Any, ...]]:
    """The answer of DuckDB over the table's dataset."""
    with duckdb.connect() as connection:
        connection.register("t", table.to_dataset())
        return connection.execute(query.format("t")).fetchall()


@pytest.mark.parametrize("read", READS)
def test_every_engine_reads_parts_of_all_forms(tmp_path: Path, read: str) -> None:
    table, rows = three_forms(tmp_path / "t")
    table.set_properties({"read_encoding": read, "on_encoding_difference": "raise"})
    expected = sorted(rows.items())
    context, own = datafusion.SessionContext(), SessionContext()
    context.register_table("t", table)
    own.register_table("t", table)
    query = "SELECT id, s FROM {} WHERE n >= 0 AND s LIKE 's%' ORDER BY id"
    assert _duckdb(table, query) == expected
    for session in (context, own):
        answer = session.sql(query.format("t")).to_arrow_table()
        pairs = zip(*(column.to_pylist() for column in answer.columns), strict=True)
        assert list(pairs) == expected
        counted = session.sql("SELECT count(*), max(n), min(s) FROM t").to_arrow_table()
        assert [column[0].as_py() for column in counted.columns] == [29, 29, "s0"]
    assert table.scan_polars().filter(polars.col("n") == 7).collect()["s"].to_list() == ["s7"]


def test_a_wrong_form_is_never_read_by_an_engine(tmp_path: Path) -> None:
    """The columns of this table are wrong in one row: engines have to follow `read_encoding`."""
    rs.register_codec("right", 1, lying_in({3: "right"}, "s"), message_pack.decode)
    table = create(
        tmp_path / "t", numbered(range(9)), key=True, row_codec="right", write_encoding="both"
    )
    own = SessionContext()
    own.register_table("t", table)
    query = "SELECT s FROM t WHERE id = 3 OR s = 'right'"
    for read, answer in (("columns", "s3"), ("codec", "right"), ("columns", "s3")):
        table.set_properties({"read_encoding": read})
        assert own.sql(query).to_arrow_table()["s"].to_pylist() == [answer]
        assert _duckdb(table, "SELECT s FROM {} WHERE id = 3") == [(answer,)]
    context = datafusion.SessionContext()
    context.register_table("t", table.to_datafusion(read_encoding="codec"))
    assert context.sql(query).to_arrow_table()["s"].to_pylist() == ["right"]
    dataset = table.to_dataset(read_encoding="codec")
    assert dataset.to_table(filter=pc.field("s") == "right").num_rows == 1
    lazy = table.scan_polars(read_encoding="codec").filter(polars.col("s") == "right")
    assert lazy.collect().height == 1
    shadow: dict[str, Any] = {"read_encoding": "shadow", "on_encoding_difference": "raise"}
    with pytest.raises(Exception, match="column 's' is 's3' in the columns"):
        table.to_dataset(**shadow).to_table()
    with pytest.raises(InvalidInput, match="read_encoding is 'rows'"):
        table.to_dataset(read_encoding="rows")  # type: ignore[arg-type] # refused when called
    assert table.read_at() is table
    table.set_properties({"read_encoding": "codec"})
    plan = table.scan("s = 'right'").plan(resolve=True)
    with pytest.raises(UnsupportedOperation, match="read from the bytes of a codec"):
        list(plan.files())
    reader = rs.read_split(plan.splits_to_bytes()[0])
    assert reader.read_all()["s"].to_pylist() == ["right"]
    with pytest.raises(UnsupportedOperation, match=r"from a codec.* set the properties read_enc"):
        table.publish("delta")
    table.set_properties({"read_encoding": "columns", "write_encoding": "columns"})
    table.compact()
    assert table.publish("delta").version == table.version


def test_columns_change_below_rows_of_codecs(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": [1, 2],
            "n": pa.array([1, None], pa.int32()),
            "gone": ["a", "b"],
            "st": [{"x": 1, "y": "p"}, None],
        }
    )
    tables = {
        f"{codec} {halves}": create(
            tmp_path / codec / halves, rows, key=True, row_codec=codec, write_encoding=halves
        )
        for codec, halves in (
            ("msgpack", "columns"), ("msgpack", "both"), ("msgpack", "codec"),
            ("avro", "both"), ("avro", "codec"),
        )
    }  # fmt: skip
    for table in tables.values():
        table.widen_column("n", "int64")
        table.drop_column("gone")
        table.rename_column("st", "deep")
        table.add_column("more", "string", default="d")
        table.add_column("deep.z", "int64", default=7)
        table.upsert([{"id": 3, "n": 2**40, "deep": {"x": 3, "y": "q", "z": 1}, "more": None}])
        table.add_column("gone", "int64")
    expected = sorted(tables["msgpack columns"].to_arrow().to_pylist(), key=lambda row: row["id"])
    assert expected[0]["deep"] == {"x": 1, "y": "p", "z": 7}
    for table in tables.values():
        for read in READS:
            scan = table.scan(read_encoding=read, on_encoding_difference="raise")
            answer = sorted(scan.to_arrow().to_pylist(), key=lambda row: row["id"])
            assert answer == expected
            asked = table.scan("n IS NULL AND deep IS NULL", ["id", "more"], read_encoding=read)
            assert asked.to_arrow().to_pylist() == [{"id": 2, "more": "d"}]
        table.set_properties({"write_encoding": "codec", "row_codec": "json"})
        table.compact()
        assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == expected


def test_columns_of_a_wrong_batch_version_are_ignored(tmp_path: Path) -> None:
    """In each row of batch 1 the columns are wrong, in a way that statistics would skip by."""
    wrong = {n: f"s{n}" for n in range(100)}
    rs.register_codec("mended", 1, lying_in(wrong, "s"), message_pack.decode)
    table = create(
        tmp_path / "t", numbered(range(100), "wrong"), key=True, row_codec="mended",
        write_encoding="both",
    )  # fmt: skip
    assert table.count("s = 's7'") == 0
    table.set_properties({"batch_version": "2", "ignored_batch_versions": "1"})
    table.upsert(numbered(range(95, 105)))
    for read in READS:
        assert table.scan("s = 's7'", read_encoding=read).count() == 1
        assert sorted(table.scan(read_encoding=read).to_arrow()["s"].to_pylist()) == sorted(
            f"s{n}" for n in range(105)
        )
    assert table.count("s LIKE 'wrong%'") == 0
    assert table.update({"n": "n + 1000"}, where="s = 's9'").rows_written == 1
    table.compact()
    table.set_properties({"write_encoding": "columns"})
    table.compact()
    assert sorted(table.to_arrow()["s"].to_pylist()) == sorted(f"s{n}" for n in range(105))


def test_batch_versions_without_another_form_are_refused_by_name(tmp_path: Path) -> None:
    table = create(tmp_path / "t", numbered(range(3)), key=True)
    table.set_properties({"batch_version": "2", "ignored_batch_versions": "1"})
    with pytest.raises(UnsupportedOperation, match=r"only columns, of batch version 1"):
        table.to_arrow()
    table.unset_properties(["ignored_batch_versions"])
    assert table.count() == 3
    newer = create(tmp_path / "u", numbered(range(3)), key=True, batch_version="9")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rowsieve.storage.parts.reading_views.batch_version", lambda _: 8)
        with pytest.raises(UnsupportedOperation, match=r"batch version 9, which is above"):
            newer.to_arrow()
    assert newer.count("n = 1") == 1


def test_bytes_of_another_codec_are_corrupt_data(tmp_path: Path) -> None:
    rs.register_codec("swapped", 1, message_pack.encode, message_pack.decode)
    table = create(
        tmp_path / "t", numbered(range(3)), key=True, row_codec="swapped", write_encoding="codec"
    )

    def others(rows: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
        return message_pack.decode(pa.array([b"{}"] * len(rows), pa.binary()), schema)

    def fewer(rows: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
        return message_pack.decode(rows, schema).slice(1)

    def texts(rows: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
        n = [str(each) for each in message_pack.decode(rows, schema)["n"].to_pylist()]
        return pa.record_batch({"n": n, "s": n})

    for decode, message in (
        (others, "cannot decode"), (fewer, "returned 2 rows"), (texts, "n string"),
    ):  # fmt: skip
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("rowsieve.encodings.codecs._registered", {})
            rs.register_codec("swapped", 1, message_pack.encode, decode)
            with pytest.raises(CorruptData, match=f"codec swapped version 1.*{message}"):
                table.to_arrow()


def test_small_changes_transactions_branches_and_the_feed_have_the_rows(tmp_path: Path) -> None:
    table = create(
        tmp_path / "t", numbered(range(10)), key=True, write_encoding="codec",
        read_encoding="codec", inline_bytes="9999",
    )  # fmt: skip
    table.upsert(numbered([3, 11], "small"))
    assert table.count("s LIKE 'small%'") == 2
    with table.transaction() as transaction:
        transaction.upsert(numbered([4], "tx"))
        assert transaction.count("s = 'tx4'") == 1
    branch = table.branch("audit")
    branch.upsert(numbered([5], "branch"))
    assert (branch.count("s = 'branch5'"), table.count("s = 'branch5'")) == (1, 0)
    changes = table.changes(1).read_all().to_pylist()
    assert {row["s"] for row in changes if row["_change_type"] == "update_preimage"} == {"s3", "s4"}
    table.compact()
    assert table.count("s = 'small3'") == 1
    assert table.files().filter(pc.field("kind") == "data").num_rows == 1


@pytest.mark.parametrize("halves", ["both", "codec"])
def test_files_outside_of_their_table_show_no_bytes(tmp_path: Path, halves: str) -> None:
    create(tmp_path / "t", numbered(range(3)), key=True, write_encoding=halves)
    path = next((tmp_path / "t/data").glob("*.parquet"))

    def opened() -> Table:
        return rs.open_parquet(path)

    def loaded() -> Table:
        with ForeignRows(path, {}) as rows:
            return rs.create_table(tmp_path / "loaded", rows.read())

    for read in (opened, loaded):
        if halves == "codec":
            with pytest.raises(UnsupportedOperation, match=r"as bytes of codec msgpack version 1"):
                read()
        else:
            rows = read().to_arrow()
            assert set(rows.schema.names) == {"id", "n", "s"}
            assert sorted(rows["s"].to_pylist()) == ["s0", "s1", "s2"]
