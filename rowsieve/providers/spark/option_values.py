"""Reads the values of options, which Spark passes as text; an unknown option is an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from rowsieve.errors import InvalidInput, UnsupportedOperation, did_you_mean
from rowsieve.objects import Location
from rowsieve.predicate.codec import (
    predicate_from_json,
    predicate_to_json,
    semantics_from_json,
    semantics_to_json,
)
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.time_zones import is_own_name

STORAGE: Final = "storage."
VIEW: Final = "CREATE TEMPORARY VIEW ... USING rowsieve OPTIONS (path '...')"


def check_reachable(uri: str) -> None:
    """Refuse a table that other processes cannot access."""
    if Location.parse(uri).scheme == "memory":
        raise UnsupportedOperation(
            f"{uri} lives in the memory of one process, and Spark reads and writes from others; "
            "use a directory or an object store"
        )


def uri_of(options: Mapping[str, str]) -> str:
    """The URI of the table; UnsupportedOperation if Spark cannot reach it."""
    uri = options.get("path")
    if not uri:
        raise InvalidInput(
            "the table is not named: give its URI to load() or save(). A table of Spark's catalog "
            "is read only, in batches, and was created without columns of its own: CREATE TABLE "
            "... USING rowsieve OPTIONS (path '...')"
        )
    check_reachable(uri)
    return uri


def names_of(columns: str, option: str = "columns") -> tuple[str, ...]:
    """Parse names separated by commas, or a JSON list, which allows any name."""
    if columns.startswith("["):
        try:
            listed = tuple(msgspec.json.decode(columns, type=list[str]))
        except msgspec.MsgspecError as error:
            raise InvalidInput(f"option {option} is not a JSON list of names: {error}") from error
        if not listed:  # Spark takes batches without columns as batches without rows
            raise InvalidInput(f"option {option} names no column; name at least one")
        return listed
    names = tuple(name.strip() for name in columns.split(","))
    if not all(names):
        raise InvalidInput(f"option {option} is names separated by commas, not {columns!r}")
    return names


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


def spelling(options: Mapping[str, str], ours: str, theirs: str) -> str:
    """The name of the option that is given: ours or Spark's."""
    if ours in options and theirs in options:
        raise InvalidInput(f"options {ours} and {theirs} mean the same; give one of them")
    return theirs if theirs in options else ours


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


def refuse_unknown(
    options: Mapping[str, str], known: tuple[str, ...], prefixes: tuple[str, ...], what: str
) -> None:
    """Raise InvalidInput for an option that is not known and has none of the prefixes."""
    for name in options:
        if name.lower() in known or name.lower().startswith(prefixes):
            continue
        hint = did_you_mean(name.lower(), known)
        raise InvalidInput(
            f"unknown option {name!r} of a {what}{hint}; known are {', '.join(known)} and "
            f"{', '.join(f'{prefix}*' for prefix in prefixes)}"
        )
