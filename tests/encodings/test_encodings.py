"""Every form that files are written in, read in every form, before and after compaction."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import rowsieve as rs
from rowsieve.encodings import message_pack
from rowsieve.encodings.file_encoding import ReadEncoding
from rowsieve.errors import EncodingsDiffer, InvalidData, InvalidInput, UnsupportedOperation
from rowsieve.storage.parts.part_writer import ROW_GROUP_ROWS
from tests.encodings.tables_with_codecs import create, every_type, lying_in, rows_of

WRITES = ("columns", "both", "codec")
READS: tuple[ReadEncoding, ...] = ("columns", "codec", "shadow")
ALL = every_type()


@pytest.mark.parametrize("codec", ["msgpack", "json", "avro"])
@pytest.mark.parametrize("key", [True, False])
def test_every_writer_reader_and_compaction_returns_the_rows(
    tmp_path: Path, codec: str, key: bool
) -> None:
    whole = rows_of(rs.create_table(tmp_path / "plain", ALL).to_arrow())
    for first, then in product(WRITES, WRITES):
        folder = tmp_path / f"{first}-{then}"
        table = create(folder, ALL, key, row_codec=codec, write_encoding=first)
        for read in READS:
            scan = table.scan(read_encoding=read)
            assert rows_of(scan.to_arrow()) == whole, (first, read)
            compared = 4 if (first, read) == ("both", "shadow") else 0
            assert (scan.metrics.rows_shadowed, scan.metrics.encoding_differences) == (compared, 0)
        table.set_properties({"write_encoding": then})
        table.delete("id = 2")
        assert table.compact().version > 0
        for read in READS:
            table.set_properties({"read_encoding": read})
            kept = {row: text for row, text in whole.items() if row != 2}
            assert rows_of(table.to_arrow()) == kept, (first, then, read)
            assert table.scan("u = 0", ["id"]).to_arrow()["id"].to_pylist() == [4]


def test_shadow_finds_each_planted_difference_and_no_other(tmp_path: Path) -> None:
    rows = pa.table({"id": range(20_000), "n": range(20_000), "s": ["x"] * 20_000})
    planted = {n: f"other {n}" for n in range(7, 20_000, 400)}
    assert len(planted) == 50
    rs.register_codec("planting", 1, lying_in(planted, "s"), message_pack.decode)
    table = create(tmp_path / "t", rows, key=True, row_codec="planting", write_encoding="both")
    scan = table.scan(read_encoding="shadow")
    answer = scan.to_arrow()
    found = {(each.key, each.column, each.in_columns, each.in_codec) for each in
             scan.metrics.differences}  # fmt: skip
    assert found == {(f"id={n}", "s", "'x'", repr(text)) for n, text in planted.items()}
    assert scan.metrics.encoding_differences == 50
    assert scan.metrics.rows_shadowed == 20_000
    by_id = dict(zip(answer["id"].to_pylist(), answer["s"].to_pylist(), strict=True))
    assert {n: text for n, text in by_id.items() if text != "x"} == planted  # the codec's answer
    assert table.count("s = 'x'") == 20_000  # the columns'
    assert table.scan("s <> 'x'", read_encoding="codec").count() == 50  # no statistics of columns
    table.set_properties({"read_encoding": "shadow", "on_encoding_difference": "raise"})
    with pytest.raises(EncodingsDiffer, match=r"\(key id=7\): column 's' is 'x' in the columns"):
        table.to_arrow()


@pytest.mark.parametrize(("rows", "faulty"), [(3, 2), (20_000, 10_000)])
def test_shadow_finds_a_fault_of_a_decoder_of_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, faulty: int
) -> None:
    data = pa.table({"id": range(rows), "n": range(rows), "s": ["x"] * rows})
    options = {"row_codec": "msgpack", "write_encoding": "both"}
    table = create(tmp_path / "t", data, key=True, **options)
    decode = message_pack.decode

    def wrong(encoded: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
        batch = decode(encoded, schema)
        if "n" not in schema.names:
            return batch
        lost = pc.if_else(pc.less(batch["n"], faulty), batch["n"], 0)
        return batch.set_column(schema.get_field_index("n"), schema.field("n"), lost)

    monkeypatch.setattr(message_pack, "decode", wrong)
    scan = table.scan(read_encoding="shadow")
    answer = scan.to_arrow()
    assert scan.metrics.encoding_differences == rows - faulty  # all, although a sample was decoded
    assert pc.sum(answer["n"]).as_py() == sum(range(faulty))  # the codec's answer
    assert {each.column for each in scan.metrics.differences} == {"n"}


def test_a_codec_that_lies_or_fails_writes_nothing(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "n": [1, 2], "s": ["x", "x"]})

    def shorter(batch: pa.RecordBatch) -> pa.Array:
        return message_pack.encode(batch.slice(1))

    def failing(batch: pa.RecordBatch) -> pa.Array:
        raise RuntimeError(f"no {batch.num_rows}")

    cases = {
        "lying": (lying_in({2: "y"}, "s"), r"first in column 's': 'x' became 'y'"),
        "shorter": (shorter, r"returned 1 values"),
        "failing": (failing, r"cannot encode 2 rows.*RuntimeError: no 2"),
        "texts": (lambda batch: ["a"] * batch.num_rows, r"nothing was written.*cannot decode"),
    }
    for name, (encode, message) in cases.items():
        rs.register_codec(name, 1, encode, message_pack.decode)
        table = create(tmp_path / name, rows.slice(0, 0), key=True, row_codec=name)
        table.set_properties({"write_encoding": "codec"})
        with pytest.raises(InvalidData, match=message):
            table.upsert(rows)
        assert table.count() == 0


def test_an_unknown_codec_is_named_and_the_table_opens(tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "n": [1]})
    with pytest.raises(UnsupportedOperation, match=r"rs\.register_codec\('msgpak', 1.*'msgpack'\?"):
        create(tmp_path / "t", rows, key=True, row_codec="msgpak")
    rs.register_codec("passing", 1, message_pack.encode, message_pack.decode)
    create(tmp_path / "t", rows, key=True, row_codec="passing", write_encoding="codec")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rowsieve.encodings.codecs._registered", {})
        table = rs.open_table(tmp_path / "t")
        assert table.count() == 1
        assert table.scan(columns=["id"]).to_arrow()["id"].to_pylist() == [1]
        with pytest.raises(UnsupportedOperation, match=r"codec passing version 1.*register_codec"):
            table.to_arrow()
        rs.register_codec("passing", 2, message_pack.encode, message_pack.decode)
        with pytest.raises(UnsupportedOperation, match=r"knows only version 2; register it"):
            table.to_arrow()


def test_properties_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "n": [1]})
    with pytest.raises(InvalidInput, match="the table has no codec"):
        rs.create_table(tmp_path / "t", rows, properties={"write_encoding": "both"})
    table = rs.create_table(tmp_path / "t", rows, properties={"batch_version": "3"})
    for properties, message in (
        ({"batch_version": "2"}, "never goes down"),
        ({"ignored_batch_versions": "4"}, "no file has one above"),
        ({"ignored_batch_versions": "1, 3"}, "which new files get"),
        ({"read_encoding": "rows"}, "columns, codec or shadow"),
    ):
        with pytest.raises(InvalidInput, match=message):
            table.set_properties(properties)
    with pytest.raises(InvalidInput, match="built in"):
        rs.register_codec("json", 1, message_pack.encode, message_pack.decode)


def test_columns_named_like_the_hidden_ones_are_kept(tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "_rowsieve_row": ["a"], "_ROWSIEVE_KEY.x": [2], "__class__": [3]})
    for halves in ("both", "codec"):
        table = create(tmp_path / halves, rows, key=True, write_encoding=halves)
        for read in READS:
            assert table.scan(read_encoding=read).to_arrow().to_pylist() == rows.to_pylist()


def test_fields_of_structs_keep_their_values_under_tags(tmp_path: Path) -> None:
    rows = [{"id": 1, "st": {"x": 1, "l": [{"y": "a"}]}}, {"id": 2, "st": None}]
    for halves in ("both", "codec"):
        table = create(
            tmp_path / halves, pa.Table.from_pylist(rows), key=True, write_encoding=halves,
            column_names="tag",
        )  # fmt: skip
        for read in READS:
            scan = table.scan(read_encoding=read, on_encoding_difference="raise")
            assert scan.to_arrow().to_pylist() == rows


def test_the_target_of_a_part_leaves_its_columns_out(tmp_path: Path) -> None:
    count = 2 * ROW_GROUP_ROWS + 1
    draws = np.random.default_rng(0)
    rows = pa.table({"id": np.arange(count), "x": draws.random(count), "y": draws.random(count)})
    table = create(
        tmp_path / "t", rows, key=True, write_encoding="both", target_part_bytes="2000000"
    )
    parts = [row for row in table.files().to_pylist() if row["kind"] == "data"]
    assert sorted(part["rows"] for part in parts) == [1, 2 * ROW_GROUP_ROWS]
    assert max(part["size_bytes"] for part in parts) > 2 * 2_000_000  # a group with its columns
