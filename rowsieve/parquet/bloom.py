"""Split-block bloom filters: tell whether a row group may contain a value.

A filter holds the xxh64 of each value's bytes as the *file* stores them (plain encoding, without a
length). So a value is first encoded in the file's physical type; a value that this type cannot
represent is absent. Floats are never looked up in a filter of floats, because equal floats may have
different bits (invariant 25). Soundness: a filter may have false positives, never false negatives.
A value whose encoding is uncertain may be present.

Source: Apache Parquet format, BloomFilter.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import xxhash

from rowsieve.parquet.leaf_columns import FileColumn, as_text
from rowsieve.parquet.thrift import MalformedThrift, read_struct
from rowsieve.predicate.arrays import filled, plain_numbers
from rowsieve.types.days import DAY_US, NANOS_OF_MICRO
from rowsieve.types.widening import holds_all_of

BLOCK_BYTES: Final = 32
_SALT: Final = np.array(
    [
        0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D,
        0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31,
    ],
    dtype=np.uint32,
)  # fmt: skip
_SALTS = [(32 * place, int(salt)) for place, salt in enumerate(_SALT)]
_LOW_HALF: Final = 2**32 - 1
HASHED_IN_PYTHON_UP_TO: Final = 16  # values
_BLOCK, _XXHASH, _UNCOMPRESSED = 2, 3, 4  # unions in the header; we know field 1
_HALF = np.uint64(32)
_FIVE_BITS_LEFT = np.uint32(27)


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """The filter of one column in one row group; each of its blocks has 32 bytes."""

    column: FileColumn
    blocks: bytes

    @classmethod
    def parse(
        cls, column: FileColumn, data: bytes | memoryview, *, exact_length: bool = False
    ) -> BloomFilter | None:
        """Parse a filter with its header; None for an unknown algorithm, hash or compression.

        Malformed bytes raise `MalformedThrift`; with `exact_length`, bytes after the filter too.
        """
        header, start = read_struct(data)
        size_bytes = header.get(1)
        if not isinstance(size_bytes, int) or size_bytes <= 0 or size_bytes % BLOCK_BYTES:
            raise MalformedThrift(f"a filter of {size_bytes!r} bytes is not a sequence of blocks")
        for field in (_BLOCK, _XXHASH, _UNCOMPRESSED):
            if not isinstance(member := header.get(field), dict) or set(member) != {1}:
                return None
        rest = len(data) - start
        if rest < size_bytes or (exact_length and rest > size_bytes):
            raise MalformedThrift(f"the header says {size_bytes} bytes, but {rest} follow")
        return cls(column, bytes(data[start : start + size_bytes]))

    def may_contain_any(self, probes: Probes | None) -> bool:
        """Return whether the filter may contain one of these values, encoded for this column."""
        if probes is None:
            return True
        return any(probe is not None and self._has(*probe) for probe in probes)

    def may_contain(self, encoded: bytes) -> bool:
        """Return whether the filter may contain a value, given as the file stores it."""
        return self._has(*_probe(encoded))

    def _has(self, share: int, bits: int) -> bool:
        count = len(self.blocks) // BLOCK_BYTES
        start = (share * count >> 32) * BLOCK_BYTES
        block = int.from_bytes(self.blocks[start : start + BLOCK_BYTES], "little")
        return block & bits == bits


Probes: TypeAlias = Sequence[tuple[int, int] | None]
"""For each value, the position of its block as a 32-bit fraction, and the bits set in the block.

None for a value that the file's type cannot represent, so no filter contains it.
"""


def probes_of(values: pa.Array, column: FileColumn) -> Probes | None:
    """Probes of values for a file's filters; values have the table's storage type and no NULLs.

    None if it is uncertain how the file stores these values.
    """
    encoded = plain_encoded(values, column)
    if encoded is None:
        return None
    if len(encoded) <= HASHED_IN_PYTHON_UP_TO:
        return [None if value is None else _probe(value) for value in encoded]
    present = [value for value in encoded if value is not None]
    hashes = np.fromiter(map(xxhash.xxh64_intdigest, present), np.uint64, len(present))
    bits = np.uint32(1) << ((hashes.astype(np.uint32)[:, None] * _SALT) >> _FIVE_BITS_LEFT)
    blocks = bits.astype("<u4").view(f"V{BLOCK_BYTES}").ravel().tolist()
    shares = (hashes >> _HALF).tolist()
    probes = iter(zip(shares, (int.from_bytes(block, "little") for block in blocks), strict=True))
    return [None if value is None else next(probes) for value in encoded]


def _probe(value: bytes) -> tuple[int, int]:
    """The probe of one encoded value; for few values, Python's integers are faster than numpy."""
    digest = xxhash.xxh64_intdigest(value)
    low, bits = digest & _LOW_HALF, 0
    for place, salt in _SALTS:
        bits |= 1 << (place + ((low * salt & _LOW_HALF) >> 27))
    return digest >> 32, bits


