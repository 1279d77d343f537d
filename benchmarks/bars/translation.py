"""Bars: translating predicates: a small one, a list of a million values, and a wide OR.

Every bridge translates in both directions, except Spark Columns, which live in the JVM. Each result
is translated back and compared before it is timed; a bridge whose engine is not installed is named.
If an engine has an object or a message per list value (pyiceberg, Substrait), creating these
dominates, and the limit for text applies.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Work, take_turns
from benchmarks.result import Bar, Case, WrongAnswer
from rowsieve.bridges.languages import BRIDGES, Bridge
from rowsieve.errors import MissingExtra
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import matching
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Int, String

SMALL_WALL_S, ARRAY_WALL_S, TEXT_WALL_S, WIDE_WALL_S = 0.001, 0.300, 3.0, 5.0
OBJECTS = ("iceberg", "substrait")
NO_OR = ("spark_filters",)
NOT_ASKED = ("rowsieve", "spark_columns")
SCHEMA = schema_of(
    pa.schema([("id", pa.int64()), ("name", pa.string()), ("x", pa.float64())]),
)[0]
SMALL = ir.And(
    (
        ir.Comparison(ir.ComparisonOp.GT, ir.Column("id"), ir.Literal(5, Int(64))),
        ir.Comparison(ir.ComparisonOp.EQ, ir.Column("name"), ir.Literal("x", String())),
        ir.Not(ir.IsNull(ir.Column("x"))),
    )
)


def measure(sizes: Sizes, folder: Path) -> list[Bar]:
    """A predicate of ten nodes, a long list and a wide OR, through each bridge."""
    del folder
    assert sum(1 for _ in ir.walk(SMALL)) == 10
    values = np.random.default_rng(7).integers(-(10**12), 10**12, sizes.list_values)
    rows = pa.record_batch(
        {
            "id": [6, 7, None, int(values[0]), int(values[1]) + 1],
            "name": ["x", "y", "x", "x", None],
            "x": [1.0, 2.0, 3.0, None, 5.0],
        }
    )
    return [
        _bar(
            _asked("translation of ten nodes", SMALL, rows, sizes.repeats),
            f"under {SMALL_WALL_S * 1e3:g} ms",
            lambda _: SMALL_WALL_S,
        ),
        _bar(
            _asked(
                "translation of a long list",
                ir.InList(ir.Column("id"), ir.ValueSet(pa.array(values), Int(64))),
                rows,
                sizes.long_repeats,
            ),
            f"IN of {sizes.list_values:,} values: under {ARRAY_WALL_S * 1e3:g} ms, as SQL text "
            f"or an object or message for each value under {TEXT_WALL_S:g} s",
            _limit_of_a_list,
        ),
        _bar(
            _asked(
                "translation of a wide OR",
                _wide(sizes.terms),
                rows,
                sizes.long_repeats,
                without=NO_OR,
            ),
            f"OR of {sizes.terms:,} different comparisons: under {WIDE_WALL_S:g} s",
            lambda _: WIDE_WALL_S,
        ),
    ]


def _asked(
    name: str,
    predicate: ir.Predicate,
    rows: pa.RecordBatch,
    repeats: int,
    without: tuple[str, ...] = (),
) -> Case:
    """Run bridge by bridge, and free each one's objects before the next, outside the clock."""
    case = Case(name, [])
    for bridge in BRIDGES:
        if bridge.name in (*NOT_ASKED, *without):
            continue
        try:
            works = _both_ways(bridge, predicate, rows)
        except MissingExtra as error:
            case.absent[bridge.name] = str(error)
        else:
            case.series.extend(take_turns(works, repeats))
    return case


def _both_ways(bridge: Bridge, predicate: ir.Predicate, rows: pa.RecordBatch) -> dict[str, Work]:
    def write() -> Any:
        return bridge.writes(predicate, SCHEMA, bridge.semantics).exact()

    expression = write()

    def read() -> ir.Predicate:
        return bridge.reads(expression, SCHEMA).exact()

    kept = [
        matching(bind(node, SCHEMA, bridge.semantics), rows).tolist()
        for node in (predicate, read())
    ]
    if kept[0] != kept[1]:
        raise WrongAnswer(f"{bridge.name} keeps {kept[1]}, not {kept[0]}")
    return {f"{bridge.name} writes": write, f"{bridge.name} reads": read}


def _limit_of_a_list(bridge: str) -> float:
    is_text = any(each.is_text for each in BRIDGES if each.name == bridge)
    return TEXT_WALL_S if is_text or bridge in OBJECTS else ARRAY_WALL_S


def _wide(terms: int) -> ir.Predicate:
    """An OR that cannot become an IN list."""
    return ir.Or(
        tuple(
            ir.Comparison(ir.ComparisonOp.GT, ir.Column("id"), ir.Literal(number, Int(64)))
            if number % 2
            else ir.Comparison(
                ir.ComparisonOp.NE, ir.Column("name"), ir.Literal(f"n{number}", String())
            )
            for number in range(terms)
        )
    )


def _bar(case: Case, promise: str, limit: Callable[[str], float]) -> Bar:
    walls = {each.system: each.wall_s() for each in case.series}
    missed = [system for system, wall_s in walls.items() if wall_s > limit(system.split()[0])]
    return Bar(
        name=case.name,
        promise=f"each bridge but spark_columns, either way, {promise}",
        found="ms: " + "; ".join(f"{system} {wall * 1e3:.2f}" for system, wall in walls.items()),
        met=not missed,
        cases=[case],
        facts={"missed": missed, "absent": case.absent},
    )
