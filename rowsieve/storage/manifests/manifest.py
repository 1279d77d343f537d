"""The manifest: the parts of a snapshot as one Arrow table, one row per part.

It is columnar so that opening and planning over many parts need no Python loop over them. Columns
in a checkpoint are read on demand (`rowsieve.storage.manifests.manifest_columns`). The columns are:

- `part_id`, `base_version` (the head when the part was written), `schema_id`, `format_version`,
  `native_safe`;
- `commit_ts_min`, `commit_ts_max`: NULL until the commit that adds the part sets them to its
  version (invariant I1);
- `data.*`, `deletes.*`: path, rows, size_bytes, checksum, tail_start, tail_checksum of the file of
  rows and of the file of tombstones, NULL if there is none; `dv.*`: the same for the deletion
  vector, without the tail;
- `vector.*`, only if a part has a stored vector: `rowsieve.storage.manifests.vector_columns`;
- `data.content`, `deletes.content`, only if a part is in memory: its bytes, which no file has
  (`rowsieve.storage.parts.memory_rows`); its path is then a name only;
- `data.columns`, only for a foreign file: the mapping of its columns to the table's
  (`rowsieve.parquet.file_mapping`); NULL for our own files;
- `data.sort_order`, only if a file has one: the order of its rows, with field ids for columns
  (`rowsieve.types.ordering.sort_order`); NULL means unknown;
- `data.encoding`, only in tables with a codec: `rowsieve.encodings.file_encoding`;
- `key.<field id>.lower|upper`: the first and the last key, tombstones included (trap T4). A NULL is
  infinite, and so is every later key column of that bound;
- `order.<field id>.upper`, only in tables with an event order: the greatest sequence of the rows
  and tombstones, and `order.oldest_delete`: the oldest commit_ts of a rewritten tombstone. NULL
  means unknown; for the latter, that of the part;
- `stats.<field id>.<fact>`: see `rowsieve.stats.tabulate`. Absent or NULL means unknown.

Soundness: `rowsieve.storage.manifests.manifest_layout` checks a manifest that is read. Files that
are not ours are never deleted (invariants, rule 15: `owned`). Bounds and counts are used only where
`rowsieve.stats.columnar` finds them consistent.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, Final, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import CorruptData
from rowsieve.parquet.stored_forms import STRUCTURED_FORMAT
from rowsieve.stats.model import ColumnStatistics, Subject
from rowsieve.stats.tabulate import statistics_columns
from rowsieve.storage.manifests.manifest_columns import Columns
from rowsieve.storage.manifests.manifest_layout import (
    COLUMNS,
    DATA_CONTENT,
    DELETES_CONTENT,
    ENCODING,
    ENTRY_FACTS,
    FILE_FIELDS,
    FIXED,
    INLINE_PREFIX,
    INLINE_VECTOR,
    OLDEST_DELETE,
    PART_PATH,
    PLACED_PATH,
    RARE,
    READING,
    SORT_ORDER,
    WITHOUT_FILE,
    check_parts,
    counts_of,
    is_path,
    vectors_in_manifest,
)
from rowsieve.storage.manifests.vector_columns import (
    COMPLETE_THROUGH,
    PATH,
    PREFIX,
    SIZE_BYTES,
    VectorRef,
    vectors_in,
    with_vectors,
)
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Field
from rowsieve.types.schema import Schema

_COMPRESSED_FROM = 32  # parts; below it a codec costs more than it saves
_ENTRY: Final = attrgetter("entry")
_STATISTICS: Final = attrgetter("statistics")
_SKETCHES: Final = attrgetter("sketches")
_VECTOR: Final = attrgetter("entry.vector")
_OLDEST_DELETE: Final = attrgetter("oldest_delete")
_LOWER: Final = attrgetter("key_lower")
_UPPER: Final = attrgetter("key_upper")


@dataclass(frozen=True, slots=True)
class FileRef:
    """A Parquet file of a part; `tail_start` is the offset of its page index and footer.

    `columns`: for a foreign file, the mapping of its columns to the table's; else None. `content`:
    for a part in memory, its bytes, which are no file; else None. `encoding`: the forms of its rows
    (`rowsieve.encodings.file_encoding`); None for columns only. `reading`: how a read takes them
    (`rowsieve.storage.parts.reading_views`); None for the columns, where it has them.
    """

    path: str
    rows: int
    size_bytes: int
    checksum: str
    tail_start: int
    tail_checksum: str
    columns: str | None = None
    content: bytes | None = field(default=None, repr=False)
    encoding: str | None = None
    reading: str | None = None

    @property
    def in_memory(self) -> bool:
        """True if the rows are in `content`, and no file has them."""
        return self.content is not None

    @property
    def owned(self) -> bool:
        """True if the table wrote the file, and may delete it (invariants, rule 15)."""
        return self.columns is None

    @property
    def is_valid(self) -> bool:
        """True if the path has the form of a part's, or is the URI of a foreign file."""
        pattern = PART_PATH if self.owned else PLACED_PATH
        return is_path(self.path, pattern)


