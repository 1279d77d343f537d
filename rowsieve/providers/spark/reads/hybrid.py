"""Builds a Spark DataFrame of a table: native Parquet scans, and our source for the rest.

Files of the same shape are one scan if they have no hidden rows, and one scan under a condition on
file and row number if they have some; the source reads the other parts. Spark pushes filters,
columns and aggregates into the native scans, as it does for any Parquet file.

A condition with `now()` is Spark's if Spark reads all files; their parts are those that it may need
at any later time (invariant 30). If the source reads one, it reads all, at the time of the frame.

Soundness: all scans are of one version (invariants 23 and 32), and of files whose names and lengths
are the manifest's: Spark lists none. A missing or damaged file is an error under all settings of
the session: files are immutable, and page checksums are verified.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pyspark.sql.types import StructType

from rowsieve import clock
from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.objects.location import in_place
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.ir import column_names
from rowsieve.predicate.later_now import has_now
from rowsieve.providers.native_files.file_shapes import Shape
from rowsieve.providers.native_files.planned_parts import files_of, only_parts, read_parts
from rowsieve.providers.native_files.present_files import check_files
from rowsieve.providers.spark.jvm.hadoop import scan_of_known_files
from rowsieve.providers.spark.jvm.old_times_rule import (
    OLD_TIMES,
    columns_of_old_times,
    hidden_from_reader,
    push_exact_bounds,
)
from rowsieve.providers.spark.plans import empty_frame
from rowsieve.providers.spark.reads.counting_rule import (
    VISIBLE_ROWS,
    count_without_row_numbers,
)
from rowsieve.providers.spark.reads.file_names import FIRST_PLACE, FIRST_WORD
from rowsieve.providers.spark.reads.marked_reads import marked
from rowsieve.providers.spark.reads.native_columns import (
    is_native,
    output_columns,
    quoted,
    read_schema,
)
from rowsieve.providers.spark.reads.routes import (
    PartRoute,
    Reason,
    SparkRoutes,
    Wanted,
    by_shape,
    check_routes,
    choose_routes,
    column_refusal,
    path_refusal,
    session_refusal,
)
from rowsieve.providers.spark.reads.spark_read import SparkRead
from rowsieve.providers.spark.reads.store_access import access_of
from rowsieve.providers.spark.reads.visible_rows import (
    first_words,
    visible_rows,
    with_row_numbers,
)
from rowsieve.providers.spark.session_settings import is_total
from rowsieve.providers.spark.source import output_schema, plan_read
from rowsieve.types.logical import Field, type_name

# Settings of Spark's Parquet reader that must not follow the session (see the decision 0043).
_OPTIONS: Final[Mapping[str, str]] = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "parquet.page.verify-checksum.enabled": "true",
    "parquet.filter.record-level.enabled": "false",  # compares -0.0 and 0.0 by their bits
}


def routes_of(read: SparkRead, allowed: Collection[str]) -> SparkRoutes:
    """The route of each part that the read needs."""
    check_routes(allowed)
    snapshot, store = read.table.handle.pinned, read.table.handle.store
    plan = plan_read(read.options, snapshot, store.uri, clock.now_us())
    columns = _columns(read, plan)
    wanted = _wanted(read, plan, columns, allowed)
    if not has_now(plan.predicate) or wanted.refusal is not None:
        return choose_routes(_implied(read, plan), snapshot, store, wanted, allowed)
    later = _implied(read, _lasting_plan(read))
    routes = choose_routes(later, snapshot, store, wanted, allowed)
    if routes.on("source"):  # which reads the clock when the frame is made
        wanted = replace(wanted, refusal=Reason.CONDITION)
        return choose_routes(_implied(read, plan), snapshot, store, wanted, allowed)
    return routes


def _implied(read: SparkRead, plan: ScanPlan) -> ScanPlan:
    """The plan without the parts that the query's own conditions rule out."""
    return only_parts(plan, _needed(read, plan)) if read.implied else plan


def _lasting_plan(read: SparkRead) -> ScanPlan:
    """The plan of the parts that the read needs if Spark runs it now or later (invariant 30)."""
    table = read.table
    snapshot = table.handle.pinned
    return plan_read(read.options, snapshot, table.handle.store.uri, clock.now_us(), lasting=True)


