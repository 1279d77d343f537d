"""The commands that give disk space back: expire and vacuum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rowsieve.cli.bundles import CommitOptions, expanded
from rowsieve.cli.options import INT64_MAX, Uri
from rowsieve.cli.output import messages, print_json, print_table
from rowsieve.shown import size_text

if TYPE_CHECKING:
    from rowsieve.retention.removed_files import RemovedFiles

RetainLast = Annotated[
    int | None,
    typer.Option("--retain-last", min=1, max=INT64_MAX, help="Keep so many of the last versions."),
]
OlderThan = Annotated[
    str | None,
    typer.Option(
        "--older-than",
        metavar="TIME",
        help="Keep what was the newest version at this ISO-8601 time or later.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only print what would be deleted; change nothing.")
]
Files = Annotated[bool, typer.Option("--files", help="Print every file.")]


@expanded
def expire(
    uri: Uri,
    *,
    retain_last: RetainLast = None,
    older_than: OlderThan = None,
    grace: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long to wait before deleting.")
    ] = 0.0,
    dry_run: DryRun = False,
    files: Files = False,
    commit: CommitOptions,
) -> None:
    """Give up old versions and delete the files that only they had; keeps the last 7 days."""
    table = commit.table(uri)
    with messages().status("expiring versions"):
        removed = table.expire_versions(
            older_than=older_than,
            retain_last=retain_last,
            grace_s=grace,
            dry_run=dry_run,
            metadata=commit.notes,
        )
    _show(removed, files=files, as_json=commit.as_json)


@expanded
def vacuum(
    uri: Uri,
    *,
    retain_last: RetainLast = None,
    older_than: OlderThan = None,
    grace: Annotated[
        float,
        typer.Option(
            min=0, metavar="SECONDS", help="Keep the files of writes that began within this time."
        ),
    ] = 86_400.0,
    dry_run: DryRun = False,
    files: Files = False,
    commit: CommitOptions,
) -> None:
    """Expire old versions, and remove the files of writes that failed; keeps the last 7 days."""
    table = commit.table(uri)
    with messages().status("looking for files that nothing needs"):
        removed = table.vacuum(
            older_than=older_than,
            retain_last=retain_last,
            grace_s=grace,
            dry_run=dry_run,
            metadata=commit.notes,
        )
    _show(removed, files=files, as_json=commit.as_json)


def _show(removed: RemovedFiles, *, files: bool, as_json: bool) -> None:
    if as_json:
        facts = {
            "operation": removed.operation,
            "dry_run": removed.dry_run,
            "versions": removed.versions,
            "oldest_version": removed.oldest_version,
            "leased_version": removed.leased_version,
            "files": removed.files,
            "size_bytes": removed.size_bytes,
        }
        print_json({**facts, "sizes": removed.sizes} if files else facts)
        return
    if files:
        from rowsieve.retention.removed_files import kind_of

        rows = [(path, kind_of(path), size) for path, size in removed.sizes.items()]
        print_table(["path", "kind", "bytes"], rows, wide=True)
    done = "would expire and delete" if removed.dry_run else "expired and deleted"
    typer.echo(
        f"{done}: {removed.versions:,} versions, {removed.file_count:,} files, "
        f"{size_text(removed.size_bytes)}"
    )
    for kind, count in removed.files.items():
        typer.echo(f"  {count:,} {kind}")
    typer.echo(f"oldest version: {removed.oldest_version}")
    if removed.leased_version is not None:
        typer.echo(f"a lease protects version {removed.leased_version} and later ones")
