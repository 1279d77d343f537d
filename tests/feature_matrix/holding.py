"""Whether a table still has the rows and the feature that it was made with."""

from __future__ import annotations

import pyarrow as pa

from rowsieve import Table
from tests.feature_matrix.feature import Feature


def shown(rows: pa.Table) -> list[str]:
    """The rows as text, in which NaN and -0.0 have their own."""
    return sorted(map(repr, rows.to_pylist()))


def check(table: Table, feature: Feature) -> None:
    """The rows, those of each condition with pruning and without, and what else is promised."""
    data = feature.data
    found = table.to_arrow(columns=data.schema.names)
    assert shown(found) == shown(data.select(found.schema.names))
    assert table.count() == len(feature.rows)
    for where, keeps in feature.questions.items():
        wanted = sorted(row[feature.key] for row in feature.rows if keeps(row))
        for pruning in ("on", "off", "soft"):
            scan = table.scan(where, [feature.key], pruning=pruning)
            assert sorted(scan.to_arrow()[feature.key].to_pylist()) == wanted, (where, pruning)
        assert table.count(where) == len(wanted), where
    feature.more(table)
