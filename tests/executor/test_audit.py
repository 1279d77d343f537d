"""Audits find wrong statistics, report nothing for right ones, and return the right rows."""

from __future__ import annotations

import dataclasses
import logging
import re
import uuid
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import CorruptData, EvaluationError, InvalidInput, UnsoundPruning
from rowsieve.executor.audit import Sample
from rowsieve.predicate.functions import registry
from rowsieve.predicate.functions.row import Direction
from tests import random_tables
from tests.executor.planted import footer_says, forge, lie, stored, with_empty_blooms
from tests.small_tables import keyed, kv

ROWS = pa.table({"id": list(range(8)), "v": [i * 10 for i in range(8)]})
FIRST, LAST, OTHER = 0x0123456789ABCDEF, 0x123456789ABCDEF0, 0x02468ACE13579BDF


pytestmark = pytest.mark.usefixtures("tiny_row_groups")


def build(name: str) -> rs.Table:
    table = rs.create_table(f"memory:///audit/{name}/{uuid.uuid4().hex}", ROWS, key=["id"])
    table.upsert(pa.table({"id": [3, 20], "v": [-1, 200]}))
    table.upsert(pa.table({"id": [50], "v": [500]}))
    table.delete("id = 5")
    return table


def reported(
    caplog: pytest.LogCaptureFixture, table: rs.Table, where: str, **options: float
) -> tuple[rs.Scan, list[dict[str, object]], list[str]]:
    """The scan, its rows, and what was logged meanwhile."""
    caplog.clear()
    scan = table.scan(where, on_violation="report", order_by_key=True, **options)  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING, "rowsieve"):
        rows = scan.to_arrow().to_pylist()
    return scan, rows, [record.getMessage() for record in caplog.records]


def truth(table: rs.Table, where: str) -> list[dict[str, object]]:
    scan = table.scan(where, pruning="off", order_by_key=True)
    return list(scan.to_arrow().to_pylist())


@pytest.mark.parametrize(
    "where", ["v = 30", "v = -1", "id = 3", "v > 100", "id < 2 OR v = 500", "v IS NULL", "TRUE"]
)
@pytest.mark.parametrize("order_by_key", [False, True])
def test_on_soft_and_off_give_the_same_rows(where: str, order_by_key: bool) -> None:
    table = build("same")
    found = [
        sorted(
            table.scan(where, pruning=pruning, order_by_key=order_by_key).to_arrow().to_pylist(),
            key=str,
        )
        for pruning in ("on", "soft", "off")
    ]
    assert found[0] == found[1] == found[2]
    assert table.scan(where, pruning="soft").count() == len(found[0])
    assert table.scan(where, audit=100).count() == len(found[0])


def test_a_bound_that_is_too_narrow_is_found(caplog: pytest.LogCaptureFixture) -> None:
    table = lie(lie(build("narrow"), "stats.2.upper", 100), "stats.2.lower", 0)
    assert table.scan("v = 500").count() == 0  # the silently wrong answer
    for options in ({"pruning": "soft"}, {"audit": 100}):
        with pytest.raises(UnsoundPruning, match=r"row 0 of part \w+ was skipped, but it matches"):
            table.scan("v = 500", **options).to_arrow()
    assert table.scan("v = 500", pruning="off").count() == 1
    scan, rows, logged = reported(caplog, table, "v = 500", audit=100)
    assert rows == [{"id": 50, "v": 500}]
    assert scan.metrics.audit_violations == 1
    assert len(logged) == 1
    assert re.search(r'row 0 of part \w+ was skipped, but it matches: "v" = 500;', logged[0])


def test_a_claim_that_all_rows_match_is_checked(caplog: pytest.LogCaptureFixture) -> None:
    table = lie(lie(build("all"), "stats.2.lower", 500), "stats.2.upper", 500)
    assert table.scan("v = 500").count() > 1
    with pytest.raises(UnsoundPruning, match="was taken to match, but it does not"):
        table.scan("v = 500", pruning="soft").count()
    scan, rows, logged = reported(caplog, table, "v = 500", audit=100)
    assert rows == [{"id": 50, "v": 500}]
    assert scan.metrics.audit_violations == 8  # two parts' rows, without the old id 3 and id 5
    assert all("was taken to match, but it does not" in line for line in logged)
    assert table.scan("v = 500", audit=100, on_violation="report").count() == 1


