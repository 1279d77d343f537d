"""Parses and checks the options of reads of the change feed, in batch and as a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.spark.known_options import known_names, refuse_unknown
from rowsieve.providers.spark.option_values import (
    REF_OPTIONS,
    condition_of,
    count_of,
    uri_of,
    without_zone_of_times,
)
from rowsieve.providers.spark.store_options import STORAGE, storage_of
from rowsieve.statements.name_lists import names_of
from rowsieve.types.instants import has_offset, to_microseconds
from rowsieve.types.time_zones import in_zone

READ_FEED: Final = "readchangefeed"
NET: Final = "netchanges"
LATEST: Final = "latest"
MAX_VERSIONS: Final = 1000
"""The commits per batch of a stream, unless an option says otherwise."""

_WRITTEN: Final = (
    "startingVersion",
    "startingTimestamp",
    "endingVersion",
    "endingTimestamp",
    "maxVersionsPerTrigger",
    "maxFilesPerTrigger",
    "netChanges",
)
_OF_FEED: Final = tuple(map(str.lower, _WRITTEN))
_KNOWN: Final = (
    "path",
    *REF_OPTIONS,
    "readChangeFeed",
    *_WRITTEN,
    "columns",
    "where",
    "time_zone",
    "ansi",
    "predicate",
    "split_bytes",
)
_CHANGES_ONLY: Final = ("skipchangecommits", "ignorechanges", "ignoredeletes")


@dataclass(frozen=True, slots=True)
class FeedOptions:
    """The options of a read of the change feed; `where` is SQL in Spark's dialect over its rows.

    `starting_version` is a version, "latest" for what comes after the newest one, or None.
    `semantics` and `predicate` are as in `ReadOptions`.
    """

    uri: str
    storage: Mapping[str, str] = field(repr=False)  # may contain secrets
    where: str | None = None
    semantics: Semantics | None = None
    predicate: Predicate | None = None
    columns: tuple[str, ...] | None = None
    starting_version: int | str | None = None
    starting_timestamp: str | None = None
    ending_version: int | None = None
    ending_timestamp: str | None = None
    max_versions: int | None = None
    net: bool = False
    max_files: int | None = None
    split_bytes: int | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> FeedOptions:
        """Read Spark's options; InvalidInput says which one is wrong."""
        options = known_names(options)
        _refuse_filters_of_commits(options)
        refuse_unknown(options, _KNOWN, (STORAGE,), "read of the change feed")
        for one, other in (_OF_FEED[:2], _OF_FEED[2:4]):
            if one in options and other in options:
                raise InvalidInput(f"options {one} and {other} exclude each other; give one")
        columns, start = options.get("columns"), options.get("startingversion")
        is_latest = start is not None and start.lower() == LATEST
        started, ended = _time(options, "startingTimestamp"), _time(options, "endingTimestamp")
        if started is not None or ended is not None:
            options = without_zone_of_times(options)
        predicate, semantics = condition_of(options)
        return cls(
            uri=uri_of(options),
            storage=storage_of(options),
            where=options.get("where"),
            semantics=semantics,
            predicate=predicate,
            columns=None if columns is None else names_of(columns),
            starting_version=LATEST if is_latest else count_of(options, "startingversion"),
            starting_timestamp=started,
            ending_version=count_of(options, "endingversion"),
            ending_timestamp=ended,
            net=_is_true(options, NET, "netChanges"),
            max_versions=count_of(options, "maxversionspertrigger", least=1),
            max_files=count_of(options, "maxfilespertrigger", least=1),
            split_bytes=count_of(options, "split_bytes", least=1),
        )

    @property
    def has_start(self) -> bool:
        """True if an option says where to start."""
        return self.starting_version is not None or self.starting_timestamp is not None

    def check_batch(self) -> None:
        """Raise InvalidInput for options of streams, and without a start."""
        if self.max_versions is not None or self.max_files is not None:
            raise InvalidInput(
                "options maxVersionsPerTrigger and maxFilesPerTrigger are for spark.readStream; "
                "omit them"
            )
        if not self.has_start:
            raise InvalidInput(
                "a read of the change feed starts somewhere: give the option startingVersion or "
                "startingTimestamp"
            )

    def check_stream(self) -> None:
        """Raise InvalidInput for options of batch reads."""
        if self.ending_version is not None or self.ending_timestamp is not None:
            raise InvalidInput(
                "options endingVersion and endingTimestamp are for spark.read; a stream with the "
                "trigger availableNow ends at the newest version"
            )
        if self.net:
            raise InvalidInput(
                "option netChanges is for spark.read; a stream has the changes of each commit"
            )


def _time(options: Mapping[str, str], name: str) -> str | None:
    """The time that an option has, with an offset, by the option `time_zone` if it has none."""
    if (text := options.get(name.lower())) is None:
        return None
    try:
        if not has_offset(text) and (zone := options.get("time_zone")) is not None:
            return in_zone(text, zone)
        to_microseconds(text)
    except InvalidInput as error:
        raise InvalidInput(f"option {name}: {error}") from error
    return text


def reads_feed(options: Mapping[str, str]) -> bool:
    """Return whether these options ask for the change feed; InvalidInput if it is unclear."""
    if _is_true(options, READ_FEED, "readChangeFeed"):
        return True
    _refuse_filters_of_commits(options)
    if (extra := next((name for name in _OF_FEED if name in options), None)) is not None:
        raise InvalidInput(
            f"option {extra} is for reads of the change feed: add .option('readChangeFeed', 'true')"
        )
    return False


def _is_true(options: Mapping[str, str], name: str, shown: str) -> bool:
    value = options.get(name, "false").lower()
    if value not in ("true", "false"):
        raise InvalidInput(f"option {shown} is true or false, not {value!r}")
    return value == "true"


def _refuse_filters_of_commits(options: Mapping[str, str]) -> None:
    """Refuse Delta's options that skip commits, because rows would be lost."""
    if (option := next((name for name in _CHANGES_ONLY if name in options), None)) is not None:
        raise UnsupportedOperation(
            f"option {option}: a stream here has the rows of all commits, with their change types; "
            "choose by .option('where', \"_change_type = 'insert'\")"
        )
