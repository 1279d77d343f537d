"""The commands that keep a table cheap to read, and the one that copies it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

import rowsieve
from rowsieve.cli.bundles import CommitOptions, expanded
from rowsieve.cli.named import required_catalog
from rowsieve.cli.options import (
    AsJson,
    AsOf,
    StorageOptions,
    Uri,
    Version,
    open_at,
    read_pairs,
    read_version,
)
from rowsieve.cli.output import bar, messages, print_json

if TYPE_CHECKING:
    from rowsieve.maintenance.steps import Maintenance

_DUE, _DAMAGED = 3, 5  # exit codes


_Advice: TypeAlias = Annotated[
    bool, typer.Option("--advice", help="Print what would pay off and why; change nothing.")
]
_Check: TypeAlias = Annotated[
    bool, typer.Option("--check", help="The same as --advice; exit code 3 if anything is due.")
]
_OlderThan: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Keep the versions of this ISO-8601 time and later."),
]
_RetainLast: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="Keep this many of the last versions.")
]
_Grace: TypeAlias = Annotated[
    float,
    typer.Option(
        "--grace",
        metavar="SECONDS",
        min=0,
        help="Keep the files of unfinished writes for this time.",
    ),
]
_MaxBytesPerS: TypeAlias = Annotated[
    float | None,
    typer.Option(metavar="BYTES", help="Rewrite at most this many bytes per second."),
]


@expanded
def maintain(
    uri: Uri,
    *,
    advice: _Advice = False,
    check: _Check = False,
    older_than: _OlderThan = None,
    retain_last: _RetainLast = None,
    grace: _Grace = 86_400.0,
    max_bytes_per_s: _MaxBytesPerS = None,
    commit: CommitOptions,
) -> None:
    """Compact, collect missing statistics, and delete old versions and unneeded files.

    Versions of the last 7 days stay, unless --older-than or --retain-last says otherwise.
    """
    if advice or check:
        report = open_at(uri, commit.storage_option).maintenance_advice()
        print_json(report.as_dict()) if commit.as_json else typer.echo(str(report))
        if check and not report.is_healthy:
            raise typer.Exit(_DUE)
        return
    table = commit.table(uri)
    with messages().status(f"maintaining {uri}"):
        done = table.maintain(
            older_than=older_than,
            retain_last=retain_last,
            grace_s=grace,
            max_bytes_per_s=max_bytes_per_s,
            metadata=commit.notes,
        )
    print_json(_as_dict(done)) if commit.as_json else _print_as_text(done)


def _print_as_text(done: Maintenance) -> None:
    if (expired := done.expired) is not None:
        typer.echo(f"version {expired.version}: deleted {expired.rows_deleted:,} expired rows")
    for commit in done.compactions:
        rewritten = "nothing to compact"
        if commit.committed:
            rewritten = f"compacted {commit.parts_removed:,} parts into {commit.parts_added:,}"
        typer.echo(f"version {commit.version}: {rewritten}")
    if (analyzed := done.analyzed) is not None:
        typer.echo(f"version {analyzed.version}: analyzed {analyzed.parts_added:,} parts")
    if (stored := done.stored) is not None:
        typer.echo(
            f"version {stored.version}: stored the hidden rows of {stored.parts_added:,} parts"
        )
    typer.echo(repr(done.removed))
    typer.echo(f"{done.before} -> {done.after}")


@expanded
def analyze(
    uri: Uri,
    *,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A column whose statistics are kept first, and whose values are counted; "
            "repeatable.",
        ),
    ] = None,
    rewrite_all: Annotated[
        bool, typer.Option("--rewrite-all", help="Collect again for parts that have statistics.")
    ] = False,
    distinct_counts: Annotated[
        bool,
        typer.Option(
            "--distinct-counts",
            help="Also estimate the numbers of different values, of --column or of all.",
        ),
    ] = False,
    commit: CommitOptions,
) -> None:
    """Collect statistics of parts that were written without them."""
    table = commit.table(uri)
    with messages().status(f"analyzing {uri}"):
        commit_made = table.analyze(
            column,
            rewrite_all=rewrite_all,
            distinct_counts=distinct_counts,
            metadata=commit.notes,
        )
    if commit.as_json:
        commit.show(commit_made)
    elif commit_made.committed:
        typer.echo(f"version {commit_made.version}: analyzed {commit_made.parts_added:,} parts")
    else:
        typer.echo(f"version {commit_made.version}: nothing to analyze")


def metrics(
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TABLE]...", help="The tables; all of --catalog without names."),
    ] = None,
    *,
    disk: Annotated[
        bool, typer.Option("--disk", help="Also list the files of all versions.")
    ] = False,
    prometheus: Annotated[
        bool, typer.Option("--prometheus", help="Prometheus' text format, as without --json.")
    ] = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Print the state of tables in Prometheus' text format."""
    if prometheus and as_json:
        raise typer.BadParameter("give --prometheus or --json, not both")
    names = tables or required_catalog(read_pairs(storage_option, "--storage-option")).tables()
    gauges = {name: open_at(name, storage_option).gauges(disk=disk) for name in names}
    if as_json:
        print_json(gauges)
    else:
        typer.echo(rowsieve.metrics.gauges_text(gauges), nl=False)


def verify(
    uri: Uri,
    *,
    version: Version = None,
    as_of: AsOf = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Compare only the sizes and footers of the files.")
    ] = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Compare every file of a version with its size and checksums; exit code 5 if one is damaged.

    Changes nothing.
    """
    table = open_at(uri, storage_option, version, as_of)
    with bar("files compared") as progress:
        done = table.verify(quick=quick, progress=progress)
    print_json(done.as_dict()) if as_json else typer.echo(str(done))
    if not done.is_whole:
        raise typer.Exit(_DAMAGED)


def clone(
    uri: Uri,
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="A new folder, or a URI.", show_default=False),
    ],
    *,
    version: Version = None,
    as_of: AsOf = None,
    storage_option: StorageOptions = None,
    target_option: Annotated[
        list[str] | None,
        typer.Option(
            "--target-option",
            metavar="NAME=VALUE",
            help="A setting of the target's object store; repeatable. Without it, the settings of "
            "--storage-option.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Copy one version with its data files into a new table, while others change the table."""
    table = open_at(uri, storage_option)
    options = target_option if target_option else storage_option
    with bar("files copied") as progress:
        copy = table.clone(
            target,
            version=version and read_version(version),
            as_of=as_of,
            storage_options=read_pairs(options, "--target-option"),
            progress=progress,
        )
    parts, rows = copy.files().num_rows, copy.count()
    if as_json:
        print_json({"version": copy.version, "parts": parts, "rows": rows})
    else:
        typer.echo(f"copied version {copy.version}: {parts:,} parts, {rows:,} rows")


def _as_dict(done: Maintenance) -> dict[str, Any]:
    return {
        "version": done.advice.version,
        "parts_removed": sum(commit.parts_removed for commit in done.compactions),
        "parts_added": sum(commit.parts_added for commit in done.compactions),
        "parts_analyzed": 0 if done.analyzed is None else done.analyzed.parts_added,
        "parts_with_vectors": 0 if done.stored is None else done.stored.parts_added,
        "removed_files": done.removed.file_count,
        "removed_bytes": done.removed.size_bytes,
        "before": asdict(done.before),
        "after": asdict(done.after),
        "advice": done.advice.as_dict(),
    }
