"""Decides how Spark reads each part of a table: with its own Parquet reader or through our source.

| route | read by | rows |
|---|---|---|
| native | Spark's Parquet reader | all rows of the file |
| bitmap | Spark's Parquet reader | the visible rows, by their numbers in the file |
| source | our data source | the visible rows |

Soundness (invariant 32): Spark reads a file itself only if our writer made it safe for that
(`native_safe`), every column that is needed is known to have our values there, and the session has
no setting that changes them. Files and visible rows are those of one version. Every doubt leads to
the source.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, Literal, TypeAlias

from rowsieve.errors import InvalidInput
from rowsieve.executor.visible_by_part import visible_by_part
from rowsieve.objects import Location, ObjectStore, table_uri_of
from rowsieve.parquet.footer import read_metadata
from rowsieve.parquet.leaf_columns import fields_by_id
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.split import PlannedPart
from rowsieve.predicate.rowset import RowSet
from rowsieve.providers.native_files.file_shapes import Shape
from rowsieve.providers.native_files.planned_parts import read_parts
from rowsieve.providers.spark.reads.file_names import is_misread, names_clash
from rowsieve.providers.spark.reads.native_columns import is_native, spark_shape
from rowsieve.storage.log.missing_files import missing_files_named
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.storage.parts.reading_views import is_plain
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.logical import Field
from rowsieve.types.schema import Schema

RouteName: TypeAlias = Literal["native", "bitmap", "source"]
ALL_ROUTES: Final[tuple[RouteName, ...]] = ("native", "bitmap", "source")
# Characters of paths that mean the same to us, to Hadoop and to every locale of a JVM.
_PLAIN_PATH: Final = re.compile(r"[A-Za-z0-9_./ =+@~,-]*")
_MAX_HIDDEN: Final = 0.9  # share of hidden rows up to which Spark reads a file itself
_MAX_BITMAPS: Final = 512  # files; each takes some calls into the JVM
# Planning one more scan costs 45 ms of CPU, looking up a row 15 ns: see decisions 89 and 156.
_JOINED_BELOW_ROWS: Final = 2_500_000
_MAX_BITMAP_ROWS: Final = 400_000_000  # 50 MB of bits in Spark's plan
_V1_SOURCES: Final = "spark.sql.sources.useV1SourceList"


class Reason(Enum):
    """The reason for the route of a part; the value is what `str()` of the routes prints."""

    CLEAN = "all rows are visible"
    JOINED = "all rows are visible; they are few, so files with hidden rows are read with them"
    HIDDEN = "some rows are hidden"
    ASKED = "the argument routes excludes the others"
    CONNECT = "a Spark Connect client cannot make the plan"
    STORE = "Spark itself does not read this store"
    PATH = "the path has characters that Spark may read as something else"
    SETTING = "a setting of the session changes how Spark reads Parquet"
    AUDIT = "the read is audited, or pruning is off"
    CONDITION = "the condition may fail, depends on the time without a bound, or is not Spark's"
    TYPE = "a column has a type that Spark's Parquet reader does not give our values of"
    NAMES = "Spark's reader uses a column's name, or does not tell it from another one"
    FOREIGN = "another writer made the file"
    UNSAFE = "the file is not marked as safe for readers that prune by its statistics"
    IN_LOG = "the rows of a small change are in the log, and no file has them"
    ENCODING = "the rows are read from the bytes of a codec"
    CHANGED = "a column was changed in a way that Spark cannot follow"
    MOSTLY_HIDDEN = "most rows are hidden"
    MANY_BITMAPS = "too many files have hidden rows"


@dataclass(frozen=True, slots=True)
class PartRoute:
    """The route of one part; `rows` are its visible rows, None if all rows are visible."""

    part_id: str
    file: FileRef = field(repr=False)
    route: RouteName
    reason: Reason
    rows: RowSet | None = field(default=None, repr=False)
    shape: Shape | None = field(default=None, repr=False)

    @property
    def path(self) -> str:
        """The name of the file in the table's folder."""
        return self.file.path

    @property
    def row_count(self) -> int:
        """Rows of the file."""
        return self.file.rows

    @property
    def size_bytes(self) -> int:
        """Bytes of the file."""
        return self.file.size_bytes

    @property
    def visible(self) -> RowSet:
        """The visible rows of the file."""
        return RowSet.full(self.row_count) if self.rows is None else self.rows

    @property
    def rows_hidden(self) -> int:
        """Rows of the file that are not visible."""
        return 0 if self.rows is None else self.row_count - len(self.rows)

    @property
    def rows_visible(self) -> int | None:
        """Rows of the file that are visible; None if not known, because the source finds them."""
        if self.rows is not None:
            return len(self.rows)
        return None if self.route == "source" else self.row_count


