"""Hidden columns of a file with the values at JSON paths, and facts from their bounds.

A file of our writer may have one more top-level column, a struct with a member for each path, and
in it the columns of `rowsieve.stats.json_shredding`. A key of the footer names the struct and the
paths. No schema has the struct: only this module reads it, and only the bounds and NULL counts of
row groups and pages.

Soundness: facts fail open. Nothing is known without the key, with an unknown version, with columns
that the key does not describe, or if the counts of a path's columns contradict each other. The
bounds of `kinds` include every kind between them. Bounds of doubles are widened, because long
integers were rounded. A string of the greatest length may be the prefix of a longer value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rowsieve.decoded_types import described
from rowsieve.parquet.file_mapping import mapping_of
from rowsieve.parquet.footer_cache import cached_per_footer
from rowsieve.parquet.leaf_columns import FileColumn
from rowsieve.parquet.statistics.stored_bounds import StoredBounds, abstract_column
from rowsieve.predicate.arrays import Mask, filled, null_mask, without
from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.stats.bounds import upper_text
from rowsieve.stats.json_kinds import EVERYTHING, JsonKind, Path, path_of_subject, path_subject
from rowsieve.stats.json_shredding import FIELDS, MAX_CHARACTERS, STORED_KINDS
from rowsieve.stats.model import Derived
from rowsieve.types.encodings import FIELD_ID_KEY
from rowsieve.types.logical import Float, Int, LogicalType, String

SHREDDED_KEY: Final = b"rowsieve.shredded"
VERSION: Final = 1
FIRST_FIELD_ID: Final = 2_000_000_000
"""The first field id of these columns; readers of others need one for each column of a file."""

_COLUMN: Final = "_rowsieve_shredded"
_TYPES: Final[Mapping[str, LogicalType]] = {"int": Int(), "float": Float(), "string": String()}
_KIND_OF: Final = {"int": JsonKind.INT, "float": JsonKind.FLOAT, "string": JsonKind.STRING}
_PHYSICAL: Final = {"kinds": "INT32", "int": "INT64", "float": "DOUBLE", "string": "BYTE_ARRAY"}

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)
Numbers = npt.NDArray[np.int64]
ReadBounds = Callable[[FileColumn], StoredBounds]


class _PathForm(msgspec.Struct, frozen=True):
    """A path in the footer: the field id of the JSON column, and the path's subject."""

    id: int
    path: str


class Shredding(msgspec.Struct, frozen=True):
    """The value of the footer's key: the name of the struct, and the path of each member."""

    column: str
    paths: tuple[_PathForm, ...]
    version: int = VERSION

    @classmethod
    def choose(cls, names: Sequence[str], paths: Sequence[tuple[int, Path]]) -> Shredding:
        """Name the struct for a file that also has columns of these names.

        The writer has settings by paths in the file, and a column may be named like the path of
        a hidden one: a float column with NaN would then get statistics. So no name begins with
        the struct's and a dot. Engines that ignore the case of names must find one column only.
        """
        taken = {name.casefold().partition(".")[0] for name in names}
        column = _COLUMN
        while column in taken:
            column += "_"
        subjects = (path_subject(field_id, path) for field_id, path in paths)
        return cls(column, tuple(_PathForm(each.field_id, each.what) for each in subjects))

    @property
    def field(self) -> pa.Field:
        """The struct as a column of the file; it and its members are never NULL."""
        ids = iter(range(FIRST_FIELD_ID, FIRST_FIELD_ID + 1 + len(self.paths) * (len(FIELDS) + 1)))

        def with_id(name: str, type_: pa.DataType, *, nullable: bool) -> pa.Field:
            return pa.field(name, type_, nullable, {FIELD_ID_KEY: b"%d" % next(ids)})

        members = []
        for place in range(len(self.paths)):
            leaves = [with_id(name, type_, nullable=True) for name, type_ in FIELDS.items()]
            members.append(with_id(_member(place), pa.struct(leaves), nullable=False))
        return with_id(self.column, pa.struct(members), nullable=False)

    def leaves(self, *names: str) -> list[str]:
        """The paths in the file of the columns with these names in each member."""
        places = range(len(self.paths))
        return [f"{self.column}.{_member(place)}.{name}" for place in places for name in names]

    def values(self, shredded: Sequence[pa.StructArray]) -> pa.StructArray:
        """Join the columns of each path to the struct's values."""
        type_ = self.field.type
        members = [values.cast(type_.field(place).type) for place, values in enumerate(shredded)]
        return pa.StructArray.from_arrays(members, fields=list(type_))

    def to_text(self) -> str:
        """The value of the footer's key."""
        return msgspec.json.encode(self).decode()


def _member(place: int) -> str:
    return f"p{place}"


@cached_per_footer
def shredding_of(metadata: pq.FileMetaData) -> Shredding | None:
    """The hidden columns of a file of our writer; None if it has none that this code knows."""
    return None if mapping_of(metadata) is not None else named_shredding(metadata.metadata or {})


def named_shredding(pairs: Mapping[bytes, bytes]) -> Shredding | None:
    """The hidden columns that a footer names by its key-value pairs, whoever wrote it."""
    try:
        shredding = msgspec.json.decode(pairs[SHREDDED_KEY], type=described(Shredding))
    except (KeyError, msgspec.MsgspecError):
        return None
    return shredding if shredding.version == VERSION else None


