"""Conditions of random tables, asked through each entry: the rows of a scan, or its refusal.

A difference has a name such as `12/3/spark/delete`: the table's seed, the condition's number there,
its dialect and the entry. DataFusion reads the text of its statements itself, so those are compared
with its `SELECT`, whose rows are those of a scan where both have rows.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from rowsieve.errors import EvaluationError
from tests.ternary_logic.engine_texts import KINDS, condition_on, drawn
from tests.ternary_logic.entries import (
    DIALECTS,
    ENTRIES,
    STATEMENTS,
    VALUES,
    Copies,
    Keeps,
    scanned,
)
from tests.ternary_logic.histories import History, random_table
from tests.ternary_logic.pairs import Failure, Finding, Report, outcome
from tests.ternary_logic.readers import Ids

Answer: TypeAlias = Ids | str  # rows, or what an error says of the condition
FAILS, REFUSED = "fails on a row", "refused"
_FORMS = (
    *("{0}", "{0}", "{0}", "NOT ({0})", "({0}) IS NOT TRUE", "{0} AND {1} IS NOT NULL"),
    *("{0} OR {1} IS NULL", "id > 5 AND ({0})", "({0}) IN (id > 9, NULL)"),
)


def check_entries(seed: int, numbers: Collection[int], report: Report, *, every: int = 1) -> None:
    """Ask conditions over the table of a seed, each through one in `every` entries."""
    with random_table(seed, KINDS) as history:
        copies = Copies(history.table)
        for number in numbers:
            entries = {name: ENTRIES[name] for name in [*ENTRIES][number % every :: every]}
            for dialect in DIALECTS:
                name = f"{seed}/{number}/{dialect}"
                text = condition_of(name, dialect, history)
                if text is None:
                    report.skipped[f"{dialect}: no such columns"] += 1
                    continue
                question = Question(name, copies, text, dialect, report)
                wanted = question.answer("scan", scanned)
                if wanted is not None:
                    question.compare(wanted, entries)
                if dialect == "datafusion":
                    question.compare_statements(wanted)


def condition_of(name: str, dialect: str, history: History) -> str | None:
    """Draw a condition over columns of the table; it may be refused, or fail on a row."""
    chance = random.Random(name)
    if (text := drawn(chance, dialect, history)) is None:
        return None
    read = partial(history.table.to_arrow, columns={"x": text}, dialect=dialect)
    values = outcome(lambda: read()["x"].unique().to_pylist())
    condition = text if isinstance(values, Failure) else condition_on(text, values, chance, dialect)
    return chance.choice(_FORMS).format(condition, chance.choice(history.schema.names))


@dataclass(frozen=True)
class Question:
    """A condition over a table, and where its answers go."""

    name: str
    copies: Copies
    text: str
    dialect: str
    report: Report

    def answer(self, entry: str, keeps: Keeps) -> Answer | None:
        """What an entry gives; None for an error of another kind."""
        answer = outcome(lambda: keeps(self.copies, self.text, self.dialect))
        if not isinstance(answer, Failure):
            ids: Ids = answer
            return ids
        if isinstance(answer.error, EvaluationError):
            return FAILS
        if answer.is_refusal:
            return REFUSED
        if entry not in STATEMENTS:  # a query of DataFusion's raises its own errors
            self._report(entry, str(answer))
        return None

    def compare(self, wanted: Answer, entries: Mapping[str, Keeps]) -> None:
        """Compare the answers of entries with that of a scan, or of a query."""
        for name, keeps in entries.items():
            if name == "constraint" and wanted == FAILS:
                continue  # a row on which the condition fails violates it
            answer = self.answer(name, keeps)
            self.report.compared[name] += 1
            if name in VALUES and answer in (REFUSED, FAILS):
                self.report.skipped[f"{name}: {answer}"] += 1
            elif answer is not None and answer != wanted:
                self._report(name, f"gives {answer}, not {wanted}")

    def compare_statements(self, wanted: Answer | None) -> None:
        """Compare statements with the session's query, if it has rows, and that with a scan."""
        (query, keeps), *changes = STATEMENTS.items()
        rows = self.answer(query, keeps)
        if not isinstance(rows, list):
            self.report.skipped["statements: no rows"] += 1
            return
        if isinstance(wanted, list) and rows != wanted:
            self._report(query, f"gives {rows}, not {wanted}")
        self.report.compared[query] += 1
        self.compare(rows, dict(changes))

    def _report(self, entry: str, difference: str) -> None:
        self.report.findings.append(Finding(f"{self.name}/{entry}", self.text, [difference]))