@dataclass(frozen=True, slots=True)
class DeletionVectorRef:
    """The hidden rows of a part; `rows` is their number.

    `path` names a file, or is `data:` and the bytes in base64.
    """

    path: str
    rows: int
    size_bytes: int
    checksum: str

    @property
    def in_manifest(self) -> bool:
        """True if the path has the vector itself, and no file does."""
        return self.path.startswith(INLINE_PREFIX)

    @property
    def is_valid(self) -> bool:
        """True if the path has the form of a vector's file, or has the vector itself."""
        return is_path(self.path, INLINE_VECTOR if self.in_manifest else PART_PATH)


@dataclass(frozen=True, slots=True)
class PartEntry:
    """One row of the manifest without statistics; commit_ts is None before the commit.

    `key_lower` and `key_upper` have one scalar per key column; None is infinite.
    """

    part_id: str
    base_version: int
    schema_id: int
    native_safe: bool
    data: FileRef | None
    deletes: FileRef | None
    key_lower: tuple[pa.Scalar | None, ...]
    key_upper: tuple[pa.Scalar | None, ...]
    dv: DeletionVectorRef | None = None
    commit_ts_min: int | None = None
    commit_ts_max: int | None = None
    format_version: int = STRUCTURED_FORMAT
    vector: VectorRef | None = None
    sort_order: str | None = None


@dataclass(frozen=True, slots=True)
class NewPart:
    """A finished part: its entry, its statistics by subject, and its sketches by column name.

    `sequence_upper` has one scalar for each column of the event order, if the table has one.

    The names are those of manifest columns (`rowsieve.storage.manifests.part_sketches`).
    """

    entry: PartEntry
    statistics: Mapping[Subject, ColumnStatistics] = field(default_factory=dict)
    sketches: Mapping[str, bytes] = field(default_factory=dict)
    sequence_upper: tuple[pa.Scalar | None, ...] = ()
    oldest_delete: int | None = None


@runtime_checkable
class InShards(Protocol):
    """A source of parts in shards, with the union of each shard's statistics."""

    @property
    def unions(self) -> pa.Table:
        """One row per shard, see `rowsieve.stats.shard_unions`."""

    def shards_of(self, rows: npt.NDArray[np.int64] | None) -> npt.NDArray[np.int64]:
        """Return, shape (n,), the shard of each part, or of the parts at these indices."""


