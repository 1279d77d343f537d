"""Random tables and filters: what our `where` selects is what Spark itself selects from a model.

The model of a table is a dictionary from keys to rows. Spark evaluates each filter on the model's
rows with its own code; we evaluate and prune it over parts that overlap, replace and delete. A
failure is not shrunk, which would take a Spark job for each try.
"""

from __future__ import annotations

import datetime
import decimal
import math
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import rowsieve as rs
from tests.profiles import examples

pytestmark = pytest.mark.spark

FILTERS_PER_TABLE = 10
DAY = datetime.datetime(2013, 2, 8)
SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("n", pa.int32()),
        ("f", pa.float64()),
        ("d", pa.decimal128(6, 2)),
        ("u", pa.uint8()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us")),
        ("tz", pa.timestamp("us", "UTC")),
    ]
)
DDL = (
    "k string, n int, f double, d decimal(6,2), u smallint, s string, b boolean, day date, "
    "ts timestamp_ntz, tz timestamp"
)

MOMENTS = [DAY, DAY + datetime.timedelta(hours=5, microseconds=1), datetime.datetime(1969, 12, 31)]
VALUES: dict[str, list[Any]] = {
    "f": [0.0, -0.0, 1.5, -2.0, 7.0, math.nan, math.inf, -math.inf],
    "d": [decimal.Decimal(text) for text in ("0.00", "1.50", "-2.00", "7.00", "9999.99")],
    "u": [0, 1, 2, 7, 255],
    "s": ["", "a", "ab", "B", "é", "a%", "\U0010ffff"],
    "b": [True, False],
    "day": [moment.date() for moment in MOMENTS],
    "ts": MOMENTS,
    "tz": [moment.replace(tzinfo=datetime.UTC) for moment in MOMENTS],
}
LITERALS = {
    "n": ["0", "1", "-3", "1.5", "CAST('NaN' AS DOUBLE)"],
    "f": ["0", "-0.0D", "1.5", "7", "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)"],
    "d": ["0", "1.5", "1.505", "-2", "7.0D", "100000"],
    "u": ["0", "1", "-1", "255", "300", "1.5"],
    "s": ["''", "'a'", "'ab'", "'b'", "'é'"],
    "k": ["'x'", "'y'", "''"],
    "day": ["DATE '2013-02-08'", "DATE '1969-12-31'"],
    "ts": ["TIMESTAMP_NTZ '2013-02-08 00:00:00'", "TIMESTAMP_NTZ '1969-12-31 00:00:00'"],
    "tz": ["TIMESTAMP '2013-02-08T00:00:00Z'", "TIMESTAMP '2013-02-08T06:00:00+01:00'"],
}
OTHERS = [
    "b",
    "NOT b",
    "f > d",
    "n = u",
    "n + 1 > u",
    "d * 2 >= f",
    "abs(n) < 3",
    "s LIKE 'a%'",
    "s LIKE '%b'",
    "s LIKE ''",
    "startswith(s, 'a')",
    "upper(s) = 'AB'",
    "length(s) > 1",
    "coalesce(s, k) = 'x'",
    "nullif(s, 'a') IS NULL",
    "year(day) = 2013",
    "date_trunc('month', ts) = TIMESTAMP_NTZ '2013-02-01 00:00:00'",
    "CASE WHEN b THEN n ELSE u END > 1",
    "k > s",
    "greatest(f, 1.0D) > 1",
    "s IN ('a', 'B', NULL)",
    "s NOT IN ('a', NULL)",
    "n IN (1, 2, 3)",
    "f IN (0.0D, CAST('NaN' AS DOUBLE))",
    "d BETWEEN 1 AND 7",
    "concat(k, s) = 'xa'",
]


def leaves() -> st.SearchStrategy[str]:
    columns = st.sampled_from(list(LITERALS))
    operators = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])
    compared = columns.flatmap(
        lambda name: st.tuples(st.just(name), operators, st.sampled_from(LITERALS[name]))
    ).map(" ".join)
    nulls = st.tuples(st.sampled_from(SCHEMA.names), st.sampled_from(["IS NULL", "IS NOT NULL"]))
    return st.one_of(compared, compared, nulls.map(" ".join), st.sampled_from(OTHERS))


