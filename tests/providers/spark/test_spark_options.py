from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput, UnsupportedOperation, VersionNotFound
from rowsieve.providers.spark.reads.feed_options import FeedOptions
from rowsieve.providers.spark.reads.feed_reads import pin_feed
from rowsieve.providers.spark.reads.stream_source import RowsieveStreamReader
from rowsieve.providers.spark.source import RowsieveSource
from rowsieve.providers.spark.source_options import ReadOptions, WriteOptions


def test_a_read_understands_its_options() -> None:
    options = ReadOptions.parse(
        {
            "path": "s3://bucket/t",
            "where": "a = 1",
            "columns": "b, a",
            "versionasof": "7",
            "storage.region": "eu",
            "split_bytes": "100",
        }
    )
    assert (options.uri, options.where, options.columns) == ("s3://bucket/t", "a = 1", ("b", "a"))
    assert (options.version, options.as_of, options.split_bytes) == (7, None, 100)
    assert options.storage == {"region": "eu"}


def test_columns_may_be_a_json_list() -> None:
    assert ReadOptions.parse({"path": "t", "columns": '["a,b", "c"]'}).columns == ("a,b", "c")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give its URI"),
        ({"path": "t", "wher": "x"}, "did you mean 'where'"),
        ({"path": "t", "version": "-1"}, "version is a whole number"),
        ({"path": "t", "version": "one"}, "version is a whole number"),
        (
            {"path": "t", "version": "1", "versionasof": "1"},
            "version and versionAsOf mean",
        ),
        ({"path": "t", "versionasof": "1", "snapshot-id": "1"}, "mean the same"),
        ({"path": "t", "as_of": "x", "timestampasof": "y"}, "mean the same"),
        ({"path": "t", "timestampasof": "2026-02-01"}, "has no offset.*option time_zone"),
        ({"path": "t", "timestampasof": "yesterday"}, "not a time in ISO-8601"),
        ({"path": "t", "timestampasof": "2026-02-01", "time_zone": "Mars"}, "Mars"),
        ({"path": "t", "time_zone": "UTC"}, "give all three"),
        ({"path": "t", "columns": "a,,b"}, "names separated by commas"),
        ({"path": "t", "columns": "[1]"}, "JSON list"),
        ({"path": "t", "columns": "[]"}, "names no column"),
        ({"path": "t", "split_bytes": "0"}, "from 1"),
        ({"path": "t", "mode": "upsert"}, "unknown option 'mode' of a read"),
    ],
)
def test_a_wrong_read_option_is_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ReadOptions.parse(options)


@pytest.mark.parametrize(
    ("options", "version", "as_of"),
    [
        ({"versionAsOf": "3"}, 3, None),
        ({"snapshot-id": "3"}, 3, None),
        ({"timestampAsOf": "2026-02-01 00:00:00+02:00"}, None, "2026-02-01 00:00:00+02:00"),
        (
            {"timestampAsOf": "2026-07-01", "time_zone": "America/New_York"},
            None,
            "2026-07-01T00:00:00-04:00",
        ),
    ],
)
def test_versions_and_times_are_named_as_in_other_formats(
    options: dict[str, str], version: int | None, as_of: str | None
) -> None:
    read = ReadOptions.parse({"path": "t", **options})
    assert (read.version, read.as_of) == (version, as_of)


@pytest.mark.parametrize(("given", "path"), [("file:/a/b", "/a/b"), ("file:///a/b", "file:///a/b")])
def test_a_path_may_be_written_as_hadoop_writes_it(given: str, path: str) -> None:
    assert ReadOptions.parse({"path": given}).uri == path
    assert WriteOptions.parse({"path": given}).uri == path


def test_a_path_of_hadoop_with_a_percent_sign_is_refused() -> None:
    with pytest.raises(UnsupportedOperation, match="may be a path or a URI with escapes"):
        ReadOptions.parse({"path": "file:/a%20b"})


@pytest.mark.parametrize("parse", [ReadOptions.parse, WriteOptions.parse, FeedOptions.parse])
@pytest.mark.parametrize("name", ["predicat", "part", "write_i", "one_pas", "merg", "colour"])
def test_an_unknown_option_suggests_none_of_our_own(
    parse: Callable[[dict[str, str]], object], name: str
) -> None:
    with pytest.raises(InvalidInput, match=f"unknown option '{name}'") as caught:
        parse({"path": "t", name: "x"})
    words = set(re.findall(r"[\w-]+", str(caught.value).partition("'; ")[2] or str(caught.value)))
    assert not words & {"predicate", "parts", "write_id", "one_pass", "merge"}


