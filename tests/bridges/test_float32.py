"""float64 to float32: what is too large is infinity in some engines, and fails or is NULL here."""

from __future__ import annotations

import datafusion
import polars as pl
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.polars_exprs import from_polars
from rowsieve.bridges.translation import Exactness
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Float
from tests.bridges.polars_exprs.engine import theirs
from tests.bridges.sql.engines import JUDGES

BATCH = pa.record_batch({"f": pa.array([1e300, 4.0, None]), "g": pa.array([1, 2, 3], pa.float32())})
SCHEMA = schema_of(BATCH.schema)[0]
NARROWED = ir.Comparison(
    ir.ComparisonOp.GT, ir.Cast(ir.Column("f"), Float(32)), ir.Literal(3.0, Float(32))
)


@pytest.mark.parametrize("target", ["polars", "datafusion_exprs", "datafusion", "pyarrow_exprs"])
@pytest.mark.parametrize("semantics", [Semantics.SQL, Semantics.POLARS], ids=lambda it: it.name)
def test_it_is_not_written_where_it_never_fails(target: str, semantics: Semantics) -> None:
    for try_ in (False, True):
        predicate = ir.Comparison(
            ir.ComparisonOp.GT, ir.Cast(ir.Column("f"), Float(32), try_), ir.Literal(3.0, Float(32))
        )
        made = rs.translate(predicate, target=target, schema=BATCH.schema, semantics=semantics)
        assert made.expression is None
        assert made.residual == predicate


def test_it_is_written_where_it_fails_as_here() -> None:
    made = rs.translate(NARROWED, target="duckdb", schema=BATCH.schema).exact()
    assert JUDGES["duckdb"](made, BATCH.slice(1)) == [0]


@pytest.mark.parametrize("strict", [False, True])
def test_polars_has_infinity_and_is_left(*, strict: bool) -> None:
    narrowed = pl.col("f").cast(pl.Float32, strict=strict) > 3.0
    assert theirs(narrowed, BATCH) == [0, 1]
    assert from_polars(narrowed, SCHEMA).residual is narrowed
    for value, exactness in ((1e300, Exactness.UNSUPPORTED), (3.5, Exactness.EXACT)):
        constant = pl.lit(value, dtype=pl.Float64).cast(pl.Float32, strict=strict)
        assert from_polars(constant > pl.col("g"), SCHEMA).exactness is exactness


@pytest.mark.parametrize("cast", ["CAST", "TRY_CAST"])
def test_datafusion_has_infinity_and_is_left(cast: str) -> None:
    text = f"{cast}(f AS REAL) > 3e0"
    assert JUDGES["datafusion"](text, BATCH) == [0, 1]
    assert rs.translate(text, "datafusion", target="duckdb", schema=BATCH.schema).residual == text
    frame = datafusion.SessionContext().from_arrow(pa.Table.from_batches([BATCH]))
    expression = frame.parse_sql_expr(text)
    assert rs.translate(expression, target="duckdb", schema=BATCH.schema).expression is None
