"""Imports point one way: a room may import what stands on a lower floor, or in itself.

All tests that read the syntax trees of the package are here: one process parses them, once.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import rowsieve
from rowsieve.bridges.languages import BRIDGES
from rowsieve.bridges.sql.dialects import DIALECTS
from tests import house
from tests.ways import Way, ways

ROOT = Path(rowsieve.__file__).parent

FLOORS = (
    (
        "checksums",
        "clock",
        "computed_property",
        "disk_errors",
        "errors",
        "locks",
        "threads",
        "varints",
    ),
    ("byte_cache", "decoded_types"),
    ("arguments", "metrics"),
    ("progress_bars",),
    ("flags",),
    ("config", "properties", "shown"),
    ("pictures",),
    ("types",),
    ("value_texts",),
    ("frame_text",),
    ("predicate", "objects"),
    ("stats", "bridges", "encodings"),
    ("parquet", "statements", "telemetry"),
    ("input_files",),
    ("storage",),
    ("planner",),
    ("executor",),
    ("changes",),
    ("envelopes",),
    ("compaction", "retention", "scan"),
    ("publication",),
    ("change_feed", "maintenance", "refs"),
    ("engines", "writer"),
    ("differential", "table_methods", "transactions"),
    ("picture_facts",),
    ("table",),
    ("metadata_tables", "opening"),
    ("foreign",),
    ("defined_tables", "procedures"),
    ("names",),
    ("database",),
    ("catalog", "providers", "run_transaction"),
    ("demo", "pages"),
    ("cli",),
    ("__main__",),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
ENGINES = {*DIALECTS, *(bridge.name for bridge in BRIDGES if bridge.name != "rowsieve")}
LONGEST_WAYS = {
    "a scan": Way(200, 60, 0),
    "an upsert": Way(220, 50, 0),
    "a statement": Way(320, 80, 0),
    "a scan with files": Way(200, 60, 0),
    "an upsert with files": Way(243, 58, 0),
    "a statement with files": Way(320, 80, 0),
    "a translation": Way(180, 50, 2),
    "three translations": Way(350, 82, 6),
}
"""The most that each call may pass: what we want, or how far we have come."""
LISTS = {"functions", "differences"}  # folders of rows
NEEDS_NOTHING_ABOVE = {
    "bridges": {
        *("predicate", "types", "byte_cache", "clock", "errors", "arguments", "varints"),
        "pictures",
    }
}


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> Iterator[str]:
    for node in house.nodes_of(path):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module]
            if node.module == "rowsieve":
                names = [f"rowsieve.{alias.name}" for alias in node.names if alias.name in FLOOR]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if name.startswith("rowsieve."):
                yield name.split(".")[1]


def sources() -> list[Path]:
    return [
        path for path in ROOT.rglob("*.py") if path.name != "__init__.py" or path.parent != ROOT
    ]


def test_every_room_stands_on_a_floor() -> None:
    assert {room_of(path) for path in sources()} - set(FLOOR) == set()


def test_imports_point_down() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {room}"
        for path in sources()
        for room in imported_rooms(path)
        if room != room_of(path) and FLOOR[room] >= FLOOR[room_of(path)]
    ]
    assert wrong == []


def test_bridges_know_predicates_and_types_only() -> None:
    allowed = NEEDS_NOTHING_ABOVE["bridges"] | {"bridges"}
    found = {room for path in (ROOT / "bridges").rglob("*.py") for room in imported_rooms(path)}
    assert found <= allowed


def test_the_clock_alone_reads_the_time_and_sleeps() -> None:
    """A simulation can then own the time; threads of foreign engines do not take part in one."""
    foreign = {"open_reads.py", "pushdown_dataset.py", "hidden_rows.py"}
    calls = re.compile(r"\btime\.(time|time_ns|monotonic|monotonic_ns|sleep)\b|datetime\.now\(")
    found = {path.name for path in sources() if calls.search(path.read_text())}
    assert found == {"clock.py", *foreign}


def test_the_result_of_a_translation_needs_no_bridge() -> None:
    tree = house.tree_of(ROOT / "bridges" / "translation.py")
    modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not [module for module in modules if module.startswith("rowsieve.bridges")]


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only type checkers read."""
    for node in ast.iter_child_nodes(tree):
        if not house._is_for_types(node):
            yield node
            yield from _run(node)


def test_engines_are_imported_by_their_provider_or_bridge_alone() -> None:
    engines = {"datafusion", "pyspark", "deltalake", "duckdb", "polars", "pyiceberg", "substrait"}
    homes = {"providers", "bridges", "demo", "cli"}
    nowhere = {"pandas"}  # some engines bring it; nothing here is converted to it or from it
    wrong = []
    for path in sources():
        for node in _run(house.tree_of(path)):
            modules = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            roots = {module.split(".")[0] for module in modules}
            if nowhere & roots or (engines & roots and room_of(path) not in homes):
                wrong.append(f"{path.relative_to(ROOT)} imports {modules}")
    assert wrong == []


def test_no_module_imports_itself_by_way_of_others_even_for_types() -> None:
    assert house.circles(house.Reach.FOR_TYPES) == []


def test_no_room_needs_itself_by_way_of_others_even_for_types() -> None:
    assert house.room_circles() == []


def compared_names(tree: ast.Module) -> list[str]:
    """Names of engines that a module compares with a value: by `==` or `in`, or in a `match`."""
    groups = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }

    def texts(node: ast.AST) -> set[str]:
        if isinstance(node, ast.Name) and node.id in groups:
            node = groups[node.id]
        if isinstance(node, ast.Call):  # frozenset({...})
            return set().union(*map(texts, node.args))
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return set().union(*map(texts, node.elts))
        return {node.value} if isinstance(node, ast.Constant) and type(node.value) is str else set()

    sides = [
        side
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare | ast.MatchValue)
        for side in (
            [node.left, *node.comparators] if isinstance(node, ast.Compare) else [node.value]
        )
    ]
    return [name for side in sides for name in sorted(texts(side) & ENGINES)]


