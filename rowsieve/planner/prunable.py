"""Find the conjuncts of a predicate that can never prune, for `require_pruning`.

A conjunct can prune if the interpreter refutes a part of the table by it, or would refute a made-up
part (`witnesses`) with the kinds of statistics that this table has. Conjuncts are judged one by
one, as pruning does.

Soundness: the result changes no plan and no answer. A conjunct that could prune only for values
that no witness has may be reported as unable; the opposite never happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rowsieve.planner.witnesses import Known, witnesses
from rowsieve.predicate import ir
from rowsieve.predicate.bind import BoundPredicate, bind_conjuncts
from rowsieve.predicate.functions.registry import BUILT_IN
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.predicate.semantics import Semantics
from rowsieve.stats.columnar import PartStatistics
from rowsieve.stats.json_kinds import EVERYTHING, path_of_subject
from rowsieve.stats.model import Derived, Subject
from rowsieve.stats.selection import StatisticsOptions, statistics_options
from rowsieve.stats.subjects import JSON, LENGTH, Described, derived, describe
from rowsieve.stats.tabulate import statistics_name
from rowsieve.storage.snapshot import Snapshot

Describe = Callable[[ir.Predicate], str]


@dataclass(frozen=True, slots=True)
class Unprunable:
    """A conjunct that can never skip a part; `why` gives the reason and the remedy."""

    condition: str
    why: str

    def __str__(self) -> str:
        return f"{self.condition}: {self.why}"


def unprunable(
    predicate: ir.Predicate,
    snapshot: Snapshot,
    describe: Describe,
    *,
    semantics: Semantics,
    now_us: int,
) -> list[Unprunable]:
    """Return the conjuncts that cannot refute any part; empty if all of them can.

    The predicate TRUE has no conjuncts, and is itself reported.
    """
    terms = bind_conjuncts(predicate, snapshot.schema, semantics, now_us=now_us)
    if not terms:
        return [Unprunable(describe(predicate), "it excludes no rows, so nothing can be skipped")]
    conjuncts = []
    for term, bound in terms:
        if why := _Conjunct(bound, snapshot).why_not():
            conjuncts.append(Unprunable(describe(term), why))
    return conjuncts


class _Recording(PartStatistics):
    """The table's statistics; records the subjects that were requested."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot.parts, snapshot.schema)
        self.requested: dict[Subject, None] = {}

    def subject(self, subject: Subject) -> AbstractColumn | None:
        """Record the subject, and return its statistics."""
        self.requested[subject] = None
        return super().subject(subject)

    def kinds(self, subject: Derived) -> npt.NDArray[np.int64] | None:
        """Record the JSON path and its subjects by value kind, and return the path's kinds."""
        values = [Derived(subject.field_id, f"{subject.what}:{k}") for k in _VALUES]
        self.requested.update(dict.fromkeys((subject, *values)))
        return super().kinds(subject)


_VALUES = ("int", "float", "string")


