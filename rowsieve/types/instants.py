"""Points in time as users write them, in microseconds since 1970-01-01 UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rowsieve.errors import InvalidInput

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_microseconds(moment: datetime | str) -> int:
    """An aware datetime, or ISO-8601 text with an offset; anything without a zone is refused."""
    if isinstance(moment, str):
        try:
            parsed = datetime.fromisoformat(moment)
        except ValueError as error:
            raise InvalidInput(
                f"{moment!r} is not a time in ISO-8601, such as 2013-02-08T12:00:00+00:00"
            ) from error
    else:
        parsed = moment
    if parsed.tzinfo is None:
        raise InvalidInput(
            f"{moment!r} has no time zone, so it is no point in time; add an offset such as +00:00"
        )
    try:
        return (parsed.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
    except OverflowError as error:
        raise InvalidInput(
            f"{moment!r} is not within the years 1 to 9999 in UTC, which times are kept in"
        ) from error


def from_microseconds(moment_us: int) -> datetime:
    """The aware UTC datetime."""
    return _EPOCH + timedelta(microseconds=moment_us)
