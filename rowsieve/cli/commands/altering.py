"""The commands that change a table's columns and properties: alter, set, unset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rowsieve.cli import completing
from rowsieve.cli.bundles import CommitOptions, expanded
from rowsieve.cli.options import Uri, read_pairs
from rowsieve.cli.output import print_commit

if TYPE_CHECKING:
    from rowsieve.storage.log.log_entry import Commit


@expanded
def alter(
    uri: Uri,
    actions: Annotated[
        list[str],
        typer.Argument(
            metavar="ACTION...",
            help="The actions of ALTER TABLE, such as 'ADD COLUMN b bigint DEFAULT 50'.",
            show_default=False,
        ),
    ],
    *,
    commit: CommitOptions,
) -> None:
    """Add, drop, rename or widen columns, in one commit; no file is rewritten."""
    table = commit.table(uri)
    with table.alter(metadata=commit.notes) as alteration:
        for action in actions:
            alteration.sql(action)
    assert alteration.commit is not None
    if commit.as_json:
        commit.show(alteration.commit)
        return
    columns = ", ".join(f"{field.name} {field.type}" for field in table.schema)
    typer.echo(f"version {alteration.commit.version}: {columns}")


@expanded
def set_properties(
    uri: Uri,
    properties: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=VALUE...",
            help="Table properties.",
            show_default=False,
            autocompletion=completing.settings,
        ),
    ],
    *,
    commit: CommitOptions,
) -> None:
    """Set table properties, from the next version on."""
    changed = commit.table(uri).set_properties(read_pairs(properties, "set"), metadata=commit.notes)
    _print_settings(changed, as_json=commit.as_json)


@expanded
def unset_properties(
    uri: Uri,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Table properties.",
            show_default=False,
            autocompletion=completing.properties,
        ),
    ],
    *,
    commit: CommitOptions,
) -> None:
    """Reset table properties to their defaults, from the next version on."""
    changed = commit.table(uri).unset_properties(names, metadata=commit.notes)
    _print_settings(changed, as_json=commit.as_json)


def _print_settings(commit: Commit, *, as_json: bool) -> None:
    if as_json:
        print_commit(commit, as_json=True)
    elif not commit.committed:
        typer.echo(f"version {commit.version}: nothing to change")
    else:
        changed = ", ".join(
            name if value is None else f"{name}={value}"
            for name, value in commit.metadata["properties"].items()
        )
        typer.echo(f"version {commit.version}: {commit.operation} {changed}")
