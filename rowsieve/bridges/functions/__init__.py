"""One table of functions: how each engine spells a function, and for which arguments it agrees.

Readers, writers, the support matrix and the texts of refusals derive from these rows. A new
function takes a row in `rowsieve.predicate.functions`, its type rule and evaluator, and a row here.

Soundness: a spelling is used for a translation only where its condition on the arguments holds; a
condition was verified on awkward data in the engine itself (trino: in its documents, its own tests
and Velox's functions).
"""

from __future__ import annotations

from collections.abc import Mapping

from rowsieve.bridges.functions import choices, lists, numbers, patterns, texts, times
from rowsieve.bridges.functions.answers import ANSWERS
from rowsieve.bridges.functions.arguments import TypedCall
from rowsieve.bridges.functions.row import SQL_ENGINES, FunctionRow, Spelling

TABLE: Mapping[str, FunctionRow] = {
    row.name: row
    for group in (numbers, texts, patterns, choices, times, lists)
    for row in group.ROWS
}


# Functions that no text names, and what a user calls them.
_INTERNAL = {
    "numeric_bytes": "a comparison of numbers of any size",
    "numeric_approx": "a number of any size as a float",
    "jsonb_eq": "equality of JSON",
}


def spelling_of(name: str, engine: str) -> Spelling | None:
    """How the engine spells the function; None if it has no counterpart."""
    row = TABLE.get(name)
    return None if row is None else row.spelling(engine)


def refusal(call: TypedCall, engine: str) -> str:
    """Why the engine may give other values for this call; empty if it gives the same."""
    name = call.call.function
    row = TABLE.get(name)
    if row is None:
        return f"{_INTERNAL.get(name, name)} has no counterpart in {engine}"
    spelling, reason = row.spelling(engine), row.reason(engine)
    if spelling is None and not reason:
        return f"{name} has no verified counterpart in {engine}"
    if spelling is None or not spelling.cases:
        return f"{name} may give other values in {engine}" + (f": {reason}" if reason else "")
    if any(case.holds(call) for case in spelling.cases):
        return ""
    texts = " or ".join(case.text for case in spelling.cases)
    return f"{name} gives the same values in {engine} only for {texts}"


def other_answer(call: TypedCall, engine: str) -> str:
    """Why text that is evaluated here would give other values than the engine; empty if none.

    What the engine has no counterpart of has one meaning, ours.
    """
    name = call.call.function
    row = TABLE.get(name)
    if row is None or row.spelling(engine) is None:
        return ""
    if any(case.holds(call) for case in ANSWERS.get(engine, {}).get(name, ())):
        return ""
    return refusal(call, engine)


__all__ = [
    "SQL_ENGINES",
    "TABLE",
    "FunctionRow",
    "Spelling",
    "TypedCall",
    "other_answer",
    "refusal",
    "spelling_of",
]
