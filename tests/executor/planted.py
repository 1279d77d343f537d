"""Plants wrong statistics for audits: in the manifest, in a file's footer, in bloom filters."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import rowsieve as rs
from rowsieve.checksums import checksum
from rowsieve.parquet.bloom_reader import _filter_ranges
from rowsieve.parquet.footer import read_footer
from rowsieve.parquet.seals import digest
from rowsieve.parquet.thrift import read_struct
from rowsieve.planner.cache import PLANS
from rowsieve.storage.manifests.manifest import PartTable

Edit = Callable[[bytes], bytes]


def lie(table: rs.Table, fact: str, value: Any) -> rs.Table:
    """The same table with one statistic of every part changed, to one value or to a list of them.

    From then on it reads what is pinned.
    """
    parts = table.handle.pinned.parts.table
    values = value if isinstance(value, list) else [value] * parts.num_rows
    place = parts.column_names.index(fact)
    column = pa.array(values, parts.schema.field(fact).type)
    changed = PartTable(parts.set_column(place, parts.schema.field(fact), column))
    table.handle.pinned = dataclasses.replace(table.handle.pinned, parts=changed)
    table.handle.read_only = True
    PLANS.clear()  # plans are remembered by version
    return table


def forge(table: rs.Table, edit: Edit, kind: str = "data") -> rs.Table:
    """The same table, on local disk, with its files of one kind edited and their checksums right.

    An edit must keep the length.
    """
    parts = table.handle.pinned.parts.table
    sums = parts.column(f"{kind}.tail_checksum").to_pylist()
    for i, path in enumerate(parts.column(f"{kind}.path").to_pylist()):
        if path is None:
            continue
        file = Path(table.uri.removeprefix("file://")) / path
        before = file.read_bytes()
        after = edit(before)
        assert len(after) == len(before)
        file.chmod(0o644)
        file.write_bytes(after)
        sums[i] = checksum(after[parts.column(f"{kind}.tail_start")[i].as_py() :])
    return lie(table, f"{kind}.tail_checksum", sums)


def footer_says(changes: Sequence[tuple[int, int]]) -> Edit:
    """In the footer, other numbers in the place of these int64 bounds."""

    def edit(file: bytes) -> bytes:
        footer = len(file) - int(read_footer(file).serialized_size) - 8
        tail = file[footer:]
        for old, new in changes:
            assert stored(old) in tail
            tail = tail.replace(stored(old), stored(new))
        return file[:footer] + tail

    return edit


def stored(number: int) -> bytes:
    return number.to_bytes(8, "little", signed=True)


def with_empty_blooms(file: bytes) -> bytes:
    """All bloom filters say that there is no value, and are sealed."""
    for _, (start, stop) in _filter_ranges(read_footer(file)):
        old = file[start:stop]
        _, header = read_struct(old)
        new = old[:header] + bytes(len(old) - header)
        seal, forged = digest(old).encode(), digest(new).encode()
        assert seal in file
        file = (file[:start] + new + file[stop:]).replace(seal, forged)
    return file
