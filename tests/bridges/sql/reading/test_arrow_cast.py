"""DataFusion's `arrow_cast` in text keeps the rows that DataFusion keeps."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from rowsieve.bridges.where import to_predicate
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.bridges.sql.engines import JUDGES

ROWS = pa.record_batch(
    {
        "i": pa.array([1, -3, None, 2**31 - 1, 0], pa.int32()),
        "x": [1.5, math.nan, -0.0, 0.1, None],
        "s": ["a", "", None, "ß", "1"],
        "d": pa.array(["1.50", "0.00", None, "-3.25", "99.99"]).cast(pa.decimal128(10, 2)),
        "day": pa.array([0, 1, None, 19_000, -1], pa.date32()),
    }
)
SCHEMA, _ = schema_of(ROWS.schema)
READ = [
    "arrow_cast(i, 'Int64') + 1 > 2147483647",
    "arrow_cast(i, 'Float32') = 2147483648",
    "arrow_cast(x, 'Float32') = arrow_cast(0.1, 'Float32')",
    "arrow_cast(x, 'Float32') > arrow_cast(1, 'Float32')",
    "arrow_cast(s, 'LargeUtf8') = 'ß'",
    "arrow_cast(s, 'Utf8View') < 'b'",
    "arrow_cast(d, 'Decimal128(20, 2)') = arrow_cast('1.5', 'Decimal128(20, 2)')",
    "arrow_cast(i, 'Utf8') = '-3'",
    "arrow_cast('1970-01-02', 'Date32') = day",
    "arrow_cast(day, 'Timestamp(Microsecond, None)') = TIMESTAMP '1970-01-02 00:00:00'",
]


@pytest.mark.parametrize("text", READ)
def test_a_cast_to_an_arrow_type_is_the_engine_s(text: str) -> None:
    found = matching(
        bind(to_predicate(text, "datafusion", SCHEMA), SCHEMA, Semantics.DATAFUSION), ROWS
    )
    assert [row for row, each in enumerate(found) if each] == JUDGES["datafusion"](text, ROWS) != []


@pytest.mark.parametrize(
    "name", ["Float16", 'Timestamp(s, "Asia/Tokyo")', "Decimal128(99, 1)", "x"]
)
def test_a_type_that_holds_other_values_is_refused(name: str) -> None:
    with pytest.raises(InvalidPredicate, match="arrow_cast is read to"):
        to_predicate(f"arrow_cast(i, '{name}') = 1", "datafusion", SCHEMA)
