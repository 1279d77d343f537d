"""Runs a command and converts errors to one line on stderr and an exit code.

    0  done                        4    another commit was first: try again
    1  a check of the demo         5    stored bytes are damaged, or the store failed
       failed, a bug, or the       130  interrupted by Ctrl-C
       answer was not written      141  the reader of stdout closed the pipe
    2  wrong usage                 143  ended by SIGTERM
    3  the request was refused: correct the call or the data

Soundness: exit code 0 means that the command succeeded, its changes are durable, and its output was
written.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import Annotated, Any, TypeAlias

import typer
from typer.core import TyperGroup

import rowsieve
from rowsieve.cli import completing
from rowsieve.cli.command_list import GROUPS, SETTINGS, leave_as_text, listed, load
from rowsieve.cli.completion_scripts import use_own_scripts
from rowsieve.cli.interrupts import (
    end_on_interrupt,
    exit_code,
    raise_on_interrupt,
    was_interrupted,
)
from rowsieve.cli.named import use_catalog, use_ref
from rowsieve.cli.progress import begin, what_the_command_did, what_was_committed
from rowsieve.errors import CommitConflict, CorruptData, RowsieveError, StoreError

_COMPLETES = "_ROWSIEVE_COMPLETE"  # which the shell sets to complete a line
_COMPLETION_OPTIONS = {"--install-completion", "--show-completion"}
UNSAID, REFUSED, CONFLICT, BROKEN, NO_READER = 1, 3, 4, 5, 141


def exit_code_of(error: RowsieveError) -> int:
    """The exit code for an error; it tells the caller what to do next."""
    match error:
        case CommitConflict():
            return CONFLICT
        case CorruptData() | StoreError():
            return BROKEN
        case _:
            return REFUSED


class _Commands(TyperGroup):
    """The group of commands; prints an error as one line, or with its traceback for `--debug`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": listed()})

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - typer's
        """List the commands by group; summaries are not cut."""
        for group, commands in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name, row.summary) for name, row in commands.items()])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before the command."""
        if ctx.resilient_parsing:
            leave_as_text(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; Ctrl-C raises KeyboardInterrupt only inside this method."""
        try:
            begin(None)
            try:
                raise_on_interrupt()
                return self._run(ctx)
            finally:
                end_on_interrupt(f"the command had ended; {what_the_command_did()}")
        except KeyboardInterrupt as error:
            end_on_interrupt("whether it was committed is not known: see rowsieve history")
            if ctx.params.get("debug"):
                raise
            typer.echo(f"rowsieve: interrupted: {what_was_committed()}", err=True)
            raise typer.Exit(exit_code()) from error

    def _run(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            if was_interrupted():
                raise KeyboardInterrupt from error
            if ctx.params.get("debug"):
                raise
            if isinstance(error, RowsieveError):
                typer.echo(_line_of(error, ctx), err=True)
                raise typer.Exit(exit_code_of(error)) from error
            if isinstance(error, OSError):
                raise typer.Exit(_report_unwritten(error)) from error
            raise


def _line_of(error: RowsieveError, ctx: Any) -> str:
    """The error as one line, in the words of the command line."""
    # On first use: `--version` and completion pay for every import.
    from rowsieve.cli.own_words import in_own_words
    from rowsieve.shown import printable

    message = in_own_words(" ".join(str(error).split()), _options_of(ctx))
    return f"rowsieve: {type(error).__name__}: {printable(message)}"


def _options_of(ctx: Any) -> list[str]:
    """The options of the command that runs, by their names in Python."""
    if (name := ctx.invoked_subcommand) is None:
        return []
    return [each.name for each in load(name).params if each.param_type_name == "option"]


def _report_unwritten(error: OSError) -> int:
    """Report that the answer could not be written; returns the exit code."""
    if error.errno == errno.EPIPE:
        return NO_READER
    done = what_was_committed()
    with suppress(OSError):
        typer.echo(f"rowsieve: the answer could not be written: {error}; {done}", err=True)
    return UNSAID


def _show_version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"rowsieve {rowsieve.__version__}")
        raise typer.Exit


_Version: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--version",
        help="Show the version of rowsieve and leave.",
        callback=lambda value: _show_version(wanted=value),
        is_eager=True,
    ),
]
_Catalog: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--catalog",
        metavar="CATALOG",
        envvar="ROWSIEVE_CATALOG",
        help="The folder or URI of a catalog; tables are then given by name, as db.flights.",
    ),
]
_Database: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="DATABASE",
        help="The folder or URI of a database, many tables in one log; as --catalog.",
    ),
]
_Ref: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--ref",
        metavar="NAME",
        help="The branch or tag of the table that the command means.",
        autocompletion=completing.refs,
    ),
]
_Debug: TypeAlias = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def _global_options(
    context: typer.Context,
    *,
    version: _Version = False,
    catalog: _Catalog = None,
    database: _Database = None,
    ref: _Ref = None,
    debug: _Debug = False,
) -> None:
    """Change Parquet tables by upsert and delete, and query them.

    Every command takes a table as a folder or a URI, or by name after --catalog
    or --database.
    """
    del version, debug  # the callback reads the first, the group of commands the second
    source = context.get_parameter_source("catalog")
    if database is not None and source is not None and source.name == "ENVIRONMENT":
        catalog = None  # what the caller writes wins
    use_catalog(catalog, database)
    use_ref(ref)


app = typer.Typer(
    cls=_Commands,
    callback=_global_options,
    no_args_is_help=True,
    context_settings=SETTINGS,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Run the command line and leave with its exit code."""
    if _COMPLETES in os.environ:
        sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # summaries need no markup
    if _COMPLETION_OPTIONS.intersection(sys.argv):
        use_own_scripts()
    try:
        app()
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except OSError as error:  # of --version and --help, which no command handles
        code = _report_unwritten(error)
    else:
        code = 0
    try:
        sys.stdout.flush()
    except OSError as error:
        code = code or _report_unwritten(error)
        # The interpreter flushes once more at exit, and would print a traceback of its own.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if was_interrupted():
        os._exit(code)  # otherwise the exit waits for threads with requests to a store
    sys.exit(code)
