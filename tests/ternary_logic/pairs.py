"""A pair: a condition over a random table, asked through one reader.

The rows where it is TRUE, where NOT of it is, and where it IS NULL are those of the judge, which
evaluates the condition on every visible row; together they are all rows; and counts agree. A
pair's name is its table's seed, its number there and its reader: `12/3/duckdb`.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rowsieve.predicate import ir
from rowsieve.types.logical import LogicalType
from tests.predicate.random_expressions import Expressions
from tests.ternary_logic.histories import History, random_table
from tests.ternary_logic.readers import (
    LANGUAGES,
    READERS,
    REFUSALS,
    Asked,
    Ids,
    Judge,
    Language,
    Reader,
    Scanned,
    place_for,
)

FORMS = ("p", "NOT p", "p IS NULL")
_DEPTHS = (1, 1, 2, 2, 3, 4)
_LAWFUL = re.compile(
    # An engine evaluates what the plan of its memory folds away, and our scan evaluates it always.
    r"(?i)EvaluationError|UnreadText|overflow|out of range|divide by zero|division by zero|"
    r"conversion from|ConversionException|InvalidInputException|cast error|"
    # Spark, of a constant that it casts for a file, but not over rows of the driver.
    r"CAST_INVALID_INPUT|"
    # An internal error of DuckDB on a value far away, which ends its database.
    r"FatalException|InternalException|"
    # DataFusion cannot hand a folded NULL to any dataset (`tables/test_random_datafusion.py`).
    r"unsupported operand type|Time64\(ns\)"
)


@dataclass(frozen=True)
class Failure:
    """What was raised instead of rows."""

    error: BaseException

    @property
    def is_refusal(self) -> bool:
        return isinstance(self.error, REFUSALS)

    @property
    def is_lawful(self) -> bool:
        """Whether an engine may fail here though it has rows in memory: no row is wrong."""
        return (
            self.is_refusal
            or _LAWFUL.search(f"{type(self.error).__name__} {self.error}") is not None
        )

    def __str__(self) -> str:
        return f"{type(self.error).__name__}: {str(self.error)[:200]}"


@dataclass(frozen=True)
class Finding:
    """A pair whose rows differ from those of the judge."""

    name: str
    condition: str
    differences: list[str]

    def __str__(self) -> str:
        return f"{self.name}: {self.condition}: {'; '.join(self.differences)}"


@dataclass
class Report:
    """How many pairs were compared, by reader, why others were not, and what differs."""

    compared: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)


def outcome(ask: Callable[[], Any]) -> Any:
    """What a question gives: rows, or the failure."""
    try:
        return ask()
    except Exception as error:
        return Failure(error)
    except BaseException as error:  # a panic of DataFusion is no Exception
        if type(error).__name__ != "PanicException":
            raise
        return Failure(error)


def condition_of(seed: int, number: int, history: History) -> ir.Predicate:
    """Draw the condition of a pair; its constants are mostly values of the table's columns."""
    values: dict[LogicalType, list[Any]] = {}
    for one in history.schema:
        values.setdefault(one.type, [None]).extend(history.kinds[one.name].values)
    chance = random.Random(f"{seed}/{number}")
    depth = chance.choice(_DEPTHS)
    return Expressions(chance, history.schema, values, depth=depth).predicate()


def check_table(
    seed: int, numbers: Collection[int], readers: Collection[str], report: Report
) -> None:
    """Ask the conditions of these numbers over the table of a seed through each reader."""
    with place_for(readers) as uri, random_table(seed, uri=uri) as history:
        room = Room(history, report)
        for number in numbers:
            predicate = condition_of(seed, number, history)
            for name, reader in READERS.items():
                if name in readers and number % reader.every == 0:
                    room.check(f"{seed}/{number}/{name}", name, reader, predicate)


