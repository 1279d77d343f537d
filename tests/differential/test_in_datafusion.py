"""Differential tables in DataFusion: rows of one time, with their multiplicities or expanded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import datafusion
import pyarrow as pa
import pytest

from rowsieve.errors import UnsupportedOperation
from rowsieve.providers.datafusion import SessionContext
from tests.differential.updates import differential, updates


@pytest.mark.parametrize("context", [datafusion.SessionContext, SessionContext])
def test_a_registered_table_is_read_at_one_time(context: Callable[[], Any]) -> None:
    table, session = differential(), context()
    table.append_updates(updates((1, "a", 0, 2), (2, "b", 0, 1)), upper=1)
    table.append_updates(updates((1, "a", 1, -2), (3, None, 1, 4)), upper=2)
    session.register_table("now", table)
    session.register_table("before", table.to_datafusion(at=0))
    session.register_table("rows", table.to_datafusion(at=0, expanded=True))
    table.append_updates(updates((9, "z", 2, 1)), upper=3)

    def ask(query: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in session.sql(query).to_arrow_table().to_pylist()]

    assert ask("SELECT k, _rowsieve_diff FROM now ORDER BY k") == [(2, 1), (3, 4)]
    assert ask("SELECT v, _rowsieve_diff FROM before WHERE k = 1") == [("a", 2)]
    assert ask("SELECT k, count(*) FROM rows GROUP BY k ORDER BY k") == [(1, 2), (2, 1)]
    assert ask("SELECT count(*) FROM now WHERE _rowsieve_diff > 1") == [(1,)]
    with pytest.raises(Exception, match="nsert"):
        session.sql("INSERT INTO now VALUES (1, 'a', 1)").to_arrow_table()
    assert table.version == 3


def test_versions_and_refs_of_a_registered_table_have_names_in_sql() -> None:
    table, session = differential(), SessionContext()
    table.append_updates(updates((1, "a", 0, 2)), upper=1)
    table.append_updates(updates((1, "a", 1, -2), (3, None, 1, 4)), upper=2)
    table.tag("q")
    session.register_table("t", table)
    session.register_table("before", table.read_at(0, expanded=True))

    def ask(query: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in session.sql(query).to_pylist()]

    columns = "SELECT k, _rowsieve_diff FROM"
    table.append_updates(updates((9, "z", 2, 1)), upper=3)
    assert ask(f"{columns} t") == ask(f"{columns} t@q") == [(3, 4)]
    assert ask(f"{columns} t FOR VERSION AS OF 1") == [(1, 2)]
    assert ask("SELECT count(*) FROM before FOR VERSION AS OF 2") == [(1,)]
    assert ask('SELECT sum(record_count) FROM "t$files" WHERE content = 0') == [(3,)]
    with pytest.raises(UnsupportedOperation, match=r"to_datafusion\(at=time\)"):
        session.sql(f"{columns} t FOR SYSTEM_TIME AS OF 1")
    session.deregister_table("t")
    session.register_table("t", pa.dataset.dataset(pa.table({"k": [7]})))
    with pytest.raises(UnsupportedOperation):
        session.sql("SELECT k FROM t FOR VERSION AS OF 1")
