"""Whether a condition can prune at all: for conditions that somebody depends on.

A condition can prune if the interpreter refutes a part of the table by it, or would refute one
whose statistics, of the kinds that this table has, lie clearly away. Conditions are judged one by
one, as pruning does.

Soundness: what is said here changes no plan and no answer. It may call a condition unable that
could prune in a corner that no witness lies in; never the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rowsieve.planner.witnesses import Known, witnesses
from rowsieve.predicate.abstract import AbstractColumn
from rowsieve.predicate.bind import BoundPredicate, bind
from rowsieve.predicate.functions.registry import BUILT_IN
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.predicate.ir import BoundColumn, Call, IsNull, Opaque, Predicate, conjuncts, walk
from rowsieve.predicate.semantics import Semantics
from rowsieve.stats.columnar import PartStatistics
from rowsieve.stats.json_kinds import EVERYTHING, path_of_subject
from rowsieve.stats.model import Derived, Subject
from rowsieve.stats.options import StatisticsOptions, statistics_options
from rowsieve.stats.subjects import JSON, LENGTH, Described, derived, describe
from rowsieve.stats.tabulate import statistics_name
from rowsieve.storage.snapshot import Snapshot

Describe = Callable[[Predicate], str]


@dataclass(frozen=True, slots=True)
class Unprunable:
    """A condition that skips nothing whatever the data, why, and what would help."""

    condition: str
    why: str

    def __str__(self) -> str:
        return f"{self.condition}: {self.why}"


def unprunable(
    predicate: Predicate,
    snapshot: Snapshot,
    describe: Describe,
    *,
    semantics: Semantics,
    now_us: int,
) -> list[Unprunable]:
    """The conditions of the conjunction that can refute no part; none if all of them can.

    A predicate that is TRUE has no condition, and is one itself.
    """
    terms = conjuncts(predicate)
    if not terms:
        return [Unprunable(describe(predicate), "it excludes no row, so nothing can be skipped")]
    found = []
    for term in terms:
        bound = bind(term, snapshot.schema, semantics, now_us=now_us)
        if why := _Question(bound, snapshot).why_not():
            found.append(Unprunable(describe(term), why))
    return found


class _Asked(PartStatistics):
    """The table's statistics, and which subjects were asked for."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot.parts, snapshot.schema)
        self.asked: dict[Subject, None] = {}

    def subject(self, subject: Subject) -> AbstractColumn | None:
        """Note it and answer."""
        self.asked[subject] = None
        return super().subject(subject)

    def kinds(self, subject: Derived) -> npt.NDArray[np.int64] | None:
        """Note the path, what its values may be, and answer."""
        values = [Derived(subject.field_id, f"{subject.what}:{k}") for k in _VALUES]
        self.asked.update(dict.fromkeys((subject, *values)))
        return super().kinds(subject)


_VALUES = ("int", "float", "string")


