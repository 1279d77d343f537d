"""The command line: each command, its JSON, and what its errors look like."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import rowsieve as rs
from rowsieve.cli import app as cli
from rowsieve.errors import CommitConflict, StoreError

ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "carrier": ["AA", "UA", None],
        "delay": [5.0, None, -3.5],
        "at": pa.array([datetime(2013, 1, day, tzinfo=UTC) for day in (1, 2, 3)]),
    }
)


def run(*arguments: object, code: int = 0) -> str:
    """Output of a command that must end with this exit code: stdout, or stderr if it failed."""
    result = CliRunner().invoke(cli.app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.stderr if code else result.stdout


def run_json(*arguments: object) -> Any:
    return json.loads(run(*arguments, "--json"))


def run_rows(*arguments: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(*arguments, "--json").splitlines()]


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    pq.write_table(ROWS, path)
    return path


@pytest.fixture
def flights(tmp_path: Path, parquet: Path) -> Path:
    folder = tmp_path / "flights"
    run("create", folder, parquet, "--key", "id")
    return folder


def text_file(tmp_path: Path, name: str, lines: Sequence[str]) -> Path:
    path = tmp_path / name
    path.write_text("\n".join([*lines, ""]))
    return path


def test_create_takes_rows_columns_and_key(flights: Path) -> None:
    table = rs.open_table(str(flights))
    assert table.key == ("id",)
    assert table.scan(order_by_key=True).to_arrow().to_pylist() == ROWS.to_pylist()


def test_create_may_take_columns_only(tmp_path: Path, parquet: Path) -> None:
    commit = run_json("create", tmp_path / "t", parquet, "--key", "id", "--schema-only")
    assert (commit["version"], commit["rows_written"]) == (0, 0)
    assert rs.open_table(str(tmp_path / "t")).schema.names == ROWS.column_names


def test_create_sets_properties_and_notes(tmp_path: Path, parquet: Path) -> None:
    notes = ("--property", "checkpoint_interval=5", "--metadata", "source=a=b")
    commit = run_json("create", tmp_path / "t", parquet, *notes)
    assert commit["metadata"] == {"source": "a=b"}
    assert rs.open_table(str(tmp_path / "t")).detail()["properties"] == {"checkpoint_interval": "5"}


def test_create_clusters_rows(tmp_path: Path, parquet: Path) -> None:
    folder = tmp_path / "t"
    run(
        "create",
        folder,
        parquet,
        "--property",
        "cluster_by=id DESC",
        "--property",
        "inline_bytes=0",
    )
    table = rs.open_table(str(folder))
    keys = table.to_arrow().column("id").to_pylist()
    assert keys == sorted(keys, reverse=True)
    assert table.handle.pinned.parts.sort_orders() == ["1 DESC NULLS LAST"]
    refused = run("create", tmp_path / "u", parquet, "--property", "cluster_by=nope", code=3)
    assert "'nope', which is not a column" in refused


def test_create_refuses_a_second_table_unless_told(flights: Path, parquet: Path) -> None:
    assert "TableExists" in run("create", flights, parquet, "--key", "id", code=3)
    run("create", flights, parquet, "--key", "id", "--if-exists", "ignore")
    assert rs.open_table(str(flights)).version == 0


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "ipc", "feather", "csv", "jsonl", "csv.gz"])
def test_upsert_reads_every_kind_of_file(flights: Path, tmp_path: Path, suffix: str) -> None:
    rows = ROWS.slice(0, 1).set_column(2, "delay", pa.array([7.5]))
    path = tmp_path / f"changes.{suffix}"
    if suffix == "parquet":
        pq.write_table(rows, path)
    elif suffix in ("arrow", "feather"):
        pyarrow.feather.write_feather(rows, path, compression="uncompressed")
    elif suffix == "ipc":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
    elif suffix == "jsonl":
        path.write_text('{"id":1,"carrier":"AA","delay":7.5,"at":"2013-01-01T00:00:00Z"}\n')
    else:
        text = b"id,carrier,delay,at\n1,AA,7.5,2013-01-01T00:00:00Z\n"
        with pa.output_stream(str(path), compression="detect") as stream:
            stream.write(text)
    commit = run_json("upsert", flights, path)
    assert (commit["operation"], commit["rows_written"]) == ("upsert", 1)
    assert rs.open_table(str(flights)).scan("id = 1").to_arrow().to_pylist() == rows.to_pylist()


def test_text_takes_the_types_of_the_table(tmp_path: Path) -> None:
    schema = pa.schema([("code", pa.string()), ("n", pa.int16()), ("day", pa.date32())])
    table = rs.create_table(str(tmp_path / "t"), schema, key=["code"])
    run("upsert", table.uri, text_file(tmp_path, "a.csv", ["code,n,day", "007,5,2013-02-08"]))
    run("upsert", table.uri, text_file(tmp_path, "b.jsonl", ['{"code": "1", "n": 2, "day": null}']))
    found = table.scan(order_by_key=True).to_arrow()
    assert found.column("code").to_pylist() == ["007", "1"]
    assert found.schema.types == schema.types


def test_in_csv_an_empty_field_is_null_and_quotes_are_text(tmp_path: Path) -> None:
    path = text_file(tmp_path, "a.csv", ["id,s", "1,", '2,""', "3,NA", "4,nil"])
    run("create", tmp_path / "t", path, "--key", "id", "--null", "nil")
    rows = rs.open_table(str(tmp_path / "t")).scan(order_by_key=True).to_arrow()
    assert rows.column("s").to_pylist() == [None, "", "NA", None]


def test_upsert_appends_to_a_table_without_a_key(tmp_path: Path, parquet: Path) -> None:
    run("create", tmp_path / "t", parquet)
    assert run_json("upsert", tmp_path / "t", parquet)["operation"] == "append"
    assert rs.open_table(str(tmp_path / "t")).scan().count() == 2 * ROWS.num_rows


def test_a_repeated_key_is_refused_or_the_last_one_wins(flights: Path, tmp_path: Path) -> None:
    rows = ["id,carrier,delay,at", "1,X,,", "1,Y,,"]
    path = text_file(tmp_path, "twice.csv", rows)
    assert "KeyViolation" in run("upsert", flights, path, code=3)
    run("upsert", flights, path, "--on-duplicate", "last")
    assert run_rows("query", "SELECT carrier FROM flights WHERE id = 1", flights) == [
        {"carrier": "Y"}
    ]


def test_a_token_commits_once(flights: Path, parquet: Path) -> None:
    first = run_json("upsert", flights, parquet, "--token", "loader:7")
    again = run_json("upsert", flights, parquet, "--token", "loader:7")
    assert first["commit_id"] == again["commit_id"]
    assert rs.open_table(str(flights)).version == 1


def test_apply_takes_the_last_change_of_each_key(flights: Path, tmp_path: Path) -> None:
    rows = ["id,carrier,delay,at,kind,lsn", "1,ZZ,1,,u,1", "1,,,,d,2", "9,NK,0,,i,3"]
    path = text_file(tmp_path, "changes.csv", rows)
    commit = run_json("apply", flights, path, "--op", "kind", "--sequence", "lsn")
    assert (commit["rows_written"], commit["rows_deleted"]) == (1, 1)
    found = run_rows("query", "SELECT id FROM flights ORDER BY id", flights)
    assert found == [{"id": 2}, {"id": 3}, {"id": 9}]


def test_delete_by_condition_and_by_key(flights: Path, tmp_path: Path) -> None:
    assert run_json("delete", flights, "carrier = 'AA'")["rows_deleted"] == 1
    keys = text_file(tmp_path, "keys.csv", ["id", "3"])
    assert run_json("delete", flights, "--keys", keys)["operation"] == "delete_keys"
    assert run_rows("query", "SELECT id FROM flights", flights) == [{"id": 2}]


def test_delete_wants_a_condition_or_keys(flights: Path) -> None:
    assert "--keys" in run("delete", flights, code=2)
    assert rs.open_table(str(flights)).version == 0


def test_delete_reads_the_dialect(flights: Path) -> None:
    run("delete", flights, "`carrier` = 'AA'", "--dialect", "spark")
    assert rs.open_table(str(flights)).scan().count() == 2


def test_query_prints_text(flights: Path) -> None:
    text = run("query", "SELECT id, carrier FROM flights ORDER BY id", flights)
    assert [line.split() for line in text.splitlines() if line.strip()] == [
        ["id", "carrier"],
        ["─" * len(text.splitlines()[1])],
        ["1", "AA"],
        ["2", "UA"],
        ["3", "NULL"],
        ["3", "rows"],
    ]


def test_query_prints_a_line_of_json_per_row(flights: Path) -> None:
    found = run_rows("query", "SELECT * FROM flights WHERE id = 1", flights)
    assert found == [{"id": 1, "carrier": "AA", "delay": 5.0, "at": "2013-01-01T00:00:00Z"}]


def test_query_joins_tables_by_other_names(flights: Path) -> None:
    sql = "SELECT count(*) AS n FROM a JOIN b USING (id)"
    assert run_rows("query", sql, "--table", f"a={flights}", "--table", f"b={flights}") == [
        {"n": 3}
    ]


def test_query_names_a_table_with_quotes_in_its_name(flights: Path) -> None:
    sql = 'SELECT count(*) AS n FROM "the ""new"" flights"'
    assert run_rows("query", sql, "--table", f'the "new" flights={flights}') == [{"n": 3}]


def test_query_takes_no_two_tables_of_one_name(flights: Path, tmp_path: Path) -> None:
    other = tmp_path / "copies" / flights.name
    shutil.copytree(flights, other)
    sql = f"SELECT count(*) AS n FROM {flights.name}"
    for arguments in (
        (flights, other),
        (flights, flights),
        (flights, "--table", f"flights={other}"),
    ):
        text = " ".join(run("query", sql, *arguments, code=2).split())
        assert "names a table twice" in text
        assert "--table NAME=TABLE" in text
    joined = f"SELECT count(*) AS n FROM {flights.name} CROSS JOIN copies"
    both = run_rows("query", joined, flights, "--table", f"copies={other}")
    (alone,) = run_rows("query", sql, flights)
    assert both == [{"n": alone["n"] ** 2}]


def test_query_limits_what_it_prints(flights: Path) -> None:
    sql = "SELECT id FROM flights"
    assert len(run_rows("query", sql, flights, "--limit", 2)) == 2
    assert "2 rows, more" in run("query", sql, flights, "--limit", 2)
    assert "more" not in run("query", sql, flights, "--limit", 3)


def test_reading_commands_look_back(flights: Path) -> None:
    run("delete", flights, "id = 1")
    sql = "SELECT count(*) AS n FROM flights"
    created = rs.open_table(str(flights)).history()[-1].timestamp.isoformat()
    assert run_rows("query", sql, flights) == [{"n": 2}]
    assert run_rows("query", sql, flights, "--version", 0) == [{"n": 3}]
    assert run_rows("query", sql, flights, "--as-of", created) == [{"n": 3}]
    assert run_json("inspect", flights, "--version", 0)["tombstones"] == 0
    assert run_json("explain", flights, "--as-of", created)["version"] == 0
    assert "VersionNotFound" in run("query", sql, flights, "--version", 9, code=3)
    assert "time zone" in run("query", sql, flights, "--as-of", "2013-01-01", code=3)


def test_query_reads_metadata_tables(flights: Path) -> None:
    run("delete", flights, "id = 1")
    snapshots = "SELECT snapshot_id, operation FROM flights$snapshots"
    assert [row["operation"] for row in run_rows("query", snapshots, flights)] == [
        "create",
        "delete",
    ]
    assert len(run_rows("query", snapshots, flights, "--version", 0)) == 1
    run("compact", flights)  # writes a file
    named = 'SELECT sum(record_count) AS n FROM flights JOIN "flights$files" ON id > 0 WHERE id = 2'
    assert run_rows("query", named, flights)[0]["n"] >= 2
    columns = "SELECT column_name FROM information_schema.columns WHERE table_name = 'flights'"
    assert "id" in [row["column_name"] for row in run_rows("query", columns, flights)]


def test_query_only_reads(flights: Path, tmp_path: Path) -> None:
    for sql in (
        f"COPY flights TO '{tmp_path}/out.parquet'",
        "SET datafusion.execution.batch_size = 1",
        "SELECT nothing FROM flights",
        "SELEC 1",
    ):
        assert "InvalidInput" in run("query", sql, flights, code=3)
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize(
    ("sql", "refusal"),
    [
        ("VACUUM", "VACUUM is not available"),
        ("DROP TABLE flights", "DROP changes tables, and query only reads them"),
        ("DELETE FROM flights", "DELETE changes tables, and query only reads them"),
        ("WITH x AS (SELECT 1) DELETE FROM flights", "DELETE changes tables"),
        ("CALL system.compact('flights')", "procedures belong to a catalog"),
    ],
)
def test_query_refuses_other_statements_by_name(flights: Path, sql: str, refusal: str) -> None:
    output = " ".join(run("query", sql, flights, code=3).split())
    assert "UnsupportedOperation" in output
    assert refusal in output


def test_query_takes_a_literal_that_reads_like_a_version(flights: Path) -> None:
    (row,) = run_rows("query", "SELECT 'version as of' AS text", flights)
    assert row == {"text": "version as of"}


def test_query_wants_a_table() -> None:
    assert "--table" in run("query", "SELECT 1", code=2)


def test_explain_names_what_pruned(flights: Path) -> None:
    assert 'skipped by key: "id" > 99; id in [1, 3]' in run("explain", flights, "id > 99")
    found = run_json("explain", flights, "id > 99")
    assert (found["parts_considered"], found["parts_read"]) == (1, 0)
    assert found["skipped"][0]["condition"] == '"id" > 99'


def test_history_lists_commits_newest_first(flights: Path, parquet: Path) -> None:
    run("upsert", flights, parquet, "--metadata", "run=5")
    commits = run_json("history", flights)
    assert [(c["version"], c["operation"]) for c in commits] == [(1, "upsert"), (0, "create")]
    assert commits[0]["metadata"] == {"run": "5"}
    assert len(run_json("history", flights, "--limit", 1)) == 1
    assert "upsert" in run("history", flights)


def test_inspect_shows_columns_and_parts(flights: Path) -> None:
    facts = run_json("inspect", flights, "--parts")
    assert facts["key"] == ["id"]
    assert facts["columns"][3] == {"id": 4, "name": "at", "type": "timestamptz", "nullable": True}
    (part,) = facts["part_list"]
    assert (part["rows"], part["key_lower"], part["key_upper"]) == (3, {"id": 1}, {"id": 3})
    text = run("inspect", flights, "--parts")
    assert "timestamptz" in text
    assert part["part"] in text


def test_compact_leaves_one_part(flights: Path, parquet: Path) -> None:
    run("upsert", flights, parquet)
    run("delete", flights, "id = 2")
    commit = run_json("compact", flights)
    assert (commit["parts_added"], commit["parts_removed"]) == (1, 3)
    assert "nothing to compact" in run("compact", flights)
    assert rs.open_table(str(flights)).detail()["rows_stored"] == 2


@pytest.mark.parametrize("command", ["explain", "history", "inspect", "delete", "compact"])
def test_a_missing_table_is_one_line(tmp_path: Path, command: str) -> None:
    extra = ["TRUE"] if command == "delete" else []
    message = run(command, tmp_path / "nothing", *extra, code=3)
    assert message.startswith("rowsieve: TableNotFound: no table at ")
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("a.txt", "x", "InvalidInput"),
        ("a.parquet", "x", "InvalidData"),
        ("a.arrow", "x", "InvalidData"),
        ("a.jsonl", "{", "InvalidData"),
        ("a.csv", "", "InvalidData"),
        ("a.csv", "id,carrier,delay,at\nx,,,\n", "InvalidData"),
        ("a.csv", "id,carrier,delay\n5,,\n", "SchemaMismatch"),
        ("a.csv", "id,carrier,delay,at\n,AA,,\n", "KeyViolation"),
    ],
)
def test_bad_files_are_named(
    flights: Path, tmp_path: Path, name: str, text: str, error: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    message = run("upsert", flights, path, code=3)
    assert message.startswith(f"rowsieve: {error}: ")
    assert rs.open_table(str(flights)).version == 0


@pytest.mark.parametrize("text", ["plain", "=x", ""])
def test_pairs_must_be_pairs(flights: Path, text: str) -> None:
    assert "NAME=VALUE" in run("history", flights, "--storage-option", text, code=2)


@pytest.mark.parametrize("text", ["plain", "app:", ":5", "app:-1"])
def test_tokens_must_be_tokens(flights: Path, parquet: Path, text: str) -> None:
    assert "APP:SEQUENCE" in run("upsert", flights, parquet, "--token", text, code=2)


def test_a_missing_file_is_wrong_usage(flights: Path, tmp_path: Path) -> None:
    assert "does not exist" in run("upsert", flights, tmp_path / "none.csv", code=2)


@pytest.mark.parametrize(
    ("error", "code"), [(CommitConflict("somebody else"), 4), (StoreError("no network"), 5)]
)
def test_the_exit_code_tells_what_to_do_next(
    flights: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(rs.Table, "compact", fail)
    assert run("compact", flights, code=code) == f"rowsieve: {type(error).__name__}: {error}\n"


def test_damage_has_its_exit_code_in_queries_too(flights: Path) -> None:
    run("compact", flights)  # writes a file
    (part,) = (flights / "data").glob("*.parquet")
    data = bytearray(part.read_bytes())
    data[-20] ^= 0xFF
    part.chmod(0o644)
    part.write_bytes(bytes(data))
    assert "CorruptData" in run("query", "SELECT * FROM flights", flights, code=5)


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    with pytest.raises(rs.errors.TableNotFound):
        run("--debug", "history", tmp_path / "nothing")


def test_version_is_the_packages() -> None:
    assert run("--version") == f"rowsieve {rs.__version__}\n"


def test_demo_fails_when_a_check_does(monkeypatch: pytest.MonkeyPatch) -> None:
    from rowsieve.demo import story

    folders = []

    def tell(folder: Path, _console: object) -> story.Checks:
        folders.append(folder)
        checks = story.Checks()
        checks.equal("one", 1, 1)
        checks.equal("rows", len(folders), 1)
        return checks

    monkeypatch.setattr(story, "tell", tell)
    assert "2 checks passed, 0 failed" in run("demo")
    assert "check failed: rows: expected 1, got 2" in run("demo", code=1)
    assert not any(folder.exists() for folder in folders)


def test_leaving_a_stream_early_leaves_with_the_right_code(tmp_path: Path) -> None:
    """DataFusion's threads abort an interpreter that winds down under them."""
    big = pa.table({"id": list(range(200_000)), "v": [1] * 200_000})
    rs.create_table(str(tmp_path / "big"), big, key=["id"]).upsert(big.slice(0, 100_000))
    query = ["query", "SELECT * FROM big", str(tmp_path / "big"), "--json", "--limit", "1"]
    for _ in range(3):
        left = subprocess.run(
            [sys.executable, "-m", "rowsieve", *query], capture_output=True, text=True, check=False
        )
        assert (left.returncode, left.stderr) == (0, "")
        assert len(left.stdout.splitlines()) == 1


