"""Executes MERGE and INSERT … ON CONFLICT DO UPDATE of our session as one commit of the table.

The source is computed once. A join with the table decides which clause applies to each pair of
rows, and evaluates each condition once. Then the values of each clause are computed for its pairs.

Soundness: at most one pair changes a row of the table, each key is written once, and an inserted
key is not in the table; otherwise KeyViolation, and nothing is committed. The commit conflicts with
commits that could change the choice of a clause. If ON compares the whole key and nothing else of
the table is read, these are commits that touch a key of the source; otherwise, any commit that
changes rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.arguments.annotations import Metadata, Token
from rowsieve.changes.change import Change
from rowsieve.changes.computed import changes_rows, keyed_change
from rowsieve.changes.current_rows import current_rows, near_keys
from rowsieve.changes.data.ingest import Changes, prepare_appended, prepare_keys, prepare_rows
from rowsieve.changes.defaults import with_defaults
from rowsieve.changes.event_order.sequence_columns import check_sequences, order_of
from rowsieve.changes.hiding import hide_places
from rowsieve.changes.mutation import Check, Mutation, TouchesKeys, key_columns_of
from rowsieve.changes.present_keys import without_present
from rowsieve.errors import InvalidInput, KeyViolation, RowsieveError, UnsupportedOperation
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.providers.datafusion.changes.assigned_values import assigned, without_views
from rowsieve.providers.datafusion.changes.change_queries import Queries
from rowsieve.providers.datafusion.changes.checked_arithmetic import overflow_checks
from rowsieve.providers.datafusion.changes.numbered_rows import PLACE
from rowsieve.providers.datafusion.changes.sql_changes import (
    check_conflict_columns,
    columns_of,
    inserted,
    numbered,
    selected,
)
from rowsieve.providers.datafusion.changes.updated_rows import stored_keys, updated_rows
from rowsieve.statements.merge_sequences import in_order, sequences_of_source
from rowsieve.statements.merge_statement import Action, Merge, MergeClause, When
from rowsieve.statements.read_change import Insert
from rowsieve.statements.tokens import folded, quoted
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.logical import Field, Int
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.ordering.sequences import is_above
from rowsieve.types.schema import Schema
from rowsieve.types.shown_values import shown_row

_ROW: Final = "_rowsieve_row"
_CLAUSE: Final = "_rowsieve_clause"
_KEY: Final = "_rowsieve_key_"
_FIRED: Final = "_rowsieve_fired"
_NAME: Final = r'("(?:[^"]|"")+"|[^\W\d]\w*)'
_SAME: Final = re.compile(rf"{_NAME}\s*\.\s*{_NAME}\s*=\s*{_NAME}\s*\.\s*{_NAME}")
_JOINS: Final = {(False, False): "INNER", (False, True): "LEFT", (True, False): "RIGHT"}


def merge(
    queries: Queries, statement: Merge, rows_of: Callable[[Snapshot], pa.Table] | None = None
) -> int:
    """Merge the source into the table; return how many rows were written or deleted.

    `rows_of` computes the rows of the source; without it, the text of the source is run.
    """
    commit, count = merge_once(queries, statement, rows_of)
    return count - commit.rows_late


def merge_once(
    queries: Queries,
    statement: Merge,
    rows_of: Callable[[Snapshot], pa.Table] | None = None,
    *,
    retry_timeout_s: float | None = RETRY_TIMEOUT_S,
    token: Token | None = None,
    metadata: Metadata | None = None,
) -> tuple[Commit, int]:
    """Merge as `merge` does; return the commit, and how many rows it writes and deletes."""
    if folded(statement.target.qualifier) == folded(statement.source_alias):
        raise InvalidInput(
            f"merge: the table and the source are both called {statement.source_alias}; give the "
            "source another alias"
        )
    count = 0

    def build(change: Change, snapshot: Snapshot) -> Mutation | None:
        nonlocal count
        source = selected("*", statement.source, "")
        source_rows = queries.rows(source, snapshot) if rows_of is None else rows_of(snapshot)
        if not queries.table.key:
            placed = _MergingPlaces(queries, statement, snapshot, source_rows)
            places, rows = placed.places_and_rows()
            count = len(places) + placed.inserted_count
            return hide_places(change, snapshot, places, rows, changes_rows)
        running = _Merging(queries, statement, snapshot, source_rows)
        changes = running.changes()
        count = sum(part.num_rows for part in (changes.rows, changes.deletes) if part is not None)
        return keyed_change(change, snapshot, running.order, changes, running.reads())

    commit = queries.table.handle.commit_computed(
        "merge", build, retry_timeout_s, metadata=metadata, token=token
    )
    return commit, count


def insert_or_update(queries: Queries, statement: Insert) -> int:
    """Run INSERT … ON CONFLICT (key) DO UPDATE as a merge whose source is called `excluded`."""
    check_conflict_columns(statement, queries.table.key)
    if not queries.table.key:
        raise UnsupportedOperation(
            "sql: the table has no key, so no row can conflict; leave ON CONFLICT out"
        )
    schema = queries.table.handle.pinned.schema
    columns = columns_of(schema, statement.columns)
    target = statement.target
    same = [f"{target.qualifier}.{quoted(k)} = excluded.{quoted(k)}" for k in queries.table.key]
    clauses = (
        MergeClause(When.MATCHED, 1, Action.UPDATE, statement.assignments, statement.where or None),
        MergeClause(
            When.NOT_MATCHED,
            1,
            Action.INSERT,
            {name: f"excluded.{quoted(name)}" for name in columns},
        ),
    )
    merging = Merge(target, statement.source, "excluded", " AND ".join(same), clauses)

    def excluded(at: Snapshot) -> pa.Table:
        """The rows to insert; columns that are not listed have their defaults."""
        rows = inserted(queries, statement, at, columns)
        names = [name for name in columns_of(at.schema, None) if name not in at.table.sequence]
        others = [name for name in names if name not in columns]
        return with_defaults(rows, at.schema.select((*columns, *others)))

    return merge(queries, merging, excluded)


@dataclass(frozen=True, slots=True)
class _Fired:
    """The pairs that a clause applies to: row numbers of the source, and keys of the table."""

    clause: MergeClause
    pairs: pa.Table


class _Merging:
    """One attempt to merge, into one version of the table."""

    def __init__(
        self, queries: Queries, statement: Merge, snapshot: Snapshot, source: pa.Table
    ) -> None:
        self._queries = queries
        self._statement = statement
        self._snapshot = snapshot
        self._schema: Schema = snapshot.schema
        self._target_relation = statement.target.relation
        self.order = self._identity()
        self._sequences = sequences_of_source(
            statement.clauses, snapshot.table.sequence, source.column_names
        )
        self._clauses = [
            in_order(clause, self._sequences, self._text_of_source) for clause in statement.clauses
        ]
        if _ROW in source.column_names:
            raise InvalidInput(f"merge: rename the column {_ROW!r} of the source: MERGE adds it")
        self._source = source.append_column(_ROW, pa.array(np.arange(source.num_rows)))
        self._keys = self._source_keys()
        self._reads_itself = self._keys is None or self._has(When.NOT_MATCHED_BY_SOURCE)
        if not self._reads_itself:
            self._reads_itself = queries.reads_table(*self._clause_texts())
        self._near: Predicate = TRUE
        if self._keys is not None and not self._reads_itself:
            self._near = near_keys(self._keys, self.order)
        relation = queries.register_rows(self._source)
        self._source_relation = f"{relation} AS {statement.source_alias}"

    def _identity(self) -> KeyOrder:
        """The columns that identify a row of the table."""
        return KeyOrder.of(self._schema, self._snapshot.table.key)

    def _text_of_source(self, name: str) -> str:
        return f"{self._statement.source_alias}.{quoted(name)}"

    def changes(self) -> Changes:
        """The rows to write and the keys to delete."""
        written: list[pa.Table] = []
        inserted: list[pa.Table] = []
        gone: list[pa.Table] = []
        for fired in self._fired():
            if not fired.pairs.num_rows:
                continue
            if fired.clause.action is Action.DELETE:
                gone.append(self._deleted(fired))
            elif fired.clause.when is When.NOT_MATCHED:
                inserted.append(self._inserted(fired))
            else:
                written.append(self._updated(fired))
        self._refuse_repeated([*written, *gone])
        deletes = None
        if gone:
            deletes = self._prepared_keys(pa.concat_tables(gone, promote_options="default"))
        new = self._prepared(inserted)
        if new is not None and deletes is not None:
            new, deletes = self._settled(new, deletes)
        elif new is not None:
            self._refuse_present(new)
        rows = self._prepared([*written, *([] if new is None else [new])])
        self._refuse_repeated([part for part in (rows, deletes) if part is not None])
        return Changes(rows, deletes)

    def _settled(self, new: pa.Table, deletes: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Leave one action for each key that is deleted and inserted.

        The inserted row replaces the deleted one. Under an event order it does so unless its
        sequence is below that of the delete, as if both had been events.
        """
        names = list(self.order.names)
        both = [
            stored_keys(each.select(names), self.order, self._schema) for each in (new, deletes)
        ]
        columns = self.order.columns(pa.concat_tables(both))
        positions = columns.sort()  # stable: inserted rows come first
        second = np.flatnonzero(columns.repeats(positions))
        ours, theirs = positions[second - 1], positions[second] - new.num_rows
        is_new = np.ones(new.num_rows, np.bool_)
        is_new[ours] = False
        self._refuse_present(new.filter(pa.array(is_new)))
        is_newer = self._is_newer(deletes.take(pa.array(theirs)), new.take(pa.array(ours)))
        row_counts, delete_counts = np.ones(new.num_rows, bool), np.ones(deletes.num_rows, bool)
        row_counts[ours[is_newer]] = False
        delete_counts[theirs[~is_newer]] = False
        return new.filter(pa.array(row_counts)), deletes.filter(pa.array(delete_counts))

    def _is_newer(self, deletes: pa.Table, rows: pa.Table) -> np.ndarray:
        """(n,) bool, whether a delete has a greater sequence than the row that replaces its own."""
        if not self._snapshot.table.sequence or not rows.num_rows:
            return np.zeros(rows.num_rows, np.bool_)
        sequences = order_of(self._snapshot)
        check_sequences(rows, sequences, "merge", self._snapshot.parts)
        if not self._sequences:  # a delete has the sequence of the row that it deletes
            store, names = self._queries.table.handle.store, list(sequences.names)
            current = current_rows(store, self._snapshot, self.order, deletes, names)
            deletes = current.rows.take(pa.array(current.places))
        return is_above(sequences.columns(deletes), sequences.columns(rows))

    def reads(self) -> Check:
        """The check that a concurrent commit conflicts: it changes rows that the merge reads."""
        source = self._queries.reads_table(self._statement.source)
        if self._keys is None or self._reads_itself or source or not self._keys.num_rows:
            return changes_rows
        keys = key_columns_of([self._keys], self.order)
        return TouchesKeys(self._queries.table.handle.store, self._schema, self.order, keys)

    def _clause_texts(self) -> list[str]:
        texts = [self._statement.on]
        for clause in self._clauses:
            texts += [clause.where or "", *_texts_of(clause)]
        return texts

    def _has(self, when: When) -> bool:
        return any(clause.when is when for clause in self._clauses)

    def _source_keys(self) -> pa.Table | None:
        """The sorted keys of the source; None unless ON compares the whole key with its columns."""
        ours, theirs = self._statement.target.qualifier, self._statement.source_alias
        on = self._statement.on.strip()
        if on.startswith("(") and on.endswith(")") and on.count("(") == 1:
            on = on[1:-1]
        pairs: dict[str, str] = {}
        for term in re.split(r"\s+AND\s+", on.strip(), flags=re.IGNORECASE):
            if (match := _SAME.fullmatch(term.strip())) is None:
                return None
            a, b, c, d = (folded(each) for each in match.groups())
            sides = {a: b, c: d}
            if set(sides) != {folded(ours), folded(theirs)}:
                return None
            pairs[sides[folded(ours)]] = sides[folded(theirs)]
        if set(pairs) != set(self.order.names):
            return None
        if any(name not in self._source.column_names for name in pairs.values()):
            return None
        keys = self._source.select([pairs[name] for name in self.order.names])
        keys = without_views(keys.rename_columns(list(self.order.names))).drop_null()
        types = arrow_schema(Schema(0, self.order.fields)).types
        if not all(map(_is_compared_exactly, keys.schema.types, types)):
            return None
        try:
            return prepare_keys(keys, self._schema, self.order, "merge")
        except RowsieveError:
            return None  # a number that the key column cannot hold

    def _fired(self) -> list[_Fired]:
        """The pairs of each clause; the first clause that matches a pair gets it."""
        statement, target = self._statement, self._statement.target
        matched = f"{target.qualifier}.{quoted(self.order.names[0])} IS NOT NULL"
        of_source = f"{statement.source_alias}.{_ROW} IS NOT NULL"
        conditions = {
            When.MATCHED: f"{matched} AND {of_source}",
            When.NOT_MATCHED: f"NOT ({matched})",
            When.NOT_MATCHED_BY_SOURCE: f"NOT ({of_source})",
        }
        branches = " ".join(
            f"WHEN {conditions[clause.when]}"
            + (f" AND ({clause.where})" if clause.where else "")
            + f" THEN {number}"
            for number, clause in enumerate(self._clauses)
        )
        keys = ", ".join(
            f"{target.qualifier}.{quoted(name)} AS {_KEY}{place}"
            for place, name in enumerate(self.order.names)
        )
        outer = (self._has(When.NOT_MATCHED), self._has(When.NOT_MATCHED_BY_SOURCE))
        join = f"{_JOINS.get(outer, 'FULL')} JOIN"
        relation = f"{self._target_relation} {join} {self._source_relation} ON ({statement.on})"
        row = f"{statement.source_alias}.{_ROW} AS {_ROW}"
        query = selected(f"CASE {branches} END AS {_CLAUSE}, {row}, {keys}", relation, "")
        pairs = self._queries.rows(query, self._snapshot, self._near)
        return [
            _Fired(clause, pairs.filter(pc.equal(pairs.column(_CLAUSE), number)))
            for number, clause in enumerate(self._clauses)
        ]

    def _keys_of(self, pairs: pa.Table) -> pa.Table:
        keys = pairs.select([f"{_KEY}{place}" for place in range(len(self.order.names))])
        return keys.rename_columns(list(self.order.names))

    def _deleted(self, fired: _Fired) -> pa.Table:
        """The keys of a clause that deletes; without a condition, a row may be in several pairs."""
        keys = self._with_sequences(self._keys_of(fired.pairs), fired)
        return keys if fired.clause.where else self._prepared_keys(without_views(keys))

    def _with_sequences(self, keys: pa.Table, fired: _Fired) -> pa.Table:
        """Keys to delete with the sequences of the source, or those of rows that it has not."""
        if not self._sequences:
            return keys
        fields = [self._schema.field(name) for name in self._sequences]
        if fired.clause.when is When.MATCHED:
            theirs = self._source.select(list(self._sequences.values()))
            columns = assigned(theirs.take(fired.pairs.column(_ROW)), fields)
        else:
            stored = stored_keys(keys, self.order, self._schema)
            store, names = self._queries.table.handle.store, list(self._sequences)
            current = current_rows(store, self._snapshot, self.order, stored, names)
            columns = current.rows.take(pa.array(current.places))
        for field, column in zip(fields, columns.columns, strict=True):
            keys = keys.append_column(field.name, column)
        return keys

    def _prepared_keys(self, keys: pa.Table) -> pa.Table:
        names = tuple(self._sequences)
        return prepare_keys(keys, self._schema, self.order, "merge", names)

    def _updated(self, fired: _Fired) -> pa.Table:
        """The new rows of a clause that updates."""
        assert isinstance(fired.clause.values, Mapping)
        values, target = dict(fired.clause.values), self._statement.target
        columns_of(self._schema, values)
        columns = [f"({text})" for text in values.values()]
        keys = [f"{target.qualifier}.{quoted(name)}" for name in self.order.names]
        same = " AND ".join(f"{key} = {_FIRED}.{_KEY}{place}" for place, key in enumerate(keys))
        relation = f"{self._target_relation} INNER JOIN {self._fired_relation(fired)} ON ({same})"
        if fired.clause.when is When.MATCHED:
            alias = self._statement.source_alias
            relation += f" INNER JOIN {self._source_relation} ON {alias}.{_ROW} = {_FIRED}.{_ROW}"
        near = self._near
        computed = self._values([*columns, *keys], relation, fired.pairs.num_rows, near)
        order = self.order if self._queries.table.key else None
        rows = updated_rows(self._queries.table, self._snapshot, order, computed, list(values))
        before = computed.select(range(len(columns), computed.num_columns))
        self._refuse_other_keys(rows, before, values)
        return rows

    def _inserted(self, fired: _Fired) -> pa.Table:
        """The new rows of a clause that inserts."""
        clause = fired.clause
        texts, clause_values = _texts_of(clause), clause.values
        names = columns_of(
            self._schema, clause_values if isinstance(clause_values, Mapping) else None
        )
        if len(names) != len(texts):
            raise InvalidInput(f"merge: {len(texts)} values for the {len(names)} columns of INSERT")
        alias = self._statement.source_alias
        relation = (
            f"{self._source_relation} INNER JOIN {self._fired_relation(fired)} "
            f"ON {alias}.{_ROW} = {_FIRED}.{_ROW}"
        )
        columns = [f"({text})" for text in texts]
        values = self._values(columns, relation, fired.pairs.num_rows, TRUE)
        fields = [self._schema.field(name) for name in names]
        return with_defaults(assigned(values.rename_columns(names), fields), self._schema)

    def _values(
        self, columns: Sequence[str], relation: str, rows: int, near: Predicate
    ) -> pa.Table:
        checks = overflow_checks(self._queries, self._snapshot, columns, relation)
        both = enumerate([*columns, *checks])
        numbered = ", ".join(f"{text} AS c{place}" for place, text in both)
        pairs = self._queries.rows(selected(numbered, relation, ""), self._snapshot, near)
        if pairs.num_rows != rows:
            raise RowsieveError(
                f"merge: {rows} pairs of rows became {pairs.num_rows}; nothing was changed. Please "
                "report the statement"
            )
        return pairs.select(range(len(columns)))

    def _fired_relation(self, fired: _Fired) -> str:
        return f"{self._queries.register_rows(fired.pairs.drop_columns([_CLAUSE]))} AS {_FIRED}"

    def _prepared(self, rows: Sequence[pa.Table]) -> pa.Table | None:
        if not rows:
            return None
        prepared = [prepare_rows(each, self._schema, self.order, "error", "merge") for each in rows]
        whole = pa.concat_tables(prepared)
        return prepare_rows(whole, self._schema, self.order, "error", "merge")

    def _refuse_repeated(self, tables: Sequence[pa.Table]) -> None:
        """Raise KeyViolation if two pairs change one row."""
        names = list(self.order.names)
        keys = [stored_keys(each.select(names), self.order, self._schema) for each in tables]
        if not keys:
            return
        whole = pa.concat_tables(keys)
        columns = self.order.columns(whole)
        positions = columns.sort()
        if (repeats := columns.repeats(positions)).any():
            place = int(positions[np.flatnonzero(repeats)[0]])
            shown = shown_row(whole, place, self.order.fields)
            raise KeyViolation(
                f"merge: two rows of the source change the row with the key {shown}; nothing was "
                "changed. Let the source have one row for each row of the table, by GROUP BY or "
                "DISTINCT"
            )

    def _refuse_present(self, rows: pa.Table | None) -> None:
        """Raise KeyViolation if an inserted key is in the table."""
        if rows is None:
            return
        store = self._queries.table.handle.store
        absent = without_present(store, self._snapshot, self.order, rows)
        if absent.num_rows < rows.num_rows:
            raise KeyViolation(
                f"merge: the table has {rows.num_rows - absent.num_rows} of the keys that WHEN NOT "
                "MATCHED inserts; nothing was changed. Compare the key in ON"
            )

    def _refuse_other_keys(
        self, rows: pa.Table, before: pa.Table, values: Mapping[str, str]
    ) -> None:
        for place, name in enumerate(self.order.names):
            if name not in values:
                continue
            key = self._schema.select((name,))
            one = replace(self.order, fields=(self._schema.field(name),))
            was = stored_keys(before.select([place]).rename_columns([name]), one, key)
            now = stored_keys(rows.select([name]), one, key)
            if one.columns(was).arrays != one.columns(now).arrays:  # NaN is NaN
                raise UnsupportedOperation(
                    f"merge: UPDATE assigns another value to the key column {name!r}; a key "
                    "identifies its row: delete the row and insert one with the new key"
                )


