"""Plans that travel: bytes that are read elsewhere, read again, or refused for what they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve import ScanPlan
from rowsieve.bridges.where import to_predicate
from rowsieve.errors import InvalidInput, UnknownColumn, UnsupportedProtocol, VersionNotFound
from rowsieve.planner.plan import PLAN_FORMAT
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.planner.split import Piece, Read, Split
from rowsieve.predicate.semantics import OnFailure, Semantics
from rowsieve.scan import read_split
from tests.profiles import examples
from tests.small_tables import appended, keyed, kv


def sealed(plan: ScanPlan, format_: int = PLAN_FORMAT) -> bytes:
    """A plan as bytes of a format."""
    return msgspec.msgpack.encode({**msgspec.msgpack.decode(plan.to_bytes()), "format": format_})


def table_of_parts(folder: Path) -> rs.Table:
    """Three parts that overlap in twos, on disk, where another process would find them."""
    table = rs.create_table(str(folder / "t"), kv(*((k, k) for k in range(20))), key=["k"])
    table.upsert(kv(*((k, -k) for k in range(10, 30))))
    table.upsert(kv((100, 1), (101, 2)))
    return table


def test_a_plan_comes_back_from_its_bytes() -> None:
    plan = keyed({"k": [1, 2], "v": [1, None]}).scan("v > 0", limit=3, order_by_key=True).plan()
    assert ScanPlan.from_bytes(plan.to_bytes()) == plan


@pytest.mark.parametrize("in_process", [True, False])
def test_splits_read_alone_give_the_rows_of_the_scan(tmp_path: Path, in_process: bool) -> None:
    table = table_of_parts(tmp_path)
    plan = plan_scan(table.handle.pinned, table.uri, now_us=0, split_bytes=1, in_process=in_process)
    splits = plan.splits_to_bytes()
    assert len(splits) > 2
    rows = pa.concat_tables(rs.read_split(split).read_all() for split in splits)
    assert rows.sort_by("k").equals(table.scan(order_by_key=True).to_arrow())


def test_a_split_reads_its_version_after_the_table_moved(tmp_path: Path) -> None:
    table = table_of_parts(tmp_path)
    plan = table.scan("k < 5").plan()
    table.delete("TRUE")
    (split,) = plan.splits_to_bytes()
    assert rs.read_split(split).read_all().num_rows == 5
    assert table.scan(plan=plan).count() == 5
    assert table.scan("k < 5").count() == 0


def test_a_split_carries_the_settings_of_its_semantics(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), pa.schema([("k", pa.int32())]), key=["k"])
    table.upsert(pa.table({"k": pa.array([2**31 - 1], pa.int32())}))
    wraps = replace(Semantics.SPARK, integer_overflow=OnFailure.WRAP, time_zone="Asia/Kathmandu")
    plan = plan_scan(
        table.handle.pinned,
        table.uri,
        predicate=to_predicate("k + CAST(1 AS INT) < 0", "spark"),
        semantics=wraps,
        now_us=0,
    )
    (split,) = plan.splits_to_bytes()
    assert ScanPlan.from_bytes(split).semantics == wraps
    assert read_split(split).read_all().num_rows == 1


def test_a_plan_is_reused_for_other_columns() -> None:
    table = keyed({"k": [1, 2, 3], "v": [10, 20, 30]})
    plan = table.scan("v > 10").plan()
    assert table.scan(plan=plan.project(["K"])).to_arrow().to_pylist() == [{"k": 2}, {"k": 3}]
    scan = table.scan(plan=plan, columns={"twice": "v * 2"})
    assert scan.to_arrow().to_pylist() == [{"twice": 40}, {"twice": 60}]
    assert scan.metrics.plans_reused == 1
    with pytest.raises(UnknownColumn, match="no column 'w'"):
        plan.project(["w"])
    with pytest.raises(InvalidInput, match="twice"):
        plan.project(["k", "K"])


def test_a_plan_decides_all_but_the_columns() -> None:
    table = keyed({"k": [1], "v": [10]})
    plan = table.scan().plan()
    for other in ({"where": "k = 1"}, {"limit": 1}, {"order_by_key": True}, {"pruning": "off"}):
        with pytest.raises(InvalidInput, match="combined with columns= only"):
            table.scan(plan=plan, **other)
    with pytest.raises(InvalidInput, match="reads the plan's own version"):
        table.scan(plan=plan, version=0)


def test_bytes_are_not_a_plan_yet() -> None:
    table = keyed({"k": [1], "v": [10]})
    data: Any = table.scan().plan().to_bytes()
    for use in (table.scan, table.delete):
        with pytest.raises(
            InvalidInput, match=r"is bytes, not a ScanPlan, .*=ScanPlan\.from_bytes"
        ):
            use(plan=data)


def test_a_plan_of_another_table_is_refused() -> None:
    one, other = keyed({"k": [1], "v": [10]}), keyed({"k": [1], "v": [10]})
    with pytest.raises(InvalidInput, match="of another table"):
        other.scan(plan=one.scan().plan())
    one.delete("TRUE")
    with pytest.raises(InvalidInput, match="of another table"):
        other.scan(plan=one.scan().plan())


def test_a_plan_of_another_version_is_refused_by_a_handle_on_one(tmp_path: Path) -> None:
    table = table_of_parts(tmp_path)
    plan = table.scan().plan()
    old = rs.open_table(table.uri, version=0)
    with pytest.raises(InvalidInput, match=r"of version 2 .* opened at version 0"):
        old.scan(plan=plan)
    assert rs.open_table(table.uri, version=2).scan(plan=plan).count() == 32
    with pytest.raises(VersionNotFound):
        table.scan(plan=msgspec.structs.replace(plan, version=7))


def test_a_plan_of_a_newer_format_is_refused() -> None:
    plan = keyed({"k": [1], "v": [1]}).scan().plan()
    with pytest.raises(UnsupportedProtocol, match=f"format {PLAN_FORMAT + 1}, .* same version"):
        ScanPlan.from_bytes(sealed(plan, PLAN_FORMAT + 1))
    with pytest.raises(UnsupportedProtocol):
        rs.read_split(msgspec.msgpack.encode({"format": 99, "unheard": "of"}))


@pytest.mark.parametrize("data", [b"", b"\x00", b"PAR1", b"\x80", b'{"format": 1}', b"\xc1" * 40])
def test_other_bytes_are_not_a_plan(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="not a scan plan"):
        ScanPlan.from_bytes(data)


PLAN = appended({"k": [1, 2], "v": [1, None]}).scan("v > 0").plan()


@examples(300)
@given(st.data())
def test_a_changed_byte_is_noticed(data: st.DataObject) -> None:
    found = bytearray(PLAN.to_bytes())
    place = data.draw(st.integers(0, len(found) - 1))
    found[place] ^= data.draw(st.integers(1, 255))
    try:
        plan = ScanPlan.from_bytes(bytes(found))
    except (InvalidInput, UnsupportedProtocol):
        return
    assert plan == PLAN  # the same number spelt wider


@pytest.mark.parametrize("path", ["../other/data/x.parquet", "/etc/passwd", "data/../x", "log/1"])
def test_a_plan_names_files_of_its_table_alone(path: str) -> None:
    (piece,) = (piece for split in PLAN.splits for piece in split.pieces)
    (part,) = piece.parts
    assert part.data is not None
    data = type(part.data)(path, 1, 1, "", 0, "")
    parts = (msgspec.structs.replace(part, data=data),)
    bad = msgspec.structs.replace(piece, parts=parts)
    with pytest.raises(InvalidInput, match="not the path of a part"):
        ScanPlan.from_bytes(sealed(msgspec.structs.replace(PLAN, splits=(Split((bad,)),))))


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(Read(1, residual=False), id="no such part"),
        pytest.param(Read(-1, residual=False), id="from the end"),
        pytest.param(Read(0, residual=False, row_groups=(1, 1)), id="no row groups"),
        pytest.param(Read(0, residual=False, row_groups=(-1, 1)), id="before the first"),
    ],
)
def test_a_plan_reads_rows_that_are_there(read: Read) -> None:
    (piece,) = (piece for split in PLAN.splits for piece in split.pieces)
    bad = Piece(piece.parts, (read,), residual=False, size_bytes=1)
    with pytest.raises(InvalidInput, match="rows that its parts do not have"):
        ScanPlan.from_bytes(sealed(msgspec.structs.replace(PLAN, splits=(Split((bad,)),))))


def test_a_plan_shows_how_many_of_all_parts_it_reads() -> None:
    plan = keyed(*({"k": [n], "v": [n]} for n in (1, 2, 3))).scan("k >= 2").plan()
    assert "2 of 3 parts" in repr(plan)
