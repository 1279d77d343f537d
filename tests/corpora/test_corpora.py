"""Tables of other projects are read as their own readers read them, or refused with an error.

`ROWSIEVE_CORPORA` names a folder of such tables, for instance checkouts of apache/parquet-testing,
delta-io/delta, delta-io/delta-rs and duckdb/duckdb-iceberg. They are judged in the deep profile.
`python -m tests.corpora.runs FOLDER --report FILE` judges them alone and adds up.
"""

from __future__ import annotations

import os
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import profiles
from tests.corpora import tables
from tests.corpora.judging import verdict_of
from tests.corpora.runs import FAULTS, verdicts_apart
from tests.corpora.tables import Case, cases
from tests.foreign.damaged import MAX, MIN, NULLS, nulls, set_statistics

SOURCE = os.environ.get("ROWSIEVE_CORPORA") if profiles.IS_DEEP else None
ROWS = pa.table(
    {
        "i": pa.array([3, None, 1, 2], pa.int32()),
        "s": ["b", "it's", None, "a"],
        "f": [1.5, float("nan"), None, -0.0],
        "d": pa.array([Decimal("1.50"), None, Decimal("-2.00"), Decimal(0)], pa.decimal128(9, 2)),
        "l": [[1], None, [], [2, None]],
    }
)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    pq.write_table(ROWS, tmp_path / "deep" / "er" / "a.parquet", row_group_size=2)
    deltalake.write_deltalake(str(tmp_path / "delta"), ROWS)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 of nothing PAR1")
    return tmp_path


def test_tables_are_found_once(corpus: Path) -> None:
    found = [(case.kind, str(case.path.relative_to(corpus))) for case in cases(corpus)]
    assert found == [
        ("parquet", "broken.parquet"),
        ("parquet", "deep/er/a.parquet"),
        ("delta", "delta"),
    ]


def test_sound_tables_are_equal_and_broken_ones_are_refused(corpus: Path) -> None:
    verdicts = {case.kind: verdict_of(case) for case in cases(corpus) if "broken" not in str(case)}
    assert {verdict.state for verdict in verdicts.values()} == {"equal"}
    assert all(verdict.conditions > 50 for verdict in verdicts.values())
    assert verdict_of(Case("parquet", corpus / "broken.parquet")).state == "broken"


def test_rows_that_statistics_hide_are_noticed(corpus: Path) -> None:
    path = corpus / "deep" / "er" / "a.parquet"
    five = (5).to_bytes(4, "little")
    set_statistics(path, 0, {NULLS: nulls(0), MIN: five, MAX: five})
    verdict = verdict_of(Case("parquet", path))
    assert verdict.state == "wrong"
    assert any(text.startswith('"i"') for text in verdict.wrong)


def test_rows_that_a_judge_reads_otherwise_are_noticed(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(tables.KINDS["parquet"], judged=lambda path: pq.read_table(path).slice(1))
    monkeypatch.setattr(tables, "KINDS", {**tables.KINDS, "parquet": other})
    verdict = verdict_of(Case("parquet", corpus / "deep" / "er" / "a.parquet"))
    assert verdict.wrong == ["4 rows, 3 expected"]


@pytest.mark.skipif(not SOURCE, reason="needs the deep profile and ROWSIEVE_CORPORA")
def test_tables_of_other_projects_are_read_as_by_their_readers(subtests: pytest.Subtests) -> None:
    todo = cases(Path(str(SOURCE)))
    assert todo, f"{SOURCE} holds no tables"
    for case, verdict in zip(todo, verdicts_apart(todo), strict=True):
        with subtests.test(str(case.path)):
            assert verdict["state"] not in FAULTS, verdict
