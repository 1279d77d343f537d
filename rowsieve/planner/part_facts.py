"""The facts of a version's parts that pruning uses: verdicts, row counts, commits, overlap groups.

`PartFacts` reads them from the manifest, and only for the parts not yet refuted. `KnownParts` keeps
them in memory between the plans of one version.

Soundness: kept facts depend only on the manifest and the schema, never on a predicate. Before the
merge, only key columns may judge a part (trap T1). Facts of one version are never used for another
(invariant 22): they belong to its manifest as an object, and their key has the table's uuid,
version, commit and schema. They are freed with the manifest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from rowsieve.computed_property import computed_property
from rowsieve.errors import CorruptData
from rowsieve.planner.contiguous_keys import contiguous_keys
from rowsieve.planner.overlap import Codes, Groups, group_by_codes, key_codes
from rowsieve.planner.split import PlannedPart
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.stats.columnar import Decoded, PartStatistics
from rowsieve.stats.shard_unions import ShardUnions
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.manifests.vector_columns import PREFIX
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema

Verdicts: TypeAlias = npt.NDArray[np.int8]
Indices: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
K = TypeVar("K")
V = TypeVar("V")

OF_PARTS: Final = ("data.rows", "deletes.rows", "schema_id")
MAX_PARTS: Final = 4_096  # of a version whose facts are kept
MAX_KEPT: Final = 64  # parts that a predicate keeps; their groups are remembered
MAX_ANSWERS: Final = 256
MAX_SNAPSHOTS: Final = 4  # of one manifest, such as with other schemas


class PartFacts:
    """Facts of the parts of a manifest, read when they are used.

    `order` is None for a table without a key, whose parts never share rows.
    """

    def __init__(self, parts: PartTable, schema: Schema, order: KeyOrder | None) -> None:
        self.parts = parts
        self.schema = schema
        self.order = order
        fields = () if order is None else order.fields
        self.key_ids = frozenset(field.id for field in fields)
        self._judged: tuple[Indices, PartTable] | None = None

    @computed_property
    def rows(self) -> Indices:
        """(n,) rows of each part without tombstones."""
        return self.parts.data_rows()

    @computed_property
    def size_bytes(self) -> Indices:
        """(n,) stored bytes of the rows and tombstones of each part."""
        return self.parts.numbers("data.size_bytes") + self.parts.numbers("deletes.size_bytes")

    @computed_property
    def commits(self) -> tuple[Indices, Indices]:
        """(n,) the newest and the oldest commit of each part."""
        return self.parts.numbers("commit_ts_max"), self.parts.numbers("commit_ts_min")

    def judge_by_key(self, predicate: BoundPredicate) -> tuple[Verdicts, int]:
        """(n,) verdicts by only the key columns, and the number of contradictory statistics."""
        verdicts = np.full(len(self.parts), Verdict.NONE, dtype=np.int8)
        remaining = np.flatnonzero(
            ~refuted_by_unions(self.parts, self.schema, predicate, self.key_ids)
        )
        keys = PartStatistics(_rows_at(self.parts, remaining), self.schema, self.key_ids)
        verdicts[remaining] = interpret(predicate, keys)
        return verdicts, keys.contradictions

    def judge(
        self, predicate: BoundPredicate, places: Indices, names: Sequence[str]
    ) -> tuple[Verdicts, int]:
        """Verdicts on the kept parts by all columns, and the number of contradictory statistics.

        `names` are prefixes of the manifest columns that the predicate uses.
        """
        facts = _rows_at(self.parts.select("key.", *names, *OF_PARTS), places)
        self._judged = places, facts
        verdicts = np.full(len(places), Verdict.NONE, dtype=np.int8)
        remaining = np.flatnonzero(~refuted_by_unions(facts, self.schema, predicate))
        statistics = PartStatistics(_rows_at(facts, remaining), self.schema)
        verdicts[remaining] = interpret(predicate, statistics)
        return verdicts, statistics.contradictions

    def groups(self, remaining: Indices) -> Groups:
        """Group the kept parts by overlap; the groups index `remaining`."""
        if self.order is None:
            return Groups.singles(len(remaining))
        judged = self._judged  # has read some of the key columns
        same = judged is not None and judged[0] is remaining
        parts = judged[1] if judged is not None and same else _rows_at(self.parts, remaining)
        return group_by_codes(*key_codes(parts.select("key.").table, self.order))

    def newest_first(self, remaining: Indices, members: Indices, number: Indices) -> Indices:
        """Sort the members of each group by commit, newest first; members index `remaining`.

        `number`: (n,) the group of each member. CorruptData if commits of a group interleave.
        """
        newest, oldest = (commits[remaining[members]] for commits in self.commits)
        places = np.lexsort((-oldest, -newest, number))
        members, newest, oldest = members[places], newest[places], oldest[places]
        # Overlapping parts must be ordered by commit as wholes (invariant 11). Parts of one commit
        # share a commit_ts but no key, so their order does not matter.
        above = newest[1:] > oldest[:-1]
        touching = newest[1:] == oldest[:-1]
        same = (newest[1:] == newest[:-1]) & (oldest[1:] == oldest[:-1])
        wrong = (number[1:] == number[:-1]) & (above | (touching & ~same))
        if wrong.any():
            i = int(np.argmax(wrong))
            ids = self.parts.column("part_id")
            newer, older = (ids[int(remaining[members[j]])].as_py() for j in (i, i + 1))
            raise CorruptData(
                f"parts {newer} and {older} overlap in keys and their commits "
                f"[{oldest[i]}, {newest[i]}] and [{oldest[i + 1]}, {newest[i + 1]}] interleave, "
                "but they carry no commit_ts by row; the manifest is damaged"
            )
        return members

    def planned(self, indices: Indices) -> list[PlannedPart]:
        """The fields that a read needs of these parts, in the order given."""
        return planned_parts(self.parts, indices, self.order)


class KnownParts(PartFacts):
    """Facts of the parts of one version, each computed at its first use and kept.

    Thread-safe: concurrent callers may compute a fact twice. All parts are judged at once, because
    the statistics are decoded already.
    """

    def __init__(self, parts: PartTable, schema: Schema, order: KeyOrder | None) -> None:
        super().__init__(parts, schema, order)
        self._decoded: Decoded = {}
        self._planned: dict[int, PlannedPart] = {}
        self._grouped: dict[bytes, Groups] = {}
        self._sorted: dict[tuple[bytes, ...], Indices] = {}

    def judge_by_key(self, predicate: BoundPredicate) -> tuple[Verdicts, int]:
        """(n,) verdicts by only the key columns, and the number of contradictory statistics."""
        known = PartStatistics(self.parts, self.schema, self.key_ids, decoded=self._decoded)
        return interpret(predicate, known), known.contradictions

    def judge(
        self,
        predicate: BoundPredicate,
        places: Indices,
        names: Sequence[str],  # noqa: ARG002 - all columns are in memory
    ) -> tuple[Verdicts, int]:
        """Verdicts on the kept parts by all columns, and the number of contradictory statistics."""
        known = PartStatistics(self.parts, self.schema, decoded=self._decoded)
        return interpret(predicate, known)[places], known.contradictions

    def groups(self, remaining: Indices) -> Groups:
        """Group the kept parts by overlap; the groups index `remaining`."""
        if self.order is None:
            return Groups.singles(len(remaining))
        lower, upper = self._codes
        if len(remaining) > MAX_KEPT:
            return group_by_codes(lower[remaining], upper[remaining])
        key = remaining.tobytes()
        if (groups := self._grouped.get(key)) is None:
            groups = group_by_codes(lower[remaining], upper[remaining])
            _remember(self._grouped, key, groups)
        return groups

    def newest_first(self, remaining: Indices, members: Indices, number: Indices) -> Indices:
        """Sort the members of each group by commit, newest first, as `PartFacts` does."""
        if len(remaining) > MAX_KEPT:
            return super().newest_first(remaining, members, number)
        key = remaining.tobytes(), members.tobytes(), number.tobytes()
        if (order := self._sorted.get(key)) is None:
            order = super().newest_first(remaining, members, number)
            _remember(self._sorted, key, order)
        return order

    def planned(self, indices: Indices) -> list[PlannedPart]:
        """The fields that a read needs of these parts, in the order given."""
        wanted, known = indices.tolist(), self._planned
        if new := [index for index in wanted if index not in known]:
            known.update(zip(new, planned_parts(self.parts, new, self.order), strict=True))
        return [known[index] for index in wanted]

    @computed_property
    def _codes(self) -> tuple[Codes, Codes]:
        assert self.order is not None
        return key_codes(self.parts.select("key.").table, self.order)


def part_facts(snapshot: Snapshot) -> PartFacts:
    """Return the facts of a version's parts, kept if the version has few and they are in memory."""
    parts, schema, table = snapshot.parts, snapshot.schema, snapshot.table
    order = KeyOrder.of(schema, table.key) if table.key else None
    if len(parts) > MAX_PARTS or not parts.in_memory:
        return PartFacts(parts, schema, order)
    key = (table.uuid, snapshot.version, snapshot.commit_id, schema, table.key)
    known: KnownParts | None = parts.derived.get(key)
    if known is None:
        bare = parts.without_facts()  # a cycle would be freed only by the garbage collector
        known = KnownParts(bare, schema, order)
        _remember(parts.derived, key, known, MAX_SNAPSHOTS)
    return known


