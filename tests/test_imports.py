"""What is imported when: a table is used without the engines, the command line or an SQL parser."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import rowsieve

ENGINES = {"datafusion", "deltalake", "duckdb", "pandas", "polars", "pyiceberg", "pyspark"}
COMMAND_LINE = {"typer", "rich", "click"}

STORY = """
import sys, tempfile
from pathlib import Path

def report(step):
    print(step, *sorted(name for name in sys.modules))

import rowsieve as rs
report("import")
rs.create_table, rs.open_table, rs.Table
report("table")

import pyarrow as pa
class Pandas:
    "Hides pandas, which pyarrow itself imports with the first array that it makes, if it can."
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ImportError(name)
sys.meta_path.insert(0, Pandas())

folder = Path(tempfile.mkdtemp())
table = rs.create_table(folder / "t", pa.schema([("id", pa.int64()), ("v", pa.string())]), ["id"])
report("create")
table.upsert(pa.table({"id": [1, 2], "v": ["a", "b"]}))
report("upsert")
assert table.scan().to_arrow().num_rows == 2
assert rs.open_table(folder / "t").scan(columns=["v"], limit=1).to_arrow().num_rows == 1
report("scan")
from rowsieve.predicate.ir import Column, Comparison, ComparisonOp, Literal
one = Comparison(ComparisonOp.EQ, Column("id"), Literal(1))
assert table.scan(one).to_arrow().num_rows == 1
table.delete(one)
report("tree")
assert table.scan("id = 2").to_arrow().num_rows == 1
table.update({"v": "'c'"}, where="id = 2")
report("text")
"""


@cache
def imported_by_step() -> dict[str, frozenset[str]]:
    """The names in `sys.modules` after each step of the story, in a process of its own."""
    command = [sys.executable, "-c", STORY]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    return {step: frozenset(names) for step, *names in lines}


def roots(step: str) -> set[str]:
    return {name.partition(".")[0] for name in imported_by_step()[step]}


def test_import_rowsieve_brings_nothing_but_itself() -> None:
    found = roots("import") - sys.stdlib_module_names
    assert {name for name in found if not name.startswith("__")} - startup_modules() == {"rowsieve"}
    assert {name for name in imported_by_step()["import"] if name.startswith("rowsieve.")} == set()


def startup_modules() -> set[str]:
    """What the interpreter imports by itself, such as the hooks of an editable install."""
    return modules_of_commands()[0]


@cache
def modules_of_commands() -> list[set[str]]:
    """The packages in `sys.modules` of a new process, before and after it imports the commands."""
    shown = "print(*sys.modules)"
    command = [sys.executable, "-c", f"import sys; {shown}; import rowsieve.cli.app; {shown}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    return [{name.partition(".")[0] for name in line.split()} for line in lines]


def test_a_command_is_declared_without_tables_and_arrow() -> None:
    load = "from rowsieve.cli.command_list import COMMANDS, load; [load(name) for name in COMMANDS]"
    command = [sys.executable, "-c", f"import sys; {load}; print(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    heavy = {"pyarrow", "numpy", "rowsieve.table", "rowsieve.config", "rich.console"}
    assert set(done.stdout.split()) & heavy == set()


def test_the_commands_start_without_engines_and_parser() -> None:
    assert modules_of_commands()[1] & (ENGINES | {"rowsieve", "sqlglot"}) == {"rowsieve"}


def test_making_the_public_names_imports_no_pandas() -> None:
    assert "pandas" not in roots("table")


@pytest.mark.parametrize("step", ["create", "upsert", "scan", "tree"])
def test_a_table_is_used_without_engines_command_line_and_parser(step: str) -> None:
    assert roots(step) & (ENGINES | COMMAND_LINE | {"sqlglot"}) == set()


@pytest.mark.parametrize("step", ["create", "upsert", "scan", "tree"])
def test_conditions_without_text_import_no_bridge_of_an_engine(step: str) -> None:
    packages = {
        path.parent.name
        for path in (Path(rowsieve.__file__).parent / "bridges").glob("*/__init__.py")
    }
    found = {name.split(".")[2] for name in imported_by_step()[step] if "rowsieve.bridges." in name}
    assert found & (packages - {"sql"}) == set()


def test_text_brings_the_parser_and_no_engine() -> None:
    assert roots("text") & (ENGINES | COMMAND_LINE | {"sqlglot"}) == {"sqlglot"}


def test_every_public_name_and_package_is_there() -> None:
    assert set(rowsieve.__all__) == {*rowsieve._HOMES, *rowsieve._PACKAGES, "__version__"}
    assert sorted(rowsieve.__all__) == dir(rowsieve)
    for name in (*rowsieve._HOMES, *rowsieve._PACKAGES):
        assert getattr(rowsieve, name).__name__.rpartition(".")[2] == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        rowsieve.nothing  # noqa: B018 - looking it up is the test
    assert not hasattr(rowsieve, "__wrapped__")
