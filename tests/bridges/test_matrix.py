"""The support matrices in `docs/reference/bridges` equal those generated from the tables.

`python -m tests.bridges.test_matrix` writes them anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest

from rowsieve.bridges import delta_dnf, spark_filters
from rowsieve.bridges.datafusion_exprs import function_table as datafusion
from rowsieve.bridges.iceberg_exprs import function_table as iceberg
from rowsieve.bridges.iceberg_json import function_table as iceberg_json
from rowsieve.bridges.polars_exprs import function_table as polars
from rowsieve.bridges.pyarrow_exprs import function_table as pyarrow
from rowsieve.bridges.spark_columns import classic
from rowsieve.bridges.substrait_exprs import function_table as substrait
from rowsieve.bridges.translation import Row
from tools.matrices import engine_differences, sql_constructs, sql_spellings
from tools.matrices.rows_of_bridges import matrix

PAGES = Path(__file__).parents[2] / "docs" / "reference" / "bridges"
TABLES: dict[str, Mapping[str, Sequence[Row]]] = {
    "datafusion": {
        "variant": datafusion.VARIANTS,
        "operator": datafusion.OPERATORS,
        "function": datafusion.FUNCTIONS,
    },
    "spark-columns": {"class": classic.ROWS},
    "spark-filters": {"filter": spark_filters.FILTERS},
    "polars": {
        "node": polars.NODES,
        "operator": polars.OPERATORS,
        "boolean": tuple(polars.BOOLEANS.values()),
        "function": tuple(polars.FUNCTIONS.values()),
        "other": polars.OTHERS,
    },
    "pyarrow": {"function": pyarrow.FUNCTIONS},
    "iceberg": {
        "junction": iceberg.JUNCTIONS,
        "predicate": iceberg.PREDICATES,
        "bound": iceberg.BOUND,
        "term": iceberg.TERMS,
        "literal": iceberg.LITERALS,
    },
    "iceberg-json": {
        "predicate": iceberg_json.PREDICATES,
        "term": iceberg_json.TERMS,
        "literal": iceberg_json.LITERALS,
    },
    "delta-dnf": {"operator": delta_dnf.OPERATORS},
    "substrait": {
        "expression": tuple(substrait.EXPRESSIONS.values()),
        **{
            file.removeprefix("functions_"): tuple(
                row for (other, _), row in substrait.FUNCTIONS.items() if other == file
            )
            for file in dict.fromkeys(file for file, _ in substrait.FUNCTIONS)
        },
    },
}


# The name of a page, and what generates its table.
MATRICES: dict[str, Callable[[], str]] = {
    **{page: partial(matrix, groups) for page, groups in TABLES.items()},
    "differences": engine_differences.matrix,
    "sql": sql_constructs.matrix,
    "sql-functions": sql_spellings.matrix,
}
START, STOP = "<!-- matrix -->\n", "\n<!-- end -->"


@pytest.mark.parametrize("page", MATRICES)
def test_a_page_shows_its_table_as_it_is(page: str) -> None:
    shown = re.findall(f"{START}(.*?){STOP}", _path(page).read_text(), re.DOTALL)
    assert shown == [MATRICES[page]()]


def test_every_bridge_has_a_page_and_the_index_links_it() -> None:
    index = (PAGES / "README.md").read_text()
    pages = {path.stem for path in PAGES.glob("*.md")} - {"README"}
    assert pages == set(MATRICES)
    assert [page for page in MATRICES if f"]({page}.md)" not in index] == []


def write() -> None:
    """Put the matrices as they are now into the pages."""
    for page, generated in MATRICES.items():
        head, _, rest = _path(page).read_text().partition(START)
        _, _, tail = rest.partition(STOP)
        _path(page).write_text(f"{head}{START}{generated()}{STOP}{tail}")


def _path(page: str) -> Path:
    return PAGES / f"{page}.md"


if __name__ == "__main__":
    write()
