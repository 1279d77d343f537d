"""The plan of a scan as plain data: self-contained pieces with disjoint keys.

A `ScanPlan` holds everything that a worker needs to read one table version: schema, predicate,
output columns, and `Split`s of `Piece`s. A piece is either some row groups of one part that needs
no merge, or a whole overlap group. Within a process the plan holds its predicate as a tree, bound
once. `to_bytes` encodes the plan (JSON trees in msgspec structs, versioned), so a thread, a
DataFusion partition or a Spark task can read a split.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from rowsieve.arguments import checked_methods
from rowsieve.checksums import checksum
from rowsieve.decoded_types import described
from rowsieve.errors import InvalidInput, UnsupportedOperation, UnsupportedProtocol
from rowsieve.planner.differential.consolidation import (
    Consolidation,
    consolidation_from_json,
    consolidation_to_json,
)
from rowsieve.planner.hints import ExecutionHints, execution_hints
from rowsieve.planner.part_rows import PartRows, PartRowsForm, within
from rowsieve.planner.split import Split
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
from rowsieve.storage.parts.reading_views import is_plain
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.schema import Schema, schema_from_json, schema_to_json

PLAN_FORMAT = 2  # format 1 had semantics without settings, and a URI that was not encoded


class OutputColumn(msgspec.Struct, frozen=True):
    """A column of the result: a table column, or a computed expression.

    `is_stored`: a change stores its values, so that `Semantics.of_stored_values` applies.
    """

    name: str
    operand: Operand | None = None
    is_stored: bool = False


class Pruned(msgspec.Struct, frozen=True):
    """Counts of the parts that the plan skips for one reason.

    `by` is "key", "statistics", "visibility" (only tombstones, and no older part is read), "limit"
    (other parts certainly hold enough rows), "constraint" (no row of the table can match, by its
    constraints), or in a resolved plan a value of `PartRows.emptied_by`.
    """

    by: str
    parts: int
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """Rows to read of one Parquet file; `path` is relative to the table.

    `residual`: whether the plan's predicate must be evaluated on them. `page_rows`: rows per page,
    a hint; 0 if unknown. `content`: all rows of a small change as an Arrow IPC stream; such rows
    are in the log, and no file has them.
    """

    part_id: str
    path: str
    rows: RowSet
    residual: bool
    page_rows: int
    content: bytes | None = None


@checked_methods
class ScanPlan(msgspec.Struct, frozen=True):
    """The plan of a scan of one table version.

    `schema` is the table's schema at this version. Every returned row satisfies `predicate` under
    the rules of `semantics`; it is TRUE for a scan without a condition. `filter` is the predicate
    bound to the schema and the time `now_us`, without the conjuncts that `constraints` of the table
    imply; None for TRUE. `resolved` holds the rows to read of
    each part if the plan was made with `resolve=True`; with None, the reader finds them.
    `consolidation`: the rows are sums of updates, which the only split reads.
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
    constraints: tuple[str, ...] = ()
    consolidation: Consolidation | None = None

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

    def hints(self) -> ExecutionHints:
        """Return what helps an engine to execute the plan: order, tasks, sizes, metrics by part."""
        order = self.key if self.ordered else ()
        return execution_hints(self.splits, self.resolved, sorted_by=order, limit=self.limit)

    def only(self, split: int) -> ScanPlan:
        """Return the plan with a single split, for one worker."""
        if not 0 <= split < len(self.splits):
            raise InvalidInput(
                f"only: there is no split {split}; the plan has {len(self.splits)} splits, "
                "numbered from 0"
            )
        one, resolved = self.splits[split], self.resolved
        if resolved is not None:
            ids = {piece.parts[read.part].part_id for piece in one.pieces for read in piece.reads}
            resolved = tuple(part for part in resolved if part.part_id in ids)
        return msgspec.structs.replace(self, splits=(one,), pruned=(), resolved=resolved)

    def files(self) -> Iterator[PlannedFile]:
        """Yield the files, row sets and residuals for an engine that reads Parquet itself.

        No two items hold the same row of a file. For an ordered plan, the engine must merge the
        rows in key order. InvalidInput for a plan that is not resolved, UnsupportedOperation for
        one that reads rows from a codec.
        """
        if self.resolved is None:
            raise InvalidInput("files: the plan has no row sets; create it with plan(resolve=True)")
        rows = {part.part_id: part for part in self.resolved}
        for piece in (piece for split in self.splits for piece in split.pieces):
            for read in piece.reads:
                part = piece.parts[read.part]
                assert part.data is not None
                if not is_plain(part.data):
                    raise UnsupportedOperation(
                        f"files: the rows of {part.data.path} are read from the bytes of a codec, "
                        "which a reader of Parquet does not decode; read the plan with read_split "
                        "or scan(plan=...)"
                    )
                part_rows = rows[part.part_id]
                yield PlannedFile(
                    part.part_id,
                    part.data.path,
                    within(part_rows.rows, *read.row_range(part.data.rows)),
                    read.residual,
                    part_rows.page_rows,
                    part.data.content,
                )

    def project(self, columns: Sequence[str]) -> ScanPlan:
        """Return a plan of the same rows with other columns of the table, without replanning."""
        names = [self.schema.field(name).name for name in columns]
        if len(set(names)) < len(names):
            raise InvalidInput(
                f"project: a column occurs twice in {', '.join(names)}; remove the duplicate"
            )
        return msgspec.structs.replace(self, columns=table_columns(names))

    def splits_to_bytes(self) -> list[bytes]:
        """Encode each split as bytes for `read_split`, which needs only access to the store.

        A limit applies to each split separately; apply it again to the combined rows.
        """
        return [self.only(i).to_bytes() for i in range(len(self.splits))]

    def with_predicate(self, predicate: Predicate, semantics: Semantics) -> ScanPlan:
        """Return the same splits with another predicate in normal form; it prunes nothing."""
        bound = bound_filter(predicate, self.schema, semantics, self.now_us)
        return msgspec.structs.replace(self, predicate=predicate, semantics=semantics, filter=bound)

    def to_bytes(self) -> bytes:
        """Serialise the plan."""
        body = msgspec.msgpack.encode(_PlanForm.of(self))
        return msgspec.msgpack.encode(_Envelope(PLAN_FORMAT, checksum(body), msgspec.Raw(body)))

    @classmethod
    def from_bytes(cls, data: bytes) -> ScanPlan:
        """Decode a serialised plan.

        InvalidInput for other bytes, UnsupportedProtocol for a plan of another format.
        """
        try:
            head = msgspec.msgpack.decode(data, type=described(_Head))
            if head.format != PLAN_FORMAT:
                raise UnsupportedProtocol(
                    f"the scan plan has format {head.format}, and this version of rowsieve reads "
                    f"format {PLAN_FORMAT}; use the same version on the driver and on the workers"
                )
            envelope = msgspec.msgpack.decode(data, type=described(_Envelope))
            if checksum(envelope.plan) != envelope.checksum:
                raise InvalidInput(
                    "the scan plan was changed in transit: its checksum does not match; send its "
                    "bytes unchanged, or plan the scan again"
                )
            form = msgspec.msgpack.decode(envelope.plan, type=described(_PlanForm))
        except (msgspec.MsgspecError, TypeError, UnicodeDecodeError) as error:
            raise InvalidInput(
                f"these bytes are not a scan plan: {error}; pass bytes from ScanPlan.to_bytes or "
                "splits_to_bytes"
            ) from error
        _check(form.splits)
        return form.plan()


