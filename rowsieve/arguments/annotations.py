"""Annotations that several signatures share: a type, an example, and rules for its text."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, TypeAlias

from rowsieve.arguments.kinds import ANY_TEXT, Example, Verified
from rowsieve.errors import InvalidInput

TableUri: TypeAlias = Annotated[str | os.PathLike[str], ANY_TEXT, Example("'s3://bucket/table'")]
"""A path, taken literally, or a percent-encoded URI."""

ColumnNames: TypeAlias = Annotated[Sequence[str], Example("['id']", "a list of names")]

HistoryColumns: TypeAlias = Annotated[
    Sequence[str], Example("('valid_from', 'valid_to')", "a list of two names")
]
"""The columns in which a version of a row begins and ends."""

MergeClause: TypeAlias = str | Mapping[str, Any]
MergeClauses: TypeAlias = Annotated[
    MergeClause | Sequence[MergeClause],
    Example("'update'", "'update', 'insert' or 'delete', a dict, or a list of these"),
]
"""What a merge does with rows of one kind, the first clause that applies."""

SequenceNames: TypeAlias = Annotated[
    str | Sequence[str], Example("'lsn'", "a name, or a list of names")
]
"""The columns of an event order, the most significant first."""

ColumnPath: TypeAlias = Annotated[
    str | Sequence[str], Example("'address.city'", "a name, a path, or a list of a path's steps")
]
"""A column, or a field inside one."""

Moment: TypeAlias = Annotated[datetime | str, Example("'2013-02-08T12:00:00+00:00'")]
"""An aware datetime, or ISO-8601 text with an offset."""

Version: TypeAlias = Annotated[int | str, Example("'2026-Q3'", "a number, or a tag's name")]
"""A version by its number, or by the name of a tag or branch."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (done, all): tasks, rows or files."""

Metadata: TypeAlias = Annotated[Mapping[str, str], Example("{'source': 'nightly'}")]
"""Text stored with a commit."""

PropertyValue: TypeAlias = Annotated[str | int | float, Example("'32'", "text or a number")]

Properties: TypeAlias = Annotated[
    Mapping[str, PropertyValue], Example("{'checkpoint_interval': '32'}")
]
"""Settings stored with a table."""

PropertyNames: TypeAlias = Annotated[
    Sequence[str], Example("['audit_percent']", "a list of names of properties")
]

StorageValue: TypeAlias = Annotated[
    str | bool | int | float | timedelta | Mapping[str, Any] | Callable[[], Any],
    Example("'eu-central-1'", "text, a boolean or a number"),
]

StorageOptions: TypeAlias = Annotated[
    Mapping[str, StorageValue], Example("{'region': 'eu-central-1'}")
]
"""Settings of an object store, with obstore's names; may hold secrets."""

Token: TypeAlias = Annotated[tuple[str, int], Example("('loader', 17)")]
"""(application id, sequence): a write is skipped if its sequence was already committed."""


def checked_timeout(timeout_s: float) -> float:
    """Return `retry_timeout_s` if it is a number of seconds from 0; InvalidInput otherwise."""
    if (
        isinstance(timeout_s, bool)
        or not isinstance(timeout_s, int | float)
        or not timeout_s >= 0  # NaN, too
    ):
        raise InvalidInput(f"retry_timeout_s is a number of seconds from 0, not {timeout_s!r}")
    return timeout_s


RetryTimeout: TypeAlias = Annotated[
    float | None, Example("60.0", "a number of seconds"), Verified(checked_timeout)
]
"""The time for retries of a change after conflicts; None means without limit."""

Percentage: TypeAlias = Annotated[float, Example("1.0", "a percentage from 0 to 100")]
