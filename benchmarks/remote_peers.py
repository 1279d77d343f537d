"""Reads and upserts of one table behind a delay, by us and by others.

`python -m benchmarks.remote_peers` prints them, in Markdown. The server is on loopback.

Each call opens its table anew, as a process that starts; what ours knows of files is forgotten
before. `eager` is ours with the property `visibility=eager`. A warm call asks a table that is open,
and was asked the same before. The rows are checked before a time counts. DuckDB (with httpfs) and
polars read the plain Parquet files and have no upserts there. Peers that are not installed are left
out. The wheel of httpfs is for one release of DuckDB, so both go into a folder of their own: `pip
install --no-deps --target FOLDER duckdb==1.5.5 duckdb-extension-httpfs==1.5.5`, and then
`PYTHONPATH=FOLDER`.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import obstore
import pyarrow as pa
import pyarrow.parquet as pq
from obstore.store import S3Store

import rowsieve as rs
from benchmarks.slow_store import BUCKET, SlowStore, Traffic, slow_store, traffic
from rowsieve.byte_cache import PROCESS
from rowsieve.planner.cache import PLANS

PARTS: Final = 16
UPSERTED: Final = 50_000
COMMITS: Final = 8  # each of 1% of the rows, before the reads are repeated
_SETTLED_S: Final = 0.2  # background work ends
Work = tuple[Callable[[], int | None], int | None]
"""A call, and how many rows its answer has; None for any number of them."""
_NONE: Final[Work] = (lambda: None, None)  # of a peer that changes nothing


class Peer:
    """A table of `PARTS` sorted parts; each method opens it and returns a number of rows."""

    def __init__(self, store: SlowStore, rows: int) -> None:
        self.store, self.rows = store, rows
        self.load(_parts(rows))

    def load(self, parts: Iterator[pa.Table]) -> None:
        """Write the parts."""

    def read(self, where: str | None) -> int:
        """Read all columns of the rows."""
        raise NotImplementedError

    def first(self) -> int:
        """Read until the first rows of a full scan have arrived; all of them without batches."""
        raise NotImplementedError

    def warm(self, where: str) -> int:
        """Read by a table that stays open; as `read` where nothing does."""
        return self.read(where)

    def count(self) -> int:
        """Count all rows."""
        raise NotImplementedError

    def upsert(self, rows: pa.Table) -> int | None:
        """Change rows by their key; None where that is not possible."""
        del rows
        return None


class Rowsieve(Peer):
    """Ours."""

    _stays: rs.Table | None = None
    _created_with: ClassVar[dict[str, str | int]] = {"inline_bytes": 16_384}

    def load(self, parts: Iterator[pa.Table]) -> None:
        """Write each part by a commit."""
        options = self.store.options
        self._uri = f"s3://{BUCKET}/ours"
        table = rs.create_table(
            self._uri,
            next(parts),
            key=["id"],
            storage_options=options,
            properties=self._created_with,
        )
        for part in parts:
            table.upsert(part)

    def _open(self) -> rs.Table:
        for cache in PROCESS.caches:
            cache.clear()
        PLANS.clear()
        return rs.open_table(self._uri, storage_options=self.store.options)

    def read(self, where: str | None) -> int:
        """Read the rows."""
        return int(self._open().to_arrow(where).num_rows)

    def first(self) -> int:
        """Take one batch."""
        return int(next(iter(self._open().scan().to_batches())).num_rows)

    def warm(self, where: str) -> int:
        """Read the rows."""
        self._stays = self._stays or self._open()
        return int(self._stays.to_arrow(where).num_rows)

    def count(self) -> int:
        """Count."""
        return self._open().count()

    def upsert(self, rows: pa.Table) -> int | None:
        """Upsert."""
        return int(self._open().upsert(rows).rows_written)


class Eager(Rowsieve):
    """Ours, where each change stores which rows it hides."""

    _created_with: ClassVar[dict[str, str | int]] = {
        **Rowsieve._created_with,
        "visibility": "eager",
    }


class Delta(Peer):
    """deltalake with its own engine."""

    _stays: Any = None

    def load(self, parts: Iterator[pa.Table]) -> None:
        """Append each part."""
        self._module: Any = importlib.import_module("deltalake")
        self._options = {f"AWS_{name.upper()}": value for name, value in self.store.options.items()}
        self._uri = f"s3://{BUCKET}/delta"
        for part in parts:
            self._module.write_deltalake(
                self._uri, part, mode="append", storage_options=self._options
            )

    def _open(self) -> Any:
        return self._module.DeltaTable(self._uri, storage_options=self._options)

    def _query(self, text: str) -> pa.Table:
        return pa.table(self._module.QueryBuilder().register("t", self._open()).execute(text))

    def read(self, where: str | None) -> int:
        """Select by its query builder."""
        return int(self._query(f"SELECT * FROM t{_condition(where)}").num_rows)

    def first(self) -> int:
        """Take one batch."""
        result = self._module.QueryBuilder().register("t", self._open()).execute("SELECT * FROM t")
        return int(pa.RecordBatchReader.from_stream(result).read_next_batch().num_rows)

    def warm(self, where: str) -> int:
        """Select by a query builder that knows the table."""
        self._stays = self._stays or self._module.QueryBuilder().register("t", self._open())
        return int(pa.table(self._stays.execute(f"SELECT * FROM t{_condition(where)}")).num_rows)

    def count(self) -> int:
        """Count by its query builder."""
        return int(self._query("SELECT count(*) AS n FROM t")["n"][0].as_py())

    def upsert(self, rows: pa.Table) -> int:
        """Merge by key."""
        merge = self._open().merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
        return int(rows.num_rows)


class PlainFiles(Peer):
    """Plain Parquet files, by their names."""

    def load(self, parts: Iterator[pa.Table]) -> None:
        """Put each part."""
        options: Any = {name: v for name, v in self.store.options.items() if name != "allow_http"}
        client = S3Store(BUCKET, **options, client_options={"allow_http": True})
        self.names = []
        for number, part in enumerate(parts):
            buffer = pa.BufferOutputStream()
            pq.write_table(part, buffer, compression="zstd", row_group_size=131_072)
            self.names.append(f"s3://{BUCKET}/plain-{type(self).__name__}/{number}.parquet")
            path = self.names[-1].removeprefix(f"s3://{BUCKET}/")
            obstore.put(client, path, buffer.getvalue().to_pybytes(), use_multipart=False)


class Polars(PlainFiles):
    """polars' scan_parquet."""

    def _scan(self) -> Any:
        polars: Any = importlib.import_module("polars")
        options = {f"aws_{name}": value for name, value in self.store.options.items()}
        return polars.scan_parquet(self.names, storage_options=options)

    def read(self, where: str | None) -> int:
        """Filter by SQL."""
        scan = self._scan()
        if where is not None:
            scan = scan.filter(importlib.import_module("polars").sql_expr(where))
        return int(scan.collect().height)

    def first(self) -> int:
        """Collect all rows."""
        return self.read(None)

    def count(self) -> int:
        """Count."""
        polars: Any = importlib.import_module("polars")
        return int(self._scan().select(polars.len()).collect().item())


