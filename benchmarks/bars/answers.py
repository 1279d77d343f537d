"""Bar: DataFusion over an upserted and deleted table gives the answers of the row-at-a-time oracle.

The rows have NULL, NaN, both zeros, empty and equal text. Predicates are random trees. DataFusion
gets them as SQL; `tests.oracle`, which shares no kernel with the library, evaluates each tree row
by row. The model of the table is a dictionary.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from datafusion import SessionContext

import rowsieve as rs
from benchmarks.bars.sizes import Sizes
from benchmarks.result import Bar, WrongAnswer
from rowsieve.bridges.sql import to_sql
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.logical import Bool, Date, Field, Float, Int, String, Timestamp
from rowsieve.types.schema import Schema
from tests.oracle import Answer, Oracle
from tests.strategies import arrow_array

Row = dict[str, Any]
"""Physical values by column: days and microseconds since 1970 for dates and timestamps."""

KEYS = 400
PATTERNS = ("a%", "%b%", "_b", "", "%")
LEAP_DAY = 19_782
LEAP_US = LEAP_DAY * 86_400_000_000
POOLS: dict[str, Sequence[Any]] = {
    "id": range(KEYS),
    "n": range(-5, 6),
    "f": (math.nan, 0.0, -0.0, 1.5, -2.25, 1e300, math.inf, -math.inf),
    "s": ("", "a", "ab", "abc", "Ab", "zz", "a%", "ü"),
    "d": range(LEAP_DAY - 2, LEAP_DAY + 3),
    "at": (LEAP_US - 1, LEAP_US, LEAP_US + 1, LEAP_US + 60_000_000),
    "flag": (False, True),
}
SCHEMA = Schema(
    0,
    (
        Field(1, "id", Int(64), nullable=False),
        Field(2, "n", Int(32)),
        Field(3, "f", Float(64)),
        Field(4, "s", String()),
        Field(5, "d", Date()),
        Field(6, "at", Timestamp()),
        Field(7, "flag", Bool()),
    ),
)


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Run random queries; the first wrong answer ends the run."""
    rng = random.Random(20)  # the same questions in every run
    table, model = _changed_table(rng, folder)
    oracle = Oracle(SCHEMA, Semantics.DATAFUSION)
    context = SessionContext()
    context.register_table("t", table)
    selecting = 0
    for _ in range(sizes.queries):
        predicate = _predicate(rng, depth=3)
        wanted = sorted(
            key for key, row in model.items() if oracle.judge(predicate, row) is Answer.TRUE
        )
        selecting += bool(wanted)
        _ask(context, to_sql(predicate, "datafusion"), wanted)
    return Bar(
        name="right answers",
        promise=f"DataFusion equals the oracle on {sizes.queries} random queries",
        found=f"{sizes.queries} of {sizes.queries} equal; {selecting} of them find rows",
        met=True,
        facts={"queries": sizes.queries, "finding_rows": selecting, "rows": len(model)},
    )


def _ask(context: Any, where: str, wanted: list[int]) -> None:
    rows = context.sql(f"SELECT * FROM t WHERE {where}").to_pylist()
    found = sorted(row["id"] for row in rows)
    (counted,) = context.sql(f"SELECT count(*) AS n FROM t WHERE {where}").to_pylist()
    if found != wanted or counted["n"] != len(wanted):
        raise WrongAnswer(
            f"WHERE {where}: expected {len(wanted)} rows {wanted[:10]}, found {len(found)} "
            f"{found[:10]} and count(*) {counted['n']}"
        )


def _changed_table(rng: random.Random, folder: Path) -> tuple[rs.Table, dict[int, Row]]:
    """A table of overlapping parts and tombstones, and the expected rows."""
    model = {key: _row(rng, key) for key in range(0, KEYS, 2)}
    properties = {"target_part_bytes": "4000"}
    table = rs.create_table(
        str(folder / "table"), _arrow(model.values()), key=["id"], properties=properties
    )
    for _ in range(4):
        changed = {key: _row(rng, key) for key in rng.sample(range(KEYS), 40)}
        table.upsert(_arrow(changed.values()))
        gone = rng.sample(range(KEYS), 15)
        table.delete(keys=pa.table({"id": pa.array(gone, pa.int64())}))
        model = {key: row for key, row in (model | changed).items() if key not in gone}
    return table, model


def _arrow(rows: Iterable[Row]) -> pa.Table:
    listed = list(rows)
    columns = [arrow_array([row[field.name] for row in listed], field.type) for field in SCHEMA]
    return pa.Table.from_arrays(columns, schema=arrow_schema(SCHEMA))


def _row(rng: random.Random, key: int) -> Row:
    row = {field.name: rng.choice(POOLS[field.name]) for field in SCHEMA}
    return {name: None if rng.random() < 0.2 else value for name, value in row.items()} | {
        "id": key
    }


def _predicate(rng: random.Random, depth: int) -> ir.Predicate:
    if depth == 0 or rng.random() < 0.3:
        return _leaf(rng)
    shape = rng.randrange(3)
    if shape == 0:
        return ir.Not(_predicate(rng, depth - 1))
    terms = tuple(_predicate(rng, depth - 1) for _ in range(rng.randint(2, 3)))
    return ir.And(terms) if shape == 1 else ir.Or(terms)


def _leaf(rng: random.Random) -> ir.Predicate:
    field = rng.choice(SCHEMA.fields)
    column = ir.Column(field.name)
    op = rng.choice(tuple(ir.ComparisonOp))
    shapes = ["null", "compare", "compare", "in"]
    shapes += {"s": ["like"], "n": ["columns"], "id": ["columns"]}.get(field.name, [])
    match rng.choice(shapes):
        case "null":
            return ir.IsNull(column)
        case "in":
            # DataFusion compares up to 3 items; in longer lists it looks up bits, so zeros differ
            least = 4 if field.name == "f" else 1
            count = min(rng.randint(least, 6), len(POOLS[field.name]))
            members = rng.sample(POOLS[field.name], count)
            return ir.InList(column, ir.ValueSet(arrow_array(members, field.type), field.type))
        case "like":
            return ir.Like(column, rng.choice(PATTERNS))
        case "columns":
            return ir.Comparison(op, ir.Column("n"), ir.Column("id"))
    return ir.Comparison(op, column, ir.Literal(rng.choice(POOLS[field.name]), field.type))
