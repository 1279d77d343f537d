"""`rowsieve demo`: a year of real flights as change data, with every answer checked."""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Literal

import typer

_PIPE_WIDTH = 10_000


def demo(
    folder: Annotated[
        Path | None,
        typer.Option(help="Keep the tables in this folder; otherwise they are deleted."),
    ] = None,
    engine: Annotated[
        Literal["embedded", "spark"], typer.Option(help="Run it in this process or on PySpark.")
    ] = "embedded",
) -> None:
    """Load, correct, delete, query and time-travel; exit code 1 if an answer is wrong."""
    from rich.console import Console

    with ExitStack() as stack:
        if folder is None:
            name = stack.enter_context(tempfile.TemporaryDirectory(prefix="rowsieve-demo-"))
            folder = Path(name)
        out = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)
        if engine == "spark":
            from rowsieve.demo.spark_story import tell_on_spark

            checks = tell_on_spark(folder, out)
        else:
            from rowsieve.demo.story import tell

            checks = tell(folder, out)
    for failure in checks.failed:
        typer.echo(f"rowsieve: check failed: {failure}", err=True)
    out.print(f"{checks.passed} checks passed, {len(checks.failed)} failed")
    if checks.failed:
        raise typer.Exit(1)
