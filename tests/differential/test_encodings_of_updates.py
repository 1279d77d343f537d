"""Updates as columns, as bytes of a codec or as both: sums are the same, whatever cancels what."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve import Table, errors
from rowsieve.encodings import message_pack
from rowsieve.encodings.file_encoding import ReadEncoding
from rowsieve.providers.datafusion import SessionContext
from tests.differential.test_columns_of_updates import Model, of_rows
from tests.differential.updates import KV, differential, modelled, sums, updates
from tests.encodings.tables_with_codecs import every_type, lying_in, rows_of

WRITES = ("columns", "both", "codec")
READS: tuple[ReadEncoding, ...] = ("columns", "codec", "shadow")
ALL = every_type()


def timed(rows: pa.Table, time: int, diff: int) -> pa.Table:
    columns = {"time": pa.array([time] * len(rows)), "diff": pa.array([diff] * len(rows))}
    for name, values in columns.items():
        rows = rows.append_column(name, values)
    return rows


@pytest.mark.parametrize("codec", ["msgpack", "json", "avro"])
def test_updates_of_every_form_cancel_each_other(tmp_path: Path, codec: str) -> None:
    whole = rows_of(rs.create_table(tmp_path / "plain", ALL).to_arrow())
    kept = {row: text for row, text in whole.items() if row != 2}
    for first, then in product(WRITES, WRITES):
        properties = {"row_codec": codec, "write_encoding": first}
        table = differential(ALL.schema, properties=properties)
        table.append_updates(timed(ALL, 0, 1), upper=1)
        table.set_properties({"write_encoding": then})
        table.append_updates(timed(ALL.filter(pc.equal(ALL["id"], 2)), 1, -1), upper=2)
        for is_compacted in (False, True):
            if is_compacted:
                table.advance_since(1)
                assert table.compact().committed
                assert table.files().num_rows == 1
            for read in READS:
                options: dict[str, Any] = {"read_encoding": read, "on_encoding_difference": "raise"}
                scan = table.scan(at=1, **options)
                answer = scan.to_arrow()
                assert rows_of(answer.drop_columns(["_rowsieve_diff"])) == kept, (first, then, read)
                assert set(answer["_rowsieve_diff"].to_pylist()) == {1}
                assert scan.metrics.encoding_differences == 0
            assert table.scan("u = 0", at=1).to_arrow()["id"].to_pylist() == [4]
            if not is_compacted:
                assert (
                    rows_of(table.scan(at=0).to_arrow().drop_columns(["_rowsieve_diff"])) == whole
                )


class Recoded(Model):
    """A table whose files change their form and codec, too."""

    def recode(self) -> None:
        self.table.set_properties(
            {
                "row_codec": self.draw.choice(["msgpack", "json", "avro"]),
                "write_encoding": self.draw.choice(WRITES),
                "read_encoding": self.draw.choice(READS),
            }
        )

    def check(self) -> None:
        read = self.draw.choice(READS)
        options: dict[str, Any] = {"read_encoding": read, "on_encoding_difference": "raise"}
        name = self.draw.choice(list(self.kinds))
        for at in {self.draw.randrange(self.since, self.upper), self.upper - 1}:
            expected = self.sums(at)
            assert of_rows(self.table.scan(at=at, **options)) == expected
            nulls = {row: count for row, count in expected.items() if (name, None) in row}
            scan = self.table.scan(f"{name} IS NULL", at=at, audit=100, **options)
            assert of_rows(scan) == nulls


@pytest.mark.parametrize("seed", range(4))
def test_forms_and_columns_change_below_the_sums(seed: int) -> None:
    model = Recoded(seed)
    model.recode()
    model.append()
    for _ in range(12):
        steps = [model.append, model.append, model.recode, model.recode, model.add, model.drop]
        model.draw.choice([*steps, model.rename, model.widen, model.compact])()
        model.check()


def test_updates_of_a_wrong_batch_version_are_summed_by_their_bytes() -> None:
    """In batch 1 the column `v` is wrong, in a way that statistics would skip by."""
    right = {n: f"s{n}" for n in range(50)}

    def encode(batch: pa.RecordBatch) -> pa.Array:
        named = batch.rename_columns(["n" if name == "k" else name for name in batch.schema.names])
        return lying_in(right, "v")(named)

    def decode(rows: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
        return message_pack.decode(rows, schema)

    rs.register_codec("right_texts", 1, encode, decode)
    properties = {"row_codec": "right_texts", "write_encoding": "both"}
    table = differential(properties=properties)
    table.append_updates(updates(*((n, "wrong", 0, 1) for n in range(50))), upper=1)
    assert len(sums(table, 0, "v = 'wrong'")) == 50
    table.set_properties(
        {"row_codec": "msgpack", "batch_version": "2", "ignored_batch_versions": "1"}
    )
    table.append_updates(updates(*((n, f"s{n}", 1, -1) for n in range(40))), upper=2)
    left = {(n, f"s{n}"): 1 for n in range(40, 50)}
    for is_compacted in (False, True):
        if is_compacted:
            table.advance_since(1)
            table.compact()
            assert table.detail()["rows_stored"] == 10
        for read in READS:
            assert sums(table, 1, read_encoding=read) == left
            assert sums(table, 1, "v = 's45'", read_encoding=read) == {(45, "s45"): 1}


def test_shadow_finds_each_planted_difference_of_updates() -> None:
    planted = {n: f"other {n}" for n in range(0, 200, 4)}
    rs.register_codec("planting_updates", 1, lying_in(planted, "s"), message_pack.decode)
    schema = pa.schema([("n", pa.int64()), ("s", pa.string())])
    properties = {"row_codec": "planting_updates", "write_encoding": "both"}
    table = differential(schema, properties=properties)
    rows = pa.table({"n": range(200), "s": ["x"] * 200})
    table.append_updates(timed(rows, 0, 1), upper=1)
    scan = table.scan(read_encoding="shadow")
    answer = {row["n"]: row["s"] for row in scan.to_arrow().to_pylist()}
    assert {n: text for n, text in answer.items() if text != "x"} == planted
    assert {(each.row, each.column) for each in scan.metrics.differences} == {
        (n, "s") for n in planted
    }
    assert (scan.metrics.encoding_differences, scan.metrics.rows_shadowed) == (50, 200)
    with pytest.raises(errors.EncodingsDiffer, match="column 's' is 'x' in the columns"):
        table.scan(read_encoding="shadow", on_encoding_difference="raise").to_arrow()


@pytest.fixture
def table() -> Table:
    """A part of each form; the last one takes back what the others added."""
    table = differential(properties={"row_codec": "msgpack"})
    for time, halves in enumerate(WRITES):
        table.set_properties({"write_encoding": halves})
        rows = [(n, f"s{n}", time, 1) for n in range(time, 5)]
        table.append_updates(updates(*rows, (4, "s4", time, -1)), upper=time + 1)
    return table


def test_equal_rows_have_equal_bytes_and_times_skip_parts(table: Table) -> None:
    table.append_updates(updates((3, "s3", 3, 7), (3, "s3", 4, -2)), upper=5)
    path = table.files().filter(pc.field("rows") == 2)["path"][0].as_py()
    stored = pq.read_table(pa.BufferReader(table.handle.store.get(path)))
    assert len(stored["_rowsieve_row"].unique()) == 1
    assert stored.column_names == ["_rowsieve_time", "_rowsieve_diff", "_rowsieve_row"]
    for read in READS:
        assert table.scan(at=1, read_encoding=read).explain().parts_read == 2


def test_readers_of_updates_get_every_form(table: Table) -> None:
    written = [(n, f"s{n}", time, 1) for time in range(3) for n in range(time, 4)]
    for at in range(3):
        assert sums(table, at) == modelled(written, at)
    items = [*table.subscribe(0, follow=False)]
    assert [(item.lower, item.upper, item.rows.num_rows) for item in items] == [
        (0, 1, 4),
        (1, 3, 5),
    ]
    branch = table.branch("other")
    branch.append_updates(updates((9, "z", 3, 1)), upper=4)
    assert sums(branch)[9, "z"] == 1
    for context in (datafusion.SessionContext(), SessionContext()):
        context.register_table("t", table.to_datafusion(at=2, read_encoding="codec"))
        answer = context.sql("SELECT sum(_rowsieve_diff) FROM t").to_arrow_table()
        assert answer.column(0).to_pylist() == [9]
    assert sum(table.scan_polars(at=1).collect()["_rowsieve_diff"]) == 7
    with pytest.raises(errors.UnsupportedOperation, match="differential"):
        table.publish("delta")


def test_forms_migrate_and_back_with_updates() -> None:
    """The steps of a migration, and back at each one."""
    table = differential(properties={"row_codec": "msgpack", "write_encoding": "codec"})
    table.append_updates(updates(*((n, "a", 0, 1) for n in range(9))), upper=1)
    steps: list[dict[str, str]] = [
        {"write_encoding": "codec"}, {"write_encoding": "both"}, {"read_encoding": "shadow"},
        {"read_encoding": "columns"}, {"write_encoding": "columns"},
    ]  # fmt: skip
    upper = 1
    written = [(n, "a", 0, 1) for n in range(9)]
    for before, after in pairwise([*steps, *reversed(steps)]):
        for properties in (after, before, after):
            table.set_properties(properties)
            update = (upper % 9, "a", upper, -1 if upper % 2 else 1)
            table.append_updates(updates(update), upper=upper + 1)
            written.append(update)
            upper += 1
            table.compact()
            assert sums(table) == modelled(written, upper - 1)
            halves = {str(ref.encoding).split("/")[0] for ref in
                      table.handle.newest.parts.files("data") if ref}  # fmt: skip
            assert halves == {table.detail()["properties"].get("write_encoding", "columns")}


def test_older_readers_refuse_updates_with_a_codec() -> None:
    for table in (
        differential(KV, properties={"row_codec": "json"}),
        differential(KV),
    ):
        table.set_properties({"row_codec": "json"})
        info = table.handle.newest.table
        assert (info.reader_version, info.writer_version) == (10, 10)
        assert {"differential", "row_codecs"} <= set(info.features)
