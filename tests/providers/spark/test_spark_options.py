from __future__ import annotations

import pytest

from rowsieve.errors import InvalidInput, UnsupportedOperation
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
        ({"path": "t", "version": "1", "versionasof": "1"}, "mean the same"),
        ({"path": "t", "as_of": "x", "timestampasof": "y"}, "mean the same"),
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


def test_a_write_understands_its_options() -> None:
    options = WriteOptions.parse(
        {
            "path": "t",
            "mode": "upsert",
            "token_app": "job",
            "token_sequence": "3",
            "metadata.run": "x",
            "storage.key": "secret",
        }
    )
    assert (options.mode, options.token) == ("upsert", ("job", 3))
    assert (options.metadata, options.storage) == ({"run": "x"}, {"key": "secret"})


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
