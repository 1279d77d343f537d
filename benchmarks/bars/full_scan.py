"""Bar: DataFusion reading all of a clean table through us, beside its own Parquet reader.

Its own reader gets our data file itself, which is plain Parquet, and a file of the same rows in the
same order, codec and row groups as pyarrow writes it by default (dictionaries wherever they fit).
The bar is taken against the faster of the two, query by query.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from datafusion import SessionContext

import rowsieve as rs
from benchmarks import data
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Work, take_turns
from benchmarks.result import Bar, Case, WrongAnswer

MOST_RATIO = 1.5
OURS = "rowsieve"
FULL_SCANS = {
    "aggregate of all columns": "SELECT count(*) AS n, sum(id) AS ids, min(id), max(id), "
    "min(value), max(value), sum(quantity) AS quantities, min(quantity), max(quantity), "
    "count(place), min(place), max(place), count(at), min(at), max(at) FROM t",
    "SELECT *": "SELECT * FROM t",
    "GROUP BY text": "SELECT place, count(*) AS n, sum(id) AS ids, sum(quantity) AS quantities, "
    "min(value), max(at) FROM t GROUP BY place",
}
EXTRA = {
    "one column": "SELECT sum(quantity) AS quantities FROM t",
    "two columns, GROUP BY text": "SELECT place, sum(quantity) FROM t GROUP BY place",
}


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Run each query by each reader in turns, after all have given the same answer."""
    contexts = _contexts(sizes, folder)
    cases = []
    for name, query in (FULL_SCANS | EXTRA).items():
        works = {reader: _work(context, query) for reader, context in contexts.items()}
        _check(name, works)
        cases.append(Case(name, take_turns(works, sizes.repeats)))
    found = {case.name: _ratios(case) for case in cases}
    text = "; ".join(
        f"{name} {cpu:.2f}x CPU, {wall:.2f}x wall" for name, (cpu, wall) in found.items()
    )
    return Bar(
        name="DataFusion full scan",
        promise=f"{sizes.rows:,} clean rows, all columns: within {MOST_RATIO}x of register_parquet",
        found=text,
        met=all(max(found[name]) <= MOST_RATIO for name in FULL_SCANS),
        cases=cases,
        facts={"ratios": found},
    )


def _contexts(sizes: Sizes, folder: Path) -> dict[str, Any]:
    rows = data.rows(sizes.rows)
    table = rs.create_table(str(folder / "ours"), rows, key=[data.KEY])
    plain = folder / "plain.parquet"
    pq.write_table(rows, plain, compression="zstd", row_group_size=65_536)
    contexts = {name: SessionContext() for name in (OURS, "our file", "plain file")}
    contexts[OURS].register_table("t", table)
    contexts["our file"].register_parquet("t", str(folder / "ours" / "data"))
    contexts["plain file"].register_parquet("t", str(plain))
    return contexts


def _work(context: Any, query: str) -> Work:
    return lambda: context.sql(query).collect()


def _check(name: str, works: dict[str, Work]) -> None:
    answers = {reader: _comparable(work()) for reader, work in works.items()}
    for reader, answer in answers.items():
        if not answer.equals(answers[OURS]):
            raise WrongAnswer(f"{name}: {reader} and {OURS} differ")


def _comparable(batches: Any) -> Any:
    import pyarrow as pa

    table = pa.Table.from_batches(batches)
    fields = [
        pa.field(field.name, pa.string() if pa.types.is_string_view(field.type) else field.type)
        for field in table.schema
    ]
    table = table.cast(pa.schema(fields))
    return table.sort_by(table.column_names[0]).combine_chunks()


def _ratios(case: Case) -> tuple[float, float]:
    ours, peers = case.series[0], case.series[1:]
    cpu = ours.cpu_s() / min(peer.cpu_s() for peer in peers)
    wall = ours.wall_s() / min(peer.wall_s() for peer in peers)
    return cpu, wall
