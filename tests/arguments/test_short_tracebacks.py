"""Errors for people: at most 30 lines in a prompt or notebook, whole everywhere else."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import predicate
from rowsieve.errors import RowsieveError


def failing_reader() -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"id": [1]})
        raise OSError("the source is gone")

    return pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), batches())


CALLS: dict[str, Callable[[rs.Table], Any]] = {
    "a condition": lambda table: table.scan("idx > 5"),
    "SQL that does not parse": lambda table: table.scan("id >"),
    "a type": lambda table: table.upsert(pa.table({"id": ["x"], "n": [1]})),
    "a reader that fails": lambda table: table.upsert(failing_reader()),
    "a missing file": lambda table: table.upsert("absent.csv"),
    "a wrong argument": lambda table: table.head("three"),  # type: ignore[arg-type]
    "a merge": lambda table: (
        table.merge([{"id": 1}], on="target.zz = 1").when_matched_delete().execute()
    ),
    "a table that is not there": lambda table: rs.open_table(table.uri + "-absent"),
    "a value that fails": lambda table: table.update({"n": "1 / 0"}),
    "a stream that fails": lambda table: list(table.scan("id / 0 = 1").to_batches()),
    "a translation that is not whole": lambda table: rs.translate(
        "soundex(id) = 'a'", "spark", target="duckdb", schema=table.schema
    ).exact(),
    "bounds of a column that is not there": lambda table: predicate.prune(
        predicate.IsNull(predicate.Column("id")), table.schema, min={"zz": [1]}
    ),
    "a tree that does not fit": lambda table: predicate.bind(
        predicate.IsNull(predicate.Column("zz")), table.schema
    ),
    "statistics that are not JSON": lambda table: predicate.delta_bounds(["{"], table.schema),
}


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    return rs.create_table(tmp_path / "t", pa.table({"id": [1, 2], "n": [1, 2]}), ["id"])


def raised(call: Callable[[rs.Table], Any], table: rs.Table) -> RowsieveError:
    with pytest.raises(RowsieveError) as caught:
        call(table)
    return caught.value


def in_a_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)


@pytest.mark.parametrize("name", CALLS)
def test_a_prompt_shows_an_error_in_few_lines(
    name: str, table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_a_prompt(monkeypatch)
    error = raised(CALLS[name], table)
    assert "".join(traceback.format_exception(error)).count("\n") <= 16
    assert error.__cause__ is None


def test_the_cause_stays_reachable_in_a_prompt(
    table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = raised(CALLS["a reader that fails"], table)
    assert whole.__cause__ is not None
    in_a_prompt(monkeypatch)
    assert type(raised(CALLS["a reader that fails"], table).__context__) is type(whole.__cause__)


@pytest.mark.parametrize("is_prompt", [True, False])
def test_scripts_and_the_setting_keep_whole_tracebacks(
    table: rs.Table, monkeypatch: pytest.MonkeyPatch, is_prompt: bool
) -> None:
    if is_prompt:
        in_a_prompt(monkeypatch)
        monkeypatch.setenv("ROWSIEVE_TRACEBACKS", "whole")
    error = raised(CALLS["a reader that fails"], table)
    frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert error.__cause__ is not None
    assert len(frames) > 4
