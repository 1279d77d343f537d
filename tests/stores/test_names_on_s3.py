"""Tables whose names need encoding, side by side on an S3 server."""

from __future__ import annotations

from urllib.parse import quote

import pyarrow as pa

import rowsieve as rs
from rowsieve.errors import InvalidInput
from tests.odd_names import ODD_NAMES, PAIRS
from tests.profiles import IS_DEEP
from tests.stores.s3_server import S3

NAMES = ODD_NAMES if IS_DEEP else tuple(dict.fromkeys(name for pair in PAIRS for name in pair))[:12]


def test_odd_names_side_by_side_find_their_own_table(s3: S3) -> None:
    folder = s3.fresh_uri()
    made: dict[str, rs.Table] = {}
    for number, name in enumerate(NAMES):
        uri = f"{folder}/{quote(name, safe='')}"
        rows = pa.table({"id": [1], "n": [number]})
        try:
            made[uri] = rs.create_table(uri, rows, key=["id"], storage_options=s3.options)
        except InvalidInput:
            continue  # a name that no object may have
    assert len(made) > len(NAMES) // 2
    assert len({table.uri for table in made.values()}) == len(made)
    for uri, table in made.items():
        expected = table.scan().to_arrow()["n"].to_pylist()
        for spelt in (uri, table.uri):
            found = rs.open_table(spelt, storage_options=s3.options)
            assert found.uri == table.uri
            assert found.scan().to_arrow()["n"].to_pylist() == expected
        (split,) = table.scan().plan().splits_to_bytes()
        read = rs.read_split(split, storage_options=s3.options).read_all()
        assert read["n"].to_pylist() == expected
    numbers = [table.scan().to_arrow()["n"].to_pylist() for table in made.values()]
    assert len({tuple(number) for number in numbers}) == len(made)