class DuckDB(PlainFiles):
    """DuckDB's read_parquet over httpfs."""

    def _ask(self, columns: str, where: str | None) -> Any:
        duckdb: Any = importlib.import_module("duckdb")
        connection = duckdb.connect()
        load_httpfs(connection)
        options = self.store.options
        host = options["endpoint"].removeprefix("http://")
        connection.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID 'key', SECRET 'secret', ENDPOINT '{host}', "
            "USE_SSL false, URL_STYLE 'path', REGION 'us-east-1')"
        )
        return connection.execute(
            f"SELECT {columns} FROM read_parquet({self.names}){_condition(where)}"
        )

    def read(self, where: str | None) -> int:
        """Select."""
        return int(self._ask("*", where).to_arrow_table().num_rows)

    def first(self) -> int:
        """Fetch some rows."""
        return len(self._ask("*", None).fetchmany(1000))

    def count(self) -> int:
        """Count."""
        return int(self._ask("count(*)", None).fetchone()[0])


class Lance(Peer):
    """lance with its own files."""

    _stays: Any = None

    def load(self, parts: Iterator[pa.Table]) -> None:
        """Append each part."""
        self._module: Any = importlib.import_module("lance")
        self._options = {f"aws_{name}": value for name, value in self.store.options.items()}
        self._uri = f"s3://{BUCKET}/lance.lance"
        for number, part in enumerate(parts):
            mode = "append" if number else "create"
            self._module.write_dataset(part, self._uri, mode=mode, storage_options=self._options)

    def _open(self) -> Any:
        return self._module.dataset(self._uri, storage_options=self._options)

    def read(self, where: str | None) -> int:
        """Filter."""
        return int(self._open().to_table(filter=where).num_rows)

    def first(self) -> int:
        """Take one batch."""
        return int(next(iter(self._open().to_batches())).num_rows)

    def warm(self, where: str) -> int:
        """Filter by a dataset that is open."""
        self._stays = self._stays or self._open()
        return int(self._stays.to_table(filter=where).num_rows)

    def count(self) -> int:
        """Count."""
        return int(self._open().count_rows())

    def upsert(self, rows: pa.Table) -> int:
        """Merge by key."""
        merge = self._open().merge_insert("id").when_matched_update_all()
        merge.when_not_matched_insert_all().execute(rows)
        return int(rows.num_rows)