def bound_filter(
    predicate: Predicate, schema: Schema, semantics: Semantics, now_us: int
) -> BoundPredicate | None:
    """Bind a predicate that is in normal form and within the limits; None for TRUE."""
    if predicate == TRUE:
        return None
    return bind(predicate, schema, semantics, now_us=now_us, within_limits=True)


class _Column(msgspec.Struct, frozen=True):
    """An output column with its expression as JSON."""

    name: str
    expression: Any | None = None


class _PlanForm(msgspec.Struct, frozen=True):
    """The serialised form of a plan: expression trees as JSON; the reader binds them."""

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
    constraints: tuple[str, ...] = ()
    consolidation_json: Any = None

    @classmethod
    def of(cls, plan: ScanPlan) -> _PlanForm:
        """Convert a plan to its serialised form."""
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
            consolidation_json=consolidation_to_json(plan.consolidation),
            **same,
        )

    def plan(self) -> ScanPlan:
        """Convert the serialised form back to a plan."""
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
            consolidation=consolidation_from_json(self.consolidation_json),
            **same,
        )

    def _resolved(self, resolved: tuple[PartRowsForm, ...]) -> tuple[PartRows, ...]:
        """Decode the row sets; InvalidInput unless each part that is read has one that fits."""
        reads = [
            piece.parts[read.part]
            for split in self.splits
            for piece in split.pieces
            for read in piece.reads
        ]
        row_counts = {part.part_id: part.data.rows for part in reads if part.data is not None}
        entries = tuple(form.part_rows() for form in resolved)
        resolved_counts = {part.part_id: part.rows.row_count for part in entries}
        if any(resolved_counts.get(part_id) != count for part_id, count in row_counts.items()):
            raise InvalidInput(
                "the scan plan is damaged: a part that it reads has no row set, or one of another "
                "row count; plan the scan again"
            )
        return entries


_CONVERTED = ("columns", "resolved")
_SAME = tuple(
    name
    for name in _PlanForm.__struct_fields__
    if name in ScanPlan.__struct_fields__ and name not in _CONVERTED
)
"""Fields that are equal in a plan and its serialised form."""


class _Head(msgspec.Struct):
    format: int


class _Envelope(msgspec.Struct):
    format: int
    checksum: str
    plan: msgspec.Raw


def _check(splits: Sequence[Split]) -> None:
    """Check that a decoded plan reads only part files of its table, and rows that they have."""
    for piece in (piece for split in splits for piece in split.pieces):
        for part in piece.parts:
            for ref in (part.data, part.deletes, part.dv, part.vector):
                if ref is not None and not ref.is_valid:
                    raise InvalidInput(
                        f"the scan plan names the file {ref.path!r}, which is not the path "
                        "of a part; plan the scan again"
                    )
        for read in piece.reads:
            known = 0 <= read.part < len(piece.parts) and piece.parts[read.part].data is not None
            start, stop = (0, 1) if read.row_groups is None else read.row_groups
            if not (known and 0 <= start < stop):
                raise InvalidInput(
                    "the scan plan reads rows that its parts do not have; plan the scan again"
                )


def check_fits(plan: ScanPlan, snapshot: Snapshot) -> None:
    """Raise InvalidInput unless the plan was made for this version of this table."""
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
    """Return output columns that are table columns."""
    return tuple(map(OutputColumn, names))
