"""The commands that print facts of tables: explain, history, inspect, du, diff, profile."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from rowsieve.cli.bundles import MeaningOptions, ReportOptions, VersionOptions, expanded
from rowsieve.cli.named import catalog_of, check_catalog
from rowsieve.cli.options import (
    INT64_MAX,
    AsJson,
    Html,
    StorageOptions,
    Uri,
    Wide,
    open_at,
    read_pairs,
)
from rowsieve.cli.output import print_facts, print_json, print_table
from rowsieve.shown import size_text


@expanded
def explain(
    uri: Uri,
    where: Annotated[
        str | None, typer.Argument(help="The condition of the read, as SQL.", show_default=False)
    ] = None,
    *,
    at: VersionOptions,
    meaning: MeaningOptions,
    row_groups: Annotated[
        bool, typer.Option("--row-groups", help="Also explain row groups; opens the parts.")
    ] = False,
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Also read all rows once, and show what was counted.")
    ] = False,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Show which parts a read skips, and which condition and bounds prove it."""
    scan = at.table(uri).scan(where, dialect=meaning.dialect, session=meaning.session)
    explanation = scan.explain(row_groups=row_groups, analyze=analyze)
    if html is not None:
        explanation.picture().save(html)
    if as_json:
        print_json(explanation.as_dict())
    else:
        typer.echo(str(explanation))


@expanded
def history(
    uri: Uri,
    *,
    limit: Annotated[int | None, typer.Option(min=1, help="Show only this many commits.")] = None,
    storage_option: StorageOptions = None,
    report: ReportOptions,
) -> None:
    """List the commits, newest first."""
    table = open_at(uri, storage_option)
    commits = table.history(limit)
    if report.html is not None:
        table.timeline(max(len(commits), 1)).save(report.html)
    if report.as_json:
        print_json([asdict(commit) for commit in commits])
        return
    print_table(
        ["version", "time", "operation", "written", "deleted", "parts +", "parts -", "metadata"],
        [
            (
                commit.version,
                commit.timestamp,
                commit.operation,
                commit.rows_written,
                commit.rows_deleted,
                commit.parts_added,
                commit.parts_removed,
                _shown(dict(commit.metadata)),
            )
            for commit in commits
        ],
        wide=report.wide,
        first=("version", "operation", "written", "deleted", "time"),
    )


@expanded
def inspect(
    uri: Uri,
    *,
    parts: Annotated[bool, typer.Option("--parts", help="List every part.")] = False,
    at: VersionOptions,
    report: ReportOptions,
) -> None:
    """Show a table's columns, key, version and sizes, and optionally its parts."""
    from rowsieve.cli.commands.inspected import columns_of, flags_set, parts_of
    from rowsieve.pictures.page import page, section, write_html
    from rowsieve.storage.log.refs import without_refs

    table = at.table(uri)
    if report.html is not None:
        sections = [section(picture) for picture in (table.key_ranges(), table.health())]
        write_html(page(table.uri, sections), report.html)
    detail = table.detail()
    columns = columns_of(table)
    listed = parts_of(table) if parts else None
    if report.as_json:
        extra = {} if listed is None else {"part_list": listed}
        print_json({**detail, "columns": columns, **extra})
        return
    if not detail["distinct_counts"]:
        del detail["distinct_counts"]
    del detail["flags"]
    detail["properties"] = without_refs(detail["properties"])
    if refs := table.refs().column("name").to_pylist():
        detail["refs"] = refs
    if flags := flags_set(table):
        detail["flags"] = flags
    print_facts({name: _shown(value) for name, value in detail.items()})
    kinds = [tuple(column.values()) for column in columns]
    print_table(
        ["id", "column", "type", "null", "comment"][: len(kinds[0])],
        kinds,
        wide=report.wide,
        first=("column", "type", "null"),
    )
    if listed:
        print_table(list(listed[0]), [tuple(part.values()) for part in listed], wide=report.wide)


