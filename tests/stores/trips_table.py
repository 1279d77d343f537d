"""Round trips by what a table is asked, in Markdown: `python -m tests.stores.trips_table`.

They are counted by cause (`trips.py`), so that every machine prints the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Table
from rowsieve.byte_cache import ByteCache
from rowsieve.executor import live_rows
from rowsieve.executor.merging.visibility import VisibilityCache
from rowsieve.parquet import bloom_reader, footer
from rowsieve.planner.cache import PLANS
from tests.objects.background import finish_background
from tests.stores.proxy import Proxy, proxy_to
from tests.stores.s3_server import S3, s3_server
from tests.stores.trips import counted

KEYS = 40
PARTS = (10, 100)


def part(number: int, keys: int = KEYS) -> pa.Table:
    """The number-th of parts that all overlap, with its number in `v`."""
    ids = np.arange(number % 3, 3 * keys if keys > KEYS else keys, 3)
    noise = np.random.default_rng(number).integers(0, 10**12, len(ids))
    return pa.table({"id": ids, "v": np.full(len(ids), number), "w": [f"w{i}" for i in noise]})


def forget(patch: pytest.MonkeyPatch) -> None:
    """What this process remembers of files, as if it had just begun."""
    patch.setattr(footer, "_CACHE", ByteCache(footer.CACHE_BYTES))
    patch.setattr(bloom_reader, "_CACHE", ByteCache(bloom_reader.CACHE_BYTES))
    patch.setattr(live_rows, "_VISIBLE", VisibilityCache())
    PLANS.clear()  # a plan remembers what its predicate found of files


def measure(s3: S3, proxy: Proxy, parts: int) -> dict[str, int]:
    """Dependent round trips by what was asked, of a table of so many small parts."""
    uri = s3.fresh_uri()
    writer = rs.create_table(uri, part(0), key=["id"], storage_options=s3.options)
    for number in range(1, parts):
        writer.upsert(part(number))
    finish_background()
    options = S3(proxy.endpoint).options
    table = rs.open_table(uri, storage_options=options)
    table.upsert(part(0))  # proves create-only puts

    def behind() -> Table:
        for number in range(3):
            writer.upsert(part(number))
        return table

    reads: dict[str, Callable[[], object]] = {
        "point lookup": lambda: table.to_arrow("id = 17"),
        "point lookup by a scan": lambda: table.scan("id = 17").to_arrow(),
        "scan": lambda: table.scan().to_arrow(),
        "scan under a predicate": lambda: table.scan("v >= 0").to_arrow(),
        "count": table.count,
    }
    found = {"open": trips_of(proxy, lambda: rs.open_table(uri, storage_options=options))}
    found["refresh, nothing new"] = trips_of(proxy, table.refresh)
    found["refresh, three commits behind"] = trips_of(proxy, behind().refresh)
    with pytest.MonkeyPatch.context() as patch:
        for name, read in reads.items():
            forget(patch)
            found[f"{name}, cold"] = trips_of(proxy, read)
            found[f"{name}, warm"] = trips_of(proxy, read)
    old = table.version // 2
    at = next(commit.timestamp for commit in table.history() if commit.version == old)
    others: dict[str, Callable[[], object]] = {
        "open an old version": lambda: rs.open_table(uri, version=old, storage_options=options),
        "scan an old version, cold": lambda: table.scan(version=old).to_arrow(),
        "scan an old version, warm": lambda: table.scan(version=old).to_arrow(),
        "find a version by time": lambda: table.scan(as_of=at).version,
        "history": table.history,
        "changes of the last commit": lambda: table.changes(table.version).read_all(),
        "changes of the last eight commits": lambda: table.changes(table.version - 7).read_all(),
        "upsert": lambda: table.upsert(part(1)),
        "delete by key": lambda: table.delete(keys=pa.table({"id": [1, 2]})),
        "delete by predicate": lambda: table.delete("id = 17"),
        "update by predicate": lambda: table.update({"w": "'x'"}, where="id = 16"),
        "overwrite": lambda: overwritten.overwrite(part(2)),
        "set properties": lambda: table.set_properties({"checkpoint_interval": "64"}),
        "add a column": lambda: overwritten.add_column("x", "int64"),
        "restore": lambda: overwritten.restore(1),
        "compact": table.compact,
    }
    overwritten = _small(s3, options)
    appended = _appended(s3, options, parts)
    others["delete by predicate, no key"] = lambda: appended.delete("w = 'w1' OR id = 17")
    others["update by predicate, no key"] = lambda: appended.update({"v": "0"}, where="id = 16")
    found |= {name: trips_of(proxy, act) for name, act in others.items()}
    return found | _of_places(s3, proxy, options)


def _small(s3: S3, options: dict[str, str]) -> Table:
    table = rs.create_table(s3.fresh_uri(), part(0), key=["id"], storage_options=options)
    table.upsert(part(1))
    return table


def _appended(s3: S3, options: dict[str, str], parts: int) -> Table:
    table = rs.create_table(s3.fresh_uri(), part(0), storage_options=options)
    for number in range(1, parts):
        table.append(part(number))
    table.delete("id = 15")  # so that parts have vectors
    return table


def _of_places(s3: S3, proxy: Proxy, options: dict[str, str]) -> dict[str, int]:
    """Round trips of what creates tables and finds them by name."""
    place, empty = s3.fresh_uri(), s3.fresh_uri()
    rs.Catalog(place, storage_options=s3.options).create_table("db.t", part(0), key=["id"])
    catalog = rs.Catalog(place, storage_options=options)
    rows = part(0)
    acts: dict[str, Callable[[], object]] = {
        "open a table of a catalog": lambda: catalog.open_table("db.t"),
        "create a table with rows": lambda: rs.create_table(
            s3.fresh_uri(), rows, key=["id"], storage_options=options
        ),
        "create an empty table": lambda: rs.create_table(
            empty, rows.schema, key=["id"], storage_options=options
        ),
    }
    return {name: trips_of(proxy, act) for name, act in acts.items()}


def trips_of(proxy: Proxy, act: Callable[[], object]) -> int:
    """How often the caller waits; what goes on beside it is waited for afterwards."""
    with counted(proxy) as trips:
        act()
        waited_for = trips.now
        finish_background()
    return waited_for


def lines(counts: Iterable[int], found: list[dict[str, int]]) -> list[str]:
    """The table of Markdown, line by line."""
    heads = ["operation, with its refresh", *(f"{count} parts" for count in counts)]
    rows = [[name, *(str(each[name]) for each in found)] for name in found[0]]
    return [
        f"| {' | '.join(heads)} |",
        f"|{'---|' * len(heads)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def main() -> None:
    """Print it, of tables whose rows are in files."""
    rs.configure(rs.Config(inline_bytes=0))
    with s3_server() as s3, proxy_to(s3) as proxy:
        found = [measure(s3, proxy, parts) for parts in PARTS]
    sys.stdout.write("\n".join([*lines(PARTS, found), ""]))


if __name__ == "__main__":
    main()
