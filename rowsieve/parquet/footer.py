"""Reads the end of a Parquet file, which opening it needs: reads it once, checks it and caches it.

A file of our writer has data pages, bloom filters, the page index and the footer, in this order.
The *tail* is the page index and the footer. Parquet has no checksum for either, so the manifest
stores a checksum of the tail, and each read of the tail verifies it. Damaged bytes are
`CorruptData`, a missing file is `SnapshotExpired`; neither ever becomes an empty result.

The tail of a foreign file is its footer, with the page index if that lies right before it. The
footer is adapted to the table (`rowsieve.parquet.file_mapping`) after the checksum of the tail was
verified. Another program may replace such a file, so the cache key of a local one includes its size
and time of change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.byte_cache import PROCESS_BYTES, ByteCache, cached_in
from rowsieve.checksums import checksum
from rowsieve.errors import (
    CorruptData,
    OutOfMemory,
    RowsieveError,
    SnapshotExpired,
    StoreError,
    UnsupportedOperation,
)
from rowsieve.objects import ObjectNotFound, ObjectStore, Place
from rowsieve.objects.cached_store import forget_kept
from rowsieve.objects.location import in_place
from rowsieve.parquet.file_mapping import FileMapping, adapted_tail, mapping_of
from rowsieve.parquet.footer_cache import cached_per_footer
from rowsieve.parquet.foreign_footer.chunk_checks import UnreadableFooter
from rowsieve.parquet.foreign_footer.read_footer import foreign_footer
from rowsieve.parquet.seals import CHUNKS_KEY
from rowsieve.parquet.thrift import MalformedThrift

CACHE_BYTES: Final = PROCESS_BYTES
NEAR_BYTES: Final = 65 * 1024
"""Bytes before the tail that a request fetches with it at no cost: the Bloom filter of a row group.

That of 65,536 values has 64 KiB, and a header.
"""

_BYTES_PER_CHUNK: Final = 800  # of pyarrow's metadata of a column chunk; measured
_BYTES_PER_PATH: Final = 600  # of a parsed path, with its text; measured
_PATHS: Final[ByteCache[Any, Any]] = ByteCache(8 * 1024 * 1024, "paths of foreign files")
_READ_BY_PYARROW: Final = frozenset({"UNCOMPRESSED", "UNKNOWN"})  # the latter is Hadoop's LZ4
_DICTIONARIES: Final = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY"})
_AFTER_FOOTER: Final = 8  # its length and the magic number


class ParquetRef(Protocol):
    """The facts that opening a file requires; manifests store them."""

    @property
    def path(self) -> str:
        """The file's path in its store."""

    @property
    def size_bytes(self) -> int:
        """The file's length."""

    @property
    def tail_start(self) -> int:
        """The position where the page index begins."""

    @property
    def tail_checksum(self) -> str:
        """`checksum` of the bytes from `tail_start` on."""

    @property
    def columns(self) -> str | None:
        """For a foreign file, the mapping of its columns to the table's; else None."""

    @property
    def in_memory(self) -> bool:
        """True if there is no file, because the rows are in memory."""


def read_footer(tail: Any) -> pq.FileMetaData:
    """Parse the metadata at the end of these bytes, which may be the end of a file only."""
    return pq.read_metadata(pa.BufferReader(pa.py_buffer(tail)))