def test_creating_an_existing_table_is_reported(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("id,v\n1,2\n")
    arguments = ["create", str(tmp_path / "t"), str(rows), "--key", "id", "--if-exists", "ignore"]
    assert (
        CliRunner()
        .invoke(cli.app, arguments)
        .stdout.startswith("version 0: create, 1 rows written")
    )
    again = CliRunner().invoke(cli.app, arguments)
    assert (again.exit_code, again.stdout) == (
        0,
        "version 0 exists already; nothing was written\n",
    )


def test_conditions_in_other_words(flights: Path) -> None:
    words = ("translate", "--from", "spark", "--to", "duckdb")
    assert run(*words, "--table", flights, "id > 1 AND carrier = 'AA'") == (
        '"id" > 1 AND "carrier" = \'AA\'\n'
    )
    found = run_json(*words, "--schema", "id bigint", "id > 1 AND md5(id) = 'x'")
    assert found["exactness"] == "superset"
    assert found["residual"] == "md5(id) = 'x'"
    filters = run(
        "translate", "--from", "spark", "--to", "spark_filters", "--schema", "a int", "a=1"
    )
    assert filters == "[EqualTo(attribute=('a',), value=1)]\n"
    strict = run(*words, "--strict", "--schema", "id bigint", "md5(id) = 'x'", code=3)
    assert strict.startswith("rowsieve: UnsupportedOperation: ")
    assert "--schema" in run(*words, "id > 1", code=3)
    both = run(*words, "--table", flights, "--schema", "id bigint", "id > 1", code=3)
    assert "leave one of them out" in both
    assert "InvalidInput" in run(*words, "--schema", "id", "id > 1", code=3)
    assert run(*words, "--syntax-only", "`id` > 1") == '"id" > 1\n'
    run("translate", "id > 1", code=2)


def test_messages_name_options_as_they_are_typed(flights: Path, parquet: Path) -> None:
    told = run("create", flights, parquet, "--key", "id", code=3)
    assert "--if-exists ignore" in told
    assert "if_exists" not in told
    large = "9" * 30
    for wrong in (
        ("inspect", flights, "--version", large),
        ("restore", flights, large),
        ("upsert", flights, parquet, "--token", f"x:{large}"),
        ("upsert", flights, parquet, "--token", f"x:{2**63}"),
    ):
        told = run(*wrong, code=2)
        assert "version=" not in told
        assert "token=" not in told
    assert "3 rows written" in run("upsert", flights, parquet, "--token", f"x:{2**63 - 1}")


def test_a_condition_is_printed_to_be_pasted() -> None:
    words = ("translate", "--from", "spark", "--to", "pyarrow_exprs", "--schema", "id bigint")
    result = CliRunner().invoke(cli.app, [*words, "id > 5 AND md5(id) = '\n'"])
    assert result.stdout == "pc.field('id') > 5\n"
    told = result.stderr.splitlines()
    assert told[:2] == ["# rowsieve: superset", "# rowsieve: with import pyarrow.compute as pc"]
    assert all(line.startswith("# rowsieve: ") for line in told)
    assert any("residual, to evaluate on the rows: md5(id) = " in line for line in told)
    found = run_json(*words, "id > 5")
    assert (found["expression"], found["imports"]) == (
        "pc.field('id') > 5",
        ["import pyarrow.compute as pc"],
    )


def test_a_condition_has_the_settings_of_its_options(tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "at": [datetime(2024, 7, 1, 23, 30, tzinfo=UTC)]})
    rs.create_table(str(tmp_path / "t"), rows, key=["id"])
    where, zone = "CAST(at AS DATE) = DATE '2024-07-02'", ("--time-zone", "Europe/Berlin")
    assert "nothing to delete" in run("delete", tmp_path / "t", f"NOT ({where})", *zone)
    words = ("translate", "--from", "spark", "--to", "duckdb", "--schema", "at timestamp")
    here = run_json(*words, where, *zone)
    assert here != run_json(*words, where)
    assert "Nowhere" in run("explain", tmp_path / "t", where, "--time-zone", "Nowhere/X", code=3)
    told = run("delete", tmp_path / "t", where, "--no-ansi", code=3)
    assert "ansi is a setting of Spark" in told
    assert run_rows("show", tmp_path / "t", where) == []
    assert len(run_rows("show", tmp_path / "t", where, *zone)) == 1
    assert "1 deleted" in run("delete", tmp_path / "t", where, *zone, "--dialect", "duckdb")
    assert run_rows("changes", tmp_path / "t", "--from", "1", "--where", where) == []
    assert len(run_rows("changes", tmp_path / "t", "--from", "1", "--where", where, *zone)) == 1
    assert "0 deleted" in run("diff", tmp_path / "t", "0", "1", "--where", where)
    assert "1 deleted" in run("diff", tmp_path / "t", "0", "1", "--where", where, *zone)