@pytest.mark.parametrize(
    ("parse", "options", "message"),
    [
        (WriteOptions.parse, {"overwriteSchema": "true"}, "keeps the columns.*mergeSchema adds"),
        (WriteOptions.parse_stream, {"overwriteSchema": "true"}, "nothing was written"),
        (WriteOptions.parse, {"partitionOverwriteMode": "dynamic"}, "replaceWhere"),
        (ReadOptions.parse, {"as-of-timestamp": "1"}, "timestampAsOf"),
        (ReadOptions.parse, {"paths": '["/a", "/b"]'}, "one table"),
        (FeedOptions.parse, {"maxBytesPerTrigger": "1g"}, "maxFilesPerTrigger"),
        (WriteOptions.parse, {}, "by which tables are only read.*Table.write_spark"),
        (WriteOptions.parse_stream, {}, "toTable cannot write"),
    ],
)
def test_what_is_not_available_is_refused_by_name(
    parse: Callable[[dict[str, str]], object], options: dict[str, str], message: str
) -> None:
    with pytest.raises(UnsupportedOperation, match=message):
        parse({"path": "t", **options} if options else {})


def test_changes_of_columns_may_be_declined() -> None:
    options = {"path": "t", "mergeSchema": "false", "overwriteSchema": "FALSE"}
    assert WriteOptions.parse(options) == WriteOptions.parse({"path": "t"})
    with pytest.raises(InvalidInput, match="mergeSchema is true or false, not 'yes'"):
        WriteOptions.parse({"path": "t", "mergeSchema": "yes"})


def test_a_token_and_a_note_are_named_as_in_delta() -> None:
    options = WriteOptions.parse(
        {"path": "t", "txnAppId": "job", "txnVersion": "7", "userMetadata": "a note"}
    )
    assert (options.token, options.metadata) == (("job", 7), {"userMetadata": "a note"})
    with pytest.raises(InvalidInput, match="txnAppId and txnVersion, go together"):
        WriteOptions.parse({"path": "t", "txnappid": "job"})


@pytest.mark.parametrize("name", ["startingTimestamp", "endingTimestamp"])
def test_a_time_of_the_feed_is_read_with_its_options(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"option {name}: .*not a time"):
        FeedOptions.parse({"path": "t", name.lower(): "soon"})
    with pytest.raises(InvalidInput, match=f"option {name}: .*no time zone"):
        FeedOptions.parse({"path": "t", name.lower(): "2026-01-01"})


def test_a_write_understands_its_options() -> None:
    options = WriteOptions.parse(
        {
            "path": "t",
            "mode": "upsert",
            "token_app": "job",
            "token_sequence": "3",
            "metadata.run": "x",
            "storage.region": "here",
        }
    )
    assert (options.mode, options.token) == ("upsert", ("job", 3))
    assert (options.metadata, options.storage) == ({"run": "x"}, {"region": "here"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "t", "mode": "merge"}, "append, upsert, delete"),
        ({"path": "t", "token_app": "a"}, "go together"),
        ({"path": "t", "token_sequence": "1"}, "go together"),
        ({"path": "t", "token_app": "a", "token_sequence": "x"}, "whole number"),
        ({"path": "t", "where": "x"}, "unknown option 'where' of a write"),
        ({"path": "t", "merge": "0:n"}, "merge_spark passes on"),
        ({"path": "t", "merge": "n", "write_id": "1"}, "merge_spark passes on"),
        ({"path": "t", "merge": "0:n", "write_id": "1", "mode": "upsert"}, "merge_spark passes on"),
    ],
)
def test_a_wrong_write_option_is_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        WriteOptions.parse(options)


def test_a_table_in_memory_is_out_of_reach() -> None:
    with pytest.raises(UnsupportedOperation, match="memory of one process"):
        ReadOptions.parse({"path": "memory:///t"})


def test_no_secret_is_in_a_message() -> None:
    with pytest.raises(InvalidInput) as caught:
        WriteOptions.parse({"path": "t", "storage.secret_key": "hunter2", "mode": "x"})
    assert "hunter2" not in str(caught.value)
    options = {"path": "t", "storage.secret_key": "hunter2"}
    assert "hunter2" not in f"{ReadOptions.parse(options)} {WriteOptions.parse(options)}"


def test_a_start_that_no_version_has_reached_fails_when_it_is_loaded(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), pa.table({"id": [1]}), key=["id"])
    feed = {"path": table.uri, "readchangefeed": "true"}
    with pytest.raises(VersionNotFound, match="startingTimestamp=2999-01-01T00:00:00"):
        RowsieveSource({**feed, "startingtimestamp": "2999-01-01T00:00:00+00:00"}).schema()
    started = {**feed, "startingtimestamp": "2026-01-01", "time_zone": "UTC"}
    assert "_change_type" in RowsieveSource(started).schema().names


def test_a_batch_of_a_stream_has_as_many_files_as_its_option_says(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), pa.table({"id": [1]}), key=["id"])
    for number in range(2, 6):
        table.upsert(pa.table({"id": [number]}))
    options = FeedOptions.parse(
        {"path": table.uri, "startingVersion": "0", "maxFilesPerTrigger": "2"}
    )
    stream = RowsieveStreamReader(options, pin_feed(options))
    ends, offset = [], stream.initialOffset()
    for _ in range(4):
        offset = stream.latestOffset(offset, stream.getDefaultReadLimit())
        ends.append(offset["version"])
    stream.stop()
    assert ends == [1, 3, 4, 4]
    with pytest.raises(InvalidInput, match="maxFilesPerTrigger are for"):
        options.check_batch()
