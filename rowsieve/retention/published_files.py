"""Names of the files that publications write, by format; no other file beside a table is theirs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

Format: TypeAlias = Literal["delta", "iceberg"]

ROWS_BESIDE: Final = re.compile(r"metadata/[0-9a-f]{32}\.\d+\.\d+\.parquet", re.ASCII)
"""The rows of parts in memory, to which the metadata of both formats refers."""

PUBLISHED_FILES: Final[Mapping[Format, re.Pattern[str]]] = {
    "iceberg": re.compile(
        r"metadata/v[1-9]\d*\.metadata\.json|metadata/version-hint\.text"
        r"|metadata/(?:snap-\d+-[0-9a-f]{32}|[0-9a-f]{32}-m0)\.avro"
        r"|metadata/[0-9a-f]{32}\.puffin"
        r"|metadata/[0-9a-f]{32}-[0-9a-f]{32}-deletes\.parquet"
        r"|metadata/catalog/\d{5,}-[0-9a-f-]{36}\.metadata\.json",
        re.ASCII,
    ),
    "delta": re.compile(
        r"_delta_log/\d{20}\.(?:json|checkpoint\.parquet)|_delta_log/_last_checkpoint"
        r"|metadata/deletion_vector_[0-9a-f-]{36}\.bin",
        re.ASCII,
    ),
}


def is_published(path: str) -> bool:
    """Return whether a publication writes files of this name."""
    patterns = (ROWS_BESIDE, *PUBLISHED_FILES.values())
    return any(pattern.fullmatch(path) for pattern in patterns)
