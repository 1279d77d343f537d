"""The fixed columns of a manifest, the names of its files, and the checks of both.

Soundness: a manifest with a path outside the table's `data/` folder is rejected, unless it is the
URI of a foreign file of rows, which has a mapping. Statistics are checked where they are used
(`rowsieve.stats.columnar`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import CorruptData, UnsupportedProtocol
from rowsieve.parquet.stored_forms import ENCODED_FORMAT
from rowsieve.storage.manifests.vector_columns import COUNTS, PATH

FORMAT_VERSION: Final = ENCODED_FORMAT  # the newest format of parts that this code reads
PART_PATH: Final = re.compile(r"data/[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}")
PLACED_PATH: Final = re.compile(r"[a-z][a-z0-9]{0,15}://[!-~]+")
"""The URI of a foreign file that was imported in place."""
_LONGEST_PATH: Final = 5_000  # not in the patterns: Arrow's repeat at most 1,000 times
INLINE_PREFIX: Final = "data:"
INLINE_VECTOR: Final = re.compile(rf"{INLINE_PREFIX}[A-Za-z0-9+/=]+")
"""A deletion vector in the manifest itself."""
_FILTERED_IN_PYTHON_UP_TO = 64  # parts; a commit usually adds fewer

FILE_FIELDS = (
    ("path", pa.string()),
    ("rows", pa.int64()),
    ("size_bytes", pa.int64()),
    ("checksum", pa.string()),
    ("tail_start", pa.int64()),
    ("tail_checksum", pa.string()),
)
FIXED = pa.schema(
    [
        ("part_id", pa.string()),
        ("base_version", pa.int64()),
        ("schema_id", pa.int32()),
        ("format_version", pa.int32()),
        ("native_safe", pa.bool_()),
        ("commit_ts_min", pa.int64()),
        ("commit_ts_max", pa.int64()),
        *((f"data.{name}", type_) for name, type_ in FILE_FIELDS),
        *((f"deletes.{name}", type_) for name, type_ in FILE_FIELDS),
        *((f"dv.{name}", type_) for name, type_ in FILE_FIELDS[:4]),
    ]
)
COLUMNS: Final = "data.columns"
SORT_ORDER: Final = "data.sort_order"
ENCODING: Final = "data.encoding"
READING: Final = "data.reading"
DATA_CONTENT: Final = "data.content"
DELETES_CONTENT: Final = "deletes.content"
OLDEST_DELETE: Final = "order.oldest_delete"
ENTRY_TYPES: Final[Mapping[str, pa.DataType]] = {
    **dict(zip(FIXED.names, FIXED.types, strict=True)),
    COLUMNS: pa.string(),
    ENCODING: pa.string(),
    SORT_ORDER: pa.string(),
    DATA_CONTENT: pa.binary(),
    DELETES_CONTENT: pa.binary(),
}
ENTRY_FACTS: Final = tuple(
    (name, type_, attrgetter("sort_order" if name == SORT_ORDER else owner), fact)
    for name, type_ in ENTRY_TYPES.items()
    for owner, _, fact in [("" if name == SORT_ORDER else name).partition(".")]
)
"""Each column of an entry, its type, what takes its value from the entry, and a fact of that."""
RARE: Final = frozenset(ENTRY_TYPES).difference(FIXED.names)
"""Columns that a manifest has only if one of its parts has a value there."""
WITHOUT_FILE: Final = {"rows": 0}
"""Facts of a file that a part lacks; the others are NULL."""
_REQUIRED = ("part_id", "base_version", "schema_id", "format_version", "native_safe")
_COUNTS = tuple(
    name
    for name in FIXED.names
    if name.endswith((".rows", ".size_bytes", ".tail_start", "_version"))
)


def check_parts(table: pa.Table) -> None:
    """Reject a malformed manifest; its statistics are checked where they are used."""
    check_columns(table.schema)
    check_values(table)
    if len(table.column("part_id").unique()) != table.num_rows:
        raise CorruptData("a manifest names a part more than once")


def check_columns(schema: pa.Schema) -> None:
    """Reject a manifest that lacks a fixed column, or has it with another type."""
    for name, type_ in zip(FIXED.names, FIXED.types, strict=True):
        index = schema.get_field_index(name)
        if index < 0:
            raise CorruptData(f"a manifest lacks its column {name!r}")
        if (column_type := schema.field(index).type) != type_:
            raise CorruptData(f"a manifest's column {name!r} is {column_type}, not {type_}")


def check_values(table: pa.Table) -> None:
    """Reject invalid values in the columns that `table` has."""
    present = set(table.column_names)
    for name in present.intersection(_REQUIRED):
        if table.column(name).null_count:
            raise CorruptData(f"a manifest has a part without {name}")
    counts = present.intersection((*_COUNTS, *COUNTS))
    numbers = {name: counts_of(table.column(name)) for name in counts}
    for name, values in numbers.items():
        if (values < 0).any():
            raise CorruptData(f"a manifest has a part with a negative {name}")
    for prefix in ("data", "deletes"):
        ends = [f"{prefix}.tail_start", f"{prefix}.size_bytes"]
        if present.issuperset(ends) and (numbers[ends[0]] > numbers[ends[1]]).any():
            raise CorruptData(f"a manifest has a part whose {prefix} end before their tail begins")
        if f"{prefix}.content" in present:
            _check_content(table, prefix)
    if "format_version" in present:
        newest = int(numbers["format_version"].max(initial=0))
        if newest > FORMAT_VERSION:
            raise UnsupportedProtocol(
                f"a part has format version {newest}, and this version of rowsieve knows only up "
                f"to {FORMAT_VERSION}; upgrade rowsieve to read the table"
            )
    for name in present.intersection(("data.path", "deletes.path", "dv.path", PATH)):
        paths = table.column(name)
        if name == "data.path" and COLUMNS in present:
            placed = table.column(COLUMNS).is_valid()
            _check_paths(paths.filter(placed), PLACED_PATH)
            paths = paths.filter(pc.invert(placed))
        if name == "dv.path" and paths.null_count < len(paths):
            inline = vectors_in_manifest(paths)
            _check_paths(paths.filter(inline), INLINE_VECTOR)
            paths = paths.filter(pc.invert(inline))
        _check_paths(paths, PART_PATH)


def vectors_in_manifest(paths: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return which of these paths of deletion vectors have the vector itself; NULL has none."""
    return pc.fill_null(pc.starts_with(paths, INLINE_PREFIX), False)  # noqa: FBT003 - pyarrow's


