"""What the Tab key of a shell completes beside commands and options: tables, columns and the like.

Completion is quick rather than complete: it reads names of local folders and the log's entries as
text, without the code of tables. What it cannot read has no candidates, and it never fails.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import typer

DIALECTS: Final = ("postgres", "spark", "datafusion", "duckdb", "trino")
BRIDGES: Final = (
    *("postgres", "spark", "datafusion", "duckdb", "trino", "rowsieve", "datafusion_exprs"),
    *("spark_columns", "spark_filters", "pyarrow_exprs", "polars", "iceberg", "iceberg_json"),
    *("delta_dnf", "substrait"),
)
"""Names that a test holds to be all; their own modules take longer to import than a shell waits."""
_SEARCHED_ENTRIES: Final = 200  # of a log, that are searched for the columns
_LOG: Final = Path("_rowsieve") / "log"


def dialects(incomplete: str) -> list[str]:
    """The SQL dialects."""
    return _beginning(incomplete, DIALECTS)


def bridges(incomplete: str) -> list[str]:
    """The dialects and the other languages of conditions."""
    return _beginning(incomplete, BRIDGES)


def properties(incomplete: str) -> list[str]:
    """The table properties: with `=` where a value follows."""
    from rowsieve.properties import PROPERTIES

    return _beginning(incomplete, PROPERTIES)


def settings(incomplete: str) -> list[str]:
    """The table properties, each with `=`."""
    return [f"{name}=" for name in properties(incomplete)]


def tables(ctx: typer.Context, incomplete: str) -> list[str]:
    """The tables of the local catalog of --catalog, or folders that are tables."""
    with suppress(OSError):
        if (catalog := _catalog(ctx)) is not None:
            folders_of_tables = (each.parent for each in Path(catalog).glob("*/*/_rowsieve"))
            names = sorted(f"{each.parent.name}.{each.name}" for each in folders_of_tables)
            return _beginning(incomplete, names)
        folder = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
        shown = incomplete[: incomplete.rfind("/") + 1]
        folders = sorted(each.name for each in folder.iterdir() if each.is_dir())
        visible = (name for name in folders if not name.startswith((".", "_")))
        ends = ((name, (folder / name / _LOG).is_dir()) for name in visible)
        return _beginning(
            incomplete, [f"{shown}{n}{'' if is_table else '/'}" for n, is_table in ends]
        )
    return []


def columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """The columns of the table that the command names."""
    fields = _newest(ctx, "schema").get("fields", ())
    return _beginning(incomplete, (field["name"] for field in fields))


def refs(ctx: typer.Context, incomplete: str) -> list[str]:
    """The branches and tags of the table that the command names, if the shell tells it."""
    from rowsieve.properties import REF

    names = _newest(ctx, "table").get("properties", {})
    ref_names = (name.removeprefix(REF) for name in names if name.startswith(REF))
    return _beginning(incomplete, sorted(ref_names))


def assignments(ctx: typer.Context, incomplete: str) -> list[str]:
    """The columns of the table that the command names, each with `=`."""
    return [f"{name}=" for name in columns(ctx, incomplete)]


def _newest(ctx: typer.Context, part: str) -> dict[str, Any]:
    """A part of the newest entry that has it, of the log of the first word that names a table.

    An option without its value hides arguments.
    """
    catalog = _catalog(ctx)
    typed = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS") or ""
    for word in [str(ctx.params.get("uri") or ""), *typed.split()[1:]]:
        folder = Path(word) if catalog is None else Path(catalog, *word.split("."))
        with suppress(OSError, ValueError, KeyError, TypeError):
            if word and not word.startswith("-") and (folder / _LOG).is_dir():
                return _logged(folder / _LOG, part)
    return {}


def _logged(log: Path, part: str) -> dict[str, Any]:
    """A part of the newest of the entries that have it."""
    for entry in sorted(log.glob("*.json"), reverse=True)[:_SEARCHED_ENTRIES]:
        for line in entry.read_text("utf-8").splitlines():
            if line.startswith(f'{{"{part}"'):
                return dict(json.loads(line)[part])
    return {}


def _catalog(ctx: Any) -> str | None:
    catalog = ctx.find_root().params.get("catalog") or os.environ.get("ROWSIEVE_CATALOG")
    return catalog if catalog and "://" not in catalog else None


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