def hybrid_frame(read: SparkRead, allowed: Collection[str]) -> Any:
    """The DataFrame of the read, by the routes of its parts; `prune` finds the read by it."""
    routes = routes_of(read, allowed)
    count = _row_count(read, routes)
    frame = marked(read, _frame(read, routes), allowed)
    return frame if count is None else _counted(read, routes, count, frame)


def _row_count(read: SparkRead, routes: SparkRoutes) -> int | None:
    """The number of rows of a read in a classic session; None if only Spark can count them."""
    if read.where is not None or read.foreign_condition or read.implied:
        return None
    counts = [part.rows_visible for part in routes.parts]
    if not routes.parts or None in counts or not hasattr(read.spark, "_jsparkSession"):
        return None
    return sum(filter(None, counts))


def _counted(read: SparkRead, routes: SparkRoutes, count: int, frame: Any) -> Any:
    """The frame, which counts its rows without Spark."""
    from rowsieve.providers.spark.reads.counted_frame import (  # noqa: PLC0415 - not on a Connect client
        CountedFrame,
    )

    table = read.table
    files = [part.file for part in routes.parts if not part.file.in_memory]
    return CountedFrame(frame, count, table.handle.store, table.version, files)


def _frame(read: SparkRead, routes: SparkRoutes) -> Any:
    by_source = routes.on("source")
    if len(by_source) == len(routes.parts) and not read.implied:
        return read.source_frame()
    if not routes.parts:
        schema = output_schema(read.options, read.table.handle.pinned.schema)
        return empty_frame(read.spark, spark_schema(schema))
    _check_present(read, routes)
    frames = [_conditioned(read, frame) for frame in _native_frames(read, routes)]
    if by_source:
        frames.append(read.source_frame([part.part_id for part in by_source]))
    return union(frames)


def union(frames: list[Any]) -> Any:
    """The rows of all frames, as a balanced tree of unions: a chain could become too deep.

    Spark walks to each union of a chain twice from the next one, if the session excludes the rule
    that joins them (`CombineUnions`).
    """
    while len(frames) > 1:
        pairs = [frames[start : start + 2] for start in range(0, len(frames), 2)]
        frames = [pair[0].unionAll(pair[1]) if len(pair) == 2 else pair[0] for pair in pairs]
    return frames[0]


def is_smaller(read: SparkRead) -> bool:
    """Return whether its implied conditions skip a part that it would read without them."""
    before, after = part_counts(read)
    return after < before


def part_counts(read: SparkRead) -> tuple[int, int]:
    """Count the parts that it would read without its implied conditions, and with them."""
    plan = _lasting_plan(read)
    return len(read_parts(plan)), len(_needed(read, plan))


def _needed(read: SparkRead, plan: ScanPlan) -> set[str]:
    """The ids of the parts of the plan that may have a row that matches the implied conditions.

    All of them if the read is audited, or if its own condition may fail on a row of another part.
    """
    snapshot, whole = read.table.handle.pinned, {part.part_id for part in read_parts(plan)}
    settings = read.options.switches.settings(snapshot.table)
    if not settings.skips or settings.audited_percent or read.foreign_condition:
        return whole
    if not is_total(plan.predicate, plan.schema, plan.semantics):
        return whole
    for each in read.implied:
        smaller_plan = plan_scan(
            snapshot,
            plan.table_uri,
            predicate=each.predicate,
            semantics=each.semantics,
            now_us=plan.now_us,
            in_process=False,
        )
        whole &= {part.part_id for part in read_parts(smaller_plan)}
    return whole


def _wanted(
    read: SparkRead, plan: ScanPlan, columns: tuple[Field, ...], allowed: Collection[str]
) -> Wanted:
    """The columns, and the first reason to read all parts through the source, if there is one."""
    if (reason := _refusal(read, plan, columns, allowed)) is not None:
        odd = [each for each in columns if reason is Reason.TYPE and not is_native(each.type)]
        detail = f"{odd[0].name!r} is {type_name(odd[0].type)}" if odd else ""
        return Wanted(columns, reason, detail)
    files = [file for file in files_of(plan) if in_place(file.path) is None]
    access = access_of(read.spark, read.table, read.spark_path, files)
    if access.problem:
        return Wanted(columns, Reason.STORE, access.problem)
    old_times = columns_of_old_times(read.table.handle.pinned, columns)
    return Wanted(columns, root=access.root, old_times=old_times)