class Iceberg(Rowsieve):
    """pyiceberg, which reads what we publish, by the name of its metadata; it changes nothing."""

    def load(self, parts: Iterator[pa.Table]) -> None:
        """Write the parts, and publish them."""
        super().load(parts)
        self._metadata = self._open().publish("iceberg").metadata_location
        names = {"endpoint": "endpoint", "region": "region", "access_key_id": "access-key-id"}
        names["secret_access_key"] = "secret-access-key"
        self._properties = {f"s3.{name}": self.store.options[own] for own, name in names.items()}

    def _scan(self, **options: Any) -> Any:
        module: Any = importlib.import_module("pyiceberg.table")
        return module.StaticTable.from_metadata(self._metadata, self._properties).scan(**options)

    def read(self, where: str | None) -> int:
        """Filter."""
        return int(self._scan(**({"row_filter": where} if where else {})).to_arrow().num_rows)

    def first(self) -> int:
        """Take one batch."""
        return int(self._scan().to_arrow_batch_reader().read_next_batch().num_rows)

    def warm(self, where: str) -> int:
        """Filter."""
        return self.read(where)

    def count(self) -> int:
        """Count."""
        return int(self._scan().count())

    def upsert(self, rows: pa.Table) -> int | None:
        """None: its upserts of 50,000 rows take many seconds."""
        del rows
        return None


def load_httpfs(connection: Any) -> None:
    """Load the extension from its wheel, which is for one release of DuckDB."""
    package = Path(str(importlib.import_module("duckdb_extension_httpfs").__file__)).parent
    (path,) = package.rglob("httpfs.duckdb_extension")
    connection.execute(f"LOAD '{path}'")


PEERS: Final[dict[str, tuple[str, type[Peer]]]] = {
    "Rowsieve": ("rowsieve", Rowsieve),
    "eager": ("rowsieve", Eager),
    "deltalake": ("deltalake", Delta),
    "DuckDB": ("duckdb_extension_httpfs", DuckDB),
    "polars": ("polars", Polars),
    "pyiceberg": ("pyiceberg", Iceberg),
    "lance": ("lance", Lance),
}


