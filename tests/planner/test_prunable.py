"""Required pruning: prunable conditions pass, errors for the others say why they cannot prune."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import rowsieve as rs
from rowsieve import Table
from rowsieve.errors import InvalidPredicate, UnknownColumn, UnprunablePredicate
from rowsieve.predicate import ir
from rowsieve.predicate.functions import registry
from tests.small_tables import appended, keyed

SCHEMA = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        pa.field("ts", pa.timestamp("us", "UTC")),
        pa.field("day", pa.date32()),
        pa.field("text", pa.string()),
        pa.field("x", pa.float64()),
        pa.field("price", pa.decimal128(10, 2)),
        pa.field("flag", pa.bool_()),
        pa.field("id", pa.uuid()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("at", pa.struct([("lat", pa.float64())])),
        pa.field("doc", pa.json_()),
    ]
)
ROW = {
    "k": 7,
    "ts": 1_700_000_000_000_000,
    "day": 19_000,
    "text": "17",
    "x": 1.5,
    "price": None,
    "flag": True,
    "id": None,
    "tags": ["a"],
    "at": {"lat": 3.5},
    "doc": '{"n": 5, "who": {"name": "Ann"}}',
}


def table(rows: bool, **properties: str) -> Table:
    made = keyed(schema=SCHEMA, properties=properties)
    if rows:  # two values of each, so that no part has a single one
        other = ROW | {"k": 9, "x": 2.5, "text": "8", "flag": False, "day": 19_400}
        other |= {"ts": 1_710_000_000_000_000, "at": {"lat": 4.5}, "tags": ["b", "c"]}
        other |= {"doc": '{"n": 6, "who": {"name": "Bob"}}', "price": None}
        columns = {
            field.name: pa.array([ROW[field.name], other[field.name]], field.type)
            if field.name not in ("doc", "id")
            else pa.ExtensionArray.from_storage(
                field.type,
                pa.array([ROW[field.name], other[field.name]], field.type.storage_type),
            )
            for field in SCHEMA
        }
        made.upsert(pa.table(columns, schema=SCHEMA))
    return made


@pytest.fixture(params=[False, True], ids=["empty", "rows"])
def rows(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.mark.parametrize(
    "where",
    [
        "k = 8",
        "k > -9223372036854775807 AND k < 9223372036854775806",
        "k + 1 < 5",
        "-k > 5",
        "k IN (8, 80, 800)",
        "ts > now() - interval '30 days'",
        "ts < now() - interval '30 days'",
        "date_trunc('month', ts) = TIMESTAMPTZ '2024-07-01 00:00:00Z'",
        "extract(year FROM ts) = 2020",
        "day >= DATE '9000-01-01'",
        "day <= DATE '0100-01-01'",
        "CAST(ts AS date) = DATE '2024-01-31'",
        "text LIKE 'Zürich%'",
        "text = 'open'",
        "x BETWEEN -1e200 AND -1e100",
        "x < 0",
        "x IS NULL",
        "x IS NOT NULL",
        "price > 99999999.98",
        "price < 0.01",
        "flag",
        "NOT flag",
        "id = '00000000-0000-0000-0000-00000000ffff'",
        "list_length(tags) > 10",
        "(at).lat < -80",
        "x < 0 OR day = DATE '2000-01-01' OR k > 100 OR text = 'a'",
        "k > x",
        "CASE WHEN flag THEN k ELSE 0 END > 10",
        "coalesce(x, 0) > 3",
        "FALSE",
        "NULL",
    ],
)
def test_prunable_conditions_pass(where: str, *, rows: bool) -> None:
    made = table(rows)
    assert made.require_pruning(where).version == made.version


@pytest.mark.parametrize(
    ("where", "condition", "why"),
    [
        ("TRUE", "TRUE", "it excludes no row"),
        ("text LIKE '%open'", "LIKE '%open'", "no bounds of its columns"),
        ("x <> 5", "x", "no bounds of its columns"),
        ("CAST(text AS int) = 7", "CAST", "list it in the table's property text_statistics"),
        ("upper(text) = 'A'", "upper", "list it in the table's property text_statistics"),
        ("CAST(doc->>'n' AS int) = 7", "doc", "of doc.n: list it in the table's property json_st"),
        (
            "CAST(doc->'who'->>'name' AS int) = 7",
            "doc",
            "statistics of doc.who.name: list it in the table's property json_statistics",
        ),
    ],
)
def test_unprunable_conditions_have_a_reason(
    where: str, condition: str, why: str, *, rows: bool
) -> None:
    with pytest.raises(UnprunablePredicate, match="cannot be pruned by") as caught:
        table(rows, text_statistics="").require_pruning(where)
    assert why in str(caught.value)
    (found,) = caught.value.conditions
    assert condition in found


def test_only_the_conditions_that_cannot_are_named() -> None:
    with pytest.raises(UnprunablePredicate) as caught:
        table(rows=True).require_pruning("k > 5 AND text LIKE '%a' AND x <> 2 AND flag")
    assert len(caught.value.conditions) == 2
    assert all("LIKE" in each or "<>" in each for each in caught.value.conditions)


@pytest.mark.parametrize(
    "where", ["CAST(text AS int) = 7", "upper(text) = 'A'", "CAST(doc->>'n' AS int) = 7", "k = 8"]
)
def test_statistics_that_are_declared_count(where: str, *, rows: bool) -> None:
    made = table(rows, text_statistics="text", json_statistics="doc.n")
    assert made.require_pruning(where)


def test_the_text_of_numbers_in_json_has_no_bounds() -> None:
    made = table(rows=True, json_statistics="doc.n, doc.who.name")
    assert made.require_pruning("doc->'who'->>'name' = 'Eve'")
    with pytest.raises(UnprunablePredicate, match="no bounds of its columns"):
        made.require_pruning("doc->>'n' = '7'")


def test_without_statistics_no_condition_can(rows: bool) -> None:
    made = table(rows, statistics="off")
    with pytest.raises(UnprunablePredicate, match=r"statistics of x.*property statistics is off"):
        made.require_pruning("x < 0")
    assert made.require_pruning("k < 0")  # a part's first and last key are always there


def test_statistics_that_were_trimmed_are_missed() -> None:
    made = appended({"k": [1, 2], "v": [1, 2]}, properties={"statistics_bytes": "0"})
    with pytest.raises(UnprunablePredicate, match=r"statistics of v.*critical_columns"):
        made.require_pruning("v = 3")


@pytest.fixture
def _functions() -> Iterator[None]:
    before = dict(registry._ROWS)
    yield
    registry._ROWS.clear()
    registry._ROWS.update(before)


@pytest.mark.usefixtures("_functions")
def test_a_function_needs_claims(rows: bool) -> None:
    types = [pa.int64()]
    rs.register_function("plain_twice", types, lambda x: pc.add(x, x), returns=pa.int64())
    rs.register_function(
        "twice",
        types,
        lambda x: pc.add(x, x),
        returns=pa.int64(),
        monotone="increasing",
        can_fail=False,
    )
    made = table(rows)
    assert made.require_pruning("twice(k) > 100")
    with pytest.raises(UnprunablePredicate, match="function plain_twice are unknown"):
        made.require_pruning("k > 5 AND plain_twice(k) > 100")


def test_conditions_for_another_engine_cannot_prune() -> None:
    predicate = ir.And(
        (
            ir.Comparison(ir.ComparisonOp.GT, ir.Column("k"), ir.Literal(5)),
            ir.Opaque("udf(k)", "spark", ("k",)),
        )
    )
    with pytest.raises(UnprunablePredicate, match="another engine") as caught:
        table(rows=True).require_pruning(predicate)
    assert len(caught.value.conditions) == 1


def test_unknown_names_are_refused() -> None:
    made = table(rows=False)
    with pytest.raises(UnknownColumn, match="nope"):
        made.require_pruning("nope = 1")
    with pytest.raises(InvalidPredicate, match="frobnicate"):
        made.require_pruning("frobnicate(k) = 1")


def test_a_column_of_nulls_does_not_prove_that_a_function_prunes() -> None:
    made = appended({"k": [1, 2], "v": [None, None]})
    assert made.scan("v <> 3").metrics.parts_pruned == 1
    with pytest.raises(UnprunablePredicate):
        made.require_pruning("v <> 3")


def test_a_part_that_is_refuted_is_proof() -> None:
    made = appended({"k": [1, 2], "v": [3, 3]})
    assert made.require_pruning("v <> 3").parts_read == 0


def test_a_scan_without_pruning_never_passes() -> None:
    made = table(rows=True)
    assert made.scan("k = 1").require_pruning()
    with pytest.raises(UnprunablePredicate, match="pruning='off'"):
        made.scan("k = 1", pruning="off").require_pruning()