def test_bridges_ask_what_an_engine_does_and_not_for_its_name() -> None:
    """A row of `sql/dialects.py`, or of a table by dialect, says what an engine does."""
    found = {
        path.relative_to(ROOT / "bridges").as_posix(): names
        for path in (ROOT / "bridges").rglob("*.py")
        if (names := compared_names(house.tree_of(path)))
    }
    assert found == {
        "functions/row.py": sorted(DIALECTS),  # the registry of the engines that rows speak of
        "meanings.py": ["iceberg", "trino"],  # engines without numbers of any size, in one place
    }


@pytest.mark.parametrize(
    "code",
    [
        "reader.dialect.name == 'spark'",
        "if dialect not in ('duckdb', 'postgres'): pass",
        "KNOWN = frozenset({'trino'})\nname in KNOWN",
        "KNOWN: Final = ('trino', 'spark')\nname in KNOWN",
        "match name:\n    case 'datafusion': pass",
        "(dialect, name) == ('duckdb', 'epoch')",
    ],
)
def test_comparisons_of_names_are_found(code: str) -> None:
    assert compared_names(ast.parse(code))


def test_no_file_has_outgrown_one_idea() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for path in sources()
        if (count := len(path.read_text().splitlines())) > 600
    }
    assert long == {}


def test_no_folder_has_outgrown_one_concept() -> None:
    files = Counter(str(path.parent.relative_to(ROOT)) for path in sources())
    assert {folder: count for folder, count in files.items() if count > 25} == {}


def test_folders_share_a_file_name_only_for_one_reason() -> None:
    """Engines' folders have the same files; lists of functions are cut by the same kinds."""
    for name, folders in house.twins().items():
        parents = {str(Path(folder).parent) for folder in folders}
        siblings = len(parents) == 1 and parents != {"."}
        assert siblings or all(LISTS & set(Path(folder).parts) for folder in folders), (
            name,
            folders,
        )


def test_no_test_hides_another_of_its_name() -> None:
    """mypy finds the second definition, in one file or of an imported name; nothing silences it."""
    ignored = re.compile(r"type: ignore\[[^\]]*no-redef")
    files = Path(__file__).parent.rglob("*.py")
    assert [str(path) for path in files if ignored.search(path.read_text())] == []


def test_the_core_imports_its_own_dependencies_alone() -> None:
    project = tomllib.loads((house.REPOSITORY / "pyproject.toml").read_text())["project"]
    core = {re.split(r"[<>=;\[ ]", text, maxsplit=1)[0] for text in project["dependencies"]}
    # their extras bring what they import
    session = (
        *("sql_session", "hybrid_table", "native_scan", "own_table", "session_settings"),
        *("hidden_rows", "final_frame", "kept_queries", "plan_checks"),
        *(
            "changes/statement_queries",
            "changes/assigned_values",
            "changes/transaction_statements",
            "table_functions/changes_function",
        ),
        *("pushdown_barriers", "query_plan", "reads_by_table", "changes/numbered_rows"),
        *("session_tables", "session/own_session", "part_choice/named_scans"),
        *(f"part_choice/{name}" for name in ("first_rows", "known_subqueries", "subquery_values")),
    )
    ours = tuple(f"providers/datafusion/{name}.py" for name in session)
    elsewhere = ("cli/", "demo/", "providers/spark/", *ours)
    found = {
        root
        for path in sources()
        if not path.relative_to(ROOT).as_posix().startswith(elsewhere)
        for root in house.packages_imported_by(path)
    }
    assert found - sys.stdlib_module_names - {"rowsieve"} == core


def test_circles_are_found() -> None:
    graph = {"a": ["b"], "b": ["c"], "c": ["a", "d"], "d": ["e"], "e": ["d"], "f": ["a"]}
    found = sorted(sorted(one) for one in house._strongly_connected(graph))
    assert found == [["a", "b", "c"], ["d", "e"], ["f"]]


def test_imports_by_name_and_for_types_are_found() -> None:
    known = frozenset(map(house.module_of, house.sources()))
    by_name = ROOT / "cli" / "commands" / "run_query.py"
    assert "rowsieve.providers.datafusion" in house.imports_of(
        by_name, known, house.Reach.AT_FIRST_USE
    )
    for_types, snapshot = (
        ROOT / "providers" / "datafusion" / "catalog_tables.py",
        "storage.snapshot",
    )
    for reach, is_counted in zip(house.Reach, (False, False, True), strict=True):
        assert (f"rowsieve.{snapshot}" in house.imports_of(for_types, known, reach)) is is_counted


def test_the_figures_of_the_house_are_printed() -> None:
    lines: list[str] = []
    house.main(lines.append)
    (total,) = (line for line in lines if line.startswith("rowsieve: "))
    assert total.startswith(f"rowsieve: {sum(map(house.line_count, house.sources())):,} lines")
    assert {"longest files:", "circles of rooms:", "names that only tests use:"} <= set(lines)
    assert "  predicate/functions/texts/text_building.py" in lines  # where lpad is


@pytest.mark.parametrize("name", LONGEST_WAYS)
def test_ways_stay_short(name: str) -> None:
    assert ways().keys() == LONGEST_WAYS.keys()
    way, longest = ways()[name], LONGEST_WAYS[name]
    assert way.functions <= longest.functions
    assert way.files <= longest.files
    assert way.binds <= longest.binds
