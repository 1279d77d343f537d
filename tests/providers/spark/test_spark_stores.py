"""Spark reads tables of a store itself where its session can, and says why where it cannot."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import rowsieve as rs
from rowsieve.errors import CorruptData, InvalidInput
from rowsieve.objects import Location
from rowsieve.providers.spark import explain, prune, read
from rowsieve.providers.spark.reads import hadoop_places, store_access
from rowsieve.providers.spark.source import RowsieveSource
from rowsieve.storage.log import sent_versions
from tests.providers.spark.hadoop_buckets import fresh_bucket, seen_by
from tests.providers.spark.test_spark_counts import jobs_of
from tests.providers.spark.test_spark_hybrid import plan_of, rows_of
from tests.stores.folder_server import FolderServer, folder_server

pytestmark = pytest.mark.spark
PICKLES: Any = cloudpickle  # has no types


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FolderServer]:
    with folder_server(tmp_path_factory.mktemp("buckets")) as started:
        yield started


@pytest.fixture
def bucket(server: FolderServer) -> Iterator[str]:
    name = fresh_bucket()
    (server.folder / name).mkdir()
    yield name
    store_access._SEEN.clear()


def numbered(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "s": [f"v{i}" for i in ids]})


def table_in(server: FolderServer, bucket: str, **more: Any) -> rs.Table:
    """Ids 0 to 99 in one part, 7 and 100 to 109 in another, 50 deleted."""
    table = rs.create_table(
        f"s3://{bucket}/a/t",
        numbered(*range(100)),
        key=["id"],
        storage_options=server.s3.options,
        **more,
    )
    table.upsert(numbered(7, *range(100, 110)))
    table.delete(keys=pa.table({"id": [50]}))
    return table


def told(spark: Any, server: FolderServer, table: rs.Table, **more: Any) -> str:
    return str(explain(spark, table.uri, storage_options=server.s3.options, **more))


def test_spark_reads_the_files_of_a_store_itself(
    spark: Any, server: FolderServer, bucket: str
) -> None:
    table = table_in(server, bucket)
    with seen_by(spark, bucket, server.folder / bucket):
        frame: Any = table.to_spark(spark)
        assert "FileScan parquet" in plan_of(frame)
        by_source = read(spark, table.uri, storage_options=server.s3.options, routes=["source"])
        assert rows_of(frame) == rows_of(by_source)
        files = [f"s3a://{bucket}/a/t/{name}" for name in data_files(server, bucket)]
        assert sorted(frame.inputFiles()) == files
        server.requests.clear()
        assert sorted(row.id for row in frame.where("id > 105").collect()) == [106, 107, 108, 109]
        assert server.requests == []  # Spark's own client read them


def test_a_load_reads_the_log_once(server: FolderServer, bucket: str) -> None:
    """Spark makes the source in one process, plans in a second one and reads in others."""
    table = table_in(server, bucket)
    storage = {f"storage.{name}": value for name, value in server.s3.options.items()}
    options = {"path": table.uri, "where": "id < 3", "columns": "id", **storage}
    server.requests.clear()
    source = RowsieveSource(options)
    columns = source.schema()
    planning = PICKLES.loads(PICKLES.dumps(source)).reader(columns)
    partitions = planning.partitions()
    task = PICKLES.dumps(planning)
    batches = [batch for each in partitions for batch in PICKLES.loads(task).read(each)]
    assert sorted(pa.Table.from_batches(batches)["id"].to_pylist()) == [0, 1, 2]
    log = [key for _, key in server.requests if "/_rowsieve/log/" in key]
    assert len(log) == len(set(log)) < 10
    assert len(task) < len(PICKLES.dumps(source)) / 2  # no task gets the version


def test_long_lists_of_parts_are_read_again(
    server: FolderServer, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned = table_in(server, bucket).handle.pinned
    monkeypatch.setattr(sent_versions, "MAX_SENT_PARTS", len(pinned.parts) - 1)
    assert sent_versions.version_as_bytes(pinned) is None


def test_a_version_that_was_sent_is_the_version(server: FolderServer, bucket: str) -> None:
    pinned = table_in(server, bucket).handle.pinned
    files = sent_versions.version_as_bytes(pinned)
    assert files is not None
    received = sent_versions.version_of_bytes(files, pinned.version)
    assert received.parts.to_ipc() == pinned.parts.to_ipc()
    assert replace(received, parts=pinned.parts) == pinned
    with pytest.raises(CorruptData):
        sent_versions.version_of_bytes(dict.fromkeys(files, b"{}"), pinned.version)


def data_files(server: FolderServer, bucket: str) -> list[str]:
    root = server.folder / bucket / "a" / "t"
    return sorted(str(path.relative_to(root)) for path in (root / "data").glob("*.0.parquet"))


def test_conditions_of_a_query_skip_files_of_a_store(
    spark: Any, server: FolderServer, bucket: str
) -> None:
    table = table_in(server, bucket)
    with seen_by(spark, bucket, server.folder / bucket):
        table.to_spark(spark).createOrReplaceTempView("stored")
        pruned: Any = prune(spark.sql("SELECT s FROM stored WHERE id = 3"))
        assert [row.s for row in pruned.collect()] == ["v3"]
        assert len(pruned.inputFiles()) == 1


def test_without_a_file_system_the_source_reads_and_the_reason_is_told(
    spark: Any, server: FolderServer, bucket: str
) -> None:
    table = table_in(server, bucket)
    text = told(spark, server, table)
    assert "hadoop-aws of Hadoop" in text
    assert "spark.hadoop.fs.s3a.impl" in text
    assert "FileScan" not in plan_of(cast("Any", table.to_spark(spark)))
    assert table.to_spark(spark).count() == 109


def test_another_store_with_the_same_names_is_not_read(
    spark: Any, server: FolderServer, bucket: str, tmp_path: Path
) -> None:
    table = table_in(server, bucket)
    other = tmp_path / "other"
    shutil.copytree(server.folder / bucket, other)
    for path in (other / "a" / "t" / "data").glob("*.parquet"):
        path.write_bytes(path.read_bytes()[:-9] + b"other" + path.read_bytes()[-4:])
    with seen_by(spark, bucket, other):
        assert "is another file there" in told(spark, server, table)
        assert "FileScan" not in plan_of(cast("Any", table.to_spark(spark)))


@pytest.mark.parametrize("change", ["missing", "longer"])
def test_each_file_is_compared_with_the_manifest(
    spark: Any, server: FolderServer, bucket: str, tmp_path: Path, change: str
) -> None:
    """One file of the other store differs, and it is not the one that is opened."""
    table = table_in(server, bucket)
    other = tmp_path / "other"
    shutil.copytree(server.folder / bucket, other)
    parts = [file for file in table.handle.pinned.parts.files("data") if file is not None]
    largest = max(parts, key=lambda file: file.size_bytes - file.tail_start)
    path = other / "a" / "t" / largest.path
    if change == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes() + b"\0")
    with seen_by(spark, bucket, other):
        wanted = "is missing" if change == "missing" else f"has {largest.size_bytes + 1:,} bytes"
        assert wanted in told(spark, server, table)


def test_a_session_is_asked_once_for_each_table(
    spark: Any, server: FolderServer, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_in(server, bucket)
    asked: list[object] = []
    looked_up = store_access._looked_up

    def counted(*arguments: Any) -> Any:
        asked.append(arguments)
        return looked_up(*arguments)

    monkeypatch.setattr(store_access, "_looked_up", counted)
    with seen_by(spark, bucket, server.folder / bucket):
        for _ in range(2):
            table.to_spark(spark)
            told(spark, server, table)
        assert len(asked) == 1
        table.upsert(numbered(200))  # a file that was not listed
        assert table.to_spark(spark).count() == 110
        assert len(asked) == 2


def test_a_failure_is_not_tried_again_at_once(
    spark: Any, server: FolderServer, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_in(server, bucket)
    with seen_by(spark, bucket, tmp_path):
        assert "FileNotFoundException" in told(spark, server, table)
        monkeypatch.setattr(store_access, "_looked_up", None)
        assert "its settings begin with spark.hadoop.fs.s3a." in told(spark, server, table)


def test_a_mount_of_another_name_is_a_property_or_an_argument(
    spark: Any, server: FolderServer, bucket: str
) -> None:
    folder = server.folder / bucket / "a" / "t"
    table = table_in(server, bucket)
    argued: Any = read(spark, table.uri, storage_options=server.s3.options, spark_path=str(folder))
    assert "FileScan parquet" in plan_of(argued)
    table.set_properties({"spark.path": f"file://{folder}"})
    frame: Any = table.to_spark(spark)
    assert "FileScan parquet" in plan_of(frame)
    assert rows_of(frame) == rows_of(argued)
    assert "native" not in told(spark, server, table, spark_path=f"{folder}/elsewhere")


@pytest.mark.parametrize(
    "path", ["s3a://key:secret@bucket/t", "t", "s3a://b/t?x=1", "s3a://b/*", "/a%20b", "/a{b}"]
)
def test_a_place_that_is_not_a_plain_folder_is_refused(
    spark: Any, server: FolderServer, bucket: str, path: str
) -> None:
    table = table_in(server, bucket)
    with pytest.raises(InvalidInput, match="a folder as Spark names it"):
        table.set_properties({"spark.path": path})
    with pytest.raises(InvalidInput, match="a folder as Spark names it"):
        read(spark, table.uri, storage_options=server.s3.options, spark_path=path)


@pytest.mark.parametrize(
    ("uri", "options", "roots"),
    [
        ("s3://b/x/t", {}, ["s3a://b/x/t", "s3://b/x/t"]),
        ("s3a://b/t", {}, ["s3a://b/t", "s3://b/t"]),
        ("gs://b/t", {}, ["gs://b/t"]),
        ("abfss://c@a.dfs.core.windows.net/t", {}, ["abfss://c@a.dfs.core.windows.net/t"]),
        ("az://c/t", {"account_name": "a"}, ["abfss://c@a.dfs.core.windows.net/t"]),
        ("az://c/t", {"AZURE_STORAGE_ACCOUNT_NAME": "a"}, ["abfss://c@a.dfs.core.windows.net/t"]),
        ("az://c/t", {"account_name": "a", "endpoint": "http://localhost"}, []),
        ("az://c/t", {}, []),
    ],
)
def test_each_scheme_has_a_name_in_hadoop(
    uri: str, options: dict[str, str], roots: list[str]
) -> None:
    places = hadoop_places.places_of(Location.parse(uri), options)
    assert [place.root for place in places] == roots


def test_frames_of_a_store_are_made_without_a_job(
    spark: Any, server: FolderServer, bucket: str
) -> None:
    table = table_in(server, bucket)
    with seen_by(spark, bucket, server.folder / bucket):
        frame, jobs = jobs_of(spark, lambda: table.to_spark(spark))
        assert jobs == 0
        count, jobs = jobs_of(spark, cast("Any", frame).count)
        assert (count, jobs) == (109, 0)


def test_a_missing_file_is_an_error(spark: Any, server: FolderServer, bucket: str) -> None:
    table = table_in(server, bucket)
    (server.folder / bucket / "a" / "t" / data_files(server, bucket)[0]).unlink()
    with (
        seen_by(spark, bucket, server.folder / bucket),
        pytest.raises(Exception, match=r"is missing: data/.*\.parquet"),
    ):
        cast("Any", table.to_spark(spark)).collect()
