"""`--param`: typed values of the parameters of a statement."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
import typer

import rowsieve as rs
from rowsieve.cli.options import read_params
from tests.cli.test_cli import run, run_rows

ROWS = pa.table({"id": [1, 2, 3], "s": ["it's", "007", None], "d": [dt.date(2020, 1, 1)] * 3})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x=007", "007"),
        ("x=", ""),
        ("x=a=b", "a=b"),
        ("x:text=a:b", "a:b"),
        ("x:int=-9223372036854775809", -(2**63) - 1),
        ("x:float=1e308", 1e308),
        ("x:decimal=0.10", Decimal("0.10")),
        ("x:bool=true", True),
        ("x:date=2020-02-29", dt.date(2020, 2, 29)),
        ("x:time=10:00:00.5", dt.time(10, 0, 0, 500_000)),
        ("x:timestamp=2020-01-01T00:00:00Z", dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
        ("x:uuid=00000000-0000-0000-0000-000000000003", UUID(int=3)),
        ("x:hex=00ff", b"\x00\xff"),
        ("x:null=", None),
    ],
)
def test_a_value_has_the_type_that_is_written(text: str, value: object) -> None:
    assert read_params([text]) == {"x": value}


@pytest.mark.parametrize(
    "text", ["x", "=1", "x:int=a", "x:int=", "x:bool=TRUE", "x:date=1", "x:null=0", "x:list=1"]
)
def test_other_text_is_wrong_usage(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="--param"):
        read_params([text])


def test_queries_and_statements_take_values(tmp_path: Path) -> None:
    table = tmp_path / "t"
    rs.create_table(table, ROWS, ["id"])
    query = ("query", "SELECT id FROM t WHERE s = $s OR id IN ($ids) ORDER BY id", table)
    values = ("--param", "s=it's", "--param", "ids:int=3", "--param", "ids:int=4")
    assert run_rows(*query, *values) == [{"id": 1}, {"id": 3}]
    for without in (run(*query, code=3), run("query", "SELECT $s FROM t", table, code=3)):
        assert "the parameter 's' at offset" in without
        assert "has no value; give it as --param s=…" in without
    refusal = run(*query, "--param", "ids:int=3", code=3)
    assert "the parameter 's' at offset 27 of the statement has no value" in refusal
    assert "give it as --param s=…" in refusal
    for kind, place in (("--catalog", tmp_path / "lake"), ("--database", tmp_path / "base")):
        named = rs.Catalog(place) if kind == "--catalog" else rs.Database(place)
        named.create_table("db.t", ROWS, ["id"])
        update = "UPDATE db.t SET s = :s WHERE d = $d AND id = $id"
        values = ("--param", "s='; --", "--param", "d:date=2020-01-01", "--param", "id:int=2")
        run(kind, place, "sql", update, *values)
        found = ("SELECT id FROM db.t WHERE s = $s", "--param", "s='; --")
        for command in ("sql", "query"):
            assert run_rows(kind, place, command, *found) == [{"id": 2}]
        run(kind, place, "sql", "--param", "s=1", code=2)