def test_properties_are_set_and_unset(flights: Path) -> None:
    told = run("set", flights, "checkpoint_interval=8", "critical_columns=delay,at")
    assert told == "version 1: set_properties checkpoint_interval=8, critical_columns=delay,at\n"
    assert run("set", flights, "checkpoint_interval=8") == "version 1: nothing to change\n"
    done = run_json("unset", flights, "critical_columns", "--metadata", "why=test")
    assert (done["version"], done["operation"]) == (2, "unset_properties")
    assert done["metadata"] == {"properties": {"critical_columns": None}, "why": "test"}
    assert run("unset", flights, "critical_columns") == "version 2: nothing to change\n"
    assert rs.open_table(str(flights)).detail()["properties"] == {"checkpoint_interval": "8"}
    assert "did you mean" in run("set", flights, "checkpoint_intervall=8", code=3)
    assert "parts are sorted" in run("unset", flights, "key", code=3)
    for wrong in (["set", flights], ["set", flights, "x"], ["unset", flights]):
        run(*wrong, code=2)


def test_alter_changes_columns_in_one_commit(flights: Path) -> None:
    before = rs.open_table(str(flights))
    told = run(
        "alter", flights, "ADD COLUMN note text DEFAULT 'none'", "RENAME COLUMN note TO remark"
    )
    table = rs.open_table(str(flights))
    assert told.startswith(f"version {before.version + 1}: ")
    assert "remark string" in told
    assert table.version == before.version + 1
    assert table.count("remark = 'none'") == table.count() == before.count()
    assert run_json("alter", flights, "DROP COLUMN remark", "--json")["operation"] == "alter"
    assert "InvalidSchemaChange" in run("alter", flights, "DROP COLUMN id", code=3)
    assert "ADD COLUMN name type" in run("alter", flights, "VACUUM", code=3)
    assert rs.open_table(str(flights)).version == before.version + 2
    assert "comment" not in run("inspect", flights)
    run("alter", flights, "ALTER COLUMN id COMMENT 'of the airline'", "DROP COLUMN IF EXISTS x")
    assert "of the airline" in run("inspect", flights)
