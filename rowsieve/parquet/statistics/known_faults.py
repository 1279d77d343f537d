"""Known faults of writers: the statistics, filters and page bounds that are not believed.

A file names its writer and the version in `created_by`. Each row of `FAULTS` names a writer, the
first version without the fault, what of its files is wrong, and in which columns. Soundness: a
version that cannot be read counts as affected, so does a writer that names none, and a fault whose
correction is unknown has no end. Contradictions that need no writer's name are detected elsewhere
(invariant 45).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any, Final, TypeAlias

import pyarrow as pa

from rowsieve.byte_cache import ByteCache, cached_in

Version: TypeAlias = tuple[int, int, int]
ARROW_SCHEMA: Final = b"ARROW:schema"
_WRITERS: Final[ByteCache[Any, Any]] = ByteCache(256 * 1024, "writers of foreign files")
_BYTES_PER_WRITER: Final = 256
_VERSION: Final = re.compile(r"\s*(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?(-)?")


class Claim(Flag):
    """A kind of claim about the values of a column chunk."""

    NOTHING = 0
    NULLS = auto()
    BOUNDS = auto()
    PAGE_BOUNDS = auto()
    BLOOMS = auto()


class LeafKind(Flag):
    """What a fault needs to know of a leaf column; a column may be of several kinds.

    `DICTIONARY`: a column of bytes that may have been written from dictionary-encoded arrays.
    """

    OTHER = auto()
    BYTES = auto()
    DECIMAL_BYTES = auto()
    TIME = auto()
    DICTIONARY = auto()
    ANY = OTHER | BYTES | DECIMAL_BYTES | TIME | DICTIONARY


@dataclass(frozen=True, slots=True)
class Fault:
    """A writer's fault. `fixed`: the first version without it; None if unknown."""

    writer: str
    fixed: Version | None
    claims: Claim
    kinds: LeafKind
    source: str


_C: Final = Claim
FAULTS: Final = (
    Fault("parquet-mr", (1, 10, 0), _C.BOUNDS | _C.PAGE_BOUNDS,
          LeafKind.BYTES | LeafKind.DECIMAL_BYTES,
          "PARQUET-251 and PARQUET-1025: reused buffers; bytes compared as signed"),
    Fault("parquet-mr", (1, 10, 0), _C.NULLS, LeafKind.ANY,
          "StarRocks/starrocks#78329: older versions count too few NULLs"),
    Fault("parquet-cpp", (1, 3, 0), _C.BOUNDS, LeafKind.BYTES | LeafKind.DECIMAL_BYTES,
          "PARQUET-1002: bytes compared as signed"),
    Fault("parquet-cpp", None, _C.NULLS | _C.BOUNDS | _C.PAGE_BOUNDS, LeafKind.DICTIONARY,
          "ARROW-12513, apache/arrow#15042: the name of Arrow C++ before 4"),
    Fault("parquet-cpp-arrow", (5, 0, 0), _C.NULLS, LeafKind.DICTIONARY,
          "ARROW-12513: dictionary arrays have a NULL count of 0"),
    Fault("parquet-cpp-arrow", (12, 0, 0), _C.BOUNDS | _C.PAGE_BOUNDS, LeafKind.DICTIONARY,
          "apache/arrow#15042 and #34106: bounds of the first dictionary or page only"),
    Fault("parquet-rs", (5, 2, 0), _C.BOUNDS | _C.PAGE_BOUNDS, LeafKind.BYTES,
          "apache/arrow-rs#641: shorter texts count as less"),
    Fault("arrow2 - native rust implementation of arrow", None, _C.NULLS, LeafKind.ANY,
          "jorgecarleitao/arrow2#1414: the NULLs of a dictionary's values"),
    Fault("polars", None, _C.BOUNDS | _C.PAGE_BOUNDS, LeafKind.DECIMAL_BYTES,
          "pola-rs/polars#29347: decimals compared as unsigned bytes"),
    Fault("parquet-go", (1, 0, 0), _C.NULLS, LeafKind.ANY,
          "fraugster/parquet-go#69, and the fork of xitongsys/parquet-go for NULL counts"),
    Fault("parquet-go", None, _C.BLOOMS, LeafKind.ANY,
          "apache/arrow-go#525: adaptive filters lack values"),
    Fault("github.com/segmentio/parquet-go", None, _C.PAGE_BOUNDS,
          LeafKind.BYTES | LeafKind.DECIMAL_BYTES,
          "segmentio/parquet-go#495: upper bounds are cut, and not raised"),
    Fault("github.com/parquet-go/parquet-go", (0, 17, 0), _C.PAGE_BOUNDS,
          LeafKind.BYTES | LeafKind.DECIMAL_BYTES, "segmentio/parquet-go#495, inherited"),
    Fault("hyparquet", None, _C.BOUNDS | _C.PAGE_BOUNDS, LeafKind.BYTES | LeafKind.DECIMAL_BYTES,
          "hyparam/hyparquet-writer#31: upper bounds are cut, and not raised"),
    Fault("parquet.net", None, _C.BOUNDS | _C.PAGE_BOUNDS, LeafKind.TIME,
          "aloneguid/parquet-dotnet#769: bounds in another unit, and in local time"),
)  # fmt: skip


@cached_in(_WRITERS, lambda _, created_by, _kind: _BYTES_PER_WRITER + 2 * len(created_by))
def doubted(created_by: str, kind: LeafKind) -> Claim:
    """The claims about a column of this kind that a writer is known to make wrongly."""
    name, version = _writer(created_by)
    claims = Claim.NOTHING
    for fault in FAULTS:
        if fault.writer == name and fault.kinds & kind and _is_before(version, fault.fixed):
            claims |= fault.claims
    return claims


def dictionary_leaves(pairs: Mapping[bytes, bytes], leaf_count: int) -> Sequence[bool]:
    """Which leaves may come from dictionary arrays, by the Arrow schema in a footer; else all."""
    everything = [True] * leaf_count
    text = pairs.get(ARROW_SCHEMA)
    if text is None:
        return everything
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
    except (pa.ArrowException, OSError, ValueError):
        return everything
    flags = [each for field in schema for each in _dictionaries(field.type)]
    return flags if len(flags) == leaf_count else everything


def _dictionaries(type_: pa.DataType) -> list[bool]:
    if isinstance(type_, pa.BaseExtensionType):
        return _dictionaries(type_.storage_type)
    if not type_.num_fields:
        return [pa.types.is_dictionary(type_)]
    return [each for i in range(type_.num_fields) for each in _dictionaries(type_.field(i).type)]


def _writer(created_by: str) -> tuple[str, Version | None]:
    """The writer's name, and its version; None if it has none that can be read."""
    name, _, text = created_by.partition(" version ")
    match = _VERSION.match(text)
    if match is None:
        return name.strip().lower(), None
    major, minor, patch = (int(each or 0) for each in match.groups()[:3])
    if match[4]:  # "5.0.0-SNAPSHOT" is older than 5.0.0
        return name.strip().lower(), (major, minor, patch - 1)
    return name.strip().lower(), (major, minor, patch)


def _is_before(version: Version | None, fixed: Version | None) -> bool:
    return version is None or fixed is None or version < fixed