def test_a_null_where_none_should_be_is_found() -> None:
    table = keyed({"k": [1, 2], "v": [5, None]})
    table = lie(lie(table, "stats.2.null_count", 0), "stats.2.lower", 5)
    for where, what in [("v IS NULL", "was skipped, but"), ("v = 5", "was taken to match, but")]:
        with pytest.raises(UnsoundPruning, match=f"row 1 of part .* {what}"):
            table.scan(where, audit=100).to_arrow()
        rows = table.scan(where, audit=100, on_violation="report").to_arrow().to_pylist()
        assert rows == truth(table, where)


def test_an_error_that_pruning_would_hide_is_found(caplog: pytest.LogCaptureFixture) -> None:
    table = lie(lie(build("error"), "stats.2.lower", 0), "stats.2.upper", 1)
    where = f"v * {2**62} = -7"  # overflows from 2 on
    assert table.scan(where).count() == 0
    with pytest.raises(EvaluationError):
        table.scan(where, pruning="off").count()
    with pytest.raises(UnsoundPruning, match="was skipped, but the filter fails on it"):
        table.scan(where, pruning="soft").count()
    with caplog.at_level(logging.WARNING, "rowsieve"), pytest.raises(EvaluationError):
        table.scan(where, audit=100, on_violation="report").to_arrow()
    assert "the filter fails on it" in caplog.text


def test_hidden_rows_are_not_judged() -> None:
    """A stale version matches, but nobody can see it: pruning its part is right."""
    table = build("hidden")
    assert table.scan("v = 50", pruning="soft").count() == 0  # id 5 is deleted
    assert table.scan("v = 30", audit=100).count() == 0  # id 3 has a newer version
    lying = lie(table, "stats.2.lower", 500)
    scan = lying.scan("v = 30", audit=100)
    assert scan.count() == 0
    assert scan.metrics.audit_violations == 0
    assert scan.metrics.audited > 0


def numbered(uri: Path, groups: int = 6) -> rs.Table:
    """One part of many row groups; `v` ascends, and the first and last value are recognised."""
    count = groups * random_tables.ROW_GROUP_ROWS
    values = [FIRST, *(FIRST + 1000 * i for i in range(1, count - 1)), LAST]
    return rs.create_table(str(uri), kv(*enumerate(values)), key=["k"])