def filters() -> st.SearchStrategy[str]:
    def wider(below: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        joined = st.tuples(below, st.sampled_from(["AND", "OR"]), below)
        return joined.map(lambda it: f"({it[0]} {it[1]} {it[2]})") | below.map("NOT ({})".format)

    return st.recursive(leaves(), wider, max_leaves=4)


def keys() -> st.SearchStrategy[tuple[str, int]]:
    return st.tuples(st.sampled_from(["", "x", "y"]), st.sampled_from([-3, 0, 1, 2, 7]))


def rows() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {name: st.none() | st.sampled_from(values) for name, values in VALUES.items()}
    )


Change = tuple[str, dict[tuple[str, int], dict[str, Any]]]


def changes() -> st.SearchStrategy[list[Change]]:
    change = st.tuples(
        st.sampled_from(["upsert", "upsert", "upsert", "delete"]),
        st.dictionaries(keys(), rows(), min_size=1, max_size=8),
    )
    return st.lists(change, min_size=1, max_size=5)


def as_table(rows_by_key: dict[tuple[str, int], dict[str, Any]]) -> pa.Table:
    listed = [{"k": k, "n": n, **row} for (k, n), row in rows_by_key.items()]
    return pa.Table.from_pylist(listed, schema=SCHEMA)


def make(folder: str, history: list[Change]) -> tuple[rs.Table, pa.Table]:
    """The table, and its rows by the model."""
    table = rs.create_table(folder, SCHEMA, key=["k", "n"])
    model: dict[tuple[str, int], dict[str, Any]] = {}
    for action, changed in history:
        if action == "upsert":
            table.upsert(as_table(changed))
            model.update(changed)
        else:
            table.delete(keys=as_table(changed).select(["k", "n"]))
            model = {key: row for key, row in model.items() if key not in changed}
    return table, as_table(model)


def by_column(frame: Any, chosen: list[str]) -> dict[int, set[tuple[str, int]]]:
    """The keys on which Spark finds each filter TRUE, all of them in one query."""
    columns = [f"coalesce({text}, false) AS c{i}" for i, text in enumerate(chosen)]
    rows = frame.selectExpr("k", "n", *columns).collect()
    return {i: {(row.k, row.n) for row in rows if row[f"c{i}"]} for i in range(len(chosen))}


def by_filter(collected: list[Any]) -> dict[int, set[tuple[str, int]]]:
    found: dict[int, set[tuple[str, int]]] = {i: set() for i in range(FILTERS_PER_TABLE)}
    for row in collected:
        assert (row["k"], row["n"]) not in found[row["i"]], "a key was read twice"
        found[row["i"]].add((row["k"], row["n"]))
    return found


@settings(cast("settings", examples(6)), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(
    history=changes(),
    chosen=st.lists(filters(), min_size=FILTERS_PER_TABLE, max_size=FILTERS_PER_TABLE),
)
def test_our_filters_select_the_rows_of_spark(
    spark: Any, history: list[Change], chosen: list[str]
) -> None:
    with TemporaryDirectory() as folder:
        table, model = make(str(Path(folder) / "t"), history)
        plain = model.set_column(4, "u", model.column("u").cast(pa.int16()))
        truth = spark.createDataFrame(plain, DDL) if model.num_rows else None
        ours = []
        for i, text in enumerate(chosen):
            source = spark.read.format("rowsieve").option("split_bytes", 1)
            ours.append(source.option("where", text).load(table.uri).selectExpr(f"{i} i", "k", "n"))
        found = by_filter(reduce(lambda a, b: a.unionAll(b), ours).collect())
        expected = by_column(truth, chosen) if truth is not None else by_filter([])
        assert {chosen[i]: keys for i, keys in found.items()} == {
            chosen[i]: keys for i, keys in expected.items()
        }
        assert spark.read.format("rowsieve").load(table.uri).count() == model.num_rows
