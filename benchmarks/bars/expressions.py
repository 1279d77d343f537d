"""Bar: bytes read for conditions on expressions, compared with DuckDB and DataFusion.

The table has 1,000,000 rows in 20 sorted parts. Each condition selects a few rows, and every system
returns their count and the sum of another column. Bytes are those of a second run, so footers are
cached.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import rowsieve as rs
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import io_bytes
from benchmarks.result import Bar, WrongAnswer

MAX_BYTES = 300_000
FILES = 20
PEER_ROW_GROUP = 12_500
START_US = 1_735_689_600_000_000  # 2025-01-01

# The condition for us, DuckDB and DataFusion where they differ; "" if a system does not support it.
CONDITIONS: dict[str, tuple[str, ...]] = {
    "=": ("id = 123456",),
    "range": ("id between 400000 and 400100",),
    "NOT": ("not (id >= 100)",),
    "decimal": ("d = 123456.00",),
    "IN": ("id in (5, 777777)",),
    "OR": ("id < 10 or id > 999990",),
    "id + 1 =": ("id + 1 = 123457",),
    "id * 2 =": ("id * 2 = 246912",),
    "abs": ("abs(id) = 123456",),
    "coalesce": ("coalesce(id, 0) = 123456",),
    "least": ("least(id, 5) = 3",),
    "cast(ts as date)": ("cast(ts as date) = date '2025-03-01'",),
    "date_trunc": ("date_trunc('day', ts) = timestamp '2025-03-01'",),
    "year and month": ("extract(year from ts) = 2026 and extract(month from ts) = 2",),
    "ts + interval": ("ts + interval '1 day' < timestamp '2025-01-03'",),
    "LIKE": ("s like 'k00123%'",),
    "starts_with": ("starts_with(s, 'k00123')",),
    "substr": ("substr(s, 1, 6) = 'k00123'",),
    "upper": ("upper(s) = 'K00123456'",),
    "struct field": ("st.a = 123456", "st.a = 123456", "st['a'] = 123456"),
    "cast(id as varchar)": ("cast(id as varchar) = '123456'",),
    "cast(text as bigint)": ("cast(si as bigint) = 123456",),
    "CASE": ("case when id < 0 then 0 else id end = 123456",),
    "JSON": ("cast(j->>'k' as bigint) = 123456", "cast(j->>'k' as bigint) = 123456", ""),
}


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Measure the bytes that each condition reads."""
    table, parquet = _written(sizes, folder)
    systems = {"rowsieve": _ours(table), "DuckDB": _duckdb(parquet), "DataFusion": _df(parquet)}
    read: dict[str, dict[str, int | None]] = {}
    for name, texts in CONDITIONS.items():
        answers: dict[str, tuple[int, int | None] | None] = {}
        for place, (system, ask) in enumerate(systems.items()):
            answers[system] = _asked(ask, texts[min(place, len(texts) - 1)])
        counts = {found[0] for found in answers.values() if found is not None}
        if len(counts) != 1:
            raise WrongAnswer(f"{name}: the systems count {answers}")
        read[name] = {system: found and found[1] for system, found in answers.items()}
    missed = [name for name, found in read.items() if (found["rowsieve"] or 0) > MAX_BYTES]
    return Bar(
        name="conditions through expressions",
        promise=f"each of {len(CONDITIONS)} conditions on {sizes.expression_rows:,} rows in "
        f"{FILES} parts reads at most {MAX_BYTES / 1e6} MB",
        found="MB read by rowsieve, DuckDB, DataFusion: "
        + "; ".join(f"{name} {_sizes(found)}" for name, found in read.items()),
        met=not missed,
        facts={"bytes_read": read, "missed": missed},
    )


def _written(sizes: Sizes, folder: Path) -> tuple[rs.Table, Path]:
    """The same rows as a table, a commit a part, and as Parquet files."""
    parquet = folder / "parquet"
    parquet.mkdir()
    rows = sizes.expression_rows // FILES
    properties = {
        "text_statistics": "s,si",
        "json_statistics": "j.k",
        "statistics_bytes": "4096",
    }
    table: rs.Table | None = None
    for number in range(FILES):
        part = _rows(np.arange(number * rows, (number + 1) * rows), number)
        pq.write_table(
            part,
            parquet / f"{number:02}.parquet",
            row_group_size=PEER_ROW_GROUP,
            write_page_index=True,
        )
        ours = _with_json(part)
        if table is None:
            table = rs.create_table(str(folder / "table"), ours, key=["id"], properties=properties)
        else:
            table.upsert(ours)
    assert table is not None
    return table, parquet


def _with_json(rows: pa.Table) -> pa.Table:
    texts = rows.column("j").combine_chunks()
    documents = pa.ExtensionArray.from_storage(pa.json_(), texts)
    return rows.set_column(rows.schema.get_field_index("j"), "j", documents)


def _rows(ids: np.ndarray[tuple[int], np.dtype[np.int64]], seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    texts = pc.cast(pa.array(ids), pa.string())
    struct = pa.StructArray.from_arrays(
        [pa.array(ids), pa.array(rng.integers(0, 9, len(ids)))], ["a", "b"]
    )
    documents = pc.binary_join_element_wise('{"k":', texts, ',"c":"x"}', "")
    return pa.table(
        {
            "id": ids,
            "ts": pa.array(START_US + ids * 60_000_000).cast(pa.timestamp("us")),
            "s": pc.binary_join_element_wise("k", pc.utf8_lpad(texts, 8, "0"), ""),
            "si": texts,
            "j": documents,
            "st": struct,
            "d": pa.array(ids).cast(pa.decimal128(22, 2)),
            "pad": rng.random(len(ids)),
        }
    )


def _ours(table: rs.Table) -> Callable[[str], int]:
    def ask(condition: str) -> int:
        found = table.scan(condition, columns=["pad"]).to_arrow()
        pc.sum(found.column("pad"))
        return int(found.num_rows)

    return ask


def _duckdb(parquet: Path) -> Callable[[str], int]:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET parquet_metadata_cache = true")

    def ask(condition: str) -> int:
        query = f"SELECT count(*), sum(pad) FROM '{parquet}/*.parquet' WHERE {condition}"
        row = connection.execute(query).fetchone()
        assert row is not None
        return int(row[0])

    return ask


def _df(parquet: Path) -> Callable[[str], int]:
    from datafusion import SessionConfig, SessionContext

    options = {"datafusion.execution.parquet.pushdown_filters": "true"}
    context = SessionContext(SessionConfig(options))
    context.register_parquet("t", str(parquet))

    def ask(condition: str) -> int:
        query = f"SELECT count(*) AS n, sum(pad) AS pad FROM t WHERE {condition}"
        return int(context.sql(query).to_arrow_table().column("n")[0].as_py())

    return ask


def _asked(ask: Callable[[str], int], condition: str) -> tuple[int, int | None] | None:
    """(rows, bytes that a second run reads); None if the system has no such condition."""
    if not condition:
        return None
    ask(condition)
    before = io_bytes()
    rows = ask(condition)
    after = io_bytes()
    return rows, None if before is None or after is None else after[0] - before[0]


def _sizes(found: dict[str, int | None]) -> str:
    return " ".join("-" if size is None else f"{size / 1e6:.2f}" for size in found.values())
