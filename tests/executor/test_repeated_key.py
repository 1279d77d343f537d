from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.executor.merging.merge import repeated_key
from rowsieve.executor.merging.windows import Numbered, Stream
from rowsieve.types.logical import Field, Float, Int
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema
from tests.profiles import examples

ORDER = KeyOrder.of(Schema(0, (Field(1, "x", Float()), Field(2, "y", Int()))), ["x", "y"])
Keys = list[tuple[float, int]]
KEYS = st.tuples(st.sampled_from([-1.0, 0.0, 2.5]), st.integers(0, 30))


def stream(keys: Keys, batch_rows: int) -> Stream:
    def batches() -> Iterator[Numbered]:
        for start in range(0, len(keys), batch_rows):
            some = keys[start : start + batch_rows]
            columns = {"x": pa.array([x for x, _ in some]), "y": pa.array([y for _, y in some])}
            yield start, pa.record_batch(columns)

    return Stream(batches(), deletes=False)


@examples(200)
@given(st.lists(st.lists(KEYS, unique=True).map(sorted), max_size=5), st.integers(1, 4))
def test_a_key_in_two_streams_is_found(keys: list[Keys], batch_rows: int) -> None:
    counts = Counter(key for of_stream in keys for key in of_stream)
    found = repeated_key([stream(each, batch_rows) for each in keys], ORDER)
    if max(counts.values(), default=0) <= 1:
        assert found is None
    else:
        assert found is not None
        assert counts[found["x"], found["y"]] > 1  # type: ignore[index]
