"""What is written elsewhere and read back is the same tree, but where other words mean it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rowsieve.bridges.languages import BRIDGES, Bridge
from rowsieve.bridges.sql import parse_predicate
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.bind import bind
from rowsieve.predicate.normalize import normalize
from tests.strategies import SCHEMA

CONDITIONS = (
    *(f"i64 {op} 1" for op in ("=", "<>", "<", "<=", ">", ">=")),
    *("s = 'a'", "s IN ('a', 'b')", "i64 IN (1, 2, 3, 4, 5)", "NOT i64 IN (1, 2)"),
    *("s IS NULL", "s IS NOT NULL", "b", "NOT b", "i64 = i32", "f64 > 1.5", "f64 IN (1.5, 2.5)"),
    *("i64 = 1 AND s = 'a'", "i64 = 1 OR s = 'a'", "NOT (i64 = 1 OR s = 'a')", "d = 1.5"),
    *("day = '2024-01-01'", "ts >= '2024-01-01 10:00:00'", "tz < '2024-01-01 10:00:00Z'"),
    *("bin = '\\x00'", "starts_with(s, 'a')", "s LIKE 'a%'", "i64 IS DISTINCT FROM 1"),
    *("i64 + 1 = 5", "CASE WHEN b THEN i64 ELSE 2 END = 1", "(pair).x = 1", "length(s) = 2"),
)
_COLUMNS = {"i64 = i32", "i64 + 1 = 5", "length(s) = 2", "CASE WHEN b THEN i64 ELSE 2 END = 1"}
UNSAID: Mapping[str, set[str]] = {
    "trino": {"tz < '2024-01-01 10:00:00Z'"},
    "spark_filters": {*_COLUMNS, "i64 = 1 OR s = 'a'", "NOT (i64 = 1 OR s = 'a')"},
    "iceberg": _COLUMNS,
    "iceberg_json": _COLUMNS,
    "delta_dnf": {*_COLUMNS, "(pair).x = 1"},
    "substrait": {"i64 = i32", "length(s) = 2"},
}
REFUSED: Mapping[str, set[str]] = {"trino": {"bin = '\\x00'"}}  # text beside bytes
_LIKE, _DISTINCT = {"s LIKE 'a%'", "starts_with(s, 'a')"}, {"i64 IS DISTINCT FROM 1"}
_FLAGS = {"b", "NOT b"}
OTHER_WORDS: Mapping[str, set[str]] = {
    "datafusion": {"(pair).x = 1"},
    "datafusion_exprs": {"(pair).x = 1"},
    "spark_filters": {*_LIKE, *_FLAGS},
    "pyarrow_exprs": _DISTINCT,
    "polars": _LIKE,
    "iceberg": {
        *(_LIKE | _FLAGS | _DISTINCT),
        *("i64 <> 1", "s IN ('a', 'b')", "i64 IN (1, 2, 3, 4, 5)", "NOT i64 IN (1, 2)"),
        *("NOT (i64 = 1 OR s = 'a')", "f64 IN (1.5, 2.5)"),
    },
    "iceberg_json": set(CONDITIONS) - {"s IS NULL", "s IS NOT NULL"},  # never NULL
    "delta_dnf": {
        *(_LIKE | _FLAGS | _DISTINCT),
        *("NOT i64 IN (1, 2)", "s IS NULL", "s IS NOT NULL", "NOT (i64 = 1 OR s = 'a')"),
    },
    "substrait": {*_LIKE, *_DISTINCT, "f64 > 1.5", "CASE WHEN b THEN i64 ELSE 2 END = 1"},
}


@pytest.mark.parametrize(
    "bridge", [each for each in BRIDGES if each.name != "spark_columns"], ids=lambda each: each.name
)
@pytest.mark.parametrize("text", CONDITIONS)
def test_a_condition_comes_back_as_itself(text: str, bridge: Bridge) -> None:
    predicate = parse_predicate(text)
    if text in REFUSED.get(bridge.name, set()):
        with pytest.raises(InvalidPredicate, match="write the bytes, as in X'00'"):
            bridge.writes(predicate, SCHEMA, bridge.semantics)
        return
    made = bridge.writes(predicate, SCHEMA, bridge.semantics)
    if text in UNSAID.get(bridge.name, set()):
        assert made.exactness is not Exactness.EXACT
        return
    read = bridge.reads(made.exact(), SCHEMA)
    if text not in OTHER_WORDS.get(bridge.name, set()):
        trees = [bind(each, SCHEMA, bridge.semantics).root for each in (predicate, read.exact())]
        assert normalize(trees[1]) == normalize(trees[0])