def measure(
    store: SlowStore, peer: Peer, delay_s: float, repeats: int, without: Sequence[str] = ()
) -> dict[str, str]:
    """Seconds, requests and megabytes of each call, as text.

    Calls whose name contains a text of `without` are left out; the commits before the last calls
    too, if none of those is left.
    """
    total = peer.rows * PARTS
    upserts: dict[str, Work] = {
        "upsert of 1": (lambda: peer.upsert(_rows(total // 2, 1)), 1),
        f"upsert of {UPSERTED:,}": (lambda: peer.upsert(_rows(total // 2, UPSERTED)), UPSERTED),
    }
    reads = _reads(peer, total)
    again = {f"{name}, after {COMMITS} commits": work for name, work in reads.items()}
    first, again = (
        {name: work for name, work in works.items() if not any(text in name for text in without)}
        for works in (reads | upserts, again)
    )
    cells = _all_measured(store, first, delay_s, repeats)
    if not again:
        return cells
    share = total // 100
    changes = [peer.upsert(_rows(number * total // COMMITS, share)) for number in range(COMMITS)]
    works = again if None not in changes else dict.fromkeys(again, _NONE)
    return cells | _all_measured(store, works, delay_s, repeats)


def _reads(peer: Peer, total: int) -> dict[str, Work]:
    """What is read, with the number of rows of its answer; None for some of them."""
    first = total // 2
    point, stop = f"id = {first}", first + total // 100
    within = f"id >= {first} AND id < {stop}"
    return {
        "open and a point": (lambda: peer.read(point), 1),
        "a warm point": (lambda: peer.warm(point), 1),
        "a range of 1%": (lambda: peer.read(within), total // 100),
        "a warm range of 1%": (lambda: peer.warm(within), total // 100),
        "count": (peer.count, total),
        "first row of a full scan": (peer.first, None),
        "full scan": (lambda: peer.read(None), total),
    }


def _all_measured(
    store: SlowStore, works: dict[str, Work], delay_s: float, repeats: int
) -> dict[str, str]:
    store.set_delay(delay_s)
    try:
        return {name: _measured(store, *work, repeats) for name, work in works.items()}
    finally:
        store.set_delay(0.0)


def _measured(
    store: SlowStore, work: Callable[[], int | None], rows: int | None, repeats: int
) -> str:
    """The medians of some calls."""
    seconds, traffics = [], list[Traffic]()
    for _ in range(repeats):
        time.sleep(_SETTLED_S)
        store.take()
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
        if result is None:
            return "—"
        assert result == rows or (rows is None and result > 0), (result, rows)
        traffics.append(traffic(store.take()))
    middle = sorted(traffics)[len(traffics) // 2]
    return (
        f"{statistics.median(seconds):.2f} s, {middle.requests} requests, "
        f"{middle.sent_bytes / 1e6:.1f} MB"
    )


def _condition(where: str | None) -> str:
    return "" if where is None else f" WHERE {where}"


def _parts(rows: int) -> Iterator[pa.Table]:
    return (_rows(number * rows, rows) for number in range(PARTS))


def _rows(first: int, count: int) -> pa.Table:
    noise = np.random.default_rng(first).integers(0, 10**12, (3, count))
    return pa.table(
        {
            "id": np.arange(first, first + count),
            "a": noise[0],
            "b": noise[1],
            "day": pa.array(noise[2] % 365).cast("int32"),
            "text": pa.array([f"note {i % 1000}" for i in range(first, first + count)]),
        }
    )


def main() -> None:
    """Print the tables in Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000, help="of each of 16 parts")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--delays", type=float, nargs="*", default=[0.02, 0.05])
    parser.add_argument("--peers", nargs="*", default=list(PEERS))
    parser.add_argument(
        "--without", nargs="*", default=[], metavar="TEXT", help="leave out calls, by their names"
    )
    arguments = parser.parse_args()
    named = {name: PEERS[name] for name in arguments.peers}
    for delay_s in arguments.delays:
        results = {}
        for name, (module, kind) in named.items():
            if importlib.util.find_spec(module) is None:
                sys.stderr.write(f"{name} is not installed\n")
                continue
            with slow_store() as store:
                peer = kind(store, arguments.rows)
                results[name] = measure(store, peer, delay_s, arguments.repeats, arguments.without)
        lines = [f"| behind {delay_s * 1e3:.0f} ms | {' | '.join(results)} |"]
        lines.append(f"|---|{'---|' * len(results)}")
        lines += [
            f"| {work} | {' | '.join(figures[work] for figures in results.values())} |"
            for work in next(iter(results.values()))
        ]
        sys.stdout.write("\n".join([*lines, "", ""]))


if __name__ == "__main__":
    main()