class _Question:
    """One condition, held against the table's parts and against made-up ones."""

    def __init__(self, bound: BoundPredicate, snapshot: Snapshot) -> None:
        self._bound = bound
        self._schema = snapshot.schema
        self._columns = snapshot.parts.columns
        key = [snapshot.schema.field(name) for name in snapshot.table.key]
        self._first_key = key[0].id if key else None
        self._options = statistics_options(snapshot.table.properties, snapshot.schema, key)
        self._statistics = _Asked(snapshot)
        self._verdicts = interpret(bound, self._statistics)
        nodes = [*walk(bound.root)]
        tested = [node.operand for node in nodes if isinstance(node, IsNull)]
        self._tested = {
            each.field_id for node in tested for each in walk(node) if isinstance(each, BoundColumn)
        }
        self._calls = {node.function for node in nodes if isinstance(node, Call)}
        self._is_opaque = any(isinstance(node, Opaque) for node in nodes)
        of_schema = {each.subject: each for each in describe(snapshot.schema)}
        asked = [(subject, of_schema.get(subject)) for subject in self._statistics.asked]
        self._asked = [
            found
            for subject, known in asked
            if (found := known or (derived(subject) if isinstance(subject, Derived) else None))
        ]

    def why_not(self) -> str:
        """Why no part can be refuted; nothing if one can."""
        if self._refutes_a_part() or self._refutes([*self._known()]):
            return ""
        if self._is_opaque:
            return "another engine evaluates a part of it, so it may be TRUE on any row"
        lacking = [each for each in self._asked if not self._facts(each)]
        if lacking and self._refutes([self._all_known(each) for each in self._asked]):
            return "; ".join(dict.fromkeys(map(self._advice, lacking)))
        if own := sorted(self._calls - BUILT_IN):
            return (
                f"nothing is claimed of the function {', '.join(own)}: register it with monotone= "
                "and can_fail=False if that is true of it"
            )
        return (
            "no bounds of its columns make it FALSE or NULL on every row without a possible error; "
            "compare a column, or a monotone function of it, with a constant"
        )

    def _refutes_a_part(self) -> bool:
        """Whether it refutes a part of the table, not counting columns that are NULL throughout."""
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
        for each in self._asked:
            if facts := self._facts(each):
                yield Known(each, facts, self._is_tested(each), self._kinds(each))

    def _all_known(self, each: Described) -> Known:
        facts = frozenset(fact for fact, _ in each.facts)
        return Known(each, facts, null=self._is_tested(each))

    def _kinds(self, each: Described) -> int:
        """What stands at a path in JSON in some part."""
        if not len(self._columns) or not isinstance(each.subject, Derived):
            return EVERYTHING
        kinds = self._statistics.kinds(each.subject) if "kinds" in dict(each.facts) else None
        return EVERYTHING if kinds is None else int(np.bitwise_or.reduce(kinds[kinds >= 0]))

    def _is_tested(self, each: Described) -> bool:
        subject = each.subject
        return (subject.field_id if isinstance(subject, Derived) else subject) in self._tested

    def _facts(self, each: Described) -> frozenset[str]:
        """The facts that some part has; without parts, those that writers will take."""
        names = [fact for fact, _ in each.facts if not fact.endswith("_exact")]
        if each.subject == self._first_key:  # its bounds are those of the keys
            names = ["lower", "upper", *(name for name in names if self._has(each.subject, name))]
            return frozenset(names)
        if not len(self._columns):
            return frozenset(names if _is_collected(each.subject, self._options) else ())
        known = self._statistics.subject(each.subject)
        if known is not None and known.empty.any():  # bounds are missing for want of values
            return frozenset(names)
        if (path := _path(each.subject)) and path != each.subject:  # so are those of a kind
            return frozenset(names if self._has(path, "kinds") else ())
        return frozenset(fact for fact in names if self._has(each.subject, fact))

    def _has(self, subject: Subject, fact: str) -> bool:
        """Whether some part has the fact."""
        name = statistics_name(subject, fact)
        if self._columns.schema.get_field_index(name) < 0:
            return False
        return bool(self._columns.column(name).null_count < len(self._columns))

    def _advice(self, each: Described) -> str:
        """Which statistics are not there, and how to have them."""
        subject = each.subject
        field_id = subject.field_id if isinstance(subject, Derived) else subject
        name = self._name(field_id)
        if not self._options.enabled:
            return f"no part has statistics of {name}, as the table's property statistics is off"
        if not isinstance(subject, Derived) or subject.what == LENGTH:
            return (
                f"no part has statistics of {name}: they were not taken, or trimmed; name it "
                "in the table's property critical_columns, or raise statistics_bytes"
            )
        path = _path(subject)
        wanted = "text_statistics" if path is None else "json_statistics"
        steps = "" if path is None else path.what.removeprefix(JSON).replace("/", ".")
        return f"no part has statistics of {name}{steps}: name it in the table's property {wanted}"

    def _name(self, field_id: int) -> str:
        for column in self._bound.columns:
            ids = [each.subject for each in describe([self._schema.field(column.name)])]
            if field_id in ids:
                return column.name
        return str(field_id)


def _path(subject: Subject) -> Derived | None:
    """The path in JSON that a subject is, or is a kind of value at."""
    return path_of_subject(subject) if isinstance(subject, Derived) else None


def _is_collected(subject: Subject, options: StatisticsOptions) -> bool:
    if not options.enabled:
        return False
    if not isinstance(subject, Derived) or subject.what == LENGTH:
        return True
    if not subject.what.startswith(JSON):
        return subject.field_id in options.text
    return subject.field_id in options.json
