"""DataFusion 55 cannot be told from Python that a table has a key.

`SELECT key, other … GROUP BY key` plans only where the scan's provider has constraints. Those of a
Dataset are none, a view's are those of what it reads, and DDL drops them for providers that Python
makes. A test here that fails says that a release has opened a way: use it in `table.inner`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest
from datafusion.catalog import Table as CatalogTable
from datafusion.catalog import TableProviderFactory

import rowsieve as rs

DATA = pa.table({"pk": [1, 2, 3], "other": ["a", "b", "c"], "v": [1, 2, 3]})
QUERY = "SELECT pk, other, sum(v) AS v FROM {} GROUP BY pk ORDER BY pk"
REFUSED = "must be in GROUP BY"


class Factory(TableProviderFactory):
    """What `STORED AS rowsieve` makes."""

    def __init__(self, table: rs.Table) -> None:
        self.table = table

    def create(self, cmd: Any) -> Any:
        return CatalogTable(self.table._inner)


@pytest.fixture
def context(tmp_path: Path) -> datafusion.SessionContext:
    table = rs.create_table(str(tmp_path / "t"), DATA, key=["pk"])
    context = datafusion.SessionContext()
    context.register_table("t", table)
    context.register_table_factory("ROWSIEVE", Factory(table))
    return context


def ask(context: datafusion.SessionContext, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = context.sql(query).to_pylist()
    return found


def test_the_key_of_a_registered_table_is_not_known(context: datafusion.SessionContext) -> None:
    with pytest.raises(Exception, match=REFUSED):
        ask(context, QUERY.format("t"))


def test_a_view_does_not_add_a_key(context: datafusion.SessionContext) -> None:
    context.register_table("v", context.sql("SELECT * FROM t").into_view())
    with pytest.raises(Exception, match=REFUSED):
        ask(context, QUERY.format("v"))
    with pytest.raises(Exception, match="not supported for view"):
        ask(context, "CREATE VIEW w (pk PRIMARY KEY, other, v) AS SELECT * FROM t")


def test_an_external_table_that_python_makes_loses_its_key(
    context: datafusion.SessionContext,
) -> None:
    columns = "pk bigint, other varchar, v bigint, PRIMARY KEY (pk)"
    ask(context, f"CREATE EXTERNAL TABLE e ({columns}) STORED AS ROWSIEVE LOCATION '/t'")
    assert len(ask(context, "SELECT * FROM e")) == 3
    with pytest.raises(Exception, match=REFUSED):
        ask(context, QUERY.format("e"))


def test_a_key_cannot_be_added_later(context: datafusion.SessionContext) -> None:
    with pytest.raises(Exception, match="Unsupported SQL statement"):
        ask(context, "ALTER TABLE t ADD CONSTRAINT p PRIMARY KEY (pk)")


def test_a_plan_over_a_dataset_has_no_bytes_to_edit(context: datafusion.SessionContext) -> None:
    with pytest.raises(Exception, match="Error serializing custom table"):
        context.sql("SELECT * FROM t").logical_plan().to_bytes(context)


def test_the_query_plans_where_the_key_is_known(context: datafusion.SessionContext) -> None:
    ask(
        context,
        "CREATE TABLE m (pk bigint PRIMARY KEY, other varchar, v bigint) AS SELECT * FROM t",
    )
    assert ask(context, QUERY.format("m")) == DATA.to_pylist()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT pk, other, sum(v) AS v FROM t GROUP BY pk, other ORDER BY pk",
        "SELECT pk, first_value(other) AS other, sum(v) AS v FROM t GROUP BY pk ORDER BY pk",
    ],
)
def test_the_suggested_queries_give_the_right_rows(
    context: datafusion.SessionContext, query: str
) -> None:
    assert ask(context, query) == DATA.to_pylist()
