"""Reads the values of options, which Spark passes as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.objects import Location, open_store
from rowsieve.predicate.codec import (
    predicate_from_json,
    predicate_to_json,
    semantics_from_json,
    semantics_to_json,
)
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.spark.store_options import storage_of
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.version_arguments import log_of_ref
from rowsieve.types.instants import has_offset
from rowsieve.types.time_zones import in_zone, is_own_name

REF_OPTIONS: Final = ("ref", "branch", "tag")
"""Names of one option: a branch or tag of the table, which is read or written in its place."""
VIEW: Final = "CREATE TEMPORARY VIEW ... USING rowsieve OPTIONS (path '...')"


def check_reachable(uri: str) -> None:
    """Refuse a table that other processes cannot access."""
    if Location.parse(uri).scheme == "memory":
        raise UnsupportedOperation(
            f"{uri} lives in the memory of one process, and Spark reads and writes from others; "
            "use a directory or an object store"
        )


def uri_of(options: Mapping[str, str], *, writes: bool = False) -> str:
    """The URI of the table; UnsupportedOperation if Spark cannot reach it.

    Spark gives a Python source no path of a table of its catalog. Hadoop writes a local path as
    `file:/a/b`, which is the path `/a/b`.
    """
    uri = options.get("path")
    if not uri and writes:
        raise UnsupportedOperation(
            "nothing was written: Spark passes no path for a name of its catalog, by which tables "
            "are only read, so INSERT, insertInto, writeTo, saveAsTable and toTable cannot write "
            "there. Write by the path: df.write.format('rowsieve').mode('append').save(path), "
            "df.writeStream.format('rowsieve').start(path), or Table.write_spark(df, mode=...)"
        )
    if not uri:
        raise InvalidInput(
            "the table is not named: give its URI to load(). If this is a name of Spark's catalog, "
            "then saveAsTable, writeTo, toTable or CREATE TABLE with columns made it, and Spark "
            "keeps no path for it: DROP TABLE removes the name and none of our files, and CREATE "
            "TABLE name USING rowsieve OPTIONS (path '...') makes one that can be read"
        )
    if uri.startswith("file:/") and not uri.startswith("file://"):
        uri = local_path(uri, "give the plain path")
    check_reachable(uri)
    names = {options[name] for name in REF_OPTIONS if options.get(name)}
    if len(names) > 1:
        raise InvalidInput(
            f"options {', '.join(REF_OPTIONS)} name the same thing; give one of them, not "
            f"{' and '.join(sorted(names))}"
        )
    return ref_uri(uri, names.pop(), storage_of(options)) if names else uri


def ref_uri(uri: str, name: str, storage: Mapping[str, str]) -> str:
    """The URI of a branch or tag of a table, by which every process opens it."""
    return log_of_ref(CommitLog(open_store(uri, storage or None)), name).store.uri


def local_path(uri: str, instead: str) -> str:
    """The path of Hadoop's `file:/a/b`; UnsupportedOperation with a percent sign in it."""
    if "%" in uri:
        raise UnsupportedOperation(
            f"{uri} may be a path or a URI with escapes, and nothing tells which; {instead}"
        )
    return "/" + uri.removeprefix("file:/").lstrip("/")


def predicate_option(predicate: Predicate, semantics: Semantics) -> str:
    """The value of the option `predicate`: the serialised tree and its semantics."""
    return msgspec.json.encode(
        [predicate_to_json(predicate), semantics_to_json(semantics)]
    ).decode()


def condition_of(
    options: Mapping[str, str], text: str = "where"
) -> tuple[Predicate | None, Semantics | None]:
    """The serialised condition, or None, and the settings of the condition `text`."""
    zone, ansi = options.get("time_zone"), options.get("ansi")
    if (encoded := options.get("predicate")) is not None:
        if zone is not None or ansi is not None or text in options:
            raise InvalidInput(
                f"option predicate is what to_spark passes on, with its own settings; give {text}, "
                "time_zone and ansi without it"
            )
        try:
            tree, semantics = msgspec.json.decode(encoded, type=tuple[Any, Any])
        except msgspec.MsgspecError as error:
            raise InvalidInput(
                f"option predicate is not what to_spark passes on: {error}"
            ) from error
        return predicate_from_json(tree), semantics_from_json(semantics)
    if zone is None and ansi is None:
        return None, None
    if zone is None or ansi is None or text not in options:
        raise InvalidInput(
            f"options time_zone and ansi set the semantics of option {text}; give all three"
        )
    if ansi.lower() not in ("true", "false"):
        raise InvalidInput(f"option ansi is true or false, not {ansi!r}")
    if is_own_name(zone):
        raise InvalidInput(f"option time_zone is a zone such as Europe/Berlin, not {zone!r}")
    return None, Semantics.of_spark(ansi=ansi.lower() == "true", time_zone=zone)


def time_with_zone(options: Mapping[str, str]) -> tuple[str | None, dict[str, str]]:
    """The time to read at, with an offset, and the other options.

    A time without an offset takes the zone of the option `time_zone`.
    """
    others = {name: value for name, value in options.items() if name != "as_of"}
    if (text := options.get("as_of")) is None or has_offset(text):
        return text, others
    if (zone := options.get("time_zone")) is None:
        raise InvalidInput(
            f"option timestampAsOf: {text!r} has no offset, and Spark does not tell a source the "
            "time zone of the session: write it as 2026-01-31T12:00:00+01:00, give the option "
            "time_zone, or call rowsieve.providers.spark.read(spark, path, as_of=...), which takes "
            "the session's"
        )
    return in_zone(text, zone), without_zone_of_times(others)


def without_zone_of_times(options: Mapping[str, str]) -> dict[str, str]:
    """The options without a `time_zone` that is only for times, not for a condition."""
    of_condition = "where" in options or "ansi" in options
    return {name: text for name, text in options.items() if of_condition or name != "time_zone"}


def count_of(options: Mapping[str, str], name: str, least: int = 0) -> int | None:
    """The whole number that an option has; None if it is not given."""
    text = options.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text) >= least):
        raise InvalidInput(f"option {name} is a whole number from {least}, not {text!r}")
    return int(text)


def with_prefix(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The options whose names begin with the prefix, by the rest of their names."""
    return {
        name.lower().removeprefix(prefix): value
        for name, value in options.items()
        if name.lower().startswith(prefix)
    }
