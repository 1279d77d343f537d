"""Options of statistics: how properties are read, and which are refused."""

from __future__ import annotations

import pytest

from rowsieve.errors import InvalidInput
from rowsieve.stats.selection import statistics_options
from rowsieve.types.logical import Field, Int, Json, String
from rowsieve.types.schema import Schema

SCHEMA = Schema(
    0,
    (
        Field(1, "id", Int(), nullable=False),
        Field(2, "code", String()),
        Field(3, "payload", Json()),
        Field(4, "a.b", Json()),
    ),
)


def test_named_columns_are_collected() -> None:
    found = statistics_options(
        {
            "text_statistics": "code",
            "json_statistics": ' payload.user.id , payload."odd, key", "a.b"',
        },
        SCHEMA,
    )
    assert found.enabled
    assert found.text == {2}
    assert found.json == {3: (("user", "id"), ("odd, key",)), 4: ((),)}


def test_defaults_request_nothing() -> None:
    found = statistics_options({}, SCHEMA)
    assert (found.enabled, found.text, found.json) == (True, frozenset(), {})
    assert not statistics_options({"statistics": "off"}, SCHEMA).enabled


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"statistics": "yes"}, "'on' or 'off'"),
        ({"text_statistics": "nowhere"}, "which is not a column; the columns are id, code"),
        ({"text_statistics": "id"}, "'id' of type int64; it accepts text columns only"),
        ({"text_statistics": "code.x"}, "name whole columns only"),
        ({"json_statistics": "code"}, "of type string; it accepts JSON columns only"),
        ({"json_statistics": 'payload."a""b"'}, "names the key 'a\"b'"),
        ({"json_statistics": "payload..x"}, "no name at character 9"),
        ({"json_statistics": "payload,"}, "no name at character 9"),
        ({"json_statistics": "payload x"}, "lacks a comma or a dot at character 9"),
        ({"json_statistics": 'payload."x'}, "no name at character 9"),
    ],
)
def test_a_name_that_fits_no_column_is_refused(properties: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        statistics_options(properties, SCHEMA)
