"""Prints the output of commands: text, one JSON document, or one line of JSON per row.

A text table omits columns and shortens values if the terminal is too narrow; in a pipe it has all
columns and whole values.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec
import typer

from rowsieve.shown import printable
from rowsieve.types.cell_text import cell

if TYPE_CHECKING:
    from rich.console import Console

    from rowsieve.arguments.annotations import Progress
    from rowsieve.storage.log.log_entry import Commit


def messages() -> Console:
    """The console for progress: stderr, so that it does not mix with piped output."""
    from rich.console import Console

    return Console(stderr=True)


@contextmanager
def bar(label: str) -> Iterator[Progress]:
    """Show how much of the work is done; nothing where stderr is no terminal."""
    from rich import progress

    columns = (
        progress.TextColumn(label),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
    )
    out = messages()
    shown = progress.Progress(*columns, console=out, transient=True, disable=not out.is_terminal)
    with shown:
        task = shown.add_task(label, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


def print_json(value: Any) -> None:
    """Print one line of JSON: times as ISO-8601, bytes as base64, decimals as text, NaN as null."""
    typer.echo(msgspec.json.encode(value, enc_hook=str).decode())


def print_table(
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    wide: bool = False,
    first: Sequence[str] = (),
) -> None:
    """Print rows as a table, with all columns and whole values if `wide` or in a pipe.

    `first` are the columns that a narrow terminal shows before others.
    """
    from rowsieve.cli.printing.text_table import text_table

    lines, shown = text_table(names, list(rows), _width(wide=wide), first)
    for line in lines:
        typer.echo(line)
    if shown < len(names):
        typer.echo(f"{len(names)} columns, {shown} shown: --wide shows all")


def print_vertically(
    names: Sequence[str], rows: Iterable[Sequence[Any]], *, wide: bool = False
) -> None:
    """Print each row as lines of names and values."""
    from rowsieve.cli.printing.text_table import vertical_lines

    for line in vertical_lines(names, list(rows), _width(wide=wide)):
        typer.echo(line)


def _width(*, wide: bool) -> int | None:
    return None if wide or not sys.stdout.isatty() else shutil.get_terminal_size().columns


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print names and values, one pair per line."""
    width = max(map(len, facts)) if facts else 0
    for name, value in facts.items():
        shown = printable(value) if isinstance(value, str) else cell(value)
        typer.echo(f"{name:<{width}}  {shown}")


def print_commit(commit: Commit, *, as_json: bool) -> None:
    """Print the result of a change."""
    if as_json:
        print_json(asdict(commit))
        return
    late = f", {commit.rows_late:,} late" if commit.rows_late else ""
    if not commit.committed:
        typer.echo(f"nothing to {commit.operation}: still at version {commit.version}{late}")
        return
    typer.echo(
        f"version {commit.version}: {commit.operation}, {commit.rows_written:,} rows written, "
        f"{commit.rows_deleted:,} deleted{late}, {commit.parts_added} parts added, "
        f"{commit.parts_removed} removed"
    )
