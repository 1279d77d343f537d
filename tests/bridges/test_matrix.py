"""The support matrix in the documents is the one that the tables give.

`python -m tests.bridges.test_matrix` writes it there anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from rowsieve.bridges import delta_dnf, spark_filters
from rowsieve.bridges.datafusion_exprs import table as datafusion
from rowsieve.bridges.iceberg_exprs import table as iceberg
from rowsieve.bridges.matrix import matrix
from rowsieve.bridges.polars_exprs import table as polars
from rowsieve.bridges.pyarrow_exprs import table as pyarrow
from rowsieve.bridges.spark_columns import table as spark_columns
from rowsieve.bridges.sql import spellings, table
from rowsieve.bridges.substrait_exprs import table as substrait
from rowsieve.bridges.translation import Row

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "bridges.md"
TABLES: dict[str, Mapping[str, Sequence[Row]]] = {
    "datafusion": {
        "variant": datafusion.VARIANTS,
        "operator": datafusion.OPERATORS,
        "function": datafusion.FUNCTIONS,
    },
    "spark_columns": {"class": spark_columns.EXPRESSIONS},
    "spark_filters": {"filter": spark_filters.FILTERS},
    "polars": {
        "node": polars.NODES,
        "operator": polars.OPERATORS,
        "boolean": tuple(polars.BOOLEANS.values()),
        "function": tuple(polars.FUNCTIONS.values()),
        "other": polars.OTHERS,
    },
    "pyarrow_exprs": {"function": pyarrow.FUNCTIONS},
    "iceberg": {
        "junction": iceberg.JUNCTIONS,
        "predicate": iceberg.PREDICATES,
        "bound": iceberg.BOUND,
        "term": iceberg.TERMS,
        "literal": iceberg.LITERALS,
    },
    "delta_dnf": {"operator": delta_dnf.OPERATORS},
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


@pytest.mark.parametrize("name", TABLES)
def test_the_page_shows_the_tables_as_they_are(name: str) -> None:
    found = re.search(rf"<!-- matrix: {name} -->\n(.*?)\n<!-- end -->", PAGE.read_text(), re.DOTALL)
    assert found is not None
    assert found[1] == matrix(TABLES[name])


def test_the_page_shows_how_functions_are_written() -> None:
    found = re.search(r"<!-- matrix: sql -->\n(.*?)\n<!-- end -->", PAGE.read_text(), re.DOTALL)
    assert found is not None
    assert found[1] == spellings.matrix()


def test_the_page_shows_what_is_written_as_exact() -> None:
    found = re.search(r"<!-- matrix: exact -->\n(.*?)\n<!-- end -->", PAGE.read_text(), re.DOTALL)
    assert found is not None
    assert found[1] == table.matrix()


def write() -> None:
    """Put the matrices as they are now into the page."""
    text = PAGE.read_text()
    made = {name: matrix(groups) for name, groups in TABLES.items()}
    for name, found in {**made, "sql": spellings.matrix(), "exact": table.matrix()}.items():
        start, stop = f"<!-- matrix: {name} -->\n", "\n<!-- end -->"
        head, _, rest = text.partition(start)
        _, _, tail = rest.partition(stop)
        text = f"{head}{start}{found}{stop}{tail}"
    PAGE.write_text(text)


if __name__ == "__main__":
    write()