def _refusal(
    read: SparkRead, plan: ScanPlan, columns: Sequence[Field], allowed: Collection[str]
) -> Reason | None:
    """A reason to read all parts through the source that holds for every store."""
    settings = read.options.switches.settings(read.table.handle.pinned.table)
    reason: Reason | None
    if not set(allowed) - {"source"}:
        return Reason.ASKED
    if (reason := session_refusal(read.spark) or path_refusal(read.table.uri)) is not None:
        return reason
    if not settings.skips or settings.audited_percent:
        return Reason.AUDIT
    if read.foreign_condition or not is_total(plan.predicate, plan.schema, plan.semantics):
        return Reason.CONDITION
    return column_refusal(plan.schema, columns)


def _columns(read: SparkRead, plan: ScanPlan) -> tuple[Field, ...]:
    """The columns that the read returns or that its condition needs, in the table's order."""
    names = set(output_schema(read.options, plan.schema).names)
    names |= {plan.schema.field(name).name for name in column_names(plan.predicate)}
    return tuple(field for field in plan.schema if field.name in names)


def _native_frames(read: SparkRead, routes: SparkRoutes) -> Iterator[Any]:
    """The scans of the files without hidden rows, and those of the files with some."""
    for shape, parts in by_shape(routes.on("native")):
        frame = _scan(read, routes, read_schema(shape), parts, {}, {})
        yield frame.select(*shown_columns(read, routes, shape))
    for shape, frame in scans_with_numbers(read, routes, {}):
        yield frame.select(*shown_columns(read, routes, shape))


def shown_columns(read: SparkRead, routes: SparkRoutes, shape: Shape) -> list[Any]:
    """Spark columns of the read's columns, over a scan of files of this shape."""

    def shown(name: str, column: Any) -> Any:
        return hidden_from_reader(read.spark, column) if name in routes.old_times else column

    return output_columns(routes.columns, shape, shown)


def scans_with_numbers(
    read: SparkRead, routes: SparkRoutes, first_places: Mapping[str, int]
) -> Iterator[tuple[Shape, Any]]:
    """The visible rows of the route `bitmap`, one scan for each shape.

    They have the columns of `read_schema` and the numbers of the rows in their files; with
    `first_places`, of each part by its id, also `FIRST_PLACE`.
    """
    for shape, parts in by_shape(routes.on("bitmap")):
        count_without_row_numbers(read.spark)
        files = [part.visible for part in parts]
        constants = {FIRST_WORD: first_words(files)}
        if first_places:
            constants[FIRST_PLACE] = [first_places[part.part_id] for part in parts]
        schema = with_row_numbers(read.spark, read_schema(shape))
        options = {VISIBLE_ROWS: str(sum(map(len, files)))}
        scan = _scan(read, routes, schema, parts, constants, options)
        yield shape, visible_rows(read.spark, scan, files)


def _check_present(read: SparkRead, routes: SparkRoutes) -> None:
    """SnapshotExpired or CorruptData if a file that Spark will read is gone from the local disk.

    On a store the session has just listed them (`store_access`), and a task that misses one fails.
    """
    handle = read.table.handle
    if not handle.store.overlaps:
        by_spark = [*routes.on("native"), *routes.on("bitmap")]
        check_files(handle.store, read.table.version, [part.file for part in by_spark])


def _scan(
    read: SparkRead,
    routes: SparkRoutes,
    schema: StructType,
    parts: Sequence[PartRoute],
    constants: Mapping[str, Sequence[int]],
    options: Mapping[str, str],
) -> Any:
    """Spark's own scan of these parts."""
    files = {f"{routes.root}/{part.path}": part.size_bytes for part in parts}
    options = {**_OPTIONS, **options}
    if routes.old_times:
        push_exact_bounds(read.spark)
        options[OLD_TIMES] = "true"
    return scan_of_known_files(read.spark, files, schema, options, constants)


def _conditioned(read: SparkRead, frame: Any) -> Any:
    """The rows that match the condition, with the output columns."""
    names = output_schema(read.options, read.table.handle.pinned.schema).names
    if read.where is not None:
        frame = frame.where(read.where)
    return frame if tuple(frame.columns) == names else frame.select(*map(quoted, names))
