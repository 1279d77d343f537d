"""The fields of Parquet's footers: their numbers, and the paths of those of a column chunk.

Source: parquet.thrift of Apache Parquet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rowsieve.parquet.foreign_footer.struct_shapes import BINARY, LIST, STRUCT, Path

VERSION, SCHEMA, ROWS, ROW_GROUPS, PAIRS, CREATED_BY, ORDERS = range(1, 8)  # of a footer
COLUMNS, GROUP_ROWS = 1, 3  # of a row group
I32_KIND, I64_KIND = 5, 6
BOOL_KINDS: Final = (1, 2)  # true and false, in a struct

FILE, METADATA, CRYPTO = (1,), (3,), (8,)  # of a column chunk, and so on
OFFSET_INDEX, OFFSET_INDEX_BYTES, COLUMN_INDEX, COLUMN_INDEX_BYTES = (4,), (5,), (6,), (7,)
TYPE, ENCODINGS, PATH, CODEC = (3, 1), (3, 2), (3, 3), (3, 4)
VALUES, UNCOMPRESSED, COMPRESSED = (3, 5), (3, 6), (3, 7)
DATA, DICTIONARY = (3, 9), (3, 11)
STATISTICS, SIZES, GEOMETRY = (3, 12), (3, 16), (3, 17)
OLD_MAX, OLD_MIN, NULLS, MAX, MIN = (3, 12, 1), (3, 12, 2), (3, 12, 3), (3, 12, 5), (3, 12, 6)
BLOOM, BLOOM_BYTES = (3, 14), (3, 15)
TEXT_BYTES, REPETITIONS, DEFINITIONS = (3, 16, 1), (3, 16, 2), (3, 16, 3)

WANTED: Final[Mapping[Path, int]] = {
    **dict.fromkeys((FILE, OLD_MAX, OLD_MIN, MAX, MIN), BINARY),
    **dict.fromkeys((METADATA, CRYPTO, STATISTICS, SIZES, GEOMETRY), STRUCT),
    **dict.fromkeys((TYPE, CODEC, OFFSET_INDEX_BYTES, COLUMN_INDEX_BYTES, BLOOM_BYTES), I32_KIND),
    **dict.fromkeys((OFFSET_INDEX, COLUMN_INDEX, VALUES, UNCOMPRESSED, COMPRESSED), I64_KIND),
    **dict.fromkeys((DATA, DICTIONARY, NULLS, BLOOM, TEXT_BYTES), I64_KIND),
    **dict.fromkeys((ENCODINGS, PATH, REPETITIONS, DEFINITIONS), LIST),
}
"""The fields of a chunk that are read, and their kinds."""

REQUIRED: Final = (TYPE, ENCODINGS, PATH, CODEC, VALUES, UNCOMPRESSED, COMPRESSED, DATA)
NOT_NEGATIVE: Final = (VALUES, UNCOMPRESSED, COMPRESSED, DATA)
LARGEST_VALUE: Final = 2**62
"""Greater numbers are impossible."""
PHYSICAL: Final = (
    "BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY",
)  # fmt: skip
"""Parquet's names of the physical types, by number."""

CODECS: Final = (
    "UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW",
)  # fmt: skip
"""Parquet's names of the codecs, by number."""

MAGIC: Final = b"PAR1"
ENCRYPTED_MAGIC: Final = b"PARE"
