"""Drop a table by its place, and replace one by another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput, RowsieveError, TableNotFound, UnsupportedOperation
from tests.small_tables import fresh_uri, keyed, kv, pairs


@pytest.fixture(params=["memory", "local"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return fresh_uri() if request.param == "memory" else str(tmp_path / "t")


def test_a_dropped_table_is_gone_and_its_place_can_be_used_again(uri: str) -> None:
    table = rs.create_table(uri, kv((1, 1)), key=["k"])
    table.upsert(kv((2, 2)))
    rs.drop_table(uri)
    with pytest.raises(TableNotFound):
        rs.open_table(uri)
    with pytest.raises(RowsieveError):
        table.upsert(kv((3, 3)))
    with pytest.raises(TableNotFound, match="drop_table: there is no table"):
        rs.drop_table(uri)
    rs.drop_table(uri, if_absent="ignore")
    again = rs.create_table(uri, pa.table({"other": ["x"]}))
    assert again.version == 0
    assert rs.open_table(uri).to_arrow().to_pylist() == [{"other": "x"}]


def test_replace_drops_what_is_there_once_the_data_is_checked(uri: str) -> None:
    old = rs.create_table(uri, kv((1, 1), (2, 2)), key=["k"])
    old.delete(keys={"k": [1]})
    for wrong in (pa.table({"k": [1, 1]}), pa.table({"k": pa.array([None], pa.int64())})):
        with pytest.raises(RowsieveError):
            rs.create_table(uri, wrong, key=["k"], if_exists="replace")
        assert pairs(rs.open_table(uri)) == [(2, 2)]
    new = rs.create_table(uri, pa.table({"a": ["x"]}), if_exists="replace")
    assert (new.version, new.key, new.detail()["uuid"] == old.detail()["uuid"]) == (0, (), False)
    assert rs.open_table(uri).to_arrow().to_pylist() == [{"a": "x"}]
    new.append(pa.table({"a": ["y"]}))
    copied = rs.create_table(uri, new, if_exists="replace")  # of its own rows
    assert sorted(copied.to_arrow()["a"].to_pylist()) == ["x", "y"]
    with pytest.raises(RowsieveError):
        old.upsert(kv((3, 3)))
    fresh = rs.create_table(fresh_uri(), kv((1, 1)), key=["k"], if_exists="replace")
    assert pairs(fresh) == [(1, 1)]


@pytest.mark.parametrize("commits", [0, 2, 5])
def test_a_handle_never_reads_the_table_that_replaced_its_own(uri: str, commits: int) -> None:
    """Nor after its first error (invariant 22)."""
    rs.create_table(uri, kv((1, 1)), key=["k"])
    old = rs.open_table(uri)
    old.upsert(kv((2, 2)))
    rs.drop_table(uri)
    new = rs.create_table(uri, kv((7, 7)), key=["k"])
    for number in range(commits):
        new.upsert(kv((number, number)))
    calls: list[Callable[[], object]] = [
        old.history,
        old.history,
        lambda: old.scan(version=0).to_arrow(),
        lambda: old.history(1),
        old.refs,
        lambda: old.scan(version=9),
        lambda: old.tag("t"),
        old.count,
    ]
    for call in calls:
        with pytest.raises(TableNotFound, match="has replaced it"):
            call()
    assert rs.open_table(uri).history()[0].version == commits


def test_what_a_table_protects_is_not_dropped() -> None:
    table = keyed({"k": [1], "v": [1]})
    with table.lease(), pytest.raises(UnsupportedOperation, match="lease"):
        rs.drop_table(table.uri)
    assert pairs(rs.open_table(table.uri)) == [(1, 1)]
    table.tag("first")
    with pytest.raises(UnsupportedOperation):
        rs.create_table(table.uri, kv((2, 2)), key=["k"], if_exists="replace")
    assert pairs(rs.open_table(table.uri)) == [(1, 1)]
    with pytest.raises(InvalidInput, match="'error', 'ignore' or 'replace'"):
        rs.create_table(table.uri, kv(), if_exists="overwrite")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="if_absent"):
        rs.drop_table(table.uri, if_absent="drop")  # type: ignore[arg-type] # what is tested


def test_only_the_tables_own_files_go(tmp_path: Path) -> None:
    rs.create_table(str(tmp_path / "t"), kv((1, 1)), key=["k"])
    rs.create_table(str(tmp_path / "t" / "inner"), kv((5, 5)), key=["k"])
    (tmp_path / "t" / "notes.txt").write_text("mine")
    rs.drop_table(str(tmp_path / "t"))
    assert (tmp_path / "t" / "notes.txt").read_text() == "mine"
    assert pairs(rs.open_table(str(tmp_path / "t" / "inner"))) == [(5, 5)]
