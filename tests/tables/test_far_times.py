"""Times that Python's datetime cannot hold are stored, and the messages about them are whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import EvaluationError, InvalidData, KeyViolation
from tests.cli.test_cli import run, run_rows

FAR = pa.array([2**62, 2**62], pa.int64()).cast(pa.timestamp("us"))
ROWS = pa.table({"k": [1, 2], "ts": FAR, "v": [0, 0]})
BY_TIME = pa.table({"ts": FAR, "v": [1, 2]})
SHOWN = "148108-07-06 14:00:27.387904"


@pytest.fixture
def tables(tmp_path: Path) -> tuple[rs.Table, rs.Table]:
    """One keyed by number, one keyed by time."""
    return (
        rs.create_table(str(tmp_path / "k"), ROWS, key=["k"]),
        rs.create_table(str(tmp_path / "ts"), BY_TIME.slice(0, 1), key=["ts"]),
    )


CALLS: list[Any] = [
    (EvaluationError, lambda t, _: t.scan(columns={"x": "1/v", "ts": "ts"}).to_arrow()),
    (EvaluationError, lambda t, _: t.update({"v": "1/v"}, where="ts IS NOT NULL")),
    (InvalidData, lambda t, _: t.overwrite(ROWS, where="k > 1")),
    (KeyViolation, lambda _, u: u.upsert(BY_TIME)),
    (KeyViolation, lambda _, u: u.overwrite(BY_TIME.slice(1, 1), where="v = 2")),
    (KeyViolation, lambda _, u: rs.create_table(u.uri + "2", BY_TIME, key=["ts"])),
    (
        KeyViolation,
        lambda _, u: u.apply_changes(
            BY_TIME.append_column("op", [["u", "u"]]).append_column("s", [[1, 1]]),
            op="op",
            sequence="s",
        ),
    ),
    (KeyViolation, lambda t, _: t.upsert(ROWS.set_column(0, "k", [pa.array([None, 1])]))),
]


@pytest.mark.parametrize(("error", "call"), CALLS)
def test_messages_name_a_row_of_any_year(
    tables: tuple[rs.Table, rs.Table],
    error: type[Exception],
    call: Callable[[rs.Table, rs.Table], object],
) -> None:
    with pytest.raises(error) as raised:
        call(*tables)
    assert SHOWN in str(raised.value)


def test_commands_print_a_row_of_any_year(
    tables: tuple[rs.Table, rs.Table], tmp_path: Path
) -> None:
    assert len(tables) == 2
    query = ("query", "SELECT * FROM k WHERE k = 1", tmp_path / "k")
    assert run_rows(*query)[0]["ts"] == SHOWN
    for output in ("text", "markdown"):
        assert SHOWN in run(*query, "--output", output)
        assert SHOWN in run("changes", tmp_path / "k", "--from", 0, "--output", output)
    assert SHOWN in run("inspect", tmp_path / "ts", "--parts", "--json")
