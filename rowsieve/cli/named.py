"""Where commands find tables by name: `--catalog` or `--database`; and the branch of `--ref`."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

import typer

import rowsieve
from rowsieve.errors import InvalidInput, NotFound, did_you_mean

if TYPE_CHECKING:
    from rowsieve.arguments.annotations import StorageOptions
    from rowsieve.catalog import Catalog
    from rowsieve.database.database import Database

_URI: Final[ContextVar[str | None]] = ContextVar("rowsieve-catalog", default=None)
_DATABASE: Final[ContextVar[str | None]] = ContextVar("rowsieve-database", default=None)
_NO_CATALOGS: Final = {
    "_rowsieve": "it is a table; give the folder above its namespace",
    "_database": "it is a database; name it by --database",
}
"""What other folders have in them, and what to do."""
_REF: Final[ContextVar[str | None]] = ContextVar("rowsieve-ref", default=None)


def use_catalog(uri: str | None, database: str | None) -> None:
    """Let this command name tables of a catalog or database; without both, folders and URIs."""
    if uri is not None and database is not None:
        raise typer.BadParameter("give --catalog or --database, not both")
    _URI.set(uri)
    _DATABASE.set(database)


def use_ref(name: str | None) -> None:
    """Let the arguments of this command mean a branch or tag of the table; None: the table.

    Wrong usage if it is written like the number of a version, which no branch or tag has.
    """
    if name is not None and (number := name.removeprefix("v")).isdecimal():
        raise typer.BadParameter(
            f"--ref takes the name of a branch or tag, and {name!r} is how a version is written; "
            f"use --version {number[:18]} after the command instead"
        )
    _REF.set(name)


def catalog_of(options: StorageOptions | None) -> Catalog | Database | None:
    """The catalog or database, opened with these settings of its store; None if none is given."""
    if (uri := _DATABASE.get()) is not None:
        return rowsieve.Database(uri, storage_options=options)
    uri = _URI.get()
    return None if uri is None else rowsieve.Catalog(uri, storage_options=options)


def required_catalog(options: StorageOptions | None) -> Catalog | Database:
    """The same; wrong usage if none is given."""
    catalog = catalog_of(options)
    if catalog is None:
        raise typer.BadParameter(
            "name the catalog, rowsieve --catalog CATALOG …, or the database, rowsieve --database "
            "DATABASE …"
        )
    return catalog


def located(table: str, options: StorageOptions | None) -> str:
    """The URI of a table that a command names, or of its branch or tag."""
    catalog, ref = catalog_of(options), _REF.get()
    uri = table if catalog is None else catalog.uri_of(table)
    return uri if ref is None else rowsieve.open_table(uri, ref=ref, storage_options=options).uri


def named_like(table: str, options: StorageOptions | None) -> str:
    """What to add to an error about a table that is not there: the nearest name of the catalog."""
    if (catalog := catalog_of(options)) is None:
        return ""
    return did_you_mean(table, catalog.tables())


def check_catalog(catalog: Catalog | Database, options: StorageOptions | None) -> None:
    """Raise NotFound if nothing is there, InvalidInput if a table or database is there."""
    if isinstance(catalog, rowsieve.Database):
        return  # opening it has checked that
    there = rowsieve.objects.open_store(catalog.uri, options).children()
    for name, advice in _NO_CATALOGS.items():
        if name in there:
            raise InvalidInput(f"no catalog at {catalog.uri}: {advice}")
    if not there:
        raise NotFound(
            f"no catalog at {catalog.uri}: nothing is there; its first table or namespace makes one"
        )
