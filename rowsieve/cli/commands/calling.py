"""The commands that run statements in a catalog: call and sql."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

import rowsieve
from rowsieve.cli.bundles import MeaningOptions, RowsOptions, expanded
from rowsieve.cli.named import catalog_of, check_catalog, required_catalog
from rowsieve.cli.options import (
    AsJson,
    Limit,
    Params,
    StorageOptions,
    Wide,
    read_pairs,
    read_params,
)
from rowsieve.cli.output import bar, print_table
from rowsieve.cli.progress import CatalogChange, begin

if TYPE_CHECKING:
    import pyarrow as pa

    from rowsieve.catalog import Catalog
    from rowsieve.database.database import Database


@expanded
def call(
    uri: Annotated[
        str,
        typer.Argument(
            metavar="[CATALOG]", help="The folder or URI of a catalog, unless --catalog gives it."
        ),
    ],
    statement: Annotated[
        str | None,
        typer.Argument(
            metavar="STATEMENT",
            help="CALL system.name(…), SHOW PROCEDURES or DESCRIBE PROCEDURE.",
            show_default=False,
        ),
    ] = None,
    *,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print the plan of the call, and run nothing.")
    ] = False,
    wide: Wide = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
    meaning: MeaningOptions,
) -> None:
    """Call a procedure on a table of a catalog."""
    from rowsieve.procedures.engine import LocalEngine

    catalog, statement = _catalog_and_statement(uri, statement, storage_option)
    dialect, session = meaning.dialect, meaning.session
    if plan:
        typer.echo(catalog.explain(statement, dialect=dialect, session=session))
        return
    begin(CatalogChange(catalog.uri))
    with bar("done") as progress:
        engine = LocalEngine(progress=progress)
        rows = catalog.call(statement, engine=engine, dialect=dialect, session=session)
    _print_rows(rows, wide=wide, as_json=as_json)


def _print_rows(rows: pa.Table, *, wide: bool, as_json: bool) -> None:
    """Print the result of a call."""
    if as_json:
        from rowsieve.cli.printing.writing import write_rows

        write_rows(rows.schema, iter(rows.to_batches()), "json", None)
        return
    cells = (row.values() for row in rows.to_pylist())
    print_table(rows.column_names, [tuple(map(_text, values)) for values in cells], wide=wide)


def _catalog_and_statement(
    uri: str, statement: str | None, storage_option: list[str] | None
) -> tuple[Catalog | Database, str]:
    """The catalog of --catalog or of the first argument, and the last argument."""
    options = read_pairs(storage_option, "--storage-option")
    catalog = catalog_of(options)
    if catalog is not None:
        if statement is not None:
            raise typer.BadParameter(f"{catalog.uri} has the tables already; leave {uri!r} out")
        check_catalog(catalog, options)
        return catalog, uri
    if statement is None:
        raise typer.BadParameter("give the catalog and a statement, or use --catalog")
    named = rowsieve.Catalog(uri, storage_options=options)
    check_catalog(named, options)
    return named, statement


@expanded
def sql(
    statement: Annotated[
        str | None,
        typer.Argument(
            metavar="[STATEMENT]",
            help="SELECT, CALL, SHOW, CREATE and others; without one, a prompt, or stdin's script.",
            show_default=False,
        ),
    ] = None,
    *,
    param: Params = None,
    limit: Limit = None,
    storage_option: StorageOptions = None,
    rows: RowsOptions,
) -> None:
    """Run a statement in the catalog, or ask for statements; --json is --output json."""
    options = read_pairs(storage_option, "--storage-option")
    catalog = required_catalog(options)
    values = read_params(param)
    if statement is None and values is not None:
        raise typer.BadParameter("--param gives values to the parameters of one STATEMENT; add it")

    def run(text: str, vertical: bool) -> None:
        from rowsieve.cli.prompting.run_statement import run_statement

        begin(CatalogChange(catalog.uri))
        answer = run_statement(catalog, text, options, values)
        replace(rows, vertical=vertical).show(answer.schema, answer.to_batches(), limit)

    if statement is not None:
        run(statement, rows.vertical)
        return
    from rowsieve.cli.prompting.prompt import Prompt, is_terminal

    prompt = Prompt(catalog, run, partial(check_catalog, catalog, options), rows.vertical)
    prompt.talk() if is_terminal() else prompt.script(sys.stdin.read())


def _text(value: object) -> str | None:
    return None if value is None else str(value)