class _Conjunct:
    """One conjunct, interpreted on the table's parts and on made-up parts."""

    def __init__(self, bound: BoundPredicate, snapshot: Snapshot) -> None:
        self._bound = bound
        self._schema = snapshot.schema
        self._columns = snapshot.parts
        key = [snapshot.schema.field(name) for name in snapshot.table.key]
        self._first_key = key[0].id if key else None
        self._options = statistics_options(snapshot.table.settings, snapshot.schema, key)
        self._statistics = _Recording(snapshot)
        self._verdicts = interpret(bound, self._statistics)
        nodes = [*ir.walk(bound.root)]
        tested = [node.operand for node in nodes if isinstance(node, ir.IsNull)]
        self._tested = {
            each.field_id
            for node in tested
            for each in ir.walk(node)
            if isinstance(each, ir.BoundColumn)
        }
        self._calls = {node.function for node in nodes if isinstance(node, ir.Call)}
        self._is_opaque = any(isinstance(node, ir.Opaque) for node in nodes)
        of_schema = {each.subject: each for each in describe(snapshot.schema)}
        requested = [(subject, of_schema.get(subject)) for subject in self._statistics.requested]
        self._requested = [
            described
            for subject, known in requested
            if (described := known or (derived(subject) if isinstance(subject, Derived) else None))
        ]

    def why_not(self) -> str:
        """Return why no part can be refuted; the empty text if one can."""
        if self._refutes_a_part() or self._refutes([*self._known()]):
            return ""
        if self._is_opaque:
            return "another engine evaluates part of it, so it may be TRUE on any row"
        missing = [each for each in self._requested if not self._facts(each)]
        if missing and self._refutes([self._all_known(each) for each in self._requested]):
            return "; ".join(dict.fromkeys(map(self._advice, missing)))
        if registered := sorted(self._calls - BUILT_IN):
            return (
                f"the properties of the function {', '.join(registered)} are unknown: register it "
                "with monotone= and can_fail=False if these hold"
            )
        return (
            "no bounds of its columns make it FALSE or NULL on every row without a possible error; "
            "compare a column, or a monotone function of it, with a constant"
        )

    def _refutes_a_part(self) -> bool:
        """Return whether it refutes a part of the table; ignores parts with all-NULL columns."""
        refuted = self._verdicts == Verdict.NONE
        for column in self._bound.columns:
            known = self._statistics.column(column)
            if known is not None and column.field_id not in self._tested:
                refuted = refuted & ~known.empty
        return bool(refuted.any())

    def _refutes(self, known: list[Known]) -> bool:
        verdicts = interpret(self._bound, witnesses(known, self._schema))
        return bool((verdicts == Verdict.NONE).any())

    def _known(self) -> Iterator[Known]:
        for each in self._requested:
            if facts := self._facts(each):
                yield Known(each, facts, self._is_tested(each), self._kinds(each))

    def _all_known(self, each: Described) -> Known:
        facts = frozenset(fact for fact, _ in each.facts)
        return Known(each, facts, null=self._is_tested(each))

    def _kinds(self, each: Described) -> int:
        """Return the value kinds that some part has at a JSON path."""
        if not len(self._columns) or not isinstance(each.subject, Derived):
            return EVERYTHING
        kinds = self._statistics.kinds(each.subject) if "kinds" in dict(each.facts) else None
        return EVERYTHING if kinds is None else int(np.bitwise_or.reduce(kinds[kinds >= 0]))

    def _is_tested(self, each: Described) -> bool:
        subject = each.subject
        return (subject.field_id if isinstance(subject, Derived) else subject) in self._tested

    def _facts(self, each: Described) -> frozenset[str]:
        """Return the facts that some part has; in an empty table, those that writers collect."""
        names = [fact for fact, _ in each.facts if not fact.endswith("_exact")]
        if each.subject == self._first_key:  # every part has the bounds of its keys
            names = ["lower", "upper", *(name for name in names if self._has(each.subject, name))]
            return frozenset(names)
        if not len(self._columns):
            return frozenset(names if _is_collected(each.subject, self._options) else ())
        older = self._statistics.older(each.subject)
        if older is not None and older.all():  # the bounds are those of the default
            return frozenset(names)
        known = self._statistics.subject(each.subject)
        if known is not None and known.empty.any():  # no bounds, because there are no values
            return frozenset(names)
        if (path := _path(each.subject)) and path != each.subject:  # values of one kind at a path
            return frozenset(names if self._has(path, "kinds") else ())
        return frozenset(fact for fact in names if self._has(each.subject, fact))

    def _has(self, subject: Subject, fact: str) -> bool:
        """Return whether some part has the fact."""
        name = statistics_name(subject, fact)
        if self._columns.schema.get_field_index(name) < 0:
            return False
        return bool(self._columns.column(name).null_count < len(self._columns))

    def _advice(self, each: Described) -> str:
        """Return which statistics are missing, and how to collect them."""
        subject = each.subject
        field_id = subject.field_id if isinstance(subject, Derived) else subject
        name = self._name(field_id)
        if not self._options.enabled:
            return (
                f"no part has statistics of {name}, because the table's property statistics is off"
            )
        if not isinstance(subject, Derived) or subject.what == LENGTH:
            return (
                f"no part has statistics of {name}: they were not collected, or trimmed; list it "
                "in the table's property critical_columns, or increase statistics_bytes"
            )
        path = _path(subject)
        wanted = "text_statistics" if path is None else "json_statistics"
        steps = "" if path is None else path.what.removeprefix(JSON).replace("/", ".")
        return f"no part has statistics of {name}{steps}: list it in the table's property {wanted}"

    def _name(self, field_id: int) -> str:
        for column in self._bound.columns:
            ids = [each.subject for each in describe([self._schema.field(column.name)])]
            if field_id in ids:
                return column.name
        return str(field_id)


def _path(subject: Subject) -> Derived | None:
    """Return the JSON path of a subject that is a path, or a kind of value at a path."""
    return path_of_subject(subject) if isinstance(subject, Derived) else None


def _is_collected(subject: Subject, options: StatisticsOptions) -> bool:
    if not options.enabled:
        return False
    if not isinstance(subject, Derived) or subject.what == LENGTH:
        return True
    if not subject.what.startswith(JSON):
        return subject.field_id in options.text
    return subject.field_id in options.json
