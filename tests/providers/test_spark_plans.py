"""A load by Spark plans once, where its partitions are made; what is wrong is refused before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rowsieve as rs
from rowsieve.errors import InvalidPredicate, UnknownColumn
from rowsieve.planner.plan_scan import plan_scan
from tests.small_tables import kv

source = pytest.importorskip("rowsieve.providers.spark.source", reason="needs pyspark")


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    return rs.create_table(str(tmp_path / "t"), kv((1, 10), (2, 20)), key=["k"])


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []

    def counted(*arguments: Any, **options: Any) -> Any:
        found.append(options["predicate"])
        return plan_scan(*arguments, **options)

    monkeypatch.setattr(source, "plan_scan", counted)
    return found


@pytest.mark.parametrize("options", [{}, {"where": "v > 10"}, {"columns": "v"}])
def test_a_load_plans_once(table: rs.Table, planned: list[Any], options: dict[str, str]) -> None:
    loaded = source.RowsieveSource({"path": table.uri, **options})
    reader = loaded.reader(loaded.schema())
    assert len(planned) == 0
    assert len(reader.partitions()) == 1
    assert len(planned) == 1


@pytest.mark.parametrize(
    ("options", "error"),
    [
        pytest.param({"where": "w > 10"}, UnknownColumn, id="condition"),
        pytest.param({"where": "v >"}, InvalidPredicate, id="text"),
        pytest.param({"columns": "w"}, UnknownColumn, id="columns"),
    ],
)
def test_a_load_refuses_before_it_plans(
    table: rs.Table, planned: list[Any], options: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        source.RowsieveSource({"path": table.uri, **options}).schema()
    assert not planned
