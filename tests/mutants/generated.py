"""Mutants that no one chose: a fault at each comparison, connective, number and call of functions.

`python -m tests.mutants.generated planner/cache.py 1 5 tests/planner/test_cache.py` breaks every
fifth place from the first on, one at a time, and names those that the tests do not notice. Each
is killed by a new test, or shown to break nothing.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from tests.mutants.forked import Passes, break_functions, with_collected
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


def run(module: str, first: int, step: int, tests: tuple[str, ...]) -> None:
    """Break each `step`-th place of a module, and write the places that no test notices."""
    every = list(faults(source_of(module)))[first::step]

    def break_each(passes: Passes) -> None:
        assert passes(lambda: None), f"{tests} fail without a fault"
        killed = 0
        for fault in every:
            if passes(partial(break_functions, REPOSITORY / "rowsieve" / module, fault.source)):
                _write(f"survives: {module}:{fault.line}: {fault.what}")
            else:
                killed += 1
        _write(f"{module}: {killed} of {len(every)} killed")

    with_collected(tests, break_each)


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), tuple(sys.argv[4:]))
