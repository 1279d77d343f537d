"""The commands, by what they are for. The module of a command is imported when the command runs.

So names are completed, and help and the version shown, without the code of tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperCommand
from typer.main import get_command

SETTINGS: Final = {"help_option_names": ["-h", "--help"]}


class ListedCommand(NamedTuple):
    """What is known of a command without its module."""

    place: str  # module.function, in commands/
    summary: str  # a line of the list


GROUPS: Final[Mapping[str, Mapping[str, ListedCommand]]] = {
    "Read": {
        "query": ListedCommand("querying.query", "Run a SELECT over tables."),
        "head": ListedCommand("querying.head", "Show the first rows."),
        "show": ListedCommand("querying.show", "Show rows that match a condition."),
        "explain": ListedCommand("looking.explain", "Show what a read skips, and why."),
        "changes": ListedCommand("following.changes", "Print the changes that commits made."),
        "history": ListedCommand("looking.history", "List the commits, newest first."),
        "ui": ListedCommand("serving.ui", "Serve pages of a table to a browser, read-only."),
        "diff": ListedCommand("looking.diff", "Compare two versions, by key."),
        "profile": ListedCommand("looking.profile", "Show NULLs and bounds of columns."),
        "du": ListedCommand("looking.du", "Show the bytes of a table, or of all."),
        "inspect": ListedCommand("looking.inspect", "Show columns, key, version and sizes."),
    },
    "Change rows": {
        "create": ListedCommand("create_from_file.create", "Create a table from a file."),
        "upsert": ListedCommand(
            "changing.upsert", "Insert rows, or replace those with the same key."
        ),
        "apply": ListedCommand("change_data.apply", "Apply a file of changes (CDC) in one commit."),
        "ingest": ListedCommand("change_data.ingest", "Upsert JSON lines as they come, durably."),
        "update": ListedCommand("changing.update", "Set columns of the rows that match."),
        "delete": ListedCommand("changing.delete", "Delete rows by condition or by key."),
        "overwrite": ListedCommand(
            "changing.overwrite", "Replace the rows that match by a file's."
        ),
        "restore": ListedCommand(
            "changing.restore", "Restore an earlier version, as a new commit."
        ),
    },
    "Change the table": {
        "alter": ListedCommand("altering.alter", "Add, drop, rename or widen columns."),
        "set": ListedCommand("altering.set_properties", "Set table properties."),
        "unset": ListedCommand(
            "altering.unset_properties", "Reset table properties to their defaults."
        ),
        "refs": ListedCommand("naming.refs", "List branches and tags."),
        "tag": ListedCommand("naming.tag", "Give a version a name that keeps it for ever."),
        "branch": ListedCommand("naming.branch", "Begin a branch with a version."),
        "fast-forward": ListedCommand(
            "naming.fast_forward", "Make a branch's newest version ours."
        ),
        "drop-ref": ListedCommand("naming.drop_ref", "Remove a branch or tag."),
    },
    "Keep it fast": {
        "compact": ListedCommand("changing.compact", "Rewrite overlapping and small parts."),
        "maintain": ListedCommand(
            "maintain_table.maintain", "Compact, analyze and clean up as advised."
        ),
        "analyze": ListedCommand("maintain_table.analyze", "Collect statistics that parts lack."),
        "expire": ListedCommand("cleaning.expire", "Give up old versions, and delete their files."),
        "vacuum": ListedCommand("cleaning.vacuum", "Expire versions, and remove unneeded files."),
        "metrics": ListedCommand(
            "maintain_table.metrics", "Print the state of tables for Prometheus."
        ),
        "verify": ListedCommand("maintain_table.verify", "Compare every file with its checksums."),
        "clone": ListedCommand("maintain_table.clone", "Copy one version into a new table."),
    },
    "Catalogs (after --catalog)": {
        "sql": ListedCommand("calling.sql", "Run a statement in the catalog."),
        "call": ListedCommand("calling.call", "Call a procedure on a table."),
        "tables": ListedCommand("naming.tables", "List the tables."),
        "drop": ListedCommand("naming.drop", "Drop a table."),
        "rename": ListedCommand("naming.rename", "Give a table another name."),
        "register": ListedCommand("naming.register", "Give a table that exists elsewhere a name."),
        "move-out": ListedCommand("naming.move_out", "Let a table leave the database."),
        "namespaces": ListedCommand("naming.namespaces", "List the namespaces."),
        "create-namespace": ListedCommand("naming.create_namespace", "Create an empty namespace."),
        "drop-namespace": ListedCommand("naming.drop_namespace", "Drop a namespace."),
    },
    "Others": {
        "translate": ListedCommand(
            "translating.translate", "Translate a condition for another engine."
        ),
        "demo": ListedCommand("run_demo.demo", "Load, correct and query a year of flights."),
    },
}
COMMANDS: Final = {name: listed for group in GROUPS.values() for name, listed in group.items()}


class QuickToComplete(TyperCommand):
    """A command that leaves values as text while the shell completes a line.

    To convert them, typer imports pydantic, which takes longer than the rest of a completion.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; the parameters of a command that completes are never used again."""
        if ctx.resilient_parsing:
            leave_as_text(self.get_params(ctx))
        return super().parse_args(ctx, args)


def leave_as_text(parameters: Iterable[Any]) -> None:
    """Let typer not convert the values of these parameters."""
    for parameter in parameters:
        parameter.process_value = lambda _ctx, value: value


@cache
def load(name: str) -> TyperCommand:
    """The command of this name with its options, from its module."""
    module, _, function = COMMANDS[name].place.partition(".")
    alone = typer.Typer(
        add_completion=False,
        context_settings=SETTINGS,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    alone.command(name, cls=QuickToComplete)(
        getattr(import_module(f"rowsieve.cli.commands.{module}"), function)
    )
    command = get_command(alone)
    assert isinstance(command, TyperCommand)
    return command


class _Unloaded(TyperCommand):
    """A command with its name and summary; its options come from its module when it is used."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """The context of the command with its options."""
        assert self.name is not None
        completes = extra.get("resilient_parsing", False)
        command = load.__wrapped__(self.name) if completes else load(self.name)
        return command.make_context(info_name, args, parent, **extra)


def listed() -> dict[str, TyperCommand]:
    """Every command by name, to list, complete and run."""
    return {name: _Unloaded(name, short_help=row.summary) for name, row in COMMANDS.items()}
