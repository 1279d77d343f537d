"""The catalog of `--catalog`, in which commands find tables by name."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

import typer

from rowsieve.arguments.annotations import StorageOptions
from rowsieve.catalog import Catalog

_URI: Final[ContextVar[str | None]] = ContextVar("rowsieve-catalog", default=None)


def use_catalog(uri: str | None) -> None:
    """Let the arguments of this command name tables of a catalog; None: folders and URIs."""
    _URI.set(uri)


def catalog_of(options: StorageOptions | None) -> Catalog | None:
    """The catalog, opened with these settings of its store; None if none is given."""
    uri = _URI.get()
    return None if uri is None else Catalog(uri, storage_options=options)


def required_catalog(options: StorageOptions | None) -> Catalog:
    """The same; wrong usage if none is given."""
    catalog = catalog_of(options)
    if catalog is None:
        raise typer.BadParameter("name the catalog: rowsieve --catalog CATALOG …")
    return catalog


def located(table: str, options: StorageOptions | None) -> str:
    """The URI of a table that a command names."""
    catalog = catalog_of(options)
    return table if catalog is None else catalog.uri_of(table)
