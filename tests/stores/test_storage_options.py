"""Settings of a store: one flat form for every caller, and none of them in a message."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext
from typer.testing import CliRunner

import rowsieve as rs
from rowsieve.cli.app import app
from rowsieve.errors import InvalidInput
from rowsieve.objects import open_store
from rowsieve.objects.storage_options import flat_options, secrets_of, split_options
from tests.stores.s3_server import S3, SECRET

ROWS = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]})


@pytest.fixture
def uri(s3: S3) -> str:
    """A table of three rows over http."""
    found = s3.fresh_uri()
    rs.create_table(found, ROWS, key=["id"], storage_options=s3.options)
    return found


def flat(s3: S3) -> dict[str, str]:
    return s3.options


def nested(s3: S3) -> dict[str, Any]:
    """The form that obstore has."""
    options: dict[str, Any] = dict(s3.options)
    return {**options, "client_options": {"allow_http": options.pop("allow_http") == "true"}}


def dotted(s3: S3) -> dict[str, str]:
    return {
        "client_options.allow_http" if name == "allow_http" else name: value
        for name, value in s3.options.items()
    }


def prefixed(s3: S3) -> dict[str, str]:
    return {f"AWS_{name.upper()}": value for name, value in s3.options.items()}


@pytest.mark.parametrize("form", [flat, nested, dotted, prefixed])
def test_every_form_of_the_options_opens_a_table(form: Any, s3: S3, uri: str) -> None:
    table = rs.open_table(uri, storage_options=form(s3))
    assert table.scan("id > 1").count() == 2
    split = table.scan().plan().splits_to_bytes()[0]
    assert rs.read_split(split, storage_options=form(s3)).read_all().num_rows == 3
    context = SessionContext()
    context.register_table("t", table)
    assert context.sql("SELECT v FROM t WHERE id = 2").to_pydict() == {"v": ["b"]}


def test_the_command_line_takes_the_flat_form(s3: S3, uri: str) -> None:
    options = [f"--storage-option={name}={value}" for name, value in s3.options.items()]
    result = CliRunner().invoke(app, ["inspect", uri, "--json", *options])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["version"] == 0
    wrong = [option.replace("secret_access_key", "secret_key") for option in options]
    result = CliRunner().invoke(app, ["inspect", uri, *wrong])
    assert result.exit_code != 0
    assert SECRET not in result.output + result.stderr


@pytest.mark.spark
def test_spark_reads_and_writes_over_http(spark: Any, s3: S3, uri: str) -> None:
    table = rs.open_table(uri, storage_options=nested(s3))
    frame = table.to_spark(spark, where="id > 1")
    assert sorted(row["v"] for row in frame.collect()) == ["b", "c"]
    options = {f"storage.{name}": value for name, value in flat_options(nested(s3)).items()}
    frame.select("id").write.format("rowsieve").options(**options, mode="delete").mode(
        "append"
    ).save(uri)
    read = spark.read.format("rowsieve").options(**options).load(uri)
    assert [row["id"] for row in read.collect()] == [1]
    for each in (frame, read):
        assert SECRET not in each._jdf.queryExecution().toString() + repr(each)
    with pytest.raises(Exception, match="no table at") as raised:
        spark.read.format("rowsieve").options(**options).load(f"{uri}-absent").collect()
    assert SECRET not in str(raised.value)


def test_options_of_every_type_become_text_and_mean_the_same() -> None:
    given: dict[str, Any] = {
        "region": "x",
        "virtual_hosted_style_request": False,
        "client_options": {
            "allow_http": True,
            "timeout": timedelta(seconds=1.5),
            "default_headers": {"Authorization": "Bearer HIDDEN"},
        },
    }
    flat = flat_options(given)
    assert flat == {
        "region": "x",
        "virtual_hosted_style_request": "false",
        "allow_http": "true",
        "timeout": "1500ms",
        "default_headers": '{"Authorization":"Bearer HIDDEN"}',
    }
    store, client = split_options(flat)
    assert store == {"region": "x", "virtual_hosted_style_request": "false"}
    assert client == {
        "allow_http": True,
        "timeout": "1500ms",
        "default_headers": {"Authorization": "Bearer HIDDEN"},
    }
    assert secrets_of(given) == ('{"Authorization":"Bearer HIDDEN"}', "Bearer HIDDEN")
    assert open_store("s3://bucket/t", flat).uri == open_store("s3://bucket/t", given).uri


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"client_options": "{'allow_http': True}"}, "among the other storage options"),
        ({"default_headers": "SECRET"}, "a mapping of text to text"),
        ({"client_options": {"no_such": "SECRET"}}, "no_such"),
        ({"aws_secret_access_key": "SECRET", "allow_http": "perhaps"}, "allow_http"),
    ],
)
def test_options_of_a_wrong_form_are_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as raised:
        open_store("s3://bucket/t", options)
    assert "SECRET" not in str(raised.value)
