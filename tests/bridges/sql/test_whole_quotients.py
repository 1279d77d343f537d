"""A quotient of what an engine has as a fraction is never cut to a whole number."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import UnsupportedOperation
from tests.bridges.sql.engines import JUDGES
from tests.small_tables import fresh_uri

ROWS = pa.table(
    {
        "k": pa.array([1, 2, 3], pa.int64()),
        "day": [datetime.date(2024, 2, 29), datetime.date(2020, 1, 1), None],
        "n": pa.array([2024, 1010, -7], pa.int32()),
    }
)
OF_POSTGRES = [
    "extract(year FROM day) / 10 = 202",
    "-(extract(year FROM day) * 2 + 1) / 20 > -203",
    "k / coalesce(extract(year FROM day), 7) = 0",
    "n / CASE WHEN k = 1 THEN extract(month FROM day) ELSE 3 END = -2",
]
OF_POSTGRES_ROUND = [
    "date_part('year', day) / 10 = 202.4",
    "round(n) / 10 = 202.4",
    "round(k + 9007199254740992) = 9007199254740994",
]
KEPT = [
    "floor(n) / 10 > 202.3",
    "ceil(n) / 10 = 101",
    "floor(k + 9007199254740992) = 9007199254740992",
    "CAST(extract(year FROM day) AS bigint) / 10 = 202",
    "CAST(floor(n) AS bigint) / 10 = 202",
    "CAST(floor(n) AS double precision) / 10 > 202",
    "extract(year FROM day) / 10.0 > 202",
    "extract(year FROM day) * 2 = 4048",
    "n / 10 = 202",
]


@pytest.fixture(scope="module")
def table() -> rs.Table:
    return rs.create_table(fresh_uri(), ROWS, key=["k"])


@pytest.mark.parametrize(("dialect", "text"), [("postgres", text) for text in OF_POSTGRES])
def test_a_fraction_of_the_engine_is_refused_with_a_cast_that_works(
    dialect: str, text: str, table: rs.Table
) -> None:
    with pytest.raises(UnsupportedOperation, match=f"{dialect} divides it .* cast it to bigint"):
        table.scan(text, dialect=dialect)
    assert JUDGES[dialect](text, ROWS.to_batches()[0]) is not None  # the engine reads it


def test_a_new_value_is_refused_as_a_condition_is(table: rs.Table) -> None:
    with pytest.raises(UnsupportedOperation, match="/ of extract"):
        table.update({"n": "extract(year FROM day) / 10"})


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        *((dialect, text) for dialect in ("postgres", "datafusion") for text in KEPT),
        *(("postgres", text) for text in OF_POSTGRES_ROUND),
    ],
)
def test_translated_quotients_have_the_rows_of_the_engine(
    dialect: str, text: str, table: rs.Table
) -> None:
    expected = JUDGES[dialect](text, ROWS.to_batches()[0])
    assert expected
    found = table.scan(text, ["k"], dialect=dialect).to_arrow()["k"].to_pylist()
    assert sorted(key - 1 for key in found) == expected
