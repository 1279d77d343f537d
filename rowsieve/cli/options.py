"""The arguments and options that commands share, and how their text is read.

Text that is no `name=value` is wrong usage (exit code 2); what the values mean is for the API to
judge.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rowsieve.opening import open_table
from rowsieve.table import Table

Uri = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help="A folder, or a URI such as s3://bucket/table.", show_default=False
    ),
]
InputFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Rows: .parquet, .csv, .jsonl, .ndjson, .arrow, .ipc or .feather.",
        exists=True,
        dir_okay=False,
        readable=True,
        show_default=False,
    ),
]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="NAME=VALUE",
        help="A setting of the object store, such as region or access_key_id; repeatable.",
    ),
]
Version = Annotated[
    int | None, typer.Option("--version", help="Read this version instead of the newest.")
]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="Read what was the newest at this ISO-8601 time."),
]
Dialect = Annotated[
    str, typer.Option(help="The SQL dialect of conditions: postgres, spark, datafusion, duckdb.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Nulls = Annotated[
    list[str] | None,
    typer.Option(
        "--null",
        metavar="TEXT",
        help="In CSV this text is NULL too; repeatable.",
    ),
]
Notes = Annotated[
    list[str] | None,
    typer.Option("--metadata", metavar="NAME=VALUE", help="Kept with the commit; repeatable."),
]
TokenText = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="APP:SEQUENCE",
        help="Commit at most once: nothing is done if APP committed SEQUENCE or a later one.",
    ),
]


def read_pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    """`name=value` texts as a mapping; anything else is wrong usage."""
    pairs = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"{option} takes NAME=VALUE, not {text!r}")
        pairs[name] = value
    return pairs


def read_token(text: str | None) -> tuple[str, int] | None:
    """`application:sequence` as a token."""
    if text is None:
        return None
    application, _, sequence = text.rpartition(":")
    if not (application and sequence.isascii() and sequence.isdigit()):
        raise typer.BadParameter(f"--token takes APP:SEQUENCE, such as loader:17, not {text!r}")
    return application, int(sequence)


def open_at(
    uri: str,
    storage_option: list[str] | None,
    version: int | None = None,
    as_of: str | None = None,
) -> Table:
    """Open the table that a command names."""
    options = read_pairs(storage_option, "--storage-option")
    return open_table(uri, version=version, as_of=as_of, storage_options=options)