def test_wrong_statistics_are_found(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = forge(numbered(tmp_path / "t"), footer_says([(LAST, OTHER)]))
    where = f"v = {LAST}"
    assert table.scan(where).count() == 0
    with pytest.raises(UnsoundPruning, match="row 47 of part"):
        table.scan(where, audit=100).to_arrow()
    scan, rows, logged = reported(caplog, table, where, audit=100)
    assert rows == [{"k": 47, "v": LAST}]
    assert len(logged) == 1
    assert scan.metrics.audited == 6
    assert scan.metrics.rows_audited == 48
    assert scan.metrics.bytes_audited > 0


def test_a_wrong_bloom_filter_is_found(tmp_path: Path) -> None:
    table = numbered(tmp_path / "t", groups=2)
    assert table.scan("k = 9", audit=100).count() == 1
    table = forge(numbered(tmp_path / "u", groups=2), with_empty_blooms)
    assert table.scan("k = 9").count() == 0
    with pytest.raises(UnsoundPruning, match=r"row 9 of part .* was skipped, but it matches"):
        table.scan("k = 9", pruning="soft").to_arrow()
    rows = table.scan("k = 9", audit=100, on_violation="report").to_arrow()
    assert rows["k"].to_pylist() == [9]


def without_a_tombstone(uri: Path) -> tuple[rs.Table, str]:
    """A deletion that its row group denies, and a condition on the row that it deletes."""
    first, last = 1_000_001, 2_000_002
    keys = [0, first, *range(first + 1, first + 40), last]
    table = rs.create_table(str(uri), kv(*((k, 1) for k in keys)), key=["k"])
    table.delete(keys=pa.table({"k": [first, last]}))
    return forge(table, footer_says([(last, last - 1)]), "deletes"), f"k = {last}"


def test_a_row_that_a_lost_tombstone_should_hide_is_found(tmp_path: Path) -> None:
    """No row is lost here: pruning skips what hides one, and the row comes back (trap T2)."""
    table, where = without_a_tombstone(tmp_path / "t")
    assert table.scan(where).count() == 1
    with pytest.raises(UnsoundPruning, match="is returned, but a newer version or a deletion"):
        table.scan(where, audit=100).to_arrow()
    table, where = without_a_tombstone(tmp_path / "u")  # of the first one visibility is known now
    scan = table.scan(where, audit=100, on_violation="report")
    assert scan.to_arrow().num_rows == 0
    assert scan.metrics.audit_violations == 1


@pytest.mark.parametrize("pruning", ["on", "soft", "off"])
@pytest.mark.parametrize("order_by_key", [False, True])
def test_a_wrong_first_key_is_an_error(tmp_path: Path, pruning: Any, order_by_key: bool) -> None:
    """Merges open a part where its footer says that its keys begin, pruning or not."""
    first = 10_000_001
    table = rs.create_table(str(tmp_path), kv(*((first + i, 1) for i in range(-20, 60))), key=["k"])
    table.upsert(kv((first, 2), (first + 40, 2)))
    later = footer_says([(first, first + 40)])
    table = forge(table, lambda file: later(file) if stored(first) in file[-4000:] else file)
    with pytest.raises(CorruptData, match=f"found the key .{first},. in a file whose stat"):
        table.scan(pruning=pruning, order_by_key=order_by_key).to_arrow()


def test_a_function_with_a_wrong_direction_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed({"k": [1, 2, 3], "v": [-3, 1, 9]})
    assert table.scan("abs(v) = 1", pruning="soft").count() == 1
    rising = (Direction.INCREASING,)
    lying = dataclasses.replace(registry.find("abs"), bounds=None, direction=lambda _: rising)
    monkeypatch.setattr(registry, "FUNCTIONS", {**registry.FUNCTIONS, "abs": lying})
    assert table.scan("abs(v) = 1").count() == 0
    with pytest.raises(UnsoundPruning, match="row 1 of part"):
        table.scan("abs(v) = 1", audit=100).count()


def many_parts(count: int = 24) -> rs.Table:
    table = keyed({"k": [0], "v": [0]})
    for i in range(1, count):
        table.upsert(kv((i, i)))
    return table


@pytest.mark.parametrize("percent", [1, 30, 50, 99])
def test_of_parts_exactly_the_hashed_share_is_read(
    caplog: pytest.LogCaptureFixture, percent: float
) -> None:
    table = many_parts()
    skipped = lie(lie(table, "stats.2.upper", -1), "stats.2.lower", -1)
    sample = Sample(table.detail()["uuid"], percent)
    wanted = {p for p in skipped.handle.pinned.parts.part_ids if sample.has_part(p)}
    scan, rows, logged = reported(caplog, skipped, "v >= 0", audit=percent)
    assert {line.split("of part ")[1].split()[0] for line in logged} == wanted
    assert scan.metrics.audited == scan.metrics.audit_violations == len(wanted)
    assert len(rows) == (24 if wanted else 0)
    all_match = lie(lie(many_parts(), "stats.2.lower", -1), "stats.2.upper", -1)
    sample = Sample(all_match.detail()["uuid"], percent)
    wanted = {p for p in all_match.handle.pinned.parts.part_ids if sample.has_part(p)}
    _, rows, logged = reported(caplog, all_match, "v = -1", audit=percent)
    assert {line.split("of part ")[1].split()[0] for line in logged} == wanted
    assert len(rows) == (0 if wanted else 24)


def test_of_row_groups_exactly_the_hashed_share_is_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = forge(numbered(tmp_path / "t", groups=12), with_empty_blooms)
    (part_id,) = table.handle.pinned.parts.part_ids
    sample = Sample(table.detail()["uuid"], 50)
    found = set()
    for group in range(12):
        _, _, logged = reported(caplog, table, f"k = {8 * group + 3}", audit=50)
        found |= {group} if logged else set()
    assert found == {group for group in range(12) if sample.has_row_group(part_id, group)}


def test_the_sample_is_the_same_in_every_process() -> None:
    """Golden values (trap T30): a hash seeded by the process would differ."""
    sample = Sample("0f" * 16, 50)
    picked = [i for i in range(16) if sample.has_part(f"{i:032x}")]
    groups = [i for i in range(16) if sample.has_row_group("a" * 32, i)]
    assert (picked, groups) == ([1, 3, 4, 7], [0, 5, 9, 11, 12, 13])


def test_a_larger_share_holds_the_smaller_ones() -> None:
    names = [f"{i:032x}" for i in range(4000)]
    shares = [
        {name for name in names if Sample("t", percent).has_part(name)}
        for percent in (0, 0.5, 1, 25, 50, 100)
    ]
    assert all(a <= b for a, b in pairwise(shares))
    assert (len(shares[0]), len(shares[-1])) == (0, 4000)
    assert 900 < len(shares[3]) < 1100
    assert {n for n in names if Sample("u", 25).has_part(n)} != shares[3]


def test_a_limit_is_not_a_claim_about_rows() -> None:
    table = build("limit")
    for order_by_key in (False, True):
        scan = table.scan("v >= 0", limit=2, order_by_key=order_by_key, audit=100)
        assert scan.to_arrow().num_rows == 2
        assert scan.metrics.audit_violations == 0
    table = lie(table, "stats.2.upper", 100)
    options = {"limit": 1, "audit": 100, "on_violation": "report"}
    assert table.scan("v > 100", **options).count() == 1  # type: ignore[arg-type]
    found = table.scan("v > 100", order_by_key=True, **options)  # type: ignore[arg-type]
    assert found.to_arrow().to_pylist() == [{"id": 20, "v": 200}]


def test_a_share_can_live_with_the_table(caplog: pytest.LogCaptureFixture) -> None:
    properties = {"audit_percent": "100", "audit_on_violation": "report"}
    table = keyed({"k": [1], "v": [5]}, {"k": [2], "v": [6]}, properties=properties)
    table = lie(table, "stats.2.upper", 0)
    table = lie(table, "stats.2.lower", 0)
    with caplog.at_level(logging.WARNING, "rowsieve"):
        assert table.scan("v = 5").count() == 1
    assert "row 0 of part" in caplog.text
    assert table.scan("v = 5", audit=0).count() == 0
    with pytest.raises(UnsoundPruning):
        table.scan("v = 5", on_violation="raise").count()


def test_a_plan_that_is_read_again_is_not_audited() -> None:
    """It may be one split of a plan, which says nothing of the parts that it does not name."""
    table = build("plan")
    plan = table.scan("v >= 0").plan()
    with pytest.raises(InvalidInput, match="is not audited again"):
        table.scan(plan=plan, audit=100)
    split = table.scan(plan=plan.only(0))
    assert split.count() == 8
    assert split.metrics.audited == 0


def test_a_scan_without_audit_reads_nothing_more() -> None:
    for scan in (
        build("off").scan("v = 500"),
        build("off").scan("v = 500", pruning="off", audit=100),
        build("off").scan(audit=100),
    ):
        scan.to_arrow()
        assert (scan.metrics.audited, scan.metrics.bytes_audited) == (0, 0)


@pytest.mark.parametrize("audit", [-1, 100.1, True, "1%", float("nan")])
def test_a_share_that_is_none_is_refused(audit: float) -> None:
    with pytest.raises(InvalidInput, match=r"audit.* a percentage from 0 to 100"):
        build("refused").scan("v = 1", audit=audit)
    with pytest.raises(InvalidInput, match="audit_percent' must be a percentage from 0 to 100"):
        keyed(properties={"audit_percent": str(audit)})


def test_on_violation_accepts_raise_and_report_only() -> None:
    with pytest.raises(InvalidInput, match=r"on_violation is 'ignore' .*, not 'raise' or 'report'"):
        build("refused").scan("v = 1", on_violation="ignore")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="audit_on_violation' must be raise or report"):
        keyed(properties={"audit_on_violation": "ignore"})