class PartTable(Columns):
    """An immutable list of parts; methods that change it return a new object."""

    __slots__ = ()

    @classmethod
    def empty(cls) -> PartTable:
        """Make a manifest without parts, and so without columns of keys and statistics."""
        return cls(FIXED.empty_table())

    @classmethod
    def of(
        cls,
        parts: Sequence[NewPart],
        schema: Schema,
        key: Sequence[Field],
        sequence: Sequence[Field] = (),
    ) -> PartTable:
        """Make the manifest of finished parts with this schema, key and event order."""
        columns = _entry_columns(parts, key, sequence)
        statistics = list(map(_STATISTICS, parts))
        if any(statistics):  # parts in memory have none
            columns.update(statistics_columns(statistics, schema))
        for name in dict.fromkeys(chain.from_iterable(map(_SKETCHES, parts))):
            columns[name] = pa.array([part.sketches.get(name) for part in parts], pa.binary())
        table = cls(pa.table(columns))
        vectors = list(map(_VECTOR, parts))
        return table.with_vectors(vectors) if any(vectors) else table

    @classmethod
    def from_ipc(cls, data: bytes | memoryview | pa.Buffer) -> PartTable:
        """Decode the bytes of `to_ipc`; CorruptData if they are not a valid manifest."""
        return cls.from_ipc_with_metadata(data)[0]

    @classmethod
    def from_ipc_with_metadata(
        cls, data: bytes | memoryview | pa.Buffer
    ) -> tuple[PartTable, Mapping[bytes, bytes]]:
        """Decode like `from_ipc`; also return the metadata that was passed to `to_ipc`."""
        try:
            with pa.ipc.open_file(pa.py_buffer(data)) as reader:
                table = reader.read_all()
            table.validate(full=True)
        except (pa.ArrowException, OSError) as error:
            raise CorruptData(f"a manifest is not a readable Arrow IPC file: {error}") from error
        check_parts(table)
        return cls(table.replace_schema_metadata(None)), table.schema.metadata or {}

    def to_ipc(self, metadata: Mapping[bytes, bytes] | None = None) -> bytes:
        """Serialise as an Arrow IPC file; zstd compression from 32 parts on."""
        codec = "zstd" if len(self) >= _COMPRESSED_FROM else None
        sink = pa.BufferOutputStream()
        table = self.table.combine_chunks().replace_schema_metadata(metadata)
        options = pa.ipc.IpcWriteOptions(compression=codec)
        with pa.ipc.new_file(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue())

    @property
    def part_ids(self) -> tuple[str, ...]:
        """The part ids, in the order of the parts."""
        return tuple(self.column("part_id").to_pylist())

    def held_in_memory(self) -> npt.NDArray[np.bool_]:
        """(n,) whether each part is in memory."""
        in_memory = np.zeros(len(self), dtype=np.bool_)
        for name in (DATA_CONTENT, DELETES_CONTENT):
            if self.schema.get_field_index(name) >= 0:
                in_memory |= np.asarray(self.column(name).is_valid())
        return in_memory

    @property
    def has_no_files(self) -> bool:
        """True if every part is in memory, and has no deletion vector either."""
        in_memory = {DATA_CONTENT, DELETES_CONTENT}.intersection(self.schema.names)
        return bool(in_memory) and len(self) > 0 and not self.file_paths()

    def file_paths(self) -> dict[str, list[str]]:
        """The paths of the files of all parts, by the column that names them.

        The paths of parts in memory are names only, and vectors in the manifest are no files.
        """
        names = self.schema.names
        texts_by_column = {}
        for name in ("data.path", "deletes.path", "dv.path", PATH):
            content = name.replace(".path", ".content")
            if name not in names or (paths := self.column(name)).null_count == len(self):
                continue
            if content in names:
                paths = paths.filter(self.column(content).is_null())
            if name == "dv.path":
                paths = paths.filter(pc.invert(vectors_in_manifest(paths)))
            if texts := paths.drop_null().to_pylist():
                texts_by_column[name] = texts
        return texts_by_column

    def select(self, *prefixes: str) -> PartTable:
        """Keep only the columns whose names start with one of these prefixes."""
        return self.only(lambda name: name.startswith(prefixes))

    def unions(self) -> Iterator[tuple[int, npt.NDArray[np.int64], pa.Table]]:
        """For each run of sharded parts: its first index, the shard of each part, the unions."""
        for start, block in self.placed_blocks():
            if isinstance(block.source, InShards):
                yield start, block.source.shards_of(block.rows), block.source.unions

    def data_rows(self) -> npt.NDArray[np.int64]:
        """Return, shape (n,), the rows of each part without tombstones; 0 if it has only those."""
        return self.numbers("data.rows")

    @property
    def row_count(self) -> int:
        """The rows of all parts, hidden rows included."""
        return int(pc.sum(self.column("data.rows")).as_py() or 0)

    @property
    def stored_bytes(self) -> int:
        """The bytes of all files of the parts."""
        names = ["data.size_bytes", "deletes.size_bytes", "dv.size_bytes"]
        if self.schema.get_field_index(SIZE_BYTES) >= 0:
            names.append(SIZE_BYTES)
        return sum(int(self.numbers(name).sum()) for name in names)

    def numbers(self, name: str) -> npt.NDArray[np.int64]:
        """Return a column of counts, shape (n,); NULL becomes 0."""
        return np.asarray(counts_of(self.column(name)), dtype=np.int64)

    @property
    def key_ids(self) -> tuple[int, ...]:
        """Field ids of the key columns in key order; may be empty for an empty manifest."""
        return tuple(
            [
                int(name[len("key.") : -len(".lower")])
                for name in self.schema.names
                if name.startswith("key.") and name.endswith(".lower")
            ]
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartTable):
            return NotImplemented
        return len(self) == len(other) and bool(self.table.equals(other.table))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PartTable({len(self)} parts)"

    def without(self, part_ids: Collection[str]) -> PartTable:
        """Remove the parts with these ids; unknown ids are ignored."""
        if not part_ids:
            return self
        dropped = pc.is_in(
            self.column("part_id"), value_set=pa.array(sorted(part_ids), pa.string())
        )
        return self.take(np.flatnonzero(~np.asarray(dropped.to_numpy())))

    def chosen(self, part_ids: Collection[str]) -> PartTable:
        """Keep only the parts with these ids; unknown ids are ignored."""
        known = pc.is_in(self.column("part_id"), value_set=pa.array(sorted(part_ids), pa.string()))
        return self.take(np.flatnonzero(np.asarray(known.to_numpy())))

    def with_commit_ts(self, version: int) -> PartTable:
        """Set commit_ts of parts without one to the committing version (invariant I1)."""
        table = self.table
        for name in ("commit_ts_min", "commit_ts_max"):
            column = table.column(name)
            if not column.null_count:
                continue
            if column.null_count == len(column):
                filled = pa.array(np.full(len(column), version, dtype=np.int64))
            else:
                filled = pc.fill_null(column, pa.scalar(version, pa.int64()))
            table = table.set_column(table.schema.get_field_index(name), name, filled)
        return PartTable(table)

    def with_base_version(self, version: int) -> PartTable:
        """Set the version that every part is based on; meant for foreign files."""
        table = self.table  # its columns may have another order than FIXED
        place = table.schema.get_field_index("base_version")
        column = pa.array(np.full(len(self), version, dtype=np.int64))
        return PartTable(table.set_column(place, table.schema.field(place), column))

    def with_key_bounds(
        self,
        key: Sequence[Field],
        bounds: Sequence[tuple[Sequence[pa.Scalar | None], Sequence[pa.Scalar | None]]],
    ) -> PartTable:
        """Add the first and last key of each part, one scalar per key column."""
        table = self.table
        for i, key_field in enumerate(key):
            for side, name in enumerate(("lower", "upper")):
                column = pa.array([each[side][i] for each in bounds], arrow_type(key_field.type))
                table = table.append_column(f"key.{key_field.id}.{name}", column)
        return PartTable(table)

    def with_deletion_vector(self, ref: DeletionVectorRef) -> PartTable:
        """Set this deletion vector on every part; meant for a manifest of one part."""
        table = self.table
        for name, type_ in FILE_FIELDS[:4]:
            column = pa.array([getattr(ref, name)] * table.num_rows, type_)
            place = table.column_names.index(f"dv.{name}")
            table = table.set_column(place, table.schema.field(place), column)
        return PartTable(table)

    def with_vectors(self, refs: Sequence[VectorRef | None]) -> PartTable:
        """Set the stored vector of each part; None for parts without one."""
        return PartTable(with_vectors(self.table, refs))

    def entry(self, index: int) -> PartEntry:
        """Return one part as a `PartEntry`."""
        return self.entries([index])[0]

    def entries(self, indices: Sequence[int]) -> list[PartEntry]:
        """Return some parts as `PartEntry`s, in the order given; faster than one by one."""
        taken = self.take(indices)
        lower, upper = (
            [taken.column(f"key.{field_id}.{side}") for field_id in self.key_ids]
            for side in ("lower", "upper")
        )
        files = zip(
            taken.files("data"),
            taken.files("deletes"),
            taken.deletion_vectors(),
            taken.vectors(),
            taken.sort_orders(),
            strict=True,
        )
        rows = taken.read([name for name in FIXED.names if "." not in name]).to_pylist()
        return [
            PartEntry(
                data=data,
                deletes=deletes,
                dv=dv,
                vector=vector,
                sort_order=order,
                key_lower=tuple(_scalar_or_none(column[i]) for column in lower),
                key_upper=tuple(_scalar_or_none(column[i]) for column in upper),
                **rows[i],
            )
            for i, (data, deletes, dv, vector, order) in enumerate(files)
        ]

    def files(self, kind: Literal["data", "deletes"]) -> list[FileRef | None]:
        """Return the file of rows, or of tombstones, of every part; None if it has none."""
        rare = (COLUMNS, f"{kind}.content", ENCODING, READING)
        files = self._file_values(kind, FILE_FIELDS, rare)
        return [None if values[0] is None else FileRef(*values) for values in files]

    def deletion_vectors(self) -> list[DeletionVectorRef | None]:
        """Return the deletion vector of every part; None if it has none."""
        return [
            None if values[0] is None else DeletionVectorRef(*values)
            for values in self._file_values("dv", FILE_FIELDS[:4])
        ]

    def vectors(self) -> list[VectorRef | None]:
        """Return the stored vector of every part of a keyed table; None if it has none."""
        schema = self.schema
        if schema.get_field_index(COMPLETE_THROUGH) < 0:
            return [None] * len(self)
        return vectors_in(self.read([n for n in schema.names if n.startswith(PREFIX)]))

    def sort_orders(self) -> list[str | None]:
        """Return the order of the rows of every part, with field ids; None if it is unknown."""
        if self.schema.get_field_index(SORT_ORDER) < 0:
            return [None] * len(self)
        orders: list[str | None] = self.column(SORT_ORDER).to_pylist()
        return orders

    def _file_values(
        self,
        prefix: str,
        facts: Sequence[tuple[str, pa.DataType]],
        rare: Sequence[str] = (),
    ) -> Iterable[Any]:
        """Return one tuple per part, the path first; `(None,)` each if no part has a path.

        `rare`: columns that a manifest may lack, which are NULL then.
        """
        if self.column(f"{prefix}.path").null_count == len(self):
            return [(None,)] * len(self)
        columns = [self.column(f"{prefix}.{name}").to_pylist() for name, _ in facts]
        present = [self.schema.get_field_index(name) >= 0 for name in rare]
        if any(present):
            nothing = [None] * len(self)
            columns += [
                self.column(name).to_pylist() if has and name.startswith(prefix) else nothing
                for name, has in zip(rare, present, strict=True)
            ]
        return zip(*columns, strict=True)


