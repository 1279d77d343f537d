"""What commands print: text for people, or one JSON document, or a line of JSON per row.

A table of text leaves out columns from its middle where the terminal is too narrow for all, and
none in a pipe; a value is never cut.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import msgspec
import typer
from rich.console import Console

from rowsieve.cli.text_table import cell, text_table
from rowsieve.shown import printable
from rowsieve.storage.log_entry import Commit


def messages() -> Console:
    """Where progress goes: not into a pipe behind the command."""
    return Console(stderr=True)


def print_json(value: Any) -> None:
    """One document on one line. Times are ISO-8601, bytes base64, decimals text, NaN null."""
    typer.echo(msgspec.json.encode(value, enc_hook=str).decode())


def print_table(names: Sequence[str], rows: Iterable[Sequence[Any]], *, wide: bool = False) -> None:
    """Rows under their names, with all columns if `wide` or in a pipe."""
    width = None if wide or not sys.stdout.isatty() else shutil.get_terminal_size().columns
    lines, shown = text_table(names, list(rows), width)
    for line in lines:
        typer.echo(line)
    if shown < len(names):
        typer.echo(f"{len(names)} columns, {shown} shown: --wide shows all")


def print_facts(facts: Mapping[str, Any]) -> None:
    """Names and values, one a line."""
    width = max(map(len, facts)) if facts else 0
    for name, value in facts.items():
        shown = printable(value) if isinstance(value, str) else cell(value)
        typer.echo(f"{name:<{width}}  {shown}")


def print_commit(commit: Commit, *, as_json: bool) -> None:
    """What a change did."""
    if as_json:
        print_json(asdict(commit))
        return
    if not commit.committed:
        typer.echo(f"nothing to {commit.operation}: version {commit.version} stands")
        return
    typer.echo(
        f"version {commit.version}: {commit.operation}, {commit.rows_written:,} rows written, "
        f"{commit.rows_deleted:,} deleted, {commit.parts_added} parts added, "
        f"{commit.parts_removed} removed"
    )
