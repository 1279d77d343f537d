"""`rowsieve ui`: the pages of a table or catalog, until Ctrl-C."""

from __future__ import annotations

from typing import Annotated

import typer

from rowsieve.cli.named import catalog_of
from rowsieve.cli.options import StorageOptions, open_at, read_pairs


def ui(
    uri: Annotated[
        str | None,
        typer.Argument(
            metavar="[TABLE]", help="The table; none after --catalog.", show_default=False
        ),
    ] = None,
    *,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")
    ] = 8642,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="The IP address to listen on.")
    ] = "127.0.0.1",
    remote: Annotated[
        bool, typer.Option("--remote", help="Allow an address that other machines reach.")
    ] = False,
    storage_option: StorageOptions = None,
) -> None:
    """Serve read-only pages of a table, or of a catalog's tables, to a browser here."""
    from rowsieve.pages.served_tables import (
        catalog_pages,
        table_pages,
    )
    from rowsieve.pages.server import make_server

    if uri is not None:
        open_at(uri, storage_option)  # an error of it belongs here
        pages = table_pages(lambda: open_at(uri, storage_option))
    else:
        catalog = catalog_of(read_pairs(storage_option, "--storage-option"))
        if catalog is None:
            raise typer.BadParameter("name a table, or the catalog: rowsieve --catalog CATALOG ui")
        catalog.tables()
        pages = catalog_pages(catalog.uri, catalog.tables, catalog.open_table)
    with make_server(pages, host, port, remote=remote) as server:
        address, bound = server.server_address[:2]
        shown = f"[{address!s}]" if ":" in str(address) else str(address)
        typer.echo(f"http://{shown}:{bound}/  (Ctrl-C ends it)")
        server.serve_forever()
