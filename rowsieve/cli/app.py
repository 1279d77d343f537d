"""The commands together, and what an error becomes: one line on stderr and an exit code.

    0  done                      3  the request was refused: mend the call or the data
    1  a check of the demo       4  another commit was first: try again
       failed, or a bug          5  stored bytes are damaged, or the store failed
    2  wrong usage

Soundness: an exit code 0 means that what was asked is done and durable.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import rowsieve
from rowsieve.cli import changing, reading, story, translating
from rowsieve.errors import CommitConflict, CorruptData, RowsieveError, StoreError

REFUSED, CONFLICT, BROKEN = 3, 4, 5


def exit_code_of(error: RowsieveError) -> int:
    """The exit code that says what to do next."""
    match error:
        case CommitConflict():
            return CONFLICT
        case CorruptData() | StoreError():
            return BROKEN
        case _:
            return REFUSED


class _Commands(TyperGroup):
    """The group that turns errors into lines; `--debug` lets them through with their traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except RowsieveError as error:
            if ctx.params.get("debug"):
                raise
            message = " ".join(str(error).split())
            typer.echo(f"rowsieve: {type(error).__name__}: {message}", err=True)
            raise typer.Exit(exit_code_of(error)) from error


def _show_version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"rowsieve {rowsieve.__version__}")
        raise typer.Exit


def _global_options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version of rowsieve and leave.",
            callback=lambda value: _show_version(wanted=value),
            is_eager=True,
        ),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Change Parquet tables by upsert and delete, and query them.

    Every command takes a table as a folder or a URI.
    """


app = typer.Typer(
    cls=_Commands,
    callback=_global_options,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _command in (
    changing.create,
    changing.upsert,
    changing.apply,
    changing.delete,
    reading.query,
    reading.explain,
    reading.history,
    reading.inspect,
    changing.compact,
    translating.translate,
    story.demo,
):
    app.command()(_command)
app.command("set")(changing.set_properties)
app.command("unset")(changing.unset_properties)


def main() -> None:
    """Run the command line and leave with its exit code."""
    app()
