"""A hundred tasks work as users of other libraries write them, at the first try."""

from __future__ import annotations

import datetime
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import rowsieve as rs
import rowsieve.providers.datafusion
from tests.tasks.scripts import Task, tasks

FLIGHTS = pa.table(
    {
        "id": [1, 2, 3, 4, 5, 6],
        "carrier": ["AA", "UA", "AA", "UA", "AA", "B6"],
        "delay": [0.0, 12.5, 2.0, None, 7.0, 1.0],
        "day": [datetime.date(2026, 1, day) for day in range(1, 7)],
    }
)


def test_there_are_a_hundred_and_each_has_a_name() -> None:
    assert len(tasks()) >= 100
    assert len({task.name for task in tasks()}) == len(tasks())


@pytest.mark.parametrize("task", tasks(), ids=lambda task: task.name)
def test_a_task_works_as_written(task: Task, tmp_path: Path) -> None:
    t = rs.create_table(tmp_path / "flights", FLIGHTS, ["id"])
    names = {"t": t, "folder": tmp_path, "rs": rs, "rowsieve": rowsieve, "pa": pa, "pc": pc}
    engines = {"pd": pd, "pl": pl, "duckdb": duckdb, "datetime": datetime}
    exec(compile(task.script, task.name, "exec"), {**names, **engines})