@dataclass
class Room:
    """A table with its readers and judges, opened at their first question."""

    history: History
    report: Report
    opened: dict[tuple[str, str], Any] = field(default_factory=dict)
    written: tuple[str, Any, dict[str, Any]] = ("", None, {})

    def check(self, name: str, reader_name: str, reader: Reader, predicate: ir.Predicate) -> None:
        """Compare one pair."""
        language = LANGUAGES[reader.language]
        condition = self._write(name, reader.language, language, predicate)
        if isinstance(condition, Failure):
            if condition.is_refusal:
                self.report.skipped[f"{reader.language}: not written"] += 1
            else:
                self.report.findings.append(Finding(name, str(predicate), [str(condition)]))
            return
        self.compare(name, reader_name, condition)

    def judge(self, language: str) -> Judge | Failure:
        """The judge of a language over the rows of the table."""
        found: Judge | Failure = self._open("judge", language, LANGUAGES[language].judge)
        return found

    def _open(self, what: str, name: str, opens: Callable[[Any], Any]) -> Any:
        if (what, name) not in self.opened:
            self.opened[what, name] = outcome(lambda: opens(self.history.table))
        return self.opened[what, name]

    def _write(self, name: str, of: str, language: Language, predicate: ir.Predicate) -> Any:
        """Write the condition once for all readers of its language."""
        pair = name.rpartition("/")[0]
        if self.written[0] != pair:
            self.written = (pair, predicate, {})
        known = self.written[2]
        if of not in known:
            chance = random.Random(f"{pair}/{of}")
            known[of] = outcome(lambda: language.write(predicate, self.history.schema, chance))
        return known[of]

    def compare(self, name: str, reader_name: str, condition: Any) -> None:
        """Ask a condition in the language of a reader."""
        reader = READERS[reader_name]
        language, judge = LANGUAGES[reader.language], self.judge(reader.language)
        asked: Asked | Failure = self._open("reader", reader_name, reader.over)
        if isinstance(judge, Failure) or isinstance(asked, Failure):
            self.report.skipped[f"{reader_name}: no such columns"] += 1
            return
        truths = outcome(lambda: judge.truths(condition))
        if isinstance(truths, Failure) and (truths.is_refusal or not reader.raises):
            self.report.skipped[f"{reader.language}: fails in memory"] += 1
            return
        forms = (condition, language.negated(condition), language.unknown(condition))
        differences = []
        if isinstance(truths, Failure):  # as values do for `NULL AND error`, but not filters
            every_part = Scanned(self.history.table, "off")
            truths = [outcome(partial(every_part.kept, form)) for form in forms]
        for i, (form, wanted) in enumerate(zip(forms, truths, strict=True)):
            found = outcome(partial(asked.kept, form))
            if isinstance(found, Failure) and found.is_lawful and not reader.raises:
                what = "refused" if found.is_refusal else "fails alone"
                self.report.skipped[f"{reader_name}: {what}"] += 1
                return
            if (text := difference(wanted, found)) and not _is_engine_s(judge, form, found, reader):
                differences.append(f"{FORMS[i]} {text}")
        differences += self._counted(condition, truths[0], asked) if not differences else []
        self.report.compared[reader_name] += 1
        if differences:
            self.report.findings.append(Finding(name, str(condition)[:600], differences))

    @staticmethod
    def _counted(condition: Any, wanted: Ids | Failure, asked: Asked) -> list[str]:
        found = outcome(lambda: asked.count(condition))
        if isinstance(wanted, Failure):
            return [] if isinstance(found, Failure) else [f"counts {found}, but fails on rows"]
        return [] if found == len(wanted) else [f"counts {found}, not {len(wanted)}"]


def difference(wanted: Ids | Failure, found: Ids | Failure) -> str:
    """How the rows of a reader differ from those of its judge; empty if they do not."""
    if isinstance(wanted, Failure):
        return "" if isinstance(found, Failure) else f"gives {found}, not {wanted}"
    if isinstance(found, Failure):
        return f"fails: {found}"
    lost, extra = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
    return f"lacks {sorted(lost)}, has {sorted(extra)} too" if lost or extra else ""


def _is_engine_s(judge: Judge, form: Any, found: Any, reader: Reader) -> bool:
    """Whether the engine keeps the same rows of its memory: as a filter it means another thing."""
    if reader.raises or isinstance(found, Failure):
        return False
    again = outcome(lambda: judge.kept(form))
    return isinstance(again, Failure) or again == found


def names_of(pair: str) -> tuple[int, int, str]:
    """The seed, number and reader of a pair's name."""
    seed, number, reader = pair.split("/", 2)
    return int(seed), int(number), reader
