"""`rowsieve translate`: a condition of one SQL dialect in the words of another."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rowsieve.bridges.registry import BRIDGES
from rowsieve.bridges.sql.columns import columns_of
from rowsieve.bridges.sql.dialects import DIALECTS
from rowsieve.bridges.translate import translate as translated
from rowsieve.cli.options import AsJson, StorageOptions, open_at
from rowsieve.cli.output import print_json
from rowsieve.errors import InvalidInput

_NAMES = ", ".join(DIALECTS)


def translate(
    condition: Annotated[
        str, typer.Argument(metavar="CONDITION", help="The condition, as SQL.", show_default=False)
    ],
    *,
    source: Annotated[str, typer.Option("--from", metavar="NAME", help=f"One of {_NAMES}.")],
    target: Annotated[
        str, typer.Option("--to", metavar="NAME", help="The same, or another bridge's name.")
    ],
    schema: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS", help="Names and types, as in 'id bigint, name varchar'."),
    ] = None,
    table: Annotated[
        str | None, typer.Option(metavar="TABLE", help="Take the columns of this table.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse a condition that cannot be said whole.")
    ] = False,
    syntax_only: Annotated[
        bool,
        typer.Option(
            "--syntax-only", help="Only put it in other words, in any dialect of sqlglot's."
        ),
    ] = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Put a condition of one engine in the words of another, and say what is left to check."""
    if schema is not None and table is not None:
        raise InvalidInput(
            "--schema and --table both give the columns: leave one of them out, for they may differ"
        )
    columns: Any = None
    if schema is not None:
        columns = columns_of(schema, source)
    elif table is not None:
        columns = open_at(table, storage_option)
    elif not syntax_only:
        raise InvalidInput(
            "the types of the columns decide what a condition means: give them with --schema "
            "'id bigint, name varchar' or --table TABLE, or ask for --syntax-only"
        )
    made = translated(
        condition, source, target=target, schema=columns, strict=strict, syntax_only=syntax_only
    )
    is_text = syntax_only or any(each.is_text for each in BRIDGES if each.name == target)
    expression = made.expression if is_text or made.expression is None else str(made.expression)
    if as_json:
        print_json(
            {
                "expression": expression,
                "exactness": made.exactness.value,
                "residual": made.residual,
                "notes": made.notes,
            }
        )
        return
    if expression is not None:
        typer.echo(expression)
    typer.echo(f"rowsieve: {made.exactness.value}", err=True)
    if made.residual is not None:
        typer.echo(f"rowsieve: to be checked besides: {made.residual}", err=True)
    for note in made.notes:
        typer.echo(f"rowsieve: {note}", err=True)
