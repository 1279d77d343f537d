"""Flags are resolved by call, property, rollout rule and process default, and name their source."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.compaction.pick import Picker, picker_of
from rowsieve.config import Config
from rowsieve.errors import InvalidInput
from rowsieve.flags.flag import FLAGS, FlaggedTable
from rowsieve.flags.resolution import resolve_flag
from rowsieve.metrics import PrometheusReporter
from rowsieve.properties import PROPERTIES
from rowsieve.providers.datafusion import SessionContext
from rowsieve.providers.native_files.planned_parts import read_parts
from rowsieve.storage.snapshot import TableInfo
from tests.parts_in_memory import count_in_memory
from tests.small_tables import appended, fresh_uri, keyed, kv, pairs

pytestmark = pytest.mark.usefixtures("former_config")


def info(uuid: str = "1f", writer: int = 8, **properties: str) -> TableInfo:
    return TableInfo(uuid, ("k",), "upsert", properties, writer_version=writer)


def test_each_flag_is_a_property_and_a_field_of_the_configuration() -> None:
    config = Config()
    names = {field.name for field in fields(Config)}
    for name, flag in FLAGS.items():
        assert name in PROPERTIES
        assert name in names
        assert getattr(config, name) == flag.default


@pytest.mark.parametrize("kept", [None, "soft"])
@pytest.mark.parametrize("rule", [None, "on"])
def test_property_then_rule_then_process(kept: Any, rule: Any) -> None:
    rollouts = [] if rule is None else [rs.Rollout("pruning", rule)]
    config = Config(pruning="off", flags=rs.Flags(rollouts))
    table = info() if kept is None else info(pruning=kept)
    resolved = resolve_flag(FLAGS["pruning"], table, config)
    chosen = [
        (value, source)
        for value, source in (
            (kept, "table property"),
            (rule, "rollout rule"),
            ("off", "process default"),
        )
        if value is not None
    ]
    assert (resolved.value, resolved.source) == chosen[0]


def test_the_first_rule_that_selects_a_table_counts() -> None:
    rules = [
        rs.Rollout("pruning", "off", when=lambda table: table.uuid == "other"),
        rs.Rollout("statistics", "off"),
        rs.Rollout("pruning", "soft", percent=100),
        rs.Rollout("pruning", "off"),
    ]
    resolved = resolve_flag(FLAGS["pruning"], info(), Config(flags=rs.Flags(rules)))
    assert (resolved.value, resolved.detail) == ("soft", "3: 100% of tables")


def test_a_share_is_stable_grows_and_is_the_same_in_every_process() -> None:
    uuids = [f"{number:032x}" for number in range(2_000)]

    def selected(percent: float, **options: Any) -> set[str]:
        rule = rs.Rollout("pruning", "soft", percent=percent, **options)
        return {uuid for uuid in uuids if rule.selects(info(uuid))}

    small, large = selected(10), selected(20)
    assert small < large
    assert (len(small), len(large)) == (180, 391)  # of this named hash, in every release
    assert selected(0) == set()
    assert len(selected(100)) == 2_000
    assert selected(10, salt="another") != small
    assert selected(10, salt="pruning") == small
    code = (
        "from rowsieve import Rollout; from rowsieve.storage.snapshot import TableInfo\n"
        "rule = Rollout('pruning', 'soft', percent=10)\n"
        "print(*(n for n in range(60) if rule.selects(TableInfo(f'{n:032x}', (), 'append'))))"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [int(n) for n in other.stdout.split()] == [n for n in range(60) if uuids[n] in small]


def test_a_share_of_accounts_selects_all_tables_of_an_account() -> None:
    rule = rs.Rollout("statistics", "off", percent=30, of="accounts")
    by_account = {
        account: {rule.selects(info(uuid, account=account)) for uuid in "abcdef"}
        for account in map(str, range(200))
    }
    assert all(len(answers) == 1 for answers in by_account.values())
    assert 30 < sum(True in answers for answers in by_account.values()) < 90
    assert not any(rule.selects(info(uuid)) for uuid in "abcdef")  # tables of no account


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"flag": "prunning", "value": "on"}, "no flag 'prunning'.*did you mean 'pruning'"),
        ({"flag": 7, "value": "on"}, "no flag 7; flags are pruning"),
        (
            {"flag": "pruning", "value": "sofft"},
            "not 'sofft'; did you mean 'soft'",
        ),
        ({"flag": "pruning", "value": True}, "not True"),
        ({"flag": "audit_percent", "value": 101}, "percentage from 0 to 100, not 101"),
        ({"flag": "audit_percent", "value": float("nan")}, "not nan"),
        ({"flag": "inline_bytes", "value": 10**7}, "0 to 999999"),
        ({"flag": "pruning", "value": "on", "percent": 101}, "percent must be"),
        ({"flag": "pruning", "value": "on", "percent": "10"}, "percent must be"),
        ({"flag": "pruning", "value": "on", "of": "account", "percent": 1}, "'tables' or 'acc"),
        ({"flag": "pruning", "value": "on", "of": "accounts"}, "needs percent="),
        ({"flag": "pruning", "value": "on", "when": "always"}, "a function of a table"),
        ({"flag": "pruning", "value": "on", "salt": 1}, "salt must be text"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        rs.Rollout(**wrong)


def test_flags_that_cannot_be_are_refused() -> None:
    with pytest.raises(TypeError, match=r"Config\(\).*'prunning'; did you mean 'pruning'\?"):
        Config(prunning="off")  # type: ignore[call-arg] # what is tested
    with pytest.raises(TypeError, match=r"Rollout\(\).*'percnt'; did you mean 'percent'\?"):
        rs.Rollout("pruning", "off", percnt=3)  # type: ignore[call-arg] # what is tested
    for wrong in ("pruning", ["pruning"], {"pruning": "on"}, 7):
        with pytest.raises(InvalidInput, match="Flags: rollouts must be"):
            rs.Flags(wrong)  # type: ignore[arg-type] # what is tested
    with pytest.raises(InvalidInput, match="Config: flags must be Flags"):
        Config(flags=[rs.Rollout("pruning", "on")])  # type: ignore[arg-type] # what is tested
    for name in ("statistics", "visibility", "value_forms", "compaction"):
        with pytest.raises(InvalidInput, match=f"Config: {name} must be"):
            Config(**{name: "maybe"})  # type: ignore[arg-type] # what is tested


def test_a_function_that_fails_or_answers_something_else_is_an_error_of_the_read() -> None:
    table = keyed({"k": [1], "v": [1]})
    for when in (lambda _table: 1 / 0, lambda _table: "yes"):
        rules = [rs.Rollout("pruning", "off", when=when)]  # type: ignore[arg-type] # what is tested
        rs.configure(Config(flags=rs.Flags(rules)))
        with pytest.raises(InvalidInput, match=r"a rollout of 'pruning'.*True or False for every"):
            table.scan()


def test_explain_detail_metrics_and_prometheus_say_where_a_value_came_from() -> None:
    reporter = PrometheusReporter()
    rules = [rs.Rollout("pruning", "soft", percent=100), rs.Rollout("statistics", "off")]
    rs.configure(Config(reporter=reporter, flags=rs.Flags(rules)))
    table = keyed({"k": [1], "v": [1]}, properties={"compaction": "tiered"})
    scan = table.scan("k = 1", audit=5)
    assert "flag pruning=soft by rollout rule (1: 100% of tables)" in str(scan.explain())
    assert "flag audit_percent=5 by call" in str(scan.explain())
    assert "on_violation" not in str(scan.explain())
    flags = scan.explain().as_dict()["flags"]
    assert flags["audit_on_violation"] == {"value": "raise", "source": "process default"}
    scan.to_arrow()
    assert scan.metrics.as_dict()["flags"] == flags
    detail = table.detail()["flags"]
    assert list(detail) == list(FLAGS)
    assert detail["statistics"]["source"] == "rollout rule"
    assert detail["compaction"] == {"value": "tiered", "source": "table property"}
    text = reporter.text()
    assert 'flag="pruning",value="soft",source="rollout rule"} 1' in text
    assert 'flag="statistics",value="off",source="rollout rule"} 2' in text  # create, upsert


def test_explain_of_a_write_shows_the_flags_that_it_would_have() -> None:
    rs.configure(Config(flags=rs.Flags([rs.Rollout("statistics", "off")])))
    session = SessionContext()
    session.register_table("t", keyed({"k": [1], "v": [1]}, properties={"compaction": "tiered"}))
    session.register_table("u", keyed({"k": [1], "v": [1]}, properties={"statistics": "on"}))

    def lines(statement: str) -> list[str]:
        plans = session.sql(f"EXPLAIN {statement}").to_pydict()["plan"]
        return [line for plan in plans for line in plan.splitlines() if "flag" in line]

    for change in ("DELETE FROM t WHERE k = 1", "INSERT INTO t VALUES (2, 2)"):
        first, second = lines(change)
        assert first == "t: flag statistics=off by rollout rule (1: all tables)"
        assert second == "t: flag compaction=tiered by table property"
    assert lines("UPDATE u SET v = 2") == ["u: flag statistics=on by table property"]
    assert lines("SELECT * FROM t") == []


def bounds_of(table: rs.Table) -> list[Any]:
    """The upper bounds of `v` in the statistics of each part; None without."""
    parts = table.handle.newest.parts
    name = f"stats.{table.handle.newest.schema.field('v').id}.upper"
    return parts.column(name).to_pylist() if name in parts.schema.names else [None] * len(parts)


def test_a_rule_reaches_every_way_to_write() -> None:
    rs.configure(Config(statistics="off", inline_bytes=0))
    with_key = keyed({"k": [1, 2], "v": [1, 2]}, {"k": [2, 3], "v": [5, 6]})
    without = appended({"k": [1], "v": [1]})
    with_key.update({"v": "v + 1"}, where="k = 1")
    created = rs.create_table(fresh_uri(), kv((1, 1)), key=["k"])
    for table in (with_key, without, created):
        assert set(bounds_of(table)) == {None}
    with_key.compact()
    assert bounds_of(with_key) == [None]
    former = rs.configure(Config(inline_bytes=0))
    assert not with_key.require_pruning("k = 9").parts_read
    with_key.upsert(kv((9, 9)))
    assert 9 in bounds_of(with_key)
    rs.configure(former)
    with_key.compact()
    assert bounds_of(with_key) == [None]


def test_opaque_forms_are_not_given_to_a_table_that_stores_paths_of_json() -> None:
    rs.configure(Config(value_forms="opaque"))
    columns = pa.table({"k": [1], "j": pa.array(['{"a": 1}'], pa.json_())})
    table = rs.create_table(fresh_uri(), columns, key=["k"], properties={"json_shredding": "j.a"})
    flag = table.handle.pinned.table.flags.by_name["value_forms"]
    assert (flag.value, flag.detail) == ("structured", "not opaque: the table has json_shredding")
    plain = rs.create_table(fresh_uri(), columns, key=["k"])
    assert plain.detail()["flags"]["value_forms"]["value"] == "opaque"
    assert plain.to_arrow()["j"].to_pylist() == ['{"a": 1}']


def test_flags_reach_changes_and_compaction() -> None:
    rs.configure(Config(visibility="eager", inline_bytes=4_096))
    table = keyed({"k": [1, 2], "v": [1, 2]})
    assert count_in_memory(table) == 1
    rs.configure(Config(visibility="eager", compaction="tiered"))
    table.upsert(kv((2, 5)))
    assert any(ref is not None for ref in table.handle.newest.parts.vectors())
    assert picker_of(table.handle.newest.table.settings) is Picker.TIERED
    rs.configure(Config())
    assert picker_of(table.handle.newest.table.settings) is Picker.LEVELED
    assert pairs(table) == [(1, 1), (2, 5)]


def test_a_rollout_writes_both_forms_and_reads_the_codec_where_there_is_one() -> None:
    rules = [rs.Rollout("write_encoding", "both"), rs.Rollout("read_encoding", "shadow")]
    rs.configure(Config(flags=rs.Flags(rules), inline_bytes=0))
    table = keyed({"k": [1], "v": [1]}, properties={"row_codec": "msgpack"})
    plain = keyed({"k": [1], "v": [1]})
    (ref,) = table.handle.newest.parts.files("data")
    assert ref is not None
    assert str(ref.encoding).startswith("both/1/msgpack/")
    flag = plain.detail()["flags"]["write_encoding"]
    assert flag["detail"] == "not both: the table has no row_codec"
    scan = table.scan("v = 1")
    assert "flag read_encoding=shadow by rollout rule (2: all tables)" in str(scan.explain())
    assert scan.metrics.flags["read_encoding"]["value"] == "shadow"
    plan = scan.plan()
    assert [part.data.reading for part in read_parts(plan) if part.data] == ["shadow"]
    assert scan.to_arrow().to_pylist() == [{"k": 1, "v": 1}]
    again = table.scan("v = 1", read_encoding="columns")
    assert [part.data.reading for part in read_parts(again.plan()) if part.data] == [None]
    rs.configure(Config())
    last = table.scan("v = 1").plan()
    assert [part.data.reading for part in read_parts(last) if part.data] == [None]


def test_a_table_resolves_its_flags_again_after_configure_only() -> None:
    calls: list[FlaggedTable] = []

    def noted(table: FlaggedTable) -> bool:
        calls.append(table)
        return True

    rs.configure(Config(flags=rs.Flags([rs.Rollout("pruning", "off", when=noted)])))
    table = rs.create_table(fresh_uri(), pa.table({"k": [1]}), key=["k"])
    for _ in range(3):
        assert table.scan("k = 1").plan().pruning is False
    assert len([each for each in calls if each is table.handle.pinned.table]) == 1
    rs.configure(Config())
    assert table.scan("k = 1").plan().pruning
