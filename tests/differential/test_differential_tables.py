"""Tables of updates: what is appended, which times can be read, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Table, errors
from rowsieve.storage.snapshot import DIFFERENTIAL_PROTOCOL
from tests.differential.updates import KV, Update, differential, modelled, sums, updates
from tests.small_tables import fresh_uri

UPDATES: list[Update] = [
    (1, "a", 0, 1),
    (2, "b", 0, 2),
    (1, "a", 1, -1),
    (1, "c", 1, 1),
    (3, None, 2, 1),
    (2, "b", 2, -2),
]


@pytest.fixture(scope="module")
def table() -> Table:
    """`UPDATES`, one commit for each time."""
    return updated()


def updated() -> Table:
    """A new table with `UPDATES`, one commit for each time."""
    table = differential()
    for time in range(3):
        table.append_updates(updates(*(u for u in UPDATES if u[2] == time)), upper=time + 1)
    return table


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_time_has_each_row_as_often_as_its_differences_add_up(table: Table, at: int) -> None:
    assert sums(table, at) == modelled(UPDATES, at)


def test_without_at_the_latest_complete_time_is_read(table: Table) -> None:
    assert (table.since, table.upper) == (0, 3)
    assert sums(table) == modelled(UPDATES, 2)
    assert table.count() == len(table.to_arrow()) == 2


def test_parts_after_the_time_are_not_read(table: Table) -> None:
    assert table.scan(at=0).metrics.pruned_by == {"statistics": 2}


def test_a_new_table_has_no_complete_time_and_no_rows() -> None:
    assert differential().to_arrow().num_rows == 0
    with pytest.raises(errors.InvalidInput, match="not complete: upper is 0"):
        differential().scan(at=0)


@pytest.mark.parametrize("where", ["k = 1", "v = 'b' OR v IS NULL", "_rowsieve_diff > 1"])
def test_a_condition_is_on_the_sums(table: Table, where: str) -> None:
    judge: dict[str, Callable[[Any, int], bool]] = {
        "k = 1": lambda row, _: row[0] == 1,
        "v = 'b' OR v IS NULL": lambda row, _: row[1] in ("b", None),
        "_rowsieve_diff > 1": lambda _, count: count > 1,
    }
    for at in range(3):
        expected = {r: n for r, n in modelled(UPDATES, at).items() if judge[where](r, n)}
        assert sums(table, at, where) == expected


def test_only_sums_can_fail_a_condition() -> None:  # invariant 33
    table = differential()
    table.append_updates(updates((0, "a", 0, 1), (0, "a", 1, -1), (2, "b", 0, 1)), upper=2)
    assert sums(table, 1, "1 / k > 0 OR k = 2") == {(2, "b"): 1}
    with pytest.raises(errors.EvaluationError):
        table.scan("1 / k > 0 OR k = 2", at=0).to_arrow()


def test_expanded_rows_are_there_as_often_as_their_multiplicity() -> None:
    table = differential()
    table.append_updates(updates((1, "a", 0, 3), (2, "b", 0, 70_000)), upper=1)
    scan = table.scan(expanded=True)
    assert scan.schema.names == ["k", "v"]
    rows = scan.to_arrow()
    assert scan.count() == len(rows) == 70_003
    assert rows.column("k").to_pylist().count(1) == 3
    assert max(batch.num_rows for batch in scan.to_batches()) <= 65_536
    assert table.scan(expanded=True, limit=5).to_arrow().num_rows == 5
    assert table.scan(expanded=True, limit=5).count() == 5


def test_huge_multiplicities_are_expanded_batch_by_batch() -> None:
    table = differential()
    table.append_updates(updates((1, "a", 0, 2**62)), upper=1)
    assert table.scan(expanded=True).count() == 2**62
    assert table.scan(expanded=True, limit=100_000).to_arrow().num_rows == 100_000


def test_a_negative_multiplicity_is_shown_and_cannot_be_expanded() -> None:
    table = differential()
    table.append_updates(updates((1, "a", 0, -2), (2, "b", 0, 1)), upper=1)
    assert sums(table) == {(1, "a"): -2, (2, "b"): 1}
    with pytest.raises(errors.NegativeMultiplicity, match="multiplicity -2") as caught:
        table.scan(expanded=True).to_arrow()
    assert (caught.value.row, caught.value.multiplicity) == ({"k": 1, "v": "a"}, -2)
    with pytest.raises(errors.NegativeMultiplicity):
        table.scan(expanded=True).count()
    assert table.scan("k = 2", expanded=True).count() == 1


def test_a_sum_beyond_64_bits_is_an_error_unless_it_is_not_asked_for() -> None:
    table, most = differential(), 2**63 - 1
    table.append_updates(updates((1, "a", 0, most), (1, "a", 1, 1), (2, "b", 0, 1)), upper=2)
    assert sums(table, 0) == {(1, "a"): most, (2, "b"): 1}
    for where in (None, "7 / (k - 3) < 0", "_rowsieve_diff < 0"):
        with pytest.raises(errors.MultiplicityOverflow, match="more than 64 bits"):
            table.scan(where, at=1).to_arrow()
    assert sums(table, 1, "k = 2") == {(2, "b"): 1}
    assert sums(table, 1, "1 / (k - 3) = -1 AND k = 2") == {(2, "b"): 1}
    table.append_updates(updates((1, "a", 2, -1)), upper=3)
    assert sums(table, 2)[1, "a"] == most  # in whatever order they are added


def test_of_two_writers_that_begin_at_one_frontier_one_wins() -> None:
    first = differential()
    second = rs.open_table(first.uri)
    first.append_updates(updates((1, "a", 0, 1)), upper=4)
    with pytest.raises(errors.UpperMismatch, match="frontier of the table is 4") as caught:
        second.append_updates(updates((2, "b", 0, 1)), upper=2)
    assert (caught.value.expected, caught.value.upper, caught.value.version) == (0, 4, 1)
    assert sums(second) == {(1, "a"): 1}
    second.append_updates(updates((2, "b", 4, 1)), lower=4, upper=5)
    with pytest.raises(errors.UpperMismatch):
        first.append_updates(updates((2, "b", 4, 1)), upper=5)
    assert sums(first) == {(1, "a"): 1, (2, "b"): 1}


def test_a_token_makes_an_append_happen_once() -> None:
    table = differential()
    for _ in range(2):
        commit = table.append_updates(updates((1, "a", 0, 1)), lower=0, upper=1, token=("w", 1))
        assert commit.version == 1
    assert sums(table) == {(1, "a"): 1}


def test_the_frontier_alone_can_move() -> None:
    table = differential()
    assert table.append_updates(updates(), upper=7).committed
    assert not table.append_updates(updates(), upper=7).committed
    assert (table.upper, sums(table, 6)) == (7, {})


@pytest.mark.parametrize(
    ("rows", "arguments", "error", "message"),
    [
        ([(1, "a", 9, 1)], {"upper": 9}, errors.InvalidData, r"outside of \[5, 9\)"),
        ([(1, "a", 4, 1)], {"upper": 9}, errors.InvalidData, r"1 of 1 updates"),
        ([], {"upper": 4}, errors.InvalidInput, "never goes back"),
        ([], {"upper": -1}, errors.InvalidInput, "must be from 0"),
        ([], {"upper": 2**64}, errors.InvalidInput, "must be from 0"),
        ([], {"upper": "2026-01-01"}, errors.InvalidInput, "must be an integer"),
        ([], {"upper": 9, "time": "t"}, errors.SchemaMismatch, "no column 't'"),
        ([], {"upper": 9, "time": "diff"}, errors.InvalidInput, "both name"),
        ([], {"upper": 9, "time": "k"}, errors.InvalidInput, "column of the table's rows"),
    ],
)
def test_bad_updates_leave_no_trace(
    rows: list[Update], arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    table = differential()
    table.append_updates(updates(), upper=5)
    with pytest.raises(error, match=message):
        table.append_updates(updates(*rows), **arguments)
    assert (table.version, table.upper) == (1, 5)


@pytest.mark.parametrize(
    ("update", "message"),
    [
        ({"time": 0, "diff": None}, "'diff' has 1 NULL values, and every update needs"),
        ({"time": None, "diff": 1}, "'time' has 1 NULL values, and every update needs"),
        ({"time": -1, "diff": 1}, f"the time -1, and times of type uint64 are 0 to {2**64 - 2};"),
    ],
)
def test_errors_of_times_and_differences_name_no_change_of_columns(
    update: dict[str, int | None], message: str
) -> None:
    table = differential()
    with pytest.raises(errors.SchemaMismatch, match=message):
        table.append_updates([{"k": 1, "v": "a", **update}], upper=2**64 - 1)
    assert table.version == 0


def test_updates_may_be_dicts_and_have_other_names() -> None:
    table = differential(pa.schema([("time", pa.string())]))
    rows = [{"time": "noon", "_rowsieve_time": 3, "n": 2}]
    table.append_updates(rows, time="_rowsieve_time", diff="n", upper=4)
    assert table.scan(expanded=True).to_arrow().to_pylist() == [{"time": "noon"}] * 2


def test_times_may_be_instants() -> None:
    table = differential(time="timestamptz")
    noon, later = (datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (12, 13))
    rows = {"k": [1, 1], "v": ["a", "a"], "time": [noon, later], "diff": [1, -1]}
    table.append_updates(pa.table(rows), upper="2026-01-01T14:00:00+00:00")
    assert table.upper == datetime(2026, 1, 1, 14, tzinfo=UTC)
    assert sums(table, noon) == {(1, "a"): 1}  # type: ignore[arg-type]
    assert sums(table) == {}
    with pytest.raises(errors.InvalidInput, match="aware datetime"):
        table.scan(at=5)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.append(pa.table({"k": [1], "v": ["a"]})),
        lambda t: t.upsert(pa.table({"k": [1], "v": ["a"]})),
        lambda t: t.delete("k = 1"),
        lambda t: t.delete(keys=pa.table({"k": [1]})),
        lambda t: t.update({"v": "'x'"}),
        lambda t: t.overwrite(pa.table({"k": [1], "v": ["a"]})),
        lambda t: t.apply_changes(
            pa.table({"k": [1], "op": ["i"], "s": [1]}), op="op", sequence="s"
        ),
        lambda t: t.restore(0),
        lambda t: t.writer(durability="commit"),
        lambda t: t.add_constraint("c", "k > 0"),
        lambda t: t.changes(0),
        lambda t: t.last_changed(0),
        lambda t: t.publish("delta"),
        lambda t: t.publish("iceberg"),
    ],
)
def test_what_knows_no_times_is_refused_before_anything_is_written(
    table: Table, call: Callable[[Table], Any]
) -> None:
    before = set(table.handle.store.details(""))
    with pytest.raises(errors.UnsupportedOperation, match="differential"):
        call(table)
    assert table.refresh() == 3
    assert set(table.handle.store.details("")) == before


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        (lambda t: t.restore(1), r"rs\.differences\(table, rs\.open_table\(uri, version="),
        (lambda t: t.publish("iceberg"), r"rs\.create_table\(uri, table\.scan\(at="),
        (lambda t: t.changes(0), "use subscribe"),
        (lambda t: t.upsert(pa.table({"k": [1], "v": ["a"]})), "Use append_updates"),
    ],
)
def test_a_refusal_says_what_to_do_instead(
    table: Table, call: Callable[[Table], Any], instead: str
) -> None:
    with pytest.raises(errors.UnsupportedOperation, match=instead):
        call(table)


def test_an_older_version_comes_back_as_updates_of_the_next_time() -> None:
    table = updated()
    upper, older = table.upper, rs.open_table(table.uri, version=2)
    assert isinstance(upper, int)
    undo = rs.differences(table, older)
    times = pa.repeat(pa.scalar(upper, pa.uint64()), undo.num_rows)
    before = table.scan(at=upper - 1).to_arrow()
    table.append_updates(
        undo.append_column("time", times), diff="_rowsieve_diff", lower=upper, upper=upper + 1
    )
    assert undo.num_rows
    assert not rs.differences(table, older).num_rows
    assert not rs.differences(before, table.scan(at=upper - 1)).num_rows


def test_other_tables_have_no_times() -> None:
    table = rs.create_table(f"{differential().uri}x", KV)
    with pytest.raises(errors.UnsupportedOperation, match="mode 'append'"):
        table.append_updates(updates(), upper=1)
    with pytest.raises(errors.UnsupportedOperation, match="frontiers"):
        _ = table.upper
    with pytest.raises(errors.InvalidInput, match="at= and expanded="):
        table.scan(at=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"key": ["k"], "mode": "differential"}, "take no key"),
        ({"mode": "differential", "sequence": ["k"]}, "updates have times"),
        ({"mode": "append", "time": "uint64"}, 'time=.* is for mode="differential"'),
        ({"mode": "differential", "time": "int64"}, "time"),
    ],
)
def test_choices_that_do_not_fit_create_no_table(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.InvalidInput, match=message):
        rs.create_table(f"{differential().uri}y", KV, **arguments)


def test_reserved_names_and_rows_without_times_create_no_table() -> None:
    with pytest.raises(errors.InvalidInput, match="reserve"):
        differential(pa.schema([("_rowsieve_diff", pa.int64())]))
    with pytest.raises(errors.InvalidInput, match="times and differences"):
        differential(pa.table({"k": [1]}))


def test_older_releases_refuse_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    table = differential()
    info = table.handle.newest.table
    assert (info.reader_version, info.writer_version) == (DIFFERENTIAL_PROTOCOL,) * 2
    monkeypatch.setattr("rowsieve.storage.log.log_entry.READER_VERSION", DIFFERENTIAL_PROTOCOL - 1)
    with pytest.raises(errors.UnsupportedProtocol, match="reader protocol 9"):
        rs.open_table(table.uri)


def test_frontiers_are_no_properties_of_users() -> None:
    with pytest.raises(errors.InvalidInput, match="append_updates changes it"):
        differential().set_properties({"rowsieve.upper": "5"})


def test_an_old_version_is_read_at_its_own_times(table: Table) -> None:
    assert sums(table, 0, version=1) == modelled(UPDATES, 0)
    with pytest.raises(errors.InvalidInput, match="not complete"):
        table.scan(at=1, version=1)


def test_a_plan_is_read_elsewhere_and_never_by_rows_of_files(table: Table) -> None:
    plan = rs.ScanPlan.from_bytes(table.scan("k < 3", at=0).plan().to_bytes())
    (split,) = plan.splits_to_bytes()
    assert rs.read_split(split).read_all().sort_by("k").to_pylist() == [
        {"k": 1, "v": "a", "_rowsieve_diff": 1},
        {"k": 2, "v": "b", "_rowsieve_diff": 2},
    ]
    assert table.scan(plan=plan).count() == 2
    with pytest.raises(errors.UnsupportedOperation, match="sums of updates"):
        table.scan(at=0).plan(resolve=True)


def test_estimates_are_never_exact(table: Table) -> None:
    estimate = table.scan(at=1).statistics()
    assert (estimate.rows, estimate.rows_exact) == (4, False)
    assert estimate.columns["_rowsieve_diff"].lower is None
    for name in ("k", "v"):
        column = estimate.columns[name]
        assert not any((column.lower_exact, column.upper_exact, column.null_count_exact))
    with pytest.raises(errors.UnsupportedOperation, match="expanded"):
        table.scan(at=1, expanded=True).statistics()


def test_datasets_and_polars_read_the_sums(table: Table) -> None:
    import polars

    dataset = table.to_dataset(at=1)
    assert dataset.count_rows() == 2
    assert dataset.to_table(columns=["k"]).sort_by("k").to_pylist() == [{"k": 1}, {"k": 2}]
    frame = table.scan_polars(at=0).filter(polars.col("k") == 2).collect()
    assert frame["_rowsieve_diff"].to_list() == [2]
    assert table.to_dataset(at=0, expanded=True).to_table().num_rows == 3


def test_databases_and_catalogs_have_tables_of_updates() -> None:
    database = rs.Database(fresh_uri())
    table = database.create_table("t", KV, mode="differential")
    table.append_updates(updates((1, "a", 0, 1)), upper=1)
    database.open_table("t").append_updates(updates((1, "a", 1, 2)), upper=2)
    assert (sums(table, 0), sums(table)) == ({(1, "a"): 1}, {(1, "a"): 3})
    with pytest.raises(errors.UpperMismatch):
        table.append_updates(updates(), lower=1, upper=2)
    with (
        pytest.raises(errors.UnsupportedOperation, match="not available inside a transaction"),
        database.transaction() as transaction,
    ):
        transaction.table("t").append_updates(updates(), upper=3)
    catalog = rs.Catalog(fresh_uri())
    catalog.create_namespace("db")
    own = catalog.create_table("db.t", KV, mode="differential", time="timestamptz")
    own.append_updates(updates(), upper="2026-01-01T00:00:00+00:00")
    assert catalog.sql("SELECT count(*) FROM db.t").column(0).to_pylist() == [0]


def test_frontiers_are_shown() -> None:
    table = differential()
    table.append_updates(updates((1, "a", 3, 1)), upper=5)
    table.advance_since(2)
    assert (table.detail()["since"], table.detail()["upper"]) == (2, 5)
    explained = table.scan(at=3).explain()
    assert explained.as_dict()["frontiers"] == {"at": 3, "since": 2, "upper": 5}
    assert "  frontiers at=3, since=2, upper=5" in str(explained).splitlines()
    assert "since" not in rs.create_table(fresh_uri(), KV).detail()
    moments = differential(time="timestamptz")
    moments.append_updates([], upper="2026-01-01T00:00:00Z")
    assert moments.detail()["upper"] == "2026-01-01T00:00:00+00:00"
