"""The commands on names: tables and namespaces of a catalog, branches and tags of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rowsieve.cli import completing
from rowsieve.cli.bundles import CommitOptions, RowsOptions, expanded
from rowsieve.cli.named import check_catalog, required_catalog
from rowsieve.cli.options import AsJson, StorageOptions, Uri, open_at, read_pairs, read_version
from rowsieve.cli.output import messages, print_json
from rowsieve.cli.progress import CatalogChange, begin
from rowsieve.errors import NamespaceNotFound, TableNotFound

if TYPE_CHECKING:
    from rowsieve.catalog import Catalog
    from rowsieve.database.database import Database
    from rowsieve.table import Table

Name = Annotated[str, typer.Argument(metavar="NAME", help="The namespace.", show_default=False)]
TableName = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="The name, such as db.flights.",
        show_default=False,
        autocompletion=completing.tables,
    ),
]


def tables(
    namespace: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAMESPACE]",
            help="List only the tables of this namespace.",
            show_default=False,
        ),
    ] = None,
    *,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """List the tables of the catalog, or of one namespace; inspect describes a table."""
    catalog = _catalog(storage_option)
    _list(_checked(catalog, storage_option).tables(namespace), as_json=as_json)


def drop(
    name: TableName,
    *,
    purge: Annotated[
        bool, typer.Option("--purge", help="Delete its files, too; without it they stay.")
    ] = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Do nothing if there is no such table.")
    ] = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Drop a table of the catalog."""
    catalog = _changed(storage_option)
    _drop("table", name, partial(catalog.drop_table, name, purge=purge), if_exists, as_json)


def rename(
    name: TableName,
    new_name: Annotated[
        str,
        typer.Argument(metavar="NEW_NAME", help="The new name.", show_default=False),
    ],
    *,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Give a table of the catalog another name; its files stay where they are."""
    _changed(storage_option).rename_table(name, new_name)
    if as_json:
        print_json({"table": new_name, "renamed": name})
        return
    typer.echo(f"renamed {name} to {new_name}")


def register(
    name: TableName,
    uri: Annotated[
        str,
        typer.Argument(metavar="URI", help="The folder or URI of the table.", show_default=False),
    ],
    *,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Give a table that exists elsewhere a name in the catalog."""
    table = _changed(storage_option).register_table(name, uri)
    if as_json:
        print_json({"table": name, "uri": table.uri, "version": table.version})
        return
    typer.echo(f"registered {name}: {table.uri}, version {table.version}")


def move_out(
    name: TableName, *, storage_option: StorageOptions = None, as_json: AsJson = False
) -> None:
    """Let a table of the database have a log of its own, and no name there."""
    table = _changed(storage_option).move_out(name)
    if as_json:
        print_json({"table": name, "uri": table.uri, "version": table.version})
        return
    typer.echo(f"moved out {name}: {table.uri}, version {table.version}")


def namespaces(*, storage_option: StorageOptions = None, as_json: AsJson = False) -> None:
    """List the namespaces of the catalog."""
    catalog = _catalog(storage_option)
    _list(_checked(catalog, storage_option).namespaces(), as_json=as_json)


def create_namespace(
    name: Name,
    *,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Leave a namespace that exists as it is.")
    ] = False,
    shared_log: Annotated[
        bool, typer.Option("--shared-log", help="Let its tables share one log, as a database.")
    ] = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Create an empty namespace; the first table of one creates it, too."""
    catalog = _changed(storage_option)
    log: Literal["shared"] | None = "shared" if shared_log else None
    catalog.create_namespace(name, if_exists="ignore" if if_not_exists else "error", log=log)
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
    work = partial(_changed(storage_option).drop_namespace, name, cascade=cascade, purge=purge)
    _drop("namespace", name, work, if_exists, as_json)


RefName = Annotated[
    str, typer.Argument(metavar="NAME", help="The branch or tag.", show_default=False)
]
OldRefName = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="The branch or tag.",
        show_default=False,
        autocompletion=completing.refs,
    ),
]
OfVersion = Annotated[
    str | None,
    typer.Option("--version", metavar="VERSION", help="A number, or a tag; else the newest."),
]


@expanded
def refs(uri: Uri, *, storage_option: StorageOptions = None, out: RowsOptions) -> None:
    """List the branches and tags of a table."""
    rows = open_at(uri, storage_option).refs()
    out.show(rows.schema, rows.to_batches(), rows.num_rows)


@expanded
def tag(uri: Uri, name: RefName, *, version: OfVersion = None, commit: CommitOptions) -> None:
    """Give a version a name under which it can be read for ever."""
    ref = commit.table(uri).tag(
        name, version=version and read_version(version), metadata=commit.notes
    )
    _created(ref, name, as_json=commit.as_json)


@expanded
def branch(uri: Uri, name: RefName, *, version: OfVersion = None, commit: CommitOptions) -> None:
    """Begin a branch with a version; --ref NAME then means it in other commands."""
    ref = commit.table(uri).branch(
        name, version=version and read_version(version), metadata=commit.notes
    )
    _created(ref, name, as_json=commit.as_json)


@expanded
def fast_forward(uri: Uri, name: OldRefName, *, commit: CommitOptions) -> None:
    """Make the newest version of a branch that of the table, in one commit."""
    commit.show(commit.table(uri).fast_forward(name, metadata=commit.notes))


@expanded
def drop_ref(uri: Uri, name: OldRefName, *, commit: CommitOptions) -> None:
    """Remove a branch or tag, with the files that nothing else needs."""
    commit.show(commit.table(uri).drop_ref(name, metadata=commit.notes))


def _created(ref: Table, name: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"name": name, "version": ref.version, "uri": ref.uri})
        return
    typer.echo(f"created {name} at version {ref.version}")


def _drop(kind: str, name: str, work: Callable[[], None], if_exists: bool, as_json: bool) -> None:
    """Drop a name of the catalog, and tell; with `if_exists` also that there is none."""
    dropped = True
    try:
        with messages().status(f"dropping {name}"):
            work()
    except (TableNotFound, NamespaceNotFound):
        if not if_exists:
            raise
        dropped = False
    if as_json:
        print_json({kind: name, "dropped": dropped})
        return
    typer.echo(f"dropped {name}" if dropped else f"nothing to drop: there is no {kind} {name}")


def _list(names: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        print_json(names)
        return
    for name in names:
        typer.echo(name)


def _changed(storage_option: list[str] | None) -> Catalog | Database:
    """The catalog, whose names the command changes."""
    catalog = _catalog(storage_option)
    begin(CatalogChange(catalog.uri))
    return catalog


def _checked(catalog: Catalog | Database, storage_option: list[str] | None) -> Catalog | Database:
    check_catalog(catalog, read_pairs(storage_option, "--storage-option"))
    return catalog


def _catalog(storage_option: list[str] | None) -> Catalog | Database:
    return required_catalog(read_pairs(storage_option, "--storage-option"))
