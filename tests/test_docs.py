"""The documents tell the truth: their code runs, their links lead somewhere, nothing is left out.
Their lines of prose are at most 120 columns.

In README and docs, a ```python block is executed and a ```console block's `$ rowsieve` lines are
run; the blocks of one file share a folder and a namespace, in order. What a console block shows
below a command, and a ```text block right after a ```python block, must be what is printed, where
`...` stands for anything. Other blocks (```py, ```sh) are shown only.
"""

from __future__ import annotations

import contextlib
import dataclasses
import doctest
import io
import re
import runpy
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import rowsieve
from rowsieve import errors
from rowsieve.bridges.sql.dialects import DIALECTS
from rowsieve.cli.app import app
from rowsieve.cli.command_list import COMMANDS, load
from rowsieve.metrics import ScanMetrics
from rowsieve.predicate.functions.registry import FUNCTIONS
from rowsieve.properties import PROPERTIES
from rowsieve.storage.log.conflicts import OPERATIONS
from rowsieve.storage.snapshot import FEATURES, WRITER_VERSION
from tools import compatibility

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
PAGES = [*DOCUMENTS, *sorted((ROOT / "tests").glob("*.md"))]
PAGES_OF_FILES = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "tests" / "README.md",
    *(DOCS / "explanation" / f"{name}.md" for name in ("architecture", "datafusion-session")),
]
"""Pages that name files of the repository, some from a folder that they tell."""
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")
URL = re.compile(r"https?://[^\s)]+")
LONGEST_LINE = 120
LONGEST_PARAGRAPH = 110  # words
LONGEST_CELL = 300  # characters that a reader sees
FILE = re.compile(r"`((?:\w+/)*\w+\.py)`")
TOPS = ("rowsieve", "tests", "tools")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
ITEM = re.compile(r"\n(?=\s*(?:[-*]|\d+\.)\s)")
CELL_END = re.compile(r"(?<!\\)\|")
NAMES = re.compile(r"(`[^`]*`\s*)*")  # a list of names has no sentence that could be shorter
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def documents(*, with_spark: bool) -> list[Any]:
    """The documents with code that is run, those with a session of Spark or the others."""
    found = []
    for path in DOCUMENTS:
        blocks = BLOCK.findall(path.read_text())
        run = [code for language, code in blocks if language in ("python", "console")]
        if run and any("spark_session" in code for code in run) == with_spark:
            found.append(pytest.param(path, id=str(path.relative_to(ROOT))))
    return found


@pytest.mark.usefixtures("own_registry", "former_config")
@pytest.mark.parametrize("path", documents(with_spark=False))
def test_code_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_code(path)


@pytest.mark.spark
@pytest.mark.usefixtures("own_registry", "former_config")
@pytest.mark.parametrize("path", documents(with_spark=True))
def test_code_with_spark_runs(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spark: Any,
    request: pytest.FixtureRequest,
) -> None:
    request.addfinalizer(settings_of(spark))
    monkeypatch.chdir(tmp_path)
    run_code(path)


def run_code(path: Path) -> None:
    """Run the blocks of a document in order, in the folder of the process."""
    text = path.read_text()
    namespace: dict[str, Any] = {"__name__": "__docs__"}
    printed, end = "", 0
    for block in BLOCK.finditer(text):
        language, code = block.groups()
        line = text.count("\n", 0, block.start()) + 1
        if language == "python":
            printed = run_python("\n" * line + code, path, namespace)
        elif language == "console":
            run_console(code, f"{path.name}:{line}")
        elif language == "text" and printed and not text[end : block.start()].strip():
            compare(code, printed, f"{path.name}:{line}")
        end = block.end()
        printed = printed if language == "python" else ""


def settings_of(spark: Any) -> Callable[[], None]:
    """Return what puts the settings of the session back: a page's spark_session sets some."""
    before = dict(spark.conf.getAll)

    def put_back() -> None:
        for name, value in before.items():
            if spark.conf.isModifiable(name):
                spark.conf.set(name, value)

    return put_back


def run_python(code: str, path: Path, namespace: dict[str, Any]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, str(path), "exec"), namespace)
    return out.getvalue()


