"""Options by the names that users of Delta Lake and Iceberg know: renamed, or refused by name.

Names are compared in lower case, as Spark passes them. A message names only options that are for
users, never those by which our own calls talk to the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rowsieve.errors import InvalidInput, UnsupportedOperation, did_you_mean

_ALIASES: Final[Mapping[str, tuple[str, str]]] = {
    "versionasof": ("version", "versionAsOf"),
    "snapshot-id": ("version", "snapshot-id"),
    "timestampasof": ("as_of", "timestampAsOf"),
    "txnappid": ("token_app", "txnAppId"),
    "txnversion": ("token_sequence", "txnVersion"),
}
"""By the foreign name in lower case: our name, and the foreign one as it is written."""

_INSTEAD: Final[Mapping[str, str]] = {
    "as-of-timestamp": "give timestampAsOf, ISO-8601 with an offset, instead of milliseconds",
    "branch": "open the table with ref='name', and call its methods",
    "tag": "open the table with ref='name', and call its methods",
    "start-snapshot-id": "give readChangeFeed 'true' with startingVersion",
    "end-snapshot-id": "give readChangeFeed 'true' with endingVersion",
    "maxbytespertrigger": "limit a batch by maxVersionsPerTrigger or maxFilesPerTrigger",
    "partitionoverwritemode": "give replaceWhere with the condition of the rows to replace",
    "paths": "load() takes one table; read each, and unite the frames by unionByName",
    "datachange": "rewrite files by the method compact, which changes no row",
    "checkpointlocation": "it is an option of df.writeStream",
}
_OWN: Final = frozenset({"predicate", "parts", "write_id", "one_pass", "merge", "notes"})
"""Options that our own calls pass on; no message suggests them."""


def known_names(options: Mapping[str, str]) -> dict[str, str]:
    """The options in lower case under our names; InvalidInput for one that is given twice."""
    renamed: dict[str, str] = {}
    spellings: dict[str, str] = {}
    for name, value in options.items():
        ours, shown = _ALIASES.get(name.lower(), (name.lower(), name))
        if ours in renamed:
            raise InvalidInput(
                f"options {spellings[ours]} and {shown} mean the same; give one of them"
            )
        renamed[ours], spellings[ours] = value, shown
    return renamed


def flag_of(options: Mapping[str, str], name: str) -> bool:
    """Whether an option is true; InvalidInput unless it is true or false."""
    value = options.get(name.lower(), "false").lower()
    if value not in ("true", "false"):
        raise InvalidInput(f"option {name} is true or false, not {value!r}")
    return value == "true"


def adds_columns(options: Mapping[str, str]) -> bool:
    """Whether a write adds the columns that the table lacks; no write changes other columns."""
    if flag_of(options, "overwriteSchema"):
        raise UnsupportedOperation(
            "option overwriteSchema: an overwrite keeps the columns of the table; nothing was "
            "written. mergeSchema adds columns, and Table.alter changes them"
        )
    return flag_of(options, "mergeSchema")


def refuse_unknown(
    options: Mapping[str, str], known: tuple[str, ...], prefixes: tuple[str, ...], what: str
) -> None:
    """Raise an error for an option that is not known and has none of the prefixes."""
    lowered = {name.lower() for name in known}
    shown = [name for name in known if name not in _OWN]
    for name in options:
        if name.lower() in lowered or name.lower().startswith(prefixes):
            continue
        if (instead := _INSTEAD.get(name.lower())) is not None:
            raise UnsupportedOperation(f"option {name} of a {what} is not available: {instead}")
        hint = did_you_mean(name.lower(), shown)
        raise InvalidInput(
            f"unknown option {name!r} of a {what}{hint}; known are {', '.join(shown)} and "
            f"{', '.join(f'{prefix}*' for prefix in prefixes)}"
        )