class _MergingPlaces(_Merging):
    """One attempt to merge into one version of a table without a key, whose rows have places."""

    inserted_count = 0

    def _identity(self) -> KeyOrder:
        self._target_relation = numbered(self._queries, self._statement.target, self._snapshot)
        return KeyOrder((Field(0, PLACE, Int(64), nullable=False),))

    def _source_keys(self) -> pa.Table | None:
        return None  # ON may compare any columns

    def places_and_rows(self) -> tuple[np.ndarray, pa.Table | None]:
        """The places of the rows to hide, and the rows to append."""
        rows: list[pa.Table] = []
        gone: list[tuple[MergeClause, np.ndarray]] = []
        for fired in self._fired():
            if not fired.pairs.num_rows:
                continue
            if fired.clause.when is When.NOT_MATCHED:
                rows.append(self._inserted(fired))
                self.inserted_count += fired.pairs.num_rows
                continue
            gone.append((fired.clause, self._keys_of(fired.pairs).column(0).to_numpy()))
            if fired.clause.action is Action.UPDATE:
                rows.append(self._updated(fired))
        prepared = [prepare_appended(each, self._schema) for each in rows]
        return self._hidden_places(gone), pa.concat_tables(prepared) if prepared else None

    def _hidden_places(self, gone: Sequence[tuple[MergeClause, np.ndarray]]) -> np.ndarray:
        """The places without repetition; KeyViolation if it matters which pair changes a row.

        It does not where the only clause for matched rows deletes them all.
        """
        whole = np.concatenate([np.empty(0, dtype=np.int64), *(places for _, places in gone)])
        places, counts = np.unique(whole, return_counts=True)
        matched = [clause for clause in self._clauses if clause.when is When.MATCHED]
        if (counts > 1).any() and not (
            len(matched) == 1 and not matched[0].where and matched[0].action is Action.DELETE
        ):
            raise KeyViolation(
                f"merge: several rows of the source change one row of the table, {counts.max()} "
                "of them the same; nothing was changed. Let the source have one row for each"
            )
        return places


def _texts_of(clause: MergeClause) -> list[str]:
    """The texts of the values; `*` has been spelled out before."""
    values = clause.values or ()
    return list(values.values() if isinstance(values, Mapping) else values)


def _is_compared_exactly(one: pa.DataType, other: pa.DataType) -> bool:
    """Return whether DataFusion compares the types without rounding."""
    both_whole = pa.types.is_integer(one) and pa.types.is_integer(other)
    return bool(one == other or both_whole)
