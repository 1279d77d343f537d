"""`ln`, `exp` and `power`: the bits of the engines, also outside of the domain."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from datafusion import SessionContext

import rowsieve as rs
from rowsieve.errors import EvaluationError, InvalidPredicate, RowsieveError
from rowsieve.predicate.arrays import Computed
from rowsieve.predicate.functions.registry import FUNCTIONS
from rowsieve.predicate.functions.row import Argument
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Decimal, Float, Int
from tests.bridges.sql.postgres import connection
from tests.profiles import IS_DEEP

INF, NAN = math.inf, math.nan
EDGES = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e-300, 1e300, 5e-324, -1e300),
    *(709.782712893384, 709.7827128933841, -708.4, -745.2, -745.1, 1.7976931348623157e308),
    *(2.0**53, 2.0**53 + 2, -(2.0**53) - 2, 0.1, 1 + 2**-52, INF, -INF, NAN),
)
COUNT = 100_000 if IS_DEEP else 2_000


def values_of(name: str) -> list[tuple[float | None, ...]]:
    """Edges, each with each, and numbers of all sizes."""
    chosen = random.Random(name)
    wide = [chosen.uniform(-1, 1) * 10 ** chosen.uniform(-300, 300) for _ in range(COUNT)]
    near = [chosen.uniform(-800, 800) for _ in range(COUNT)]
    if name != "power":
        return [(x,) for x in (*EDGES, None, *wide, *near)]
    small = [chosen.uniform(-50, 50) for _ in range(COUNT)]
    pairs = list(itertools.product((*EDGES, None), repeat=2))
    return [*pairs, *zip(map(abs, near), small, strict=True), *zip(small, near, strict=True)]


def arrays_of(name: str) -> list[pa.Array]:
    return [pa.array(column, pa.float64()) for column in zip(*values_of(name), strict=True)]


def evaluated(name: str, semantics: Semantics) -> Computed:
    row, arrays = FUNCTIONS[name], arrays_of(name)
    signature = row.resolve([Argument(Float(64))] * len(arrays))
    assert signature is not None
    return row.evaluate(arrays, signature, semantics)


def bits(values: pa.Array) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = np.asarray(pc.fill_null(values, 0.0)).view(np.int64)
    return found


def same(ours: Computed, theirs: pa.ChunkedArray, *, signs: bool) -> None:
    """Compare bit by bit where ours does not fail; without `signs` all NaN are one."""
    other = theirs.combine_chunks()
    failed = np.zeros(len(other), np.bool_) if ours.failed is None else ours.failed
    nan = np.isnan(np.asarray(pc.fill_null(other, 0.0)))
    nulls = np.asarray(other.is_null())
    assert (np.asarray(ours.values.is_null()) == (nulls | failed)).all()
    differ = (bits(ours.values) != bits(other)) & ~failed & ~nulls
    if not signs:
        assert (np.isnan(np.asarray(pc.fill_null(ours.values, 0.0)))[~failed] == nan[~failed]).all()
        differ &= ~nan
    assert not differ.any()


def table_of(name: str) -> tuple[pa.Table, str]:
    arrays = arrays_of(name)
    columns = dict(zip("xy", arrays, strict=False)) | {"n": pa.array(range(len(arrays[0])))}
    return pa.table(columns), f"{name}({', '.join('xy'[: len(arrays)])})"


@pytest.mark.parametrize("name", ["ln", "exp", "power"])
def test_duckdb_has_the_same_bits(name: str) -> None:
    rows, text = table_of(name)
    session: Any = duckdb.connect()
    session.register("numbers", rows)
    found = session.sql(f"SELECT {text} AS r FROM numbers ORDER BY n").to_arrow_table()
    same(evaluated(name, Semantics.DUCKDB), found["r"], signs=False)


@pytest.mark.parametrize("name", ["ln", "exp", "power"])
def test_datafusion_has_the_same_bits_and_signs_of_nan(name: str) -> None:
    rows, text = table_of(name)
    ours = evaluated(name, Semantics.DATAFUSION)
    if ours.failed is not None:  # one such row fails the query there
        context = SessionContext()
        for row in rows.filter(pa.array(ours.failed)).select(["x", "y"]).to_pylist():
            context.deregister_table("rows")
            context.from_arrow(pa.Table.from_pylist([row]), name="rows")
            with pytest.raises(Exception, match="zero raised to a negative power"):
                context.sql(f"SELECT {text} FROM rows").collect()
        rows = rows.filter(pa.array(~ours.failed))
        ours = Computed(ours.values.filter(pa.array(~ours.failed)))
    context = SessionContext()
    context.from_arrow(rows, name="rows")
    found = context.sql(f"SELECT {text} AS r FROM rows ORDER BY n").to_arrow_table()
    same(ours, found["r"], signs=True)


@pytest.mark.parametrize("name", ["ln", "exp", "power"])
def test_arrow_has_the_same_bits(name: str) -> None:
    same(
        evaluated(name, Semantics.PYARROW),
        pa.chunked_array([getattr(pc, name)(*arrays_of(name))]),
        signs=False,
    )


@pytest.mark.parametrize("name", ["ln", "exp", "power"])
def test_postgresql_has_the_same_bits_and_errors(name: str) -> None:
    rows, _ = table_of(name)
    ours = evaluated(name, Semantics.POSTGRES)
    failed = np.zeros(rows.num_rows, np.bool_) if ours.failed is None else ours.failed
    database = connection()
    database.execute(_CAUGHT)
    for row in rows.slice(0, (len(EDGES) + 1) ** 2).to_pylist():
        place = row.pop("n")
        given = [*map(database_text, row.values()), None][:2]
        query = f"SELECT pg_temp.caught('{name}', %s, %s)"
        (value,) = database.execute(query, given).fetchone()
        own = ours.values[place].as_py()
        if failed[place] or own is None:
            assert value == ("error" if failed[place] else None), row
        else:
            assert repr(own) == repr(float(value)), row


def database_text(value: float | None) -> str | None:
    return None if value is None else repr(value)


_CAUGHT = """
CREATE OR REPLACE FUNCTION pg_temp.caught(name text, x text, y text)
RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE name WHEN 'ln' THEN ln(x::float8) WHEN 'exp' THEN exp(x::float8)
                     ELSE power(x::float8, y::float8) END;