def refuted_by_unions(
    parts: PartTable,
    schema: Schema,
    predicate: BoundPredicate,
    field_ids: frozenset[int] | None = None,
) -> Mask:
    """(n,) whether the part's whole shard is refuted, so that its statistics need not be read."""
    refuted = np.zeros(len(parts), dtype=np.bool_)
    for start, shards, unions in parts.unions():
        verdicts = interpret(predicate, ShardUnions(unions, schema, field_ids))
        refuted[start : start + len(shards)] = (verdicts == Verdict.NONE)[shards]
    return refuted


def planned_parts(
    parts: PartTable, indices: Indices | Sequence[int], order: KeyOrder | None = None
) -> list[PlannedPart]:
    """Return the fields that a read needs of these parts, in the order given.

    `order`: that of the table's key, for contiguous keys; without it, they are read from files.
    """
    if not len(indices):
        return []
    prefixes = ("part_id", "commit_ts_max", "data.", "deletes.", "dv.", PREFIX)
    taken = parts.select(*prefixes, *(() if order is None else ("key.",))).take(indices)
    return [
        PlannedPart(*values)
        for values in zip(
            taken.column("part_id").to_pylist(),
            taken.column("commit_ts_max").to_pylist(),
            taken.files("data"),
            taken.files("deletes"),
            taken.deletion_vectors(),
            taken.vectors(),
            contiguous_keys(taken, order),
            strict=True,
        )
    ]


def _remember(known: dict[K, V], key: K, value: V, most: int = MAX_ANSWERS) -> None:
    """Add a value; start again if there are `most` already."""
    if len(known) >= most:
        known.clear()
    known[key] = value


def _rows_at(parts: PartTable, indices: Indices) -> PartTable:
    return parts if len(indices) == len(parts) else parts.take(indices)
