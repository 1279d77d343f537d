"""Trino's `ALTER TABLE … EXECUTE command(…)` as calls of procedures: a row for each command.

`EXECUTE_FORMS` has all commands of its Iceberg and Delta connectors. One without a counterpart here
has the reason, and what to do instead. Arguments have names, as in Trino's documents; only the
version of `rollback_to_snapshot` may have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias

from rowsieve import clock
from rowsieve.errors import InvalidInput
from rowsieve.statements.call_values import Argument

Named: TypeAlias = Mapping[str, Argument]

_DURATION: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ns|us|ms|s|m|h|d)\s*", re.ASCII)
_SECONDS: Final[Mapping[str, float]] = {
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3_600, "d": 86_400,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExecuteForm:
    """A command of Trino and the procedure that it calls here.

    `arguments` converts its named arguments; `place` is the name of an argument without one;
    `takes_where`: it may have a WHERE clause. Without a procedure, `instead` says what to do.
    """

    procedure: str = ""
    arguments: Callable[[str, Named], Named] = lambda _command, named: named
    place: str = ""
    takes_where: bool = False
    instead: str = ""


def called(command: str, positional: Sequence[Argument], named: Named) -> tuple[ExecuteForm, Named]:
    """Return the form of a command and the arguments of its procedure; InvalidInput otherwise."""
    form = EXECUTE_FORMS.get(command.lower())
    if form is None:
        known = ", ".join(name for name, each in EXECUTE_FORMS.items() if each.procedure)
        raise InvalidInput(
            f"ALTER TABLE … EXECUTE {command}: only {known} can be executed; call other procedures "
            "with CALL system.name(…)"
        )
    if not form.procedure:
        raise InvalidInput(f"ALTER TABLE … EXECUTE {command}: {form.instead}")
    if len(positional) == 1 and form.place and not named:
        named, positional = {form.place: positional[0]}, ()
    if positional:
        raise InvalidInput(
            f"EXECUTE {command}: name the arguments, as in (file_size_threshold => …)"
        )
    return form, form.arguments(command, named)


def _as_options(_: str, named: Named) -> Named:
    options = {name.replace("_", "-"): str(value) for name, value in named.items()}
    return {"options": options} if options else {}


def _expired(command: str, named: Named) -> Named:
    arguments = dict(named)
    if "retention_threshold" in arguments:
        age_s = _seconds(command, arguments.pop("retention_threshold"))
        arguments["older_than"] = datetime.fromtimestamp(clock.now_us() / 1e6 - age_s, UTC)
    return arguments


def _with_grace(command: str, named: Named) -> Named:
    arguments = dict(named)
    if "retention_threshold" in arguments:
        arguments["grace_s"] = int(_seconds(command, arguments.pop("retention_threshold")))
    return arguments


def _seconds(command: str, value: Argument) -> float:
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise InvalidInput(
            f"EXECUTE {command}: retention_threshold is a duration such as '7d' or '12h', and "
            f"{value!r} is not"
        )
    return float(match[1]) * _SECONDS[match[2]]


def _version(_: str, named: Named) -> Named:
    return {"version" if name == "snapshot_id" else name: each for name, each in named.items()}


def _added(command: str, named: Named) -> Named:
    arguments = {"source" if name == "location" else name: each for name, each in named.items()}
    format_ = arguments.pop("format", "PARQUET")
    if str(format_).upper() != "PARQUET":
        raise InvalidInput(
            f"EXECUTE {command}: files of {format_} cannot be added, only of PARQUET"
        )
    if str(arguments.pop("recursive_directory", "true")).lower() != "true":
        raise InvalidInput(
            f"EXECUTE {command}: folders below the location are added too; leave "
            "recursive_directory out, or name the files' own folder"
        )
    return arguments


_BY_PARTS: Final = (
    "statistics belong to the parts and go with them; CALL system.analyze(…, rewrite_all => TRUE) "
    "collects them again"
)
EXECUTE_FORMS: Final[Mapping[str, ExecuteForm]] = {
    "optimize": ExecuteForm("rewrite_data_files", _as_options, takes_where=True),
    "optimize_manifests": ExecuteForm("rewrite_manifests"),
    "expire_snapshots": ExecuteForm("expire_snapshots", _expired),
    "remove_orphan_files": ExecuteForm("remove_orphan_files", _with_grace),
    "rollback_to_snapshot": ExecuteForm("rollback_to_snapshot", _version, place="snapshot_id"),
    "add_files": ExecuteForm("add_files", _added),
    "drop_extended_stats": ExecuteForm(instead=_BY_PARTS),
    "add_files_from_table": ExecuteForm(
        instead="name the folder of that table: CALL system.add_files(…, source => 'folder')"
    ),
}
"""By the command's name in lower case."""