EXCEPTION WHEN data_exception OR numeric_value_out_of_range THEN RETURN 'error';
END $$
"""


def test_whole_numbers_and_floats_are_taken_and_other_types_refused() -> None:
    resolve = FUNCTIONS["power"].resolve
    number = Argument(Decimal(2, 1))
    assert resolve([Argument(Float(64)), number]) is not None
    assert resolve([number, Argument(Float(64))]) is not None
    assert resolve([Argument(Int(32)), Argument(Int(64, signed=False))]) is not None
    for arguments in ([number, number], [Argument(Int(64)), number], [Argument(Float(32))] * 2):
        assert resolve(arguments) is None
    assert FUNCTIONS["ln"].resolve([number]) is None


def test_conditions_fail_where_the_dialect_fails() -> None:
    rows = pa.table({"x": [0.0, 4.0, -1.0, None], "n": [1, 2, 3, 4]})
    table = rs.create_table("memory:///exponentials", rows)
    for text in ("ln(x) > 1", "power(x, -1) > 0", "x ^ 0.5 = 2", "exp(n * 1000) > 1"):
        with pytest.raises(EvaluationError):
            table.scan(text).to_arrow()
    for text in ("x > 0 AND ln(x) > 1", "n = 2 AND power(x, 0.5) = 2", "exp(x) > 50", "x ^ 2 = 16"):
        assert table.scan(text).to_arrow()["n"].to_pylist() == [2], text
    duck = {"ln(x) < 0": [1], "power(x, -1) > 1": [1], "exp(n * 1000) > 1": [1, 2, 3, 4]}
    for text, wanted in duck.items():
        assert table.scan(text, dialect="duckdb").to_arrow()["n"].to_pylist() == wanted, text
    assert table.scan("ln(x) < 0", dialect="datafusion").to_arrow()["n"].to_pylist() == [1]
    with pytest.raises(EvaluationError):
        table.scan("power(x, -1) > 0", dialect="datafusion").to_arrow()
    with pytest.raises(InvalidPredicate, match=r"confuses power with \^"):
        table.scan("power(x, 2) > 1 AND (n ^ 1) > 0", dialect="datafusion").to_arrow()
    for dialect in ("spark", "trino"):
        for text in ("ln(x) > 1", "exp(x) > 1", "power(x, 2) > 1"):
            with pytest.raises(RowsieveError, match="last digits"):
                table.scan(text, dialect=dialect).to_arrow()


def test_bounds_skip_parts() -> None:
    table = rs.create_table("memory:///exponential-parts", pa.table({"x": [1.0, 2.0]}))
    table.append(pa.table({"x": [100.0, 200.0]}))
    for text in ("ln(x) > 3", "exp(x) > 1e20", "power(x, 2) > 100", "power(2, x) > 1e20"):
        scan: Any = table.scan(text, pruning="soft")
        assert scan.to_arrow()["x"].to_pylist() == [100.0, 200.0]
        scan = table.scan(text)
        scan.to_arrow()
        assert scan.metrics.parts_considered - scan.metrics.parts_pruned == 1, text
