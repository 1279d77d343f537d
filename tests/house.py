"""The house in figures: `make house` prints them, so that a bar on them has its command.

`python -m tests.house --all` lists all files and all long functions, not the ten longest.

Lines per room, circles of imports, the longest files and functions, file names that are used twice,
the files that name one function of conditions, names that only tests use, and the lengths of ways.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import TypeGuard

import rowsieve
from tests.ways import ways

ROOT = Path(rowsieve.__file__).parent
REPOSITORY = ROOT.parent
LONGEST_FUNCTION = 40
_DEFINED = re.compile(r"\b(?:def|class)\s+(\w+)")
SAMPLES = ("lpad", "octet_length", "last_day")
CALLED_BY_ENGINES = frozenset({"table_names"})  # an attribute that DataFusion reads of a schema
"""Functions whose files are counted: one of text, one of bytes, one of dates."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def sources(folder: Path = ROOT) -> list[Path]:
    """The Python files of a folder, in order."""
    return sorted(folder.rglob("*.py"))


def room_of(path: Path) -> str:
    """The room that a file of the package stands in."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file; never changed."""
    return ast.parse(path.read_text())


@cache
def nodes_of(path: Path) -> Sequence[ast.AST]:
    """All nodes of a file's tree: a walk takes half as long as parsing it, and many need one."""
    return list(ast.walk(tree_of(path)))


def line_count(path: Path) -> int:
    """The lines of a file."""
    return len(path.read_text().splitlines())


def lines_by_room() -> dict[str, tuple[int, int]]:
    """Files and lines of each room, largest first."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for path in sources():
        found[room_of(path)].append(line_count(path))
    ordered = sorted(found.items(), key=lambda room: -sum(room[1]))
    return {room: (len(counts), sum(counts)) for room, counts in ordered}


def module_of(path: Path) -> str:
    """The dotted name of a file of the package."""
    name = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
    return name.removesuffix(".__init__")


class Reach(IntEnum):
    """Which imports of a file are counted; each reach has those of the ones before it."""

    AT_IMPORT = 0
    AT_FIRST_USE = 1
    """Those inside functions too."""
    FOR_TYPES = 2
    """Those that only type checkers read too: all that a file has."""


CIRCLES = {
    Reach.AT_IMPORT: "circles of modules at import",
    Reach.AT_FIRST_USE: "circles with imports at first use",
    Reach.FOR_TYPES: "circles with imports for type checkers",
}


@cache
def imports_of(path: Path, known: frozenset[str], reach: Reach) -> frozenset[str]:
    """The modules of ours that a file imports."""
    found: set[str] = set()
    if reach > Reach.AT_IMPORT and "import_module" in path.read_text():
        found.update(_imported_by_name(path))
    for node in _statements(tree_of(path), reach):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner & known
            if inner - known:
                found.add(node.module)
    return frozenset((found & known) - {module_of(path)})


def _imported_by_name(path: Path) -> Iterator[str]:
    """The modules that a file names in calls of `import_module`."""
    for node in nodes_of(path):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from [str(each.value) for each in node.args if isinstance(each, ast.Constant)]


def packages_imported_by(path: Path) -> set[str]:
    """The packages, of ours and of others, that a file imports when it is imported itself."""
    found: set[str] = set()
    for node in _statements(tree_of(path), Reach.AT_IMPORT):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def _statements(tree: ast.AST, reach: Reach) -> Iterator[ast.AST]:
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, ast.expr):
            continue  # no statement is in it
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if reach < Reach.FOR_TYPES and _is_for_types(node):
            todo += node.orelse
        elif reach > Reach.AT_IMPORT or not is_function:
            todo += ast.iter_child_nodes(node)


def _is_for_types(node: ast.AST) -> TypeGuard[ast.If]:
    return isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"


def circles(reach: Reach) -> list[list[str]]:
    """Modules that import each other, directly or not, by the imports of this reach."""
    known = frozenset(module_of(path) for path in sources())
    graph = {module_of(path): imports_of(path, known, reach) for path in sources()}
    return sorted(sorted(one) for one in _strongly_connected(graph) if len(one) > 1)


def room_circles() -> list[list[str]]:
    """Rooms that import each other, by any import."""
    known = frozenset(module_of(path) for path in sources())
    graph: defaultdict[str, set[str]] = defaultdict(set)
    for path in sources():
        if path.parent != ROOT or path.name != "__init__.py":
            for name in imports_of(path, known, Reach.FOR_TYPES):
                if "." in name:
                    graph[room_of(path)].add(name.split(".")[1])
    return sorted(sorted(one) for one in _strongly_connected(graph) if len(one) > 1)


def _strongly_connected(graph: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """Sets of nodes that reach each other: who is reached from a node and reaches it."""
    reached = {node: _reached(graph, node) for node in graph}
    found: list[set[str]] = []
    for node, others in reached.items():
        if not any(node in one for one in found):
            found.append({node} | {other for other in others if node in reached.get(other, ())})
    return found


def _reached(graph: Mapping[str, Iterable[str]], start: str) -> set[str]:
    found: set[str] = set()
    todo = [start]
    while todo:
        for name in graph.get(todo.pop(), ()):
            if name not in found:
                found.add(name)
                todo.append(name)
    return found


def twins() -> dict[str, list[str]]:
    """File names that several folders have, with the folders."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sources():
        if path.name not in ("__init__.py", "__main__.py"):
            found[path.name].append(str(path.parent.relative_to(ROOT)))
    return {name: folders for name, folders in sorted(found.items()) if len(folders) > 1}