def _entry_columns(
    parts: Sequence[NewPart], key: Sequence[Field], sequence: Sequence[Field]
) -> dict[str, pa.Array]:
    """The columns of finished parts without statistics and sketches; rare ones if one has them."""
    entries = list(map(_ENTRY, parts))
    columns: dict[str, pa.Array] = {}
    for name, type_, owner, fact in ENTRY_FACTS:
        cells = list(map(owner, entries))
        if fact:
            cells = [getattr(each, fact, WITHOUT_FILE.get(fact)) for each in cells]
        if name not in RARE or cells.count(None) < len(cells):
            columns[name] = pa.array(cells, type_)
    for place, column in enumerate(key):
        for side, bounds in (("lower", _LOWER), ("upper", _UPPER)):
            ends = list(map(itemgetter(place), map(bounds, entries)))
            columns[f"key.{column.id}.{side}"] = pa.array(ends, arrow_type(column.type))
    for place, column in enumerate(sequence):
        greatest = [part.sequence_upper[place] for part in parts]
        columns[f"order.{column.id}.upper"] = pa.array(greatest, arrow_type(column.type))
    oldest = list(map(_OLDEST_DELETE, parts))
    if oldest.count(None) < len(oldest):
        columns[OLDEST_DELETE] = pa.array(oldest, pa.int64())
    return columns


def placed_parts(
    refs: Sequence[FileRef],
    statistics: Mapping[str, pa.Array],
    schema_ids: Sequence[int],
    vectors: Sequence[DeletionVectorRef | None],
    base_version: int = 0,
) -> PartTable:
    """Make a manifest of foreign files, each a part, with these columns of statistics.

    `schema_ids`: the schemas that they count as written with.
    """
    entries = [
        PartEntry(uuid.uuid4().hex, base_version, schema_id, False, ref, None, (), (), dv)  # noqa: FBT003
        for ref, schema_id, dv in zip(refs, schema_ids, vectors, strict=True)
    ]
    parts = PartTable.of([NewPart(entry) for entry in entries], Schema(0, ()), ())
    if not statistics:
        return parts
    table = parts.table
    return PartTable(
        pa.table({**dict(zip(table.column_names, table.columns, strict=True)), **statistics})
    )


def _scalar_or_none(scalar: pa.Scalar) -> pa.Scalar | None:
    return scalar if scalar.is_valid else None
