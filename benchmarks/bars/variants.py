"""Bar: decode Parquet Variants; compare their size and the value at a path with JSON text.

Decoding to text is held beside a codec that takes one value at a time. The rest is what the choice
of text for our own files rests on: the bytes of files with the same documents, and the
CPU of a path in text and in the binary form, found by a walk over offsets of all values.
"""

from __future__ import annotations

import json
import struct
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.bars.sizes import Sizes
from benchmarks.measure import take_turns
from benchmarks.result import Bar, Case, expect
from rowsieve.predicate.functions.nested.json_access import find_member, find_members
from rowsieve.types.variants.json_trees import written
from rowsieve.types.variants.variant_json import json_of_variants
from rowsieve.types.variants.variant_nodes import (
    Ints,
    NodePlaces,
    Nodes,
    byte_ranges,
    decode_keys,
    decode_values,
    little_endian,
)

LEAST_RATIO = 5.0
OURS, BY_VALUE = "all at once", "one by one"
TEXT, TEXT_BY_VALUE, BINARY = "path in text", "path in text, one by one", "path in binary form"
PATH = ("user", "id")


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Decode Variants, and find one path in the documents in each form."""
    count = sizes.expression_rows // 20
    files = _files(folder, count)
    texts = _column(files["text"], "t")
    stored = _column(files["variant"], "v")
    shredded = _column(files["shredded"], "v")
    documents = list(map(json.loads, texts.to_pylist()))
    for values in (stored, shredded):
        found = json_of_variants(values).to_pylist()
        expect("documents of Variants", list(map(json.loads, found)), documents)
    works = {
        "decoding": {OURS: partial(json_of_variants, stored), BY_VALUE: partial(_singly, stored)},
        "decoding shredded": {OURS: partial(json_of_variants, shredded)},
        "reading text": {OURS: partial(_column, files["text"], "t")},
        "path": {
            TEXT: partial(find_members, texts, PATH, adaptive=False, first_wins=False),
            TEXT_BY_VALUE: partial(_paths_singly, texts),
            BINARY: partial(_path_in_binary, stored),
        },
    }
    paths = [work().to_pylist() for work in works["path"].values()]
    expect("values at the path", paths[1:], [paths[0]] * 2)
    cases = [Case(name, take_turns(work, sizes.repeats)) for name, work in works.items()]
    each_us = {
        f"{case.name}: {way}": case.of(way).cpu_s() / count * 1e6
        for case in cases
        for way in works[case.name]
    }
    ratio = each_us[f"decoding: {BY_VALUE}"] / each_us[f"decoding: {OURS}"]
    size = {name: path.stat().st_size for name, path in files.items()}
    return Bar(
        name="variants",
        promise=f"{count:,} Variants become JSON text with at most a {LEAST_RATIO:g}th of the CPU "
        "of a codec that takes one value at a time",
        found=f"{ratio:.1f}x; files: "
        + ", ".join(f"{name} {bytes_:,} bytes" for name, bytes_ in size.items())
        + "; CPU of a document: "
        + ", ".join(f"{name} {us:.2f} µs" for name, us in each_us.items()),
        met=ratio >= LEAST_RATIO,
        cases=cases,
        facts={"us": each_us, "bytes": size},
    )


def _files(folder: Path, count: int) -> dict[str, Path]:
    """The same documents in three files, compressed with Zstandard; DuckDB shreds the last."""
    texts = [
        f'{{"id":{i},"kind":"k{i % 50}","amount":{i / 8},"ok":{"true" if i % 2 else "false"},'
        f'"user":{{"id":{i * 7},"name":"user {i % 1000}","mail":"u{i}@example.org"}},'
        f'"tags":["a","b","t{i % 9}"],"note":"some text of row number {i}"}}'
        for i in range(count)
    ]
    keys = ["amount", "id", "kind", "mail", "name", "note", "ok", "tags", "user"]
    metadata = _metadata(keys)
    values = [_encoded(json.loads(text), keys) for text in texts]
    plain = pa.StructArray.from_arrays(
        [pa.array([metadata] * count), pa.array(values, pa.binary())], ["metadata", "value"]
    )
    rows = {"text": pa.table({"t": texts}), "variant": pa.table({"v": plain})}
    found = {name: folder / f"{name}.parquet" for name in (*rows, "shredded")}
    for name, table in rows.items():
        pq.write_table(table, found[name], compression="zstd")
    with duckdb.connect() as connection:
        connection.register("documents", rows["text"])
        connection.execute(
            f"COPY (SELECT t::JSON::VARIANT AS v FROM documents) TO '{found['shredded']}' "
            "(FORMAT parquet, COMPRESSION zstd)"
        )
    return found


def _metadata(keys: list[str]) -> bytes:
    ends = list(accumulate(map(len, keys), initial=0))
    return bytes([1, len(keys), *ends]) + "".join(keys).encode()


def _encoded(value: Any, keys: list[str]) -> bytes:
    if isinstance(value, bool):
        return b"\x04" if value else b"\x08"
    if isinstance(value, int):
        return b"\x14" + struct.pack("<i", value)
    if isinstance(value, float):
        return b"\x1c" + struct.pack("<d", value)
    if isinstance(value, str):
        return bytes([len(value) << 2 | 1]) + value.encode()
    names = sorted(value) if isinstance(value, dict) else []
    inner = [value[name] for name in names] if names else value
    members = [_encoded(each, keys) for each in inner]
    offsets = bytes(accumulate(map(len, members), initial=0))
    ids = bytes(map(keys.index, names))
    return bytes([2 if names else 3, len(members)]) + ids + offsets + b"".join(members)


def _column(path: Path, name: str) -> Any:
    values = pa.concat_arrays(pq.ParquetFile(path).read(columns=[name]).column(0).chunks)
    return values.storage if isinstance(values.type, pa.BaseExtensionType) else values


def _paths_singly(texts: pa.Array) -> pa.Array:
    found = [
        find_member(text, PATH, adaptive=False, first_wins=False) for text in texts.to_pylist()
    ]
    return pa.array(found, pa.string())


def _path_in_binary(values: pa.StructArray) -> pa.Array:
    """The JSON texts at the path; every document is an object that has it."""
    metadata, value = (values.field(name).cast(pa.large_binary()) for name in ("metadata", "value"))
    encoded = metadata.dictionary_encode()
    keys = Nodes()
    firsts, counts = decode_keys(encoded.dictionary, keys)
    names = pa.concat_arrays(keys.keys)
    kind = encoded.indices.to_numpy()
    data, start, stop = byte_ranges(value)
    for key in PATH:
        ids = np.full(len(firsts), -1, np.int64)
        for place in np.flatnonzero(names.to_numpy(zero_copy_only=False) == key):
            of = int(np.searchsorted(firsts, place, side="right")) - 1
            ids[of] = place - firsts[of]
        start = _member(data, start, ids[kind])
    nodes = Nodes()
    count = len(values)
    row = np.arange(count)
    top = np.full(count, -1)
    roots = nodes.add(top, top, np.zeros(count, np.int64), depth=0)
    nodes.add_keys(names)
    places = NodePlaces(
        roots, start, stop, firsts[kind], counts[kind], np.zeros(len(row), np.bool_)
    )
    decode_values(data, [(0, places)], nodes)
    return written(nodes, count).cast(pa.string())


def _member(data: Any, at: Ints, wanted: Ints) -> Ints:
    """Where the member with the key of this number lies in each object."""
    header = data[at].astype(np.int64) >> 2
    width, id_width = (header & 3) + 1, (header >> 2 & 3) + 1
    counted = np.where(header >> 4 & 1, 4, 1)
    count = little_endian(data, at + 1, counted)
    ids = at + 1 + counted
    place = np.full(len(at), -1, np.int64)
    for nth in range(int(count.max())):
        here = little_endian(data, ids + nth * id_width, id_width)
        place[(nth < count) & (here == wanted)] = nth
    offsets = ids + count * id_width
    inside = little_endian(data, offsets + place * width, width)
    found: Ints = offsets + (count + 1) * width + inside
    return found


def _singly(values: pa.StructArray) -> pa.Array:
    texts = []
    for row in values.to_pylist():
        keys = _keys(row["metadata"])
        texts.append(json.dumps(_value(row["value"], 0, keys), separators=(",", ":")))
    return pa.array(texts)


def _keys(data: bytes) -> list[str]:
    width = (data[0] >> 6) + 1
    numbers = [int.from_bytes(data[at : at + width], "little") for at in _steps(data, 1, width)]
    base = 1 + width * (numbers[0] + 2)
    ends = numbers[1 : numbers[0] + 2]
    return [data[base + a : base + b].decode() for a, b in pairwise(ends)]


def _steps(data: bytes, start: int, width: int) -> range:
    count = int.from_bytes(data[start : start + width], "little")
    return range(start, start + width * (count + 2), width)


def _value(data: bytes, at: int, keys: list[str]) -> Any:
    kind, header = data[at] & 3, data[at] >> 2
    if kind == 1:
        return data[at + 1 : at + 1 + header].decode()
    if kind == 0:
        return _primitive(data, at, header)
    width, is_object = (header & 3) + 1, kind == 2
    counted = 4 if header >> (4 if is_object else 2) & 1 else 1
    count = int.from_bytes(data[at + 1 : at + 1 + counted], "little")
    id_width = (header >> 2 & 3) + 1 if is_object else 0
    ids = at + 1 + counted
    offsets = ids + count * id_width
    base = offsets + (count + 1) * width
    starts = [int.from_bytes(data[offsets + i * width :][:width], "little") for i in range(count)]
    members = [_value(data, base + start, keys) for start in starts]
    if not is_object:
        return members
    names = [int.from_bytes(data[ids + i * id_width :][:id_width], "little") for i in range(count)]
    return {keys[name]: member for name, member in zip(names, members, strict=True)}


def _primitive(data: bytes, at: int, code: int) -> Any:
    if code <= 2:
        return (None, True, False)[code]
    if code in (3, 4, 5, 6):
        return int.from_bytes(data[at + 1 : at + 1 + (1 << code - 3)], "little", signed=True)
    if code == 7:
        return struct.unpack_from("<d", data, at + 1)[0]
    if code in (8, 9, 10):
        width = 4 << code - 8
        whole = int.from_bytes(data[at + 2 : at + 2 + width], "little", signed=True)
        return whole / 10 ** data[at + 1]
    length = int.from_bytes(data[at + 1 : at + 5], "little")
    return data[at + 5 : at + 5 + length].decode()
