"""Convert points in time between user input and microseconds since 1970-01-01 UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rowsieve.errors import InvalidInput

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_microseconds(moment: datetime | str) -> int:
    """Convert an aware datetime, or ISO-8601 text with an offset; InvalidInput without a zone."""
    parsed = _parsed(moment) if isinstance(moment, str) else moment
    if parsed.tzinfo is None:
        raise InvalidInput(
            f"{moment!r} has no time zone, so it is not a point in time; add an offset such as "
            "+00:00"
        )
    try:
        return (parsed.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
    except OverflowError as error:
        raise InvalidInput(
            f"{moment!r} is outside the years 1 to 9999 in UTC; use a time within them"
        ) from error


def has_offset(text: str) -> bool:
    """Return whether ISO-8601 text has an offset; InvalidInput for other text."""
    return _parsed(text).tzinfo is not None


def _parsed(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(
            f"{text!r} is not a time in ISO-8601, such as 2013-02-08T12:00:00+00:00"
        ) from error


def from_microseconds(moment_us: int) -> datetime:
    """Convert microseconds to an aware UTC datetime."""
    return _EPOCH + timedelta(microseconds=moment_us)