@dataclass(frozen=True, slots=True)
class SparkRoutes:
    """The routes of the parts that a read by Spark needs; `str()` sums them up."""

    uri: str
    version: int
    parts: tuple[PartRoute, ...]
    columns: tuple[Field, ...] = field(repr=False)  # those that the read needs
    detail: str = ""  # of the reason to read all parts through the source
    root: str = ""  # the table's folder as Spark names it, without a slash at the end
    old_times: frozenset[str] = field(default=frozenset(), repr=False)  # see `Wanted`

    def __str__(self) -> str:
        lines = [f"Spark reads {self.uri} version {self.version}: {len(self.parts):,} parts"]
        counts = Counter((part.route, part.reason) for part in self.parts)
        for (route, reason), parts in sorted(counts.items(), key=lambda each: str(each[0])):
            same = [p for p in self.parts if (p.route, p.reason) == (route, reason)]
            rows, hidden = (
                sum(part.row_count for part in same),
                sum(part.rows_hidden for part in same),
            )
            shown = f"{route:<7}{parts:>8,} parts {rows:>15,} rows {hidden:>13,} hidden"
            lines.append(f"  {shown}  {reason.value}{self.detail and f': {self.detail}'}")
        return "\n".join(lines)

    def on(self, route: RouteName) -> tuple[PartRoute, ...]:
        """The parts with this route."""
        return tuple(part for part in self.parts if part.route == route)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The request of a read: its columns, and a reason that rules out Spark's reader.

    `root` is the table's folder as Spark names it. `old_times`: the columns with
    values of the times whose bounds Java shifts (`old_times_rule`).
    """

    columns: tuple[Field, ...]
    refusal: Reason | None = None
    detail: str = ""
    root: str = ""
    old_times: frozenset[str] = frozenset()


def session_refusal(session: Any) -> Reason | None:
    """A reason in the session's settings to read all parts through the source."""
    if not hasattr(session, "_jsparkSession"):
        return Reason.CONNECT
    first = str(session.conf.get(_V1_SOURCES, "parquet")).lower().split(",")
    if "parquet" not in [name.strip() for name in first]:
        return Reason.SETTING  # the other reader answers MIN and MAX by the bounds in footers
    return None


def path_refusal(uri: str) -> Reason | None:
    """A reason in the name of the table's folder to read all parts through the source."""
    location = Location.parse(table_uri_of(uri))
    plain = _PLAIN_PATH.fullmatch(f"{location.authority}/{location.path}")
    return None if plain else Reason.PATH


def column_refusal(schema: Schema, columns: Sequence[Field]) -> Reason | None:
    """A reason in the columns to read all parts through the source."""
    if not columns or not all(is_native(column.type) for column in columns):
        return Reason.TYPE
    return Reason.NAMES if names_clash([column.name for column in schema]) else None


def check_routes(routes: Collection[str]) -> frozenset[str]:
    """The routes that are allowed; InvalidInput for an unknown one."""
    if isinstance(routes, str) or not set(routes) <= set(ALL_ROUTES):
        raise InvalidInput(f"routes is a list of {', '.join(ALL_ROUTES)}, not {routes!r}")
    return frozenset(routes)


def choose_routes(
    plan: ScanPlan,
    snapshot: Snapshot,
    store: ObjectStore,
    wanted: Wanted,
    allowed: Collection[str] = ALL_ROUTES,
) -> SparkRoutes:
    """The route of each part that the plan reads; the source is always allowed.

    Finds hidden rows from keys, unless the source reads everything.
    """
    if wanted.refusal is not None:
        parts = tuple(_refused(part, wanted.refusal) for part in read_parts(plan))
    else:
        chooser = _Chooser(plan, snapshot, store, wanted, frozenset(allowed))
        with missing_files_named(store, plan.version):
            parts = _joined(list(chooser.routes()))
    return SparkRoutes(
        plan.table_uri,
        plan.version,
        parts,
        wanted.columns,
        wanted.detail,
        wanted.root,
        wanted.old_times,
    )


def _joined(parts: Sequence[PartRoute]) -> tuple[PartRoute, ...]:
    """Move clean files to the scan of those with hidden rows, where this saves a scan for less."""
    by_spark = [part for part in parts if part.route != "source"]
    joined = {id(shape) for shape, alike in by_shape(by_spark) if _is_one_scan(alike)}
    return tuple(
        replace(part, route="bitmap", reason=Reason.JOINED)
        if part.route == "native" and id(part.shape) in joined
        else part
        for part in parts
    )


