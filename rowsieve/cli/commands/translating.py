"""`rowsieve translate`: translates a condition of one SQL dialect to another bridge's language."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

import rowsieve
from rowsieve.cli import completing
from rowsieve.cli.bundles import expanded
from rowsieve.cli.options import Ansi, AsJson, Html, StorageOptions, TimeZone, open_at, session_of
from rowsieve.cli.output import print_json
from rowsieve.errors import InvalidInput
from rowsieve.shown import printable

if TYPE_CHECKING:
    from rowsieve.bridges.pasted import Pasted

_NAMES = "postgres, spark, datafusion, duckdb, trino"


_Condition: TypeAlias = Annotated[
    str, typer.Argument(metavar="CONDITION", help="The condition, as SQL.", show_default=False)
]
_From: TypeAlias = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="NAME",
        help=f"The dialect: {_NAMES}.",
        autocompletion=completing.dialects,
    ),
]
_To: TypeAlias = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="NAME",
        help="One of these, or another bridge.",
        autocompletion=completing.bridges,
    ),
]
_Schema: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="COLUMNS", help="Names and types, as in 'id bigint, name varchar'."),
]
_Table: TypeAlias = Annotated[
    str | None, typer.Option(metavar="TABLE", help="Take the columns of this table.")
]
_Strict: TypeAlias = Annotated[
    bool, typer.Option("--strict", help="Refuse a condition that has no exact translation.")
]
_SyntaxOnly: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--syntax-only", help="Translate the syntax only, between any dialects of sqlglot."
    ),
]


@dataclass(frozen=True, kw_only=True)
class _Sessions:
    """Options of the sessions in which a condition is read and evaluated."""

    time_zone: TimeZone = None
    ansi: Ansi = None
    target_time_zone: Annotated[
        str | None,
        typer.Option(metavar="AREA/CITY", help="The session time zone of the target."),
    ] = None
    target_ansi: Annotated[
        bool | None,
        typer.Option("--target-ansi/--no-target-ansi", help="The ANSI mode of the target."),
    ] = None

    def arguments(self) -> dict[str, Any]:
        """The arguments of `rs.translate` for them."""
        return {
            "session": session_of(self.time_zone, self.ansi),
            "target_session": session_of(self.target_time_zone, self.target_ansi),
        }


@expanded
def translate(
    condition: _Condition,
    *,
    source: _From,
    target: _To,
    schema: _Schema = None,
    table: _Table = None,
    strict: _Strict = False,
    syntax_only: _SyntaxOnly = False,
    sessions: _Sessions,
    html: Html = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Translate a condition of one engine for another, and print the residual."""
    columns = _columns(schema, source, table, storage_option, needed=not syntax_only)
    if syntax_only:
        translated = _in_syntax(condition, source, target, strict)
    else:
        from rowsieve.bridges.pasted import pasted

        options = {"target": target, "schema": columns, **sessions.arguments()}
        translated = pasted(condition, source, strict=strict, **options)
        if html is not None:
            rowsieve.translate(condition, source, **options).picture().save(html)
    if as_json:
        _print_as_json(translated)
    else:
        _print_as_text(translated)


def _columns(
    schema: str | None,
    dialect: str,
    table: str | None,
    storage_option: list[str] | None,
    *,
    needed: bool,
) -> Any:
    """The columns of the condition, from either option; None where they are not needed."""
    if schema is not None and table is not None:
        raise InvalidInput(
            "--schema and --table both give the columns and may differ: leave one of them out"
        )
    if schema is not None:
        from rowsieve.bridges.sql.column_list import columns_of

        return columns_of(schema, dialect)
    if table is not None:
        return open_at(table, storage_option)
    if needed:
        raise InvalidInput(
            "the meaning of a condition depends on the types of its columns: give them with "
            "--schema 'id bigint, name varchar' or --table TABLE, or use --syntax-only"
        )
    return None


def _in_syntax(condition: str, source: str, target: str, strict: bool) -> Pasted:
    """The condition in the target's syntax, even if it means something else there."""
    from rowsieve.bridges.pasted import Pasted
    from rowsieve.bridges.sql.syntax import in_syntax

    words = in_syntax(condition, source, target)
    if strict:
        raise InvalidInput(
            "--syntax-only guarantees nothing, so it excludes --strict: leave one of them out"
        )
    return Pasted(
        words.expression,
        is_python=False,
        imports=(),
        exactness=words.exactness,
        residual=words.residual,
        notes=words.notes,
    )


def _print_as_json(translated: Pasted) -> None:
    imports = {"imports": translated.imports} if translated.is_python else {}
    print_json(
        {
            "expression": translated.text,
            **imports,
            "exactness": translated.exactness.value,
            "residual": translated.residual,
            "notes": translated.notes,
        }
    )


def _print_as_text(translated: Pasted) -> None:
    """The translation goes to stdout; notes and the residual go to stderr, as comments."""
    if translated.text is not None:
        typer.echo(translated.text)
    lines = [translated.exactness.value]
    lines += [f"with {statement}" for statement in translated.imports]
    if translated.residual is not None:
        lines.append(f"residual, to evaluate on the rows: {translated.residual}")
    mark = (
        "#" if translated.is_python else "--"
    )  # every line of a note stays a comment when it is pasted
    for line in (*lines, *translated.notes):
        typer.echo(f"{mark} rowsieve: {printable(line)}", err=True)
