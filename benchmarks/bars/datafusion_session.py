"""Bar: queries in our SessionContext, compared with DataFusion's own reader over the same files.

Three tables have the same number of visible rows: one clean part, eight clean parts, and one part
with deleted rows. The peer reads the files of the clean tables directly. The table with deleted
rows has no such files: its peer reads the file of a clean table of its visible rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import datafusion
import numpy as np
import pyarrow as pa

import rowsieve as rs
from benchmarks import data
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Work, take_turns
from benchmarks.result import Bar, Case, WrongAnswer
from rowsieve.providers.datafusion import SessionContext

OURS, PEER = "rowsieve", "DataFusion, plain files"
PARTS: Final = 8
HIDDEN: Final = 0.01
MOST_RATIO: Final = {"one part": 1.1, f"{PARTS} parts": 1.1, "1% hidden": 1.3}
MOST_FIRST_ROWS: Final = 2.0
FIRST_ROWS, PRUNED = "LIMIT 10", "prunable by us alone"
COUNT: Final = "COUNT(*)"  # measured, not promised: DataFusion keeps the counts of files it knows
QUERIES: Final = {
    "SELECT *": "SELECT * FROM t",
    "aggregate": "SELECT count(*) AS n, sum(id) AS ids, min(value), max(value), sum(quantity), "
    "min(place), max(place), min(at), max(at), sum(grade), max(price), bool_or(flag) FROM t",
    "one column": "SELECT sum(quantity) AS n FROM t",
    "GROUP BY": "SELECT place, count(*) AS n, sum(quantity) AS q, max(at) FROM t GROUP BY place",
    "LIKE": "SELECT count(*) AS n, sum(id) AS ids FROM t WHERE place LIKE '%-0_7%'",
    "TopK": "SELECT id, value, place FROM t ORDER BY value DESC, id LIMIT 10",
    COUNT: "SELECT count(*) AS n FROM t",
    FIRST_ROWS: "SELECT * FROM t LIMIT 10",
    PRUNED: "SELECT id, value, place FROM t WHERE id * 3 BETWEEN {low} AND {high}",
}


@dataclass(frozen=True, slots=True)
class _Pair:
    """A table of ours, the folder with the files that the peer reads, and its largest key."""

    table: rs.Table
    files: Path
    largest: int


def measure(sizes: Sizes, folder: Path) -> list[Bar]:
    """One bar for each table: every query by both, in turns, after they have the same answer."""
    return [_bar(name, pair, sizes) for name, pair in _pairs(sizes.rows, folder).items()]


def _pairs(count: int, folder: Path) -> dict[str, _Pair]:
    rows = data.rows_of(np.arange(count, dtype=np.int64) * 2, 1, wide=True)
    gone = np.sort(np.random.default_rng(3).choice(count, int(count * HIDDEN), replace=False))
    largest = 2 * count

    def made(name: str, pieces: list[pa.Table]) -> rs.Table:
        table = rs.create_table(str(folder / name), pieces[0], key=[data.KEY])
        for piece in pieces[1:]:
            table.upsert(piece)
        return table

    cuts = [count * i // PARTS for i in range(PARTS + 1)]
    pieces = [rows.slice(a, b - a) for a, b in pairwise(cuts)]
    one, many = made("one", [rows]), made("many", pieces)
    hidden = made("hidden", [rows])
    hidden.delete(keys=pa.table({data.KEY: gone * 2}))
    kept = np.ones(count, dtype=bool)
    kept[gone] = False
    made("kept", [rows.filter(pa.array(kept))])
    tables = zip(MOST_RATIO, (one, many, hidden), ("one", "many", "kept"), strict=True)
    return {name: _Pair(table, folder / files / "data", largest) for name, table, files in tables}


def _bar(name: str, pair: _Pair, sizes: Sizes) -> Bar:
    contexts = {OURS: SessionContext(), PEER: datafusion.SessionContext()}
    contexts[OURS].register_table("t", pair.table)
    contexts[PEER].register_parquet("t", str(pair.files))
    low = pair.largest * 3 // 5
    limits = {"low": low, "high": low + pair.largest // 200}
    cases = []
    for query_name, text in QUERIES.items():
        query = text.format(**limits)
        works = {system: _work(context, query) for system, context in contexts.items()}
        _check(f"{query_name}, {name}", works)
        cases.append(Case(query_name, take_turns(works, sizes.repeats)))
    ratios = {case.name: _ratios(case) for case in cases}
    found = "; ".join(
        f"{query} {cpu:.2f}x CPU, {wall:.2f}x wall, {_megabytes(case)} MB"
        for case, (query, (cpu, wall)) in zip(cases, ratios.items(), strict=True)
    )
    bars = dict.fromkeys(QUERIES, MOST_RATIO[name]) | {FIRST_ROWS: MOST_FIRST_ROWS}
    return Bar(
        name=f"DataFusion session, {name}",
        promise=f"{sizes.rows:,} rows x 8 columns, {name}: within {MOST_RATIO[name]}x of "
        f"DataFusion's own reader, {FIRST_ROWS} within {MOST_FIRST_ROWS}x",
        found=found,
        met=all(max(ratios[query]) <= bars[query] for query in QUERIES if query != COUNT),
        cases=cases,
        facts={"ratios": ratios},
    )


def _work(context: Any, query: str) -> Work:
    return lambda: context.sql(query).collect()


def _check(name: str, works: dict[str, Work]) -> None:
    """Raise WrongAnswer if the answers differ; without an order, LIMIT may take any rows."""
    ours, theirs = (_comparable(work()) for work in works.values())
    same = len(ours) == len(theirs) if name.startswith(FIRST_ROWS) else ours.equals(theirs)
    if not same:
        raise WrongAnswer(f"{name}: {OURS} and {PEER} differ")


def _comparable(batches: Any) -> pa.Table:
    table = data.plain(pa.Table.from_batches(batches))
    return table.sort_by(table.column_names[0]).combine_chunks()


def _ratios(case: Case) -> tuple[float, float]:
    ours, peer = case.series
    return ours.cpu_s() / max(peer.cpu_s(), 1e-9), ours.wall_s() / peer.wall_s()


def _megabytes(case: Case) -> str:
    """The bytes that ours and the peer read."""
    read = [series.bytes_read() for series in case.series]
    return " against ".join("?" if size is None else f"{size / 1e6:.1f}" for size in read)