def long_functions() -> dict[str, int]:
    """Functions longer than a screen without their docstrings, longest first."""
    found = {
        f"{path.relative_to(ROOT)}:{node.name}": length
        for path in sources()
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := _length(node)) > LONGEST_FUNCTION
    }
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function, without those of its docstring."""
    length = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None:
        length -= (first.end_lineno or first.lineno) - first.lineno + 1
    return length


def files_naming(function: str) -> list[str]:
    """The files of the package in which a function of conditions is named."""
    return [
        str(path.relative_to(ROOT))
        for path in sources()
        if re.search(rf"\b{function}\b", path.read_text())
    ]


def only_in_tests() -> list[str]:
    """Names that one place in the package defines and only tests use: code to drop or to explain.

    By words, so that a name which something else has too is not found; what a document or an
    example names is public. Python and engines call methods by name: special ones, those of
    classes that have a base of an engine, and `CALLED_BY_ENGINES`.
    """
    ours, tests = _names_in_code(ROOT), _words(REPOSITORY / "tests")
    ours += _words(REPOSITORY, "pyspark_rowsieve.py", deep=False)
    public = _words(REPOSITORY / "docs", "*.md") + _words(REPOSITORY / "examples")
    rare = {name for name, count in ours.items() if count == 1 and tests[name]}
    rare -= public.keys() | CALLED_BY_ENGINES
    return [
        f"{path.relative_to(ROOT)}:{node.name}"
        for path in sources()
        if not rare.isdisjoint(_DEFINED.findall(path.read_text()))
        for node in _own_definitions(path)
        if node.name in rare
    ]


def _own_definitions(path: Path) -> Iterator[Definition]:
    """Functions, classes and methods that nothing outside of the package calls by name."""
    others = {
        alias.asname or alias.name
        for node in nodes_of(path)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if _package_of(node, alias) not in sys.stdlib_module_names | {"rowsieve"}
    }
    called: set[ast.AST] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.ClassDef):
            parts = [part for base in node.bases for part in ast.walk(base)]
            names = {part.id for part in parts if isinstance(part, ast.Name)}
            called |= set(node.body) if names & others else set()
    for node in nodes_of(path):
        if isinstance(node, Definition) and node not in called and not node.name.startswith("__"):
            yield node


def _package_of(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    module = alias.name if isinstance(node, ast.Import) else node.module or ""
    return module.partition(".")[0]


def _names_in_code(folder: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    for path in folder.rglob("*.py"):
        with tokenize.open(path) as file:
            tokens = tokenize.generate_tokens(file.readline)
            for token in tokens:
                if token.type == tokenize.NAME:
                    found[token.string] += 1
                elif token.type == tokenize.STRING and token.string.startswith(("f", "rf")):
                    found.update(re.findall(r"\w+", token.string))  # whole before Python 3.12
    return found


def _words(folder: Path, pattern: str = "*.py", *, deep: bool = True) -> Counter[str]:
    files = folder.rglob(pattern) if deep else folder.glob(pattern)
    return Counter(word for path in files for word in re.findall(r"\w+", path.read_text()))


def report(most: int | None = 10) -> Iterator[str]:
    """The figures, line by line; of the longest files and functions at most so many."""
    rooms = lines_by_room()
    yield f"rowsieve: {sum(lines for _, lines in rooms.values()):,} lines in {len(sources())} files"
    yield from (f"  {room:12} {lines:7,} in {files:3}" for room, (files, lines) in rooms.items())
    for folder in ("tests", "benchmarks"):
        files = sources(REPOSITORY / folder)
        yield f"{folder}: {sum(map(line_count, files)):,} lines in {len(files)} files"
    for reach, title in CIRCLES.items():
        yield from _listed(title, _brief(circles(reach)))
    yield from _listed("circles of rooms", map(", ".join, room_circles()))
    longest = sorted(sources(), key=line_count, reverse=True)[:most]
    shown = (f"{line_count(path):4} {path.relative_to(ROOT)}" for path in longest)
    yield from _listed("longest files", shown)
    functions = long_functions()
    shown = (f"{length:4} {name}" for name, length in list(functions.items())[:most])
    yield from _listed(f"functions over {LONGEST_FUNCTION} lines: {len(functions)}, longest", shown)
    shown = (f"{name}: {', '.join(folders)}" for name, folders in twins().items())
    yield from _listed(f"file names used twice: {len(twins())}", shown)
    for function in SAMPLES:
        files_with_it = files_naming(function)
        yield from _listed(f"files that name {function}: {len(files_with_it)}", files_with_it)
    yield from _listed("names that only tests use", only_in_tests())
    with_word = [path for path in sources() if re.search(r"\bfound\b", path.read_text())]
    yield f"files with the word found: {len(with_word)}"
    lengths = (
        f"{name}: {way.functions} functions in {way.files} files, {way.binds} binds"
        for name, way in ways().items()
    )
    yield from _listed("what the second of two calls passes", lengths)


def _listed(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"{title}:"
    yield from [f"  {line}" for line in lines] or ["  none"]


def _brief(found: Sequence[Sequence[str]]) -> Iterator[str]:
    for one in found:
        more = f" and {len(one) - 6} more" if len(one) > 6 else ""
        yield ", ".join(one[:6]) + more


def main(write: Callable[[str], object] = print, *, all_of_them: bool = False) -> None:
    """Print the figures; all files and functions, or the ten longest."""
    for line in report(None if all_of_them else 10):
        write(line)


if __name__ == "__main__":
    main(all_of_them="--all" in sys.argv[1:])