def run_console(block: str, where: str) -> None:
    for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, expected = command.replace("\\\n", " ").partition("\n")
        program, *arguments = shlex.split(line, comments=True)
        assert program == "rowsieve", f"{where}: a console block runs rowsieve, not {program}"
        result = CliRunner().invoke(app, arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        if expected.strip():
            compare(expected, result.output, f"{where}: {line}")
        else:
            assert result.exit_code == 0, f"{where}: {line}\n{result.output}"


def compare(expected: str, found: str, where: str) -> None:
    if not doctest.OutputChecker().check_output(expected, found, FLAGS):
        pytest.fail(f"{where} shows\n{expected}\nbut what is printed is\n{found}")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    broken = []
    for target, anchor in LINK.findall(path.read_text()):
        file = (path.parent / target).resolve() if target else path
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(f"{target}#{anchor}" if anchor else target)
    assert broken == []


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


DECISIONS = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
STATUS = re.compile(r"\*(Accepted|Superseded by \[[0-9]+\]).*\b20[0-9]{2}\b", re.DOTALL)


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_has_a_status_and_a_date(path: Path) -> None:
    title, status = path.read_text().split("\n\n")[:2]
    assert title.startswith(f"# {int(path.stem[:4])}. ")
    assert STATUS.match(status), status


def test_every_document_can_be_found() -> None:
    linked = {
        (path.parent / target).resolve()
        for path in DOCUMENTS
        for target, _ in LINK.findall(path.read_text())
    }
    lost = [str(path.relative_to(ROOT)) for path in DOCUMENTS if path.resolve() not in linked]
    assert lost in ([], ["README.md"])


@pytest.mark.parametrize("path", PAGES_OF_FILES, ids=lambda path: path.name)
def test_files_that_a_page_names_exist(path: Path) -> None:
    files = [f"/{file.relative_to(ROOT)}" for top in TOPS for file in (ROOT / top).rglob("*.py")]
    named = set(FILE.findall(FENCED.sub("", path.read_text("utf-8"))))
    assert named
    gone = {name for name in named if not any(file.endswith(f"/{name}") for file in files)}
    assert not gone


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_lines_of_prose_are_short(path: Path) -> None:
    too_long = [
        f"{path.name}:{number}: {len(line)} columns"
        for number, line in prose(path.read_text())
        if len(URL.sub("", line)) > LONGEST_LINE
    ]
    assert too_long == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_paragraphs_and_cells_are_short(path: Path) -> None:
    text = FENCED.sub("", path.read_text())
    assert [each[:60] for each in paragraphs(text) if len(each.split()) > LONGEST_PARAGRAPH] == []
    assert [each[:60] for each in cells(text) if len(each) > LONGEST_CELL] == []


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs and items of lists, without headings, tables and indented code."""
    for block in re.split(r"\n\s*\n", text):
        if not block.startswith(("#", "    ")):
            for item in ITEM.split(block):
                lines = (line for line in item.split("\n") if not line.startswith(("|", "#")))
                yield " ".join(lines).strip()


def cells(text: str) -> Iterator[str]:
    """What a reader sees of the cells of tables, but for lists of names."""
    for line in text.split("\n"):
        if line.startswith("|"):
            for cell in CELL_END.split(line):
                if not NAMES.fullmatch(cell.strip()):
                    yield re.sub(r"\]\([^)]*\)", "]", cell.strip())


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The numbered lines outside fenced blocks and tables, whose rows cannot be wrapped."""
    is_fenced = False
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("```"):
            is_fenced = not is_fenced
        elif not is_fenced and not line.startswith("|"):
            yield number, line


def test_every_error_is_described() -> None:
    names = [
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.RowsieveError)
    ]
    assert missing(names, REFERENCE / "errors.md") == []


def test_every_command_and_option_is_described() -> None:
    commands = {name: load(name) for name in COMMANDS}
    text = (REFERENCE / "cli.md").read_text()
    sections = dict(re.findall(r"^## `rowsieve ([\w-]+)`\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    assert set(sections) == set(commands)
    lacking = [
        f"{name} {option}"
        for name, found in commands.items()
        for parameter in found.params
        for option in parameter.opts
        if option.startswith("--")
        and option != "--help"
        and f"`{option}" not in sections[name] + text.split("\n## ")[1]
    ]
    assert lacking == []


def test_every_property_is_described() -> None:
    assert missing(PROPERTIES, REFERENCE / "settings.md") == []


def test_every_method_and_counter_is_described() -> None:
    names = [
        *rowsieve._HOMES,
        *public(rowsieve.Table),
        *public(rowsieve.Scan),
        *(field.name for field in dataclasses.fields(rowsieve.Commit)),
        *(f.name for f in dataclasses.fields(ScanMetrics) if not f.name.startswith("_")),
    ]
    assert missing(names, REFERENCE / "python.md") == []


def test_every_function_and_dialect_of_sql_is_described() -> None:
    operators = {"add", "subtract", "multiply", "divide", "modulo", "negate", "concat_strict"}
    named = (set(FUNCTIONS) - operators) | set(DIALECTS)
    assert missing(sorted(named), REFERENCE / "sql.md") == []


def test_every_operation_is_in_the_matrix() -> None:
    assert missing(OPERATIONS, DOCS / "how-to" / "concurrent-writers.md") == []


@pytest.mark.usefixtures("own_registry", "former_config")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        runpy.run_path(str(path), run_name="__main__")
    assert out.getvalue()


def public(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_")]


def missing(names: Any, path: Path) -> list[str]:
    text = path.read_text()
    return [name for name in names if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]


def test_the_tables_of_compatibility_are_those_of_the_code() -> None:
    page = compatibility.PAGE.read_text("utf-8")
    assert compatibility.with_tables(page) == page, "run `python -m tools.compatibility`"
    assert f"writer {WRITER_VERSION} |" in page
    assert missing(FEATURES, compatibility.PAGE) == []