def du(
    uri: Annotated[
        str | None,
        typer.Argument(
            metavar="[TABLE]",
            help="A folder, a URI or a name; without it, all tables of the catalog.",
            show_default=False,
        ),
    ] = None,
    *,
    wide: Wide = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Show the bytes of the newest version, of older versions and of other files."""
    names = [uri] if uri is not None else _all_tables(storage_option)
    sizes = [{"table": name, **_sizes(name, storage_option)} for name in names]
    if as_json:
        print_json(sizes[0] if uri is not None else sizes)
        return
    heads = ["table", "rows", "newest version", "all files", "files"]
    cells = [
        (
            each["table"],
            f"{each['rows']:,}",
            size_text(each["live_bytes"]),
            size_text(each["disk_bytes"]),
            f"{each['files']:,}",
        )
        for each in sizes
    ]
    print_table(heads, cells, wide=wide, first=("table", "all files", "rows"))


def _all_tables(storage_option: list[str] | None) -> list[str]:
    catalog = catalog_of(read_pairs(storage_option, "--storage-option"))
    if catalog is None:
        raise typer.BadParameter("name a table, or a catalog by --catalog")
    check_catalog(catalog, read_pairs(storage_option, "--storage-option"))
    return catalog.tables()


def _sizes(uri: str, storage_option: list[str] | None) -> dict[str, Any]:
    gauges = open_at(uri, storage_option).gauges(disk=True)
    return {
        "rows": int(gauges["rows"]),
        "live_bytes": int(gauges["size_bytes"]),
        "disk_bytes": int(gauges["disk_bytes"]),
        "files": int(gauges["disk_files"]),
    }


@expanded
def diff(
    uri: Uri,
    before: Annotated[
        int, typer.Argument(min=0, max=INT64_MAX, help="The older version.", show_default=False)
    ],
    after: Annotated[
        int | None,
        typer.Argument(max=INT64_MAX, help="The newer version; the newest unless given."),
    ] = None,
    *,
    where: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="Compare only rows that match, as SQL.")
    ] = None,
    samples: Annotated[int, typer.Option(min=0, help="How many rows of each kind to show.")] = 10,
    meaning: MeaningOptions,
    storage_option: StorageOptions = None,
    report: ReportOptions,
) -> None:
    """Show what turns one version of a table with a key into another, net."""
    table = open_at(uri, storage_option)
    difference = table.difference(
        before,
        after,
        where=where,
        samples=samples,
        dialect=meaning.dialect,
        session=meaning.session,
    )
    if report.html is not None:
        difference.save(report.html)
    if report.as_json:
        print_json(difference.as_dict())
        return
    typer.echo(f"versions {difference.before} to {difference.after}: {difference.summary}")
    if difference.columns:
        print_facts({f"updated {name}": count for name, count in difference.columns})
    if difference.samples:
        names = ["key", "kind", "column", "before", "after"]
        print_table(names, [tuple(cell) for cell in difference.samples], wide=report.wide)


@expanded
def profile(
    uri: Uri,
    *,
    exact: Annotated[
        bool, typer.Option("--exact", help="Read the rows where statistics are not exact.")
    ] = False,
    storage_option: StorageOptions = None,
    report: ReportOptions,
) -> None:
    """Show the NULLs, bounds and numbers of different values of each column."""
    table = open_at(uri, storage_option)
    statistics = table.profile(exact=exact)
    if report.html is not None:
        statistics.save(report.html)
    if report.as_json:
        print_json(statistics.as_dict())
        return
    typer.echo(f"version {statistics.version}: {statistics.summary}")
    rows = [tuple(column) for column in statistics.columns]
    print_table(
        list(statistics.columns[0]._fields) if rows else ["name"],
        rows,
        wide=report.wide,
        first=("name", "lower", "upper", "nulls", "distinct", "exact"),
    )


def _shown(value: Any) -> Any:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name}={text}" for name, text in value.items()) or "none"
    return f"{value:,}" if isinstance(value, int) else value