def plain_encoded(values: pa.Array, column: FileColumn) -> list[bytes | None] | None:
    """Each value's bytes in the file; None for a value that the file's type cannot represent.

    None instead of a list if it is uncertain how the file stores these values.
    """
    type_ = as_text(column, values.type).type
    if not holds_all_of(values.type, type_):
        return None
    if pa.types.is_decimal128(type_):
        return _encoded_decimals(values, column)
    match column.physical:
        case "INT32" | "INT64":
            return _encoded_integers(values, column)
        case "BYTE_ARRAY" if pa.types.is_string(type_):
            return list(values.cast(pa.binary()).to_pylist())
        case "BYTE_ARRAY" if pa.types.is_binary(type_):
            return list(values.to_pylist())
        case "FIXED_LEN_BYTE_ARRAY" if type_ == pa.binary(column.width):
            return list(values.to_pylist())
        case _:  # floats, booleans and others
            return None


def _encoded_integers(values: pa.Array, column: FileColumn) -> list[bytes | None] | None:
    """Numbers, days and microseconds as 4 or 8 little-endian bytes."""
    width = 4 if column.physical == "INT32" else 8
    if (
        len(values) <= HASHED_IN_PYTHON_UP_TO
        and values.type == column.type
        and values.type.bit_width == width * 8
    ):
        if pa.types.is_floating(values.type):
            return None
        mask = (1 << width * 8) - 1
        plain = plain_numbers(values).to_pylist()
        return [(value & mask).to_bytes(width, "little") for value in plain]
    if pa.types.is_decimal(values.type):
        return _decimals_as_integers(values, column, width)
    numbers = filled(values)
    representable = np.ones(len(numbers), dtype=np.bool_)
    if pa.types.is_date32(column.type) and pa.types.is_timestamp(values.type):
        day = DAY_US if values.type.unit == "us" else DAY_US * NANOS_OF_MICRO
        days = numbers // day  # within 32 bits
        representable, numbers = numbers == days * day, days
    elif pa.types.is_integer(column.type):
        limits = np.iinfo(column.type.to_pandas_dtype())
        if limits.bits > width * 8:
            return None
        if values.type != column.type:
            representable = (numbers >= limits.min) & (numbers <= limits.max)  # NaN is neither
        if pa.types.is_floating(values.type):
            representable &= np.floor(numbers) == numbers
            numbers = np.where(representable, numbers, 0).astype(np.int64)
    elif values.type.bit_width != width * 8:
        return None
    if not np.issubdtype(numbers.dtype, np.integer):
        return None
    stored = numbers.astype(np.dtype(f"<i{width}")).view(f"V{width}").tolist()
    return [value if there else None for value, there in zip(stored, representable, strict=True)]


def _decimals_as_integers(
    values: pa.Array, column: FileColumn, width: int
) -> list[bytes | None] | None:
    """Whole decimals as the integers of a column from before it was widened."""
    if not pa.types.is_integer(column.type):
        return None
    limits = np.iinfo(column.type.to_pandas_dtype())
    if limits.bits > width * 8:
        return None
    one, mask = 10 ** int(values.type.scale), (1 << width * 8) - 1
    integers: list[bytes | None] = []
    for digits in _unscaled(values):
        number, rest = divmod(digits, one)
        fits = not rest and limits.min <= number <= limits.max
        integers.append((number & mask).to_bytes(width, "little") if fits else None)
    return integers


def _encoded_decimals(values: pa.Array, column: FileColumn) -> list[bytes | None] | None:
    """Unscaled decimals at the file's scale: big-endian as FIXED_LEN_BYTE_ARRAY, else little."""
    match column.physical:
        case "INT32":
            width, big = 4, False
        case "INT64":
            width, big = 8, False
        case "FIXED_LEN_BYTE_ARRAY":
            width, big = column.width, True
        case _:
            return None
    cut = 10 ** int(values.type.scale - column.type.scale)
    limit = 10 ** int(column.type.precision)
    encoded: list[bytes | None] = []
    for unscaled in _unscaled(values):
        digits, rest = divmod(unscaled, cut)
        if rest or abs(digits) >= limit:
            encoded.append(None)
        else:
            encoded.append(digits.to_bytes(width, "big" if big else "little", signed=True))
    return encoded


def _unscaled(values: pa.Array) -> Iterator[int]:
    """The digits of each decimal as an integer."""
    words = np.frombuffer(values.buffers()[1], dtype=np.uint8)
    words = words[values.offset * 16 : (values.offset + len(values)) * 16]
    for start in range(0, len(words), 16):
        yield int.from_bytes(words[start : start + 16].tobytes(), "little", signed=True)
