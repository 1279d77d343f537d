"""The plan of a read: self-contained pieces that never share a key, as plain data.

A `ScanPlan` says everything a worker needs to read one table version: schema, predicate, output
columns, and `Split`s of `Piece`s. A piece is either some row groups of one part that needs no
merge, or a whole overlap group. In one process a plan carries its predicate as a tree, bound once;
it becomes JSON only in `to_bytes` (msgspec, versioned), so that a split can be read by a thread, a
DataFusion partition or a Spark task alike. The structs of parts and pieces hold plain values and no
cycles, so the garbage collector need not track them (`gc=False`): that takes a third off the
planning of 100,000 parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from rowsieve.arguments import checked_methods
from rowsieve.checksums import checksum
from rowsieve.errors import InvalidInput, UnsupportedProtocol
from rowsieve.planner.part_rows import PartRows, PartRowsForm, within
from rowsieve.predicate.bind import BoundPredicate, bind
from rowsieve.predicate.codec import (
    operand_from_json,
    operand_to_json,
    predicate_from_json,
    predicate_to_json,
    semantics_from_json,
    semantics_to_json,
)
from rowsieve.predicate.ir import TRUE, Operand, Predicate
from rowsieve.predicate.rowset import RowSet
from rowsieve.predicate.semantics import Semantics
from rowsieve.shown import printable
from rowsieve.storage.manifest import PART_PATH, DeletionVectorRef, FileRef
from rowsieve.storage.part_writer import ROW_GROUP_ROWS
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.schema import Schema, schema_from_json, schema_to_json

PLAN_FORMAT = 2  # 1 named its semantics without their settings, and its URI was not encoded


class PlannedPart(msgspec.Struct, frozen=True, gc=False):
    """One part as a read needs it."""

    part_id: str
    commit_ts: int
    data: FileRef | None
    deletes: FileRef | None
    dv: DeletionVectorRef | None = None


class Read(msgspec.Struct, frozen=True, gc=False):
    """Rows of one part to return: its place in the piece, row groups [start, stop) or all.

    `residual`: whether the predicate must be asked of the rows.
    """

    part: int
    residual: bool
    row_groups: tuple[int, int] | None = None

    def row_range(self, row_count: int) -> tuple[int, int]:
        """The rows [start, stop) that it is about, of a part of `row_count` rows."""
        if self.row_groups is None:
            return 0, row_count
        start, stop = self.row_groups
        return min(start * ROW_GROUP_ROWS, row_count), min(stop * ROW_GROUP_ROWS, row_count)


class Piece(msgspec.Struct, frozen=True, gc=False):
    """Parts whose keys may repeat, newest first, and which of their rows to return.

    What is not read is there because it may hide rows that are. `residual`: whether the predicate
    must be asked of the rows when all parts are merged in key order.
    """

    parts: tuple[PlannedPart, ...]
    reads: tuple[Read, ...]
    residual: bool
    size_bytes: int

    @property
    def needs_merge(self) -> bool:
        """Whether several parts may hold versions of one key."""
        return len(self.parts) > 1


class Split(msgspec.Struct, frozen=True, gc=False):
    """A unit of work; no other split of its plan holds any of its keys."""

    pieces: tuple[Piece, ...]

    @property
    def size_bytes(self) -> int:
        """Stored bytes of its pieces."""
        return sum(piece.size_bytes for piece in self.pieces)


class OutputColumn(msgspec.Struct, frozen=True):
    """A column of the result: a table column, or the expression that computes it."""

    name: str
    operand: Operand | None = None


class Pruned(msgspec.Struct, frozen=True):
    """What the plan does not read for one reason.

    `by` is "key", "statistics", "visibility" (only tombstones, and nothing that is read below) or
    "limit" (enough rows are sure to be elsewhere).
    """

    by: str
    parts: int
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """Rows to read of one Parquet file, by `path` in the table's folder.

    `residual`: whether the plan's predicate must be asked of them. `page_rows`: rows of a page, a
    hint; 0 if not known.
    """

    part_id: str
    path: str
    rows: RowSet
    residual: bool
    page_rows: int


@checked_methods
class ScanPlan(msgspec.Struct, frozen=True):
    """A read of one version of one table.

    `schema` is the table's at this version. `predicate` is what every returned row satisfies under
    the rules of `semantics`, TRUE when nothing was asked; `filter` is the same bound to the schema
    and the time `now_us`, None for TRUE. `resolved`: the rows to read of each part, of a plan that
    was made with `resolve=True`; None where whoever reads finds them.
    """

    table_uri: str
    table_uuid: str
    version: int
    schema: Schema
    key: tuple[str, ...]
    columns: tuple[OutputColumn, ...]
    predicate: Predicate
    semantics: Semantics
    now_us: int
    limit: int | None
    ordered: bool
    splits: tuple[Split, ...]
    pruned: tuple[Pruned, ...] = ()
    pruning: bool = True
    statistics_contradicting: int = 0
    statistics_unreadable: int = 0
    filter: BoundPredicate | None = None
    resolved: tuple[PartRows, ...] | None = None

    def __repr__(self) -> str:
        pieces = [piece for split in self.splits for piece in split.pieces]
        parts = len({part.part_id for piece in pieces for part in piece.parts})
        pruned = sum(group.parts for group in self.pruned)
        limit = "" if self.limit is None else f" limit {self.limit:,}"
        return (
            f"<rowsieve.ScanPlan of {printable(self.table_uri)} version {self.version} where "
            f"{self.predicate}{limit}: {parts:,} of {parts + pruned:,} parts in "
            f"{len(self.splits):,} splits>"
        )

    def only(self, split: int) -> ScanPlan:
        """The same plan with one split, to be sent to whoever reads it."""
        if not 0 <= split < len(self.splits):
            raise InvalidInput(f"the plan has {len(self.splits)} splits, none of number {split}")
        one, resolved = self.splits[split], self.resolved
        if resolved is not None:
            ids = {piece.parts[read.part].part_id for piece in one.pieces for read in piece.reads}
            resolved = tuple(part for part in resolved if part.part_id in ids)
        return msgspec.structs.replace(self, splits=(one,), pruned=(), resolved=resolved)

    def files(self) -> Iterator[PlannedFile]:
        """What an engine reads: files, rows and residuals; InvalidInput of a plan not resolved.

        No two hold the same row of a file. In key order, a plan's rows still have to be merged.
        """
        if self.resolved is None:
            raise InvalidInput("files: the plan holds no row sets; make it by plan(resolve=True)")
        rows = {part.part_id: part for part in self.resolved}
        for piece in (piece for split in self.splits for piece in split.pieces):
            for read in piece.reads:
                part = piece.parts[read.part]
                assert part.data is not None
                found = rows[part.part_id]
                yield PlannedFile(
                    part.part_id,
                    part.data.path,
                    within(found.rows, *read.row_range(part.data.rows)),
                    read.residual,
                    found.page_rows,
                )

    def project(self, columns: Sequence[str]) -> ScanPlan:
        """The same rows with other columns of the table; nothing is planned again."""
        names = [self.schema.field(name).name for name in columns]
        if len(set(names)) < len(names):
            raise InvalidInput(f"project: a column stands twice in {', '.join(names)}")
        return msgspec.structs.replace(self, columns=table_columns(names))

    def splits_to_bytes(self) -> list[bytes]:
        """Each split as bytes that `read_split` reads anywhere, with nothing but the store.

        A limit holds for each split by itself: whoever joins them applies it again.
        """
        return [self.only(i).to_bytes() for i in range(len(self.splits))]

    def asking(self, predicate: Predicate, semantics: Semantics) -> ScanPlan:
        """The same splits with another predicate, in normal form; nothing is pruned by it."""
        bound = bound_filter(predicate, self.schema, semantics, self.now_us)
        return msgspec.structs.replace(self, predicate=predicate, semantics=semantics, filter=bound)

    def to_bytes(self) -> bytes:
        """The serialised form."""
        body = msgspec.msgpack.encode(_Form.of(self))
        return msgspec.msgpack.encode(_Envelope(PLAN_FORMAT, checksum(body), msgspec.Raw(body)))

    @classmethod
    def from_bytes(cls, data: bytes) -> ScanPlan:
        """Read the serialised form; UnsupportedProtocol for a newer format."""
        try:
            head = msgspec.msgpack.decode(data, type=_Head)
            if head.format != PLAN_FORMAT:
                raise UnsupportedProtocol(
                    f"the plan has format {head.format}, this version of rowsieve reads format "
                    f"{PLAN_FORMAT}; use the same version on the driver and on the workers"
                )
            envelope = msgspec.msgpack.decode(data, type=_Envelope)
            if checksum(envelope.plan) != envelope.checksum:
                raise InvalidInput(
                    "this scan plan changed on its way: its checksum does not hold; send its bytes "
                    "as they are, or plan the scan again"
                )
            form = msgspec.msgpack.decode(envelope.plan, type=_Form)
        except (msgspec.MsgspecError, TypeError, UnicodeDecodeError) as error:
            raise InvalidInput(
                f"these bytes are not a scan plan: {error}; they come from ScanPlan.to_bytes or "
                "splits_to_bytes"
            ) from error
        _check(form.splits)
        return form.plan()


def bound_filter(
    predicate: Predicate, schema: Schema, semantics: Semantics, now_us: int
) -> BoundPredicate | None:
    """A predicate in normal form, within the limits, as a plan asks it of rows; None for TRUE."""
    if predicate == TRUE:
        return None
    return bind(predicate, schema, semantics, now_us=now_us, within_limits=True)


class _Column(msgspec.Struct, frozen=True):
    """An output column as JSON."""

    name: str
    expression: Any | None = None


class _Form(msgspec.Struct, frozen=True):
    """A plan outside of a process: the trees as JSON, to be bound where it is read."""

    table_uri: str
    table_uuid: str
    version: int
    schema_json: dict[str, Any]
    key: tuple[str, ...]
    columns: tuple[_Column, ...]
    predicate_json: Any
    semantics_json: dict[str, Any]
    now_us: int
    limit: int | None
    ordered: bool
    splits: tuple[Split, ...]
    pruned: tuple[Pruned, ...] = ()
    pruning: bool = True
    statistics_contradicting: int = 0
    statistics_unreadable: int = 0
    resolved: tuple[PartRowsForm, ...] | None = None

    @classmethod
    def of(cls, plan: ScanPlan) -> _Form:
        """The form of a plan."""
        same = {name: getattr(plan, name) for name in _SAME}
        columns = tuple(
            _Column(each.name, None if each.operand is None else operand_to_json(each.operand))
            for each in plan.columns
        )
        return cls(
            schema_json=schema_to_json(plan.schema),
            columns=columns,
            predicate_json=predicate_to_json(plan.predicate),
            semantics_json=semantics_to_json(plan.semantics),
            resolved=None
            if plan.resolved is None
            else tuple(PartRowsForm.of(part) for part in plan.resolved),
            **same,
        )

    def plan(self) -> ScanPlan:
        """The plan of a form."""
        same = {name: getattr(self, name) for name in _SAME}
        schema = schema_from_json(self.schema_json)
        predicate = predicate_from_json(self.predicate_json)
        semantics = semantics_from_json(self.semantics_json)
        columns = tuple(
            OutputColumn(
                each.name, None if each.expression is None else operand_from_json(each.expression)
            )
            for each in self.columns
        )
        return ScanPlan(
            schema=schema,
            columns=columns,
            predicate=predicate,
            semantics=semantics,
            filter=bound_filter(predicate, schema, semantics, self.now_us),
            resolved=None if self.resolved is None else self._resolved(self.resolved),
            **same,
        )

    def _resolved(self, resolved: tuple[PartRowsForm, ...]) -> tuple[PartRows, ...]:
        """The row sets; every part that is read has one."""
        reads = [
            piece.parts[read.part]
            for split in self.splits
            for piece in split.pieces
            for read in piece.reads
        ]
        row_counts = {part.part_id: part.data.rows for part in reads if part.data is not None}
        found = tuple(form.part_rows() for form in resolved)
        given = {part.part_id: part.rows.row_count for part in found}
        if any(given.get(part_id) != count for part_id, count in row_counts.items()):
            raise InvalidInput("this scan plan has no rows, or other ones, of a part that it reads")
        return found


_SHARED_APART = ("columns", "resolved")
_SAME = tuple(
    name
    for name in _Form.__struct_fields__
    if name in ScanPlan.__struct_fields__ and name not in _SHARED_APART
)
"""Fields that a plan and its form share as they are."""


class _Head(msgspec.Struct):
    format: int


class _Envelope(msgspec.Struct):
    format: int
    checksum: str
    plan: msgspec.Raw


def _check(splits: Sequence[Split]) -> None:
    """A plan reads files of its table alone, and rows that they have."""
    for piece in (piece for split in splits for piece in split.pieces):
        for part in piece.parts:
            for ref in (part.data, part.deletes, part.dv):
                if ref is not None and PART_PATH.fullmatch(ref.path) is None:
                    raise InvalidInput(f"this scan plan names {ref.path!r}, which is no part file")
        for read in piece.reads:
            known = 0 <= read.part < len(piece.parts) and piece.parts[read.part].data is not None
            start, stop = (0, 1) if read.row_groups is None else read.row_groups
            if not (known and 0 <= start < stop):
                raise InvalidInput("this scan plan reads rows that its parts do not have")


def check_fits(plan: ScanPlan, snapshot: Snapshot) -> None:
    """InvalidInput unless the plan was made for this version of this table."""
    if plan.table_uuid != snapshot.table.uuid:
        raise InvalidInput(
            f"the plan is of another table: {plan.table_uuid} at {plan.table_uri}, and this one is "
            f"{snapshot.table.uuid}; plan the scan on this table"
        )
    if plan.version != snapshot.version:
        raise InvalidInput(
            f"the plan is of version {plan.version} of the table, and this handle was opened at "
            f"version {snapshot.version}; plan the scan again, or open that version"
        )


def table_columns(names: Sequence[str]) -> tuple[OutputColumn, ...]:
    """Output columns that are the table's own."""
    return tuple(OutputColumn(name) for name in names)
