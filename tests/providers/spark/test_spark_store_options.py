"""No secret among the options of a store reaches Spark's event log in clear."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

import rowsieve as rs
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.providers.spark.jvm.java import spark_session
from rowsieve.providers.spark.reads.feed_options import FeedOptions
from rowsieve.providers.spark.reads.planned_source import PlannedSource
from rowsieve.providers.spark.reads.update_stream import UpdateOptions
from rowsieve.providers.spark.source import RowsieveSource
from rowsieve.providers.spark.source_options import ReadOptions, WriteOptions
from rowsieve.providers.spark.store_options import passed_on, storage_of
from tests.profiles import IS_DEEP
from tests.stores.folder_server import folder_server

pytestmark = pytest.mark.spark
PARSERS: tuple[Callable[[Mapping[str, str]], Any], ...] = (
    ReadOptions.parse,
    WriteOptions.parse,
    WriteOptions.parse_stream,
    lambda options: FeedOptions.parse({**options, "readchangefeed": "true"}),
    lambda options: UpdateOptions.parse({**options, "readupdates": "true"}),
    lambda options: PlannedSource({**options, "splits": ""}).reader(None),  # type: ignore[arg-type]
)
SHOWN = (
    "access_key",
    "account_key",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "azure_storage_master_key",
    "sas_key",
    "google_service_account_key",
    "aws_sse_customer_key_base64",
    "default_headers",
    "client_options.default_headers",
)
NOT_SHOWN = (
    "secret_access_key",
    "aws_session_token",
    "sas_token",
    "bearer_token",
    "client_secret",
    "access_key_id",
    "sse_kms_key_id",
    "aws_sse_bucket_key_enabled",
    "region",
    "disable_bulk_delete",
    "credential_provider",
)


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize("name", SHOWN)
def test_a_secret_that_spark_would_show_is_refused_by_name(
    parse: Callable[[Mapping[str, str]], Any], name: str
) -> None:
    options = {"path": "s3://b/t", f"storage.{name}": "hunter2"}
    with pytest.raises(UnsupportedOperation, match=r"storage\.secret\.") as caught:
        parse(options)
    assert f"option storage.{name.lower()} would stand in clear" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_the_source_refuses_before_it_asks_a_store() -> None:
    with pytest.raises(UnsupportedOperation, match=r"storage\.secret\.account_key"):
        RowsieveSource({"path": "az://c/t", "ref": "x", "storage.account_key": "hunter2"}).schema()


@pytest.mark.parametrize("name", NOT_SHOWN)
def test_other_options_keep_their_names(name: str) -> None:
    assert passed_on({name: "x"}) == {f"storage.{name}": "x"}
    assert storage_of({f"storage.{name}": "x", "path": "t"}) == {name: "x"}


@pytest.mark.parametrize("name", SHOWN)
def test_secrets_are_passed_on_by_names_that_spark_redacts(name: str) -> None:
    passed = passed_on({name: "hunter2"})
    assert list(passed) == [f"storage.secret.{name.removeprefix('client_options.')}"]
    assert list(storage_of(passed).values()) == ["hunter2"]
    assert "secret." not in next(iter(storage_of(passed)))


def test_an_option_by_both_names_is_refused() -> None:
    with pytest.raises(InvalidInput, match="mean the same"):
        storage_of({"storage.sas_token": "a", "storage.secret.sas_token": "b"})


@pytest.mark.skipif(not IS_DEEP, reason="a JVM of its own: in the deep run")
def test_the_event_log_has_no_secret(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "tests.providers.spark.test_spark_store_options", tmp_path],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        check=True,
    )
    logs = [each for each in (tmp_path / "log").rglob("events*") if each.is_file()]
    text = "\n".join(each.read_text() for each in logs)
    assert "CreateTempViewUsing" in text
    assert "hunter2" not in text
    assert "storage.secret.default_headers -> *********(redacted)" in text


def main(folder: Path) -> None:
    """Use a table with a secret in every way that Spark has, with an event log."""
    (folder / "log").mkdir()
    (folder / "bucket").mkdir()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "log").as_uri(),
        "spark.eventLog.compress": "false",
    }
    with folder_server(folder) as server:
        options = {**server.s3.options, "default_headers": json.dumps({"x-auth": "hunter2"})}
        table = rs.create_table(
            "s3://bucket/t", pa.table({"id": [1]}), key=["id"], storage_options=options
        )
        spark = spark_session("rowsieve secrets", settings, master="local[1]")
        passed = passed_on(options)
        shown = ", ".join(f"`{name}` '{value}'" for name, value in passed.items())
        spark.sql(f"CREATE TEMPORARY VIEW v USING rowsieve OPTIONS (path '{table.uri}', {shown})")
        reader = spark.read.format("rowsieve").options(**passed)
        rows = [spark.table("v").collect(), reader.load(table.uri).collect()]
        rows.append(table.to_spark(spark).collect())
        assert rows == [[(1,)]] * 3
        ids = spark.range(1, 3)
        writer = ids.write.format("rowsieve").options(**passed, mode="upsert").mode("append")
        writer.save(table.uri)
        assert table.write_spark(ids, mode="upsert").version == 2
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
