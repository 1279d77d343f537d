"""Mutants that no one chose: a fault at each comparison, connective, number and call of functions.

`python -m tests.mutants.generated planner/cache.py 1 5 tests/planner/test_cache.py` breaks every
fifth place from the first on, one at a time, and names those that the tests do not notice. Each
is killed by a new test, or shown to break nothing. Several modules, each a line of such arguments
in a file, share one collection of tests: `python -m tests.mutants.generated FILE`. Those with the
same tests also share the run that tells which functions each test executes.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.mutants.forked import (
    Collected,
    Executing,
    break_functions,
    first_lines_at,
    with_collected,
)
from tests.mutants.workshop import REPOSITORY, source_of

_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Fault:
    """A change of one place in a module."""

    line: int
    what: str
    source: str


def faults(source: str) -> Iterator[Fault]:
    """All faults of the functions of a module, from the outside in."""
    tree = ast.parse(source)
    for place, node in enumerate(_executed(tree)):
        if not _break(copy.deepcopy(node)):
            continue
        broken = copy.deepcopy(tree)
        what = _break(next(n for i, n in enumerate(_executed(broken)) if i == place))
        yield Fault(getattr(node, "lineno", 0), what, ast.unparse(broken))


def _executed(tree: ast.Module) -> Iterator[ast.AST]:
    """All nodes that a call of a function executes, without annotations and defaults."""
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, is_inside = waiting.pop(0)
        if is_inside:
            yield node
        is_function = isinstance(node, ast.FunctionDef)
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns", "args", "decorator_list") or (
                name == "args" and isinstance(node, ast.Call)
            ):
                inner = value if isinstance(value, list) else [value]
                inside = is_inside or is_function
                waiting.extend((n, inside) for n in inner if isinstance(n, ast.AST))


def _break(node: ast.AST) -> str:
    """Break a node in place, and say how; empty if it has no fault."""
    match node:
        case ast.Compare(ops=[op, *rest]) if type(op) in _OPERATORS:
            new = _OPERATORS[type(op)]()
            assert isinstance(new, ast.cmpop)
            node.ops = [new, *rest]
            return f"{type(op).__name__} becomes {type(new).__name__}"
        case ast.BoolOp(op=op):
            joined = _OPERATORS[type(op)]()
            assert isinstance(joined, ast.boolop)
            node.op = joined
            return f"{type(op).__name__} becomes {type(joined).__name__}"
        case ast.BinOp(op=op) if type(op) in _OPERATORS:
            combined = _OPERATORS[type(op)]()
            assert isinstance(combined, ast.operator)
            node.op = combined
            return f"{type(op).__name__} becomes {type(combined).__name__}"
        case ast.Constant(value=bool(value)):
            node.value = not value
            return f"{value} becomes {not value}"
        case ast.Constant(value=int(value)):
            node.value = value + 1
            return f"{value} becomes {value + 1}"
        case ast.Name(id=name) if name in _NAMES:
            node.id = _NAMES[name]
            return f"{name} becomes {node.id}"
        case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Compare):
            node.test = ast.UnaryOp(ast.Not(), test)
            return "a condition is turned round"
    return ""


class Job(NamedTuple):
    """The places of a module to break, each `step`-th one, and the tests that have to notice."""

    module: str
    first: int
    step: int
    tests: tuple[str, ...]

    @classmethod
    def of(cls, words: Sequence[str]) -> Job:
        """Read the arguments of a command."""
        return cls(words[0], int(words[1]), int(words[2]), tuple(words[3:]))


def run(jobs: Sequence[Job]) -> None:
    """Break places of modules, and write those that no test notices."""

    def break_each(collected: Collected) -> None:
        for tests in dict.fromkeys(job.tests for job in jobs):
            same = [job for job in jobs if job.tests == tests]
            files = [_file_of(job) for job in same]
            executing = collected.executing(collected.of(tests), files)
            for job in same:
                _break_places(job, collected, executing)

    with_collected(list(dict.fromkeys(test for job in jobs for test in job.tests)), break_each)


def _file_of(job: Job) -> Path:
    return REPOSITORY / "rowsieve" / job.module


def _break_places(job: Job, collected: Collected, executing: Sequence[Executing]) -> None:
    file, source = _file_of(job), source_of(job.module)
    every = list(faults(source))[job.first :: job.step]
    killed = 0
    for fault in every:
        functions = {(file, line) for line in first_lines_at(source, fault.line)}
        able = sorted((each for each in executing if each.functions & functions), key=_cost)
        items = [each.item for each in able]
        if not items or collected.passes(items, partial(break_functions, file, fault.source)):
            unseen = "" if items else ", which no test executes"
            _write(f"survives: {job.module}:{fault.line}: {fault.what}{unseen}")
        else:
            killed += 1
    _write(f"{job.module}: {killed} of {len(every)} killed")


def _cost(executing: Executing) -> float:
    return executing.cpu_s


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    commands = [sys.argv[1:]]
    if len(sys.argv) == 2:
        commands = [line.split() for line in Path(sys.argv[1]).read_text().splitlines()]
    run([Job.of(words) for words in commands])
