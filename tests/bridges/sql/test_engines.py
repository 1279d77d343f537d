"""What is written means the same to the engines: the same values, the same matches."""

from __future__ import annotations

import datetime
import decimal
import math
import re
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.sql import to_sql
from rowsieve.bridges.sql.dialects import DIALECTS
from rowsieve.predicate.ir import Like, Literal
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Date, Json, LogicalType, Time, Timestamp, Uuid
from tests.bridges.sql.postgres import postgres_value
from tests.bridges.sql.trees import Trees, values
from tests.profiles import examples

Ask = Callable[[str], pa.ChunkedArray]


def _duckdb() -> Ask:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return lambda text: connection.sql(f"SELECT {text} AS x").to_arrow_table().column(0)


def _datafusion() -> Ask:
    import datafusion

    context = datafusion.SessionContext()
    return lambda text: pa.chunked_array(
        [batch.column(0) for batch in context.sql(f"SELECT {text} AS x").collect()]
    )


def _postgres() -> Ask:
    return lambda text: pa.chunked_array([_as_array(postgres_value(text))])


def _as_array(value: Any) -> pa.Array:
    if isinstance(value, uuid.UUID):
        return pa.array([value.bytes])
    if isinstance(value, datetime.datetime) and value.tzinfo:
        return pa.array([value], pa.timestamp("us", "UTC"))
    if isinstance(value, decimal.Decimal) and abs(value.adjusted()) > 37:
        value = float(value)  # 1e76 is a decimal there
    return pa.array([value])


ENGINES = {"duckdb": _duckdb, "datafusion": _datafusion, "postgres": _postgres}


def _as_stored(found: Any, type_: LogicalType) -> Any:
    """An engine's value as a physical one: instants and other widths of text come back."""
    storage = arrow_type(type_)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    if isinstance(found.type, pa.BaseExtensionType):
        found = found.storage
    if isinstance(type_, Uuid) and pa.types.is_string(found.type):
        return bytes.fromhex(found[0].as_py().replace("-", ""))
    if pa.types.is_integer(found.type) and pa.types.is_decimal(storage):
        found = found.cast(pa.decimal128(38, 0))
    stored = found.cast(storage)
    if isinstance(type_, Date):
        stored = stored.cast(pa.int32())
    elif isinstance(type_, Time | Timestamp):
        stored = stored.cast(pa.int64())
    return stored[0].as_py()


# DataFusion holds times in nanoseconds, which end in 1677 and 2262.
def _fits(engine: str, literal: Literal) -> bool:
    far = isinstance(literal.type, Timestamp) and engine == "datafusion"
    return not far or abs(int(str(literal.value or 0))) < 9_000_000_000_000_000


@pytest.mark.parametrize("engine", ENGINES)
@examples(80)
@given(data=st.data())
def test_a_literal_is_the_same_value_to_the_engine(engine: str, data: st.DataObject) -> None:
    types = [type_ for type_ in Trees(DIALECTS[engine]).types if not isinstance(type_, Json)]
    type_ = data.draw(st.sampled_from(types))
    literal = Literal(data.draw(values(type_)), type_)
    if not _fits(engine, literal):
        return
    if engine == "postgres" and type_ in DIALECTS[engine].borrowed:
        return  # it has no such type
    found = _as_stored(_ask(engine)(to_sql(literal, engine)), type_)
    assert Literal(_unsigned(found), type_) == Literal(_unsigned(literal.value), type_)


def _unsigned(value: Any) -> Any:
    """NaN is written without its sign: conditions that the sign decides are not translated."""
    return math.nan if isinstance(value, float) and math.isnan(value) else value


@pytest.mark.parametrize("engine", ENGINES)
@examples(80)
@given(data=st.data())
def test_a_pattern_matches_the_same_to_the_engine(engine: str, data: st.DataObject) -> None:
    text = data.draw(st.text(st.sampled_from("ab%_\\!'\né"), max_size=4))
    like = data.draw(Trees(DIALECTS[engine]).likes(st.just(Literal(text))))
    found = _ask(engine)(to_sql(like, engine))[0].as_py()
    assert found is _matches(text, like)


_asked: dict[str, Ask] = {}


def _ask(engine: str) -> Ask:
    if engine not in _asked:
        _asked[engine] = ENGINES[engine]()
    return _asked[engine]


def _matches(text: str, like: Like) -> bool:
    pieces: list[str] = []
    characters = iter(like.pattern)
    for character in characters:
        if character == like.escape:
            pieces.append(re.escape(next(characters)))
        else:
            pieces.append({"%": ".*", "_": "."}.get(character, re.escape(character)))
    flags = re.DOTALL | (re.IGNORECASE if like.ignore_case else 0)
    return re.fullmatch("".join(pieces), text, flags) is not None
