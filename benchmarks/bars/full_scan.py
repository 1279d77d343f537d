"""Bar: DataFusion reads a whole clean table through us, compared with its own Parquet reader.

There are two peers: `register_parquet` over a file with the same rows, order, codec and row groups
as pyarrow writes them by default, and over our own data file. That is plain Parquet too, and
DataFusion reads it twice as fast as the first one.
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
PLAIN, OUR_FILE = "plain file", "our file"
PEERS = {PLAIN: "the same rows as pyarrow writes them", OUR_FILE: "our own data file"}
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


def beside_plain_file(sizes: Sizes, folder: Path) -> Bar:
    """The bar against the file that pyarrow writes by default."""
    return _measure(sizes, folder, PLAIN)


def beside_our_file(sizes: Sizes, folder: Path) -> Bar:
    """The bar against our own data file, read by DataFusion without us."""
    return _measure(sizes, folder, OUR_FILE)


def _measure(sizes: Sizes, folder: Path, peer: str) -> Bar:
    """Run each query by both readers in turns, after both have given the same answer."""
    contexts = _contexts(sizes, folder, peer)
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
        name=f"DataFusion full scan, {peer}",
        promise=f"{sizes.rows:,} clean rows, all columns: within {MOST_RATIO}x of register_parquet "
        f"over {PEERS[peer]}",
        found=text,
        met=all(max(found[name]) <= MOST_RATIO for name in FULL_SCANS),
        cases=cases,
        facts={"ratios": found},
    )


def _contexts(sizes: Sizes, folder: Path, peer: str) -> dict[str, Any]:
    rows = data.rows(sizes.rows)
    table = rs.create_table(str(folder / "ours"), rows, key=[data.KEY])
    file = folder / "ours" / "data"
    if peer == PLAIN:
        file = folder / "plain.parquet"
        pq.write_table(rows, file, compression="zstd", row_group_size=65_536)
    contexts = {name: SessionContext() for name in (OURS, peer)}
    contexts[OURS].register_table("t", table)
    contexts[peer].register_parquet("t", str(file))
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
    ours, peer = case.series
    return ours.cpu_s() / peer.cpu_s(), ours.wall_s() / peer.wall_s()
