"""Odd names as keys of S3: what a URI decodes to is the key, by the letter, and only once."""

from __future__ import annotations

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput
from rowsieve.objects import Location, open_store
from tests.odd_names import ODD_NAMES
from tests.profiles import IS_DEEP
from tests.stores.s3_server import BUCKET, S3

HANDFUL = ("a b", "a%20b", "a%2520b", "a?b", "a#b", "a+b", "é", "e\u0301", "{a}*[b]", "..x", "s3:x")
LEGAL = tuple(name for name in ODD_NAMES if not any(ord(c) < 32 or ord(c) == 127 for c in name))


def test_odd_names_side_by_side_are_keys_by_the_letter(s3: S3) -> None:
    folder = s3.fresh_uri()
    root = Location.parse(folder).path
    numbered = list(enumerate(LEGAL if IS_DEEP else HANDFUL))
    for number, name in numbered:
        uri = Location("s3", BUCKET, f"{root}/{name}").uri
        rows = pa.table({"id": [1], "n": [number]})
        table = rs.create_table(uri, rows, key=["id"], storage_options=s3.options)
        assert table.uri == uri
    for number, name in numbered:
        uri = Location("s3", BUCKET, f"{root}/{name}").uri
        table = rs.open_table(uri, storage_options=s3.options)
        assert table.scan().to_arrow().column("n").to_pylist() == [number]
        (split,) = table.scan().plan().splits_to_bytes()
        read = rs.read_split(split, storage_options=s3.options).read_all()
        assert read.column("n").to_pylist() == [number]
        assert table.delete("TRUE").rows_deleted == 1
    listed = open_store(folder, s3.options).children()
    assert listed == sorted(name for _, name in numbered)


def test_a_key_with_a_control_character_is_refused_before_any_request() -> None:
    with pytest.raises(InvalidInput, match="control character"):
        rs.create_table(f"s3://{BUCKET}/a%0Ab", pa.schema({"id": pa.int64()}))
