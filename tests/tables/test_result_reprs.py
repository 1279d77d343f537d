"""What a prompt prints for results and for work that is not done yet: few lines, no internals."""

from __future__ import annotations

import pyarrow as pa
import pytest

import rowsieve as rs
from tests.small_tables import fresh_uri


@pytest.fixture
def table() -> rs.Table:
    return rs.create_table(fresh_uri(), pa.table({"id": [1, 2], "n": ["a", None]}), ["id"])


def test_maintenance_says_what_was_done_and_what_is_due(table: rs.Table) -> None:
    table.upsert([{"id": 2, "n": "b"}])
    table.upsert([{"id": 3, "n": "c"}])
    done = table.maintain()
    lines = repr(done).splitlines()
    assert lines[0] == f"rowsieve.Maintenance, now at version {table.version}"
    assert lines[1] == f"  compacted: version {done.compaction.version}"
    assert any(line.startswith("  files: ") and " after" in line for line in lines)
    assert max(map(len, lines)) < 120
    assert "compacted" in done._repr_html_()
    assert "compacted: nothing" in repr(table.maintain())


def test_unfinished_work_says_what_finishes_it(table: rs.Table) -> None:
    merging = table.merge([{"id": 1, "n": "z"}], on="id").when_matched_update_all()
    assert repr(merging).endswith("of 1 rows, 1 clauses, not executed yet: call execute()>")
    with table.alter() as alteration:
        alteration.add_column("x", pa.int64())
        assert "of 1 changes, not committed yet: use it in a with block" in repr(alteration)
    assert repr(alteration) == f"<rowsieve.Alteration: {alteration.commit!r}>"
