"""What commands print: text for people, or one JSON document, or a line of JSON per row.

A table of text is cut at the terminal's width, and is as wide as it needs to be in a pipe.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table as TextTable
from rich.text import Text

from rowsieve.storage.log_entry import Commit

_PIPE_WIDTH = 10_000


def console() -> Console:
    """Where answers go."""
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)


def messages() -> Console:
    """Where progress goes: not into a pipe behind the command."""
    return Console(stderr=True)


def print_json(value: Any) -> None:
    """One document on one line. Times are ISO-8601, bytes base64, decimals text, NaN null."""
    typer.echo(msgspec.json.encode(value, enc_hook=str).decode())


def print_table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Rows under their names."""
    table = TextTable(box=box.SIMPLE_HEAD, pad_edge=False)
    shown = [[cell(value) for value in row] for row in rows]
    for i, name in enumerate(names):
        numbers = shown and all(row[i].justify == "right" for row in shown)
        table.add_column(Text(name), justify="right" if numbers else "left")
    for row in shown:
        table.add_row(*row)
    console().print(table, highlight=False)


def print_facts(facts: Mapping[str, Any]) -> None:
    """Names and values, one a line."""
    width = max(map(len, facts)) if facts else 0
    for name, value in facts.items():
        typer.echo(f"{name:<{width}}  {cell(value)}")


def print_commit(commit: Commit, *, as_json: bool) -> None:
    """What a change did."""
    if as_json:
        print_json(asdict(commit))
        return
    typer.echo(
        f"version {commit.version}: {commit.operation}, {commit.rows_written:,} rows written, "
        f"{commit.rows_deleted:,} deleted, {commit.parts_added} parts added, "
        f"{commit.parts_removed} removed"
    )


def cell(value: Any) -> Text:
    """A value as people read it."""
    match value:
        case None:
            return Text("NULL", style="dim")
        case bool():
            return Text(str(value).lower())
        case int():
            return Text(str(value), justify="right")
        case float():
            return Text(repr(value), justify="right")
        case datetime():
            return Text(value.isoformat(sep=" "))
        case bytes():
            return Text(value.hex())
        case Mapping() | list() | tuple():
            return Text(msgspec.json.encode(value, enc_hook=str).decode())
        case _:
            return Text(str(value))
