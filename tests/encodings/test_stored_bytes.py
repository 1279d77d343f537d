"""Files whose two forms differ, though a codec of ours wrote them: a shadow read finds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowsieve.encodings import message_pack
from tests.encodings.tables_with_codecs import create, lying_in


@pytest.mark.parametrize("key", [True, False])
def test_bytes_of_our_codec_that_differ_are_the_answer(
    tmp_path: Path, key: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: Any = pa.table({"id": range(9), "n": range(9), "s": ["x"] * 9})
    encode = message_pack.encode
    with monkeypatch.context() as patch:
        planted = lying_in({3: "y"}, "s")
        patch.setattr(message_pack, "encode", lambda batch: _once(encode, planted, batch))
        table = create(tmp_path / "t", rows, key=key, write_encoding="both")
    scan = table.scan(read_encoding="shadow")
    answer = {row["n"]: row["s"] for row in scan.to_arrow().to_pylist()}
    assert answer == {**dict.fromkeys(range(9), "x"), 3: "y"}
    assert (scan.metrics.rows_shadowed, scan.metrics.encoding_differences) == (9, 1)
    assert {row["s"] for row in table.to_arrow().to_pylist()} == {"x"}


def _once(encode: Any, planted: Any, batch: pa.RecordBatch) -> pa.Array:
    """Encode by `planted`, which calls the encoder itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_pack, "encode", encode)
        return planted(batch)