def _check_content(table: pa.Table, prefix: str) -> None:
    """Reject bytes of a part in memory that are not as long as its entry says.

    The columns of an entry may be read in several groups: those that are not here are not checked.
    """
    content = table.column(f"{prefix}.content")
    if content.type != pa.binary():
        raise CorruptData(f"a manifest's column '{prefix}.content' is {content.type}, not binary")
    names = (f"{prefix}.path", f"{prefix}.size_bytes")
    if not set(names) <= set(table.column_names):
        return
    columns = [pc.binary_length(content), *(table.column(name) for name in names)]
    for length, path, size in zip(*(each.to_pylist() for each in columns), strict=True):
        if length is not None and (path is None or length != size):
            raise CorruptData(f"a manifest has {length} bytes for {path}, which has {size}")


def counts_of(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return the values; NULL becomes 0."""
    if column.null_count == len(column):
        return np.zeros(len(column), dtype=np.int64)
    return np.asarray((column.fill_null(0) if column.null_count else column).to_numpy())


def is_path(path: str, pattern: re.Pattern[str]) -> bool:
    """Return whether the path of a file fits the pattern, and is not too long."""
    return len(path) <= _LONGEST_PATH and pattern.fullmatch(path) is not None


def _check_paths(paths: pa.ChunkedArray, pattern: re.Pattern[str]) -> None:
    if paths.null_count == len(paths):
        return
    if len(paths) <= _FILTERED_IN_PYTHON_UP_TO:  # setting up a kernel takes longer
        texts = [path for path in paths.to_pylist() if path is not None]
        bad = [path for path in texts if not is_path(path, pattern)]
    else:
        short = pc.less_equal(pc.binary_length(paths), _LONGEST_PATH)
        fit = pc.and_(short, pc.match_substring_regex(paths, f"^{pattern.pattern}$"))
        bad = paths.filter(pc.invert(fit)).to_pylist()
    if bad:
        raise CorruptData(
            f"a manifest names the file {bad[0]!r}: parts lie in data/ under names of letters, "
            "digits, '_', '.' and '-'; the table is not read"
        )