def by_shape(parts: Iterable[PartRoute]) -> list[tuple[Shape, list[PartRoute]]]:
    """The parts that Spark reads by their shapes, which are one object for equal ones."""
    groups: dict[int, tuple[Shape, list[PartRoute]]] = {}
    for part in parts:
        assert part.shape is not None
        groups.setdefault(id(part.shape), (part.shape, []))[1].append(part)
    return list(groups.values())


def _is_one_scan(alike: Sequence[PartRoute]) -> bool:
    """Return whether one scan of these files is cheapest; some must have hidden rows."""
    clean_rows = sum(part.row_count for part in alike if part.route == "native")
    has_hidden = any(part.route == "bitmap" for part in alike)
    return has_hidden and clean_rows < _JOINED_BELOW_ROWS and len(alike) <= _MAX_BITMAPS


@dataclass(frozen=True, slots=True)
class _RoutedFile:
    """The files of one schema, for Spark; `shape` is None if it cannot read the columns."""

    shape: Shape | None
    is_misread: bool


class _Chooser:
    """Chooses the routes of one read."""

    def __init__(
        self,
        plan: ScanPlan,
        snapshot: Snapshot,
        store: ObjectStore,
        wanted: Wanted,
        allowed: frozenset[str],
    ) -> None:
        self._plan = plan
        self._store = store
        self._wanted = wanted
        self._allowed = allowed
        chosen = snapshot.parts.chosen({part.part_id for part in read_parts(plan)})
        names = chosen.part_ids
        self._safe = dict(zip(names, chosen.column("native_safe").to_pylist(), strict=True))
        self._schemas = dict(zip(names, chosen.column("schema_id").to_pylist(), strict=True))
        self._files: dict[int, _RoutedFile] = {}
        self._shapes: dict[Shape | None, Shape | None] = {}
        self._bitmaps = self._bitmap_rows = 0

    def routes(self) -> Iterator[PartRoute]:
        for part, rows in visible_by_part(self._plan, self._store):
            assert part.data is not None
            if rows is None or not rows.is_empty:
                yield self._route(part, None if rows is None or rows.is_full else rows)

    def _route(self, part: PlannedPart, rows: RowSet | None) -> PartRoute:
        assert part.data is not None
        if part.data.in_memory:
            return _refused(part, Reason.IN_LOG, rows)
        if not is_plain(part.data):
            return _refused(part, Reason.ENCODING, rows)
        if not self._safe[part.part_id]:
            return _refused(part, Reason.UNSAFE, rows)
        if part.data.columns is not None or not _PLAIN_PATH.fullmatch(part.data.path):
            return _refused(part, Reason.FOREIGN, rows)
        file = self._file(part)
        if file.is_misread:
            return _refused(part, Reason.NAMES, rows)
        if (shape := file.shape) is None:
            return _refused(part, Reason.CHANGED, rows)
        if rows is None and "native" in self._allowed:
            return _routed(part, "native", Reason.CLEAN, None, shape)
        if "bitmap" not in self._allowed:
            return _refused(part, Reason.ASKED, rows)
        if (refusal := self._bitmap_refusal(part.data.rows, rows)) is not None:
            return _refused(part, refusal, rows)
        self._bitmaps += 1
        self._bitmap_rows += part.data.rows
        return _routed(part, "bitmap", Reason.HIDDEN if rows else Reason.ASKED, rows, shape)

    def _bitmap_refusal(self, row_count: int, rows: RowSet | None) -> Reason | None:
        if "source" in self._allowed:
            if rows is not None and len(rows) < (1 - _MAX_HIDDEN) * row_count:
                return Reason.MOSTLY_HIDDEN
            if self._bitmaps >= _MAX_BITMAPS or self._bitmap_rows > _MAX_BITMAP_ROWS:
                return Reason.MANY_BITMAPS
        return None

    def _file(self, part: PlannedPart) -> _RoutedFile:
        """Describe the part's file for Spark; one file of each schema shows the names in all."""
        schema_id = self._schemas[part.part_id]
        if schema_id not in self._files:
            assert part.data is not None
            stored = fields_by_id(read_metadata(self._store, part.data))
            shape = spark_shape(self._wanted.columns, stored, schema_id)
            shape = self._shapes.setdefault(shape, shape)
            self._files[schema_id] = _RoutedFile(shape, is_misread(list(stored.values())))
        return self._files[schema_id]


def _refused(part: PlannedPart, reason: Reason, rows: RowSet | None = None) -> PartRoute:
    return _routed(part, "source", reason, rows, None)


def _routed(
    part: PlannedPart, route: RouteName, reason: Reason, rows: RowSet | None, shape: Shape | None
) -> PartRoute:
    assert part.data is not None
    return PartRoute(part.part_id, part.data, route, reason, rows, shape)
