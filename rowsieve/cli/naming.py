"""The commands on namespaces of a catalog: namespaces, create-namespace and drop-namespace."""

from __future__ import annotations

from typing import Annotated

import typer

from rowsieve.catalog import Catalog
from rowsieve.cli.named import catalog_of
from rowsieve.cli.options import AsJson, StorageOptions, read_pairs
from rowsieve.cli.output import messages, print_json

Name = Annotated[str, typer.Argument(metavar="NAME", help="The namespace.", show_default=False)]


def namespaces(*, storage_option: StorageOptions = None, as_json: AsJson = False) -> None:
    """List the namespaces of the catalog."""
    found = _catalog(storage_option).namespaces()
    if as_json:
        print_json(found)
        return
    for name in found:
        typer.echo(name)


def create_namespace(
    name: Name,
    *,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Leave a namespace that exists as it is.")
    ] = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Create an empty namespace; the first table of one creates it, too."""
    catalog = _catalog(storage_option)
    catalog.create_namespace(name, if_exists="ignore" if if_not_exists else "error")
    print_json({"namespace": name}) if as_json else typer.echo(f"created {name}")


def drop_namespace(
    name: Name,
    *,
    cascade: Annotated[
        bool, typer.Option("--cascade", help="Drop its tables, too; their files stay.")
    ] = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="Drop its tables, and delete their files.")
    ] = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Do nothing if the namespace does not exist.")
    ] = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Drop a namespace; without --cascade and --purge only one without tables."""
    catalog = _catalog(storage_option)
    with messages().status(f"dropping {name}"):
        catalog.drop_namespace(
            name, cascade=cascade, purge=purge, if_absent="ignore" if if_exists else "error"
        )
    print_json({"namespace": name}) if as_json else typer.echo(f"dropped {name}")


def _catalog(storage_option: list[str] | None) -> Catalog:
    catalog = catalog_of(read_pairs(storage_option, "--storage-option"))
    if catalog is None:
        raise typer.BadParameter("name the catalog: rowsieve --catalog CATALOG …")
    return catalog