@cached_per_footer
def starts_of(metadata: pq.FileMetaData) -> tuple[int, ...]:
    """The first row of each row group, and the number of rows."""
    groups = range(metadata.num_row_groups)
    return 0, *accumulate(int(metadata.row_group(i).num_rows) for i in groups)


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a file: the bytes from the page index on, and the parsed footer.

    `start`: the position of the first byte in the file.
    """

    data: memoryview
    metadata: pq.FileMetaData
    start: int = 0

    @property
    def size_bytes(self) -> int:
        """The memory of the bytes and of the parsed footer, estimated."""
        chunks = int(self.metadata.num_row_groups) * int(self.metadata.num_columns)
        return len(self.data) + chunks * _BYTES_PER_CHUNK

    @property
    def footer(self) -> memoryview:
        """The bytes of the footer."""
        end = len(self.data) - _AFTER_FOOTER
        return self.data[end - int(self.metadata.serialized_size) : end]


def expect_tails(
    store: ObjectStore, refs: Iterable[ParquetRef], *, with_pages: bool = False
) -> None:
    """Prefetch the ends of these files: one request each, for the tail and the bytes before it.

    The bytes before the tail have the bloom filters, and in a small file the pages. A file whose
    tail is cached needs no request, except a small file whose pages the caller reads
    (`with_pages`): they then arrive with the tails of the other files, not one file after another.
    """
    if store.overlaps:
        store.expect(_ends(store, refs, with_pages=with_pages), keep=True)


def _ends(store: ObjectStore, refs: Iterable[ParquetRef], *, with_pages: bool) -> Iterator[Place]:
    for ref in refs:
        if ref.in_memory:
            continue
        start = max(0, ref.tail_start - NEAR_BYTES)
        if not has_cached_tail(store, ref):
            yield ref.path, start, ref.size_bytes
        elif with_pages and start == 0:
            yield ref.path, start, ref.tail_start


def has_cached_tail(store: ObjectStore, ref: ParquetRef) -> bool:
    """Return whether `read_tail` needs no request."""
    return _CACHE.get(_key(store, ref)) is not None


def read_tail(store: ObjectStore, ref: ParquetRef) -> Tail:
    """The tail of a file: one ranged read, or none if it is cached."""
    key = _key(store, ref)
    if (tail := _CACHE.get(key)) is None:
        with reading(ref.path):
            tail = _read_tail(store, ref)
        _CACHE.put(key, tail, tail.size_bytes)
    return tail


def read_metadata(store: ObjectStore, ref: ParquetRef) -> pq.FileMetaData:
    """The footer of a file, from its tail."""
    return read_tail(store, ref).metadata


@contextmanager
def reading(
    path: str, row_group: int | None = None, metadata: pq.FileMetaData | None = None
) -> Iterator[None]:
    """Convert errors of the store and decoder to errors that name the file and row group.

    The cause decides what to do: memory, the operating system, a codec that pyarrow lacks, or the
    bytes of the file. `metadata` is the file's footer, if it is known.
    """
    where = path if row_group is None else f"{path}, row group {row_group}"
    try:
        yield
    except (ObjectNotFound, FileNotFoundError) as error:
        raise SnapshotExpired(
            f"{path} does not exist: its version has been removed, or somebody deleted the file; "
            "open the table again and read its latest version",
            path=path,
        ) from error
    except UnreadableFooter as error:
        raise UnsupportedOperation(f"{where}: {error}") from error
    except MemoryError as error:
        raise OutOfMemory(
            f"{where} cannot be decoded for lack of memory: {error}; read fewer columns, or pass a "
            "smaller threads= or memory_bytes="
        ) from error
    except pa.ArrowNotImplementedError as error:
        raise _unsupported(where, error) from error
    except (pa.ArrowException, OSError, KeyError, MalformedThrift) as error:
        raise _undecoded(where, error, row_group, metadata) from error


def _undecoded(
    where: str, error: Exception, row_group: int | None, metadata: pq.FileMetaData | None
) -> RowsieveError:
    """The error for bytes that the decoder cannot read, by its cause."""
    if isinstance(error, OSError) and error.errno is not None:
        return StoreError(f"{where} cannot be read: {error}; remove the cause, then read it again")
    cause = str(error).replace("\n", " ")  # those of Thrift have two lines
    if metadata is not None and (codecs := _missing_codecs(metadata, row_group)):
        return _unsupported(f"{where}, compressed by {', '.join(codecs)},", error)
    if metadata is not None and (names := _booleans_by_dictionary(metadata, row_group)):
        return _unsupported(f"{where}, whose column {names[0]!r} has a dictionary,", error)
    names = [] if metadata is None else _decimals_of_any_length(metadata, row_group)
    if names and isinstance(error, pa.ArrowInvalid):
        return UnsupportedOperation(
            f"{where}: the decimals of column {names[0]!r} have more bytes than their digits need, "
            f"or none, which pyarrow {pa.__version__} does not read: {cause}; write the file again "
            "with decimals of a fixed length, or read other columns"
        )
    if metadata is not None and mapping_of(metadata) is not None:
        return CorruptData(
            f"{where} cannot be decoded: {cause}; if the program that wrote the file reads it, "
            "write the file again with it, else restore the file from a copy"
        )
    if metadata is None or CHUNKS_KEY.encode() in (metadata.metadata or {}):  # checksums are right
        return CorruptData(
            f"{where} cannot be decoded: {cause}; if DuckDB or another program reads the file, "
            "please report this, else restore the file from a copy, or the table to a version "
            "without it"
        )
    return CorruptData(
        f"{where} cannot be decoded, so its bytes differ from those that were written: "
        f"{cause}; restore the file from a copy, or the table to a version without it"
    )


def _unsupported(where: str, error: Exception) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"{where} is written in a form that pyarrow {pa.__version__} does not read: {error}; write "
        "the file again with the program that wrote it, compressed by zstd and encoded PLAIN"
    )


def _missing_codecs(metadata: pq.FileMetaData, row_group: int | None) -> list[str]:
    """The codecs of a row group that this pyarrow cannot decompress."""
    if row_group is None or row_group >= metadata.num_row_groups:
        return []
    group = metadata.row_group(row_group)
    named = {str(group.column(leaf).compression) for leaf in range(group.num_columns)}
    return sorted(name for name in named - _READ_BY_PYARROW if not _is_available(name))


def _booleans_by_dictionary(metadata: pq.FileMetaData, row_group: int | None) -> list[str]:
    """The columns of booleans in a row group that are encoded by a dictionary: none is decoded."""
    if row_group is None or row_group >= metadata.num_row_groups:
        return []
    group = metadata.row_group(row_group)
    chunks = [group.column(leaf) for leaf in range(group.num_columns)]
    return [
        str(each.path_in_schema)
        for each in chunks
        if each.physical_type == "BOOLEAN" and not _DICTIONARIES.isdisjoint(each.encodings)
    ]


def _decimals_of_any_length(metadata: pq.FileMetaData, row_group: int | None) -> list[str]:
    """The columns of a row group with decimals that say how many bytes each of them has."""
    if row_group is None or row_group >= metadata.num_row_groups:
        return []
    columns = [metadata.schema.column(leaf) for leaf in range(metadata.num_columns)]
    return [
        str(each.path)
        for each in columns
        if each.physical_type == "BYTE_ARRAY" and each.logical_type.type == "DECIMAL"
    ]


def _is_available(codec: str) -> bool:
    try:
        return bool(pa.Codec.is_available(codec.lower()))
    except ValueError:  # pyarrow has no codec of this name, such as LZO
        return False


_CACHE: ByteCache[tuple[object, ...], Tail] = ByteCache(CACHE_BYTES, "footers")
"""Tails by store, path and checksum; those of local files in place also by their state."""


def _key(store: ObjectStore, ref: ParquetRef) -> tuple[object, ...]:
    stamp = None if ref.columns is None else _stamp(ref)
    return store.uri, ref.path, ref.tail_checksum, ref.columns, stamp


def _stamp(ref: ParquetRef) -> tuple[int, ...] | None:
    """A stamp that changes when a local foreign file is replaced; None for one in a store."""
    if (path := _local_path(ref.path)) is None:
        return None
    try:
        status = path.stat()
    except OSError:  # the read will report the cause
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size


@cached_in(_PATHS, lambda _, path: _BYTES_PER_PATH + 2 * len(path))
def _local_path(path: str) -> Path | None:
    location = in_place(path)
    return Path(location.path) if location is not None and location.scheme == "file" else None


def _read_tail(store: ObjectStore, ref: ParquetRef) -> Tail:
    tail = store.get_range(ref.path, ref.tail_start, ref.size_bytes)
    digest = checksum(tail)
    if digest != ref.tail_checksum:
        if forget_kept(store, ref.path):  # what was kept may be damaged, not the file
            return _read_tail(store, ref)
        raise CorruptData(
            f"{ref.path} is damaged at bytes {ref.tail_start} to {ref.size_bytes} (page index and "
            f"footer): checksum {digest}, but {ref.tail_checksum} was written; restore the file "
            "from a copy, or the table to a version without it"
        )
    if ref.columns is None:
        return Tail(memoryview(tail), read_footer(tail), ref.tail_start)
    adapted, checked = adapted_tail(
        tail, ref.tail_start, FileMapping.from_text(ref.columns), ref.path
    )
    metadata = read_footer(adapted)
    foreign_footer(metadata, checked)
    return Tail(memoryview(adapted), metadata, ref.tail_start)
