"""The command that keeps a table cheap to read and store: maintain."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rowsieve.cli.bundles import CommitOptions, expanded
from rowsieve.cli.options import Uri, open_at
from rowsieve.cli.output import messages, print_json
from rowsieve.maintenance.maintaining import Maintenance
from rowsieve.retention.orphans import GRACE_S


@expanded
def maintain(
    uri: Uri,
    *,
    advice: Annotated[
        bool, typer.Option("--advice", help="Say what would pay and why, and change nothing.")
    ] = False,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Keep the versions of this ISO-8601 time and later."),
    ] = None,
    retain_last: Annotated[
        int | None, typer.Option(min=1, help="Keep this many of the last versions.")
    ] = None,
    grace: Annotated[
        float,
        typer.Option(
            "--grace", metavar="SECONDS", min=0, help="Leave files of unfinished writes so long."
        ),
    ] = GRACE_S,
    commit: CommitOptions,
) -> None:
    """Compact, give up old versions, and delete the files that nothing needs.

    Versions of the last 7 days stay, unless --older-than or --retain-last says otherwise.
    """
    if advice:
        found = open_at(uri, commit.storage_option).maintenance_advice()
        print_json(found.as_dict()) if commit.as_json else typer.echo(str(found))
        return
    table = commit.table(uri)
    with messages().status(f"maintaining {uri}"):
        done = table.maintain(
            older_than=older_than,
            retain_last=retain_last,
            grace_s=grace,
            metadata=commit.notes,
        )
    if commit.as_json:
        print_json(_as_dict(done))
        return
    compaction = done.compaction
    rewritten = "nothing to compact"
    if compaction.committed:
        rewritten = f"compacted {compaction.parts_removed:,} parts into {compaction.parts_added:,}"
    typer.echo(f"version {compaction.version}: {rewritten}")
    typer.echo(repr(done.removed))


def _as_dict(done: Maintenance) -> dict[str, Any]:
    return {
        "version": done.advice.version,
        "parts_removed": done.compaction.parts_removed,
        "parts_added": done.compaction.parts_added,
        "removed_files": done.removed.file_count,
        "removed_bytes": done.removed.size_bytes,
        "advice": done.advice.as_dict(),
    }