def without_shredded(rows: Rows, metadata: pq.FileMetaData) -> Rows:
    """Drop the hidden columns from rows that were read from a file of our writer."""
    shredding = named_shredding(metadata.metadata or {})
    if shredding is None or shredding.column not in rows.schema.names:
        return rows
    return rows.select([name for name in rows.schema.names if name != shredding.column])


@cached_per_footer
def shredded_columns(metadata: pq.FileMetaData) -> Mapping[Derived, Mapping[str, FileColumn]]:
    """The columns of each path, by the path's subject; without paths that lack one."""
    shredding = shredding_of(metadata)
    if shredding is None:
        return {}
    leaves = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    by_path: dict[Derived, Mapping[str, FileColumn]] = {}
    for place, path in enumerate(shredding.paths):
        columns = {}
        for name, type_ in FIELDS.items():
            index = leaves.get(f"{shredding.column}.{_member(place)}.{name}")
            if index is not None and _is_stored(name, metadata.schema.column(index)):
                columns[name] = FileColumn(index, name, type_, _PHYSICAL[name], 0)
        if len(columns) == len(FIELDS):
            by_path[Derived(path.id, path.path)] = columns
    return by_path


def _is_stored(name: str, leaf: pq.ColumnSchema) -> bool:
    return bool(leaf.physical_type == _PHYSICAL[name] and leaf.max_repetition_level == 0)


@dataclass(frozen=True, slots=True)
class PathFacts:
    """The facts of one path in n row groups or pages: bits of `JsonKind`, and bounds by kind."""

    kinds: Numbers
    values: Mapping[str, AbstractColumn | None]


def path_facts(columns: Mapping[str, FileColumn], read: ReadBounds) -> PathFacts:
    """Derive the facts of a path from the bounds of its columns."""
    marks = read(columns["kinds"])
    kinds, known = _kinds_between(marks)
    rows, count = marks.rows, _filled(marks)
    bounds = {name: read(columns[name]) for name in _TYPES}
    for name, stored in bounds.items():
        there = _filled(stored)
        kinds |= np.where(there != 0, int(_KIND_OF[name]), 0)
        known &= there >= 0
        count += there
    known &= (count >= rows) & (kinds & int(JsonKind.OTHER) == 0) & ((kinds != 0) | (rows == 0))
    values = {
        name: _widened(abstract_column(stored, columns[name], _TYPES[name]), known, name)
        for name, stored in bounds.items()
    }
    return PathFacts(np.where(known, kinds, np.int64(EVERYTHING)), values)


def value_at_path(
    subject: Derived, facts_of: Callable[[Derived], PathFacts | None]
) -> AbstractColumn | None:
    """The statistics of the values of one kind at a path; None for other subjects or if unknown."""
    path, kind = path_of_subject(subject), subject.what.rpartition(":")[2]
    facts = None if path is None else facts_of(path)
    return None if facts is None else facts.values.get(kind)


def _filled(stored: StoredBounds) -> Numbers:
    """(n,) rows with a value; -1 if unknown."""
    sane = (stored.nulls >= 0) & (stored.nulls <= stored.rows)
    return np.where(sane, stored.rows - stored.nulls, np.int64(-1))


def _kinds_between(stored: StoredBounds) -> tuple[Numbers, Mask]:
    """(n,) the kinds between the bounds of `kinds`, and whether they are known."""
    count = _filled(stored)
    none = count == 0
    bits = np.zeros(len(count), dtype=np.int64)
    known = none.copy()
    for row in np.flatnonzero((count > 0) & stored.bounded).tolist():
        lower, upper = int(stored.lower[row]), int(stored.upper[row])
        if _is_kind(lower) and _is_kind(upper) and lower <= upper:
            bits[row], known[row] = (2 * upper - 1) & ~(lower - 1), True
    return bits & int(STORED_KINDS), known


def _is_kind(number: int) -> bool:
    return number > 0 and number.bit_count() == 1 and bool(number & int(STORED_KINDS))


def _widened(known: AbstractColumn | None, sound: Mask, name: str) -> AbstractColumn | None:
    """Widen bounds to all values that may be stored in this form; no bounds unless `sound`."""
    if known is None:
        return None
    lower, upper = without(known.lower, ~sound), without(known.upper, ~sound)
    if name == "float":
        lower, upper = _next(lower, -np.inf), _next(upper, np.inf)
    elif name == "string":
        upper = _after_prefixes(upper)
    nan = None if known.may_be_nan is None else known.may_be_nan | ~sound
    return replace(
        known,
        lower=lower,
        upper=upper,
        empty=known.empty & sound,
        may_be_null=known.may_be_null | ~sound,
        may_be_nan=nan,
    )


def _next(bounds: pa.Array, outward: float) -> pa.Array:
    return without(pa.array(np.nextafter(filled(bounds), outward)), null_mask(bounds))


def _after_prefixes(bounds: pa.Array) -> pa.Array:
    """Upper bounds of the strings that begin with bounds of `MAX_CHARACTERS`."""
    lengths = pc.fill_null(pc.utf8_length(bounds), 0)
    if (pc.max(lengths).as_py() or 0) < MAX_CHARACTERS:
        return bounds
    return pa.array(
        [
            text if text is None or len(text) < MAX_CHARACTERS else _after(text)
            for text in bounds.to_pylist()
        ],
        pa.string(),
    )


def _after(prefix: str) -> str | None:
    """Text above all strings with this prefix; None if there is none."""
    return upper_text(prefix + "\0", len(prefix.encode()))
