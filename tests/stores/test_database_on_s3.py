"""A database whose tables are on S3: commits, transactions, refs and what two processes do."""

from __future__ import annotations

import pytest

import rowsieve as rs
from rowsieve.errors import CommitConflict
from tests.small_tables import kv, pairs
from tests.stores.s3_server import S3


def test_a_database_is_on_s3(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    uri = s3.fresh_uri()
    database = rs.Database(uri)
    for name in ("a", "shop.b"):
        database.create_table(name, kv((1, 10)), ["k"], properties={"inline_bytes": 16_384})
    other = rs.Database(uri, storage_options=s3.options)
    with database.transaction() as tx:
        tx.sql("UPDATE a SET v = v + 1")
        tx.table("shop.b").upsert(kv(*((k, k) for k in range(3_000))))
    assert other.version == database.version == 3
    assert pairs(other.open_table("a")) == [(1, 11)]
    assert other.open_table("shop.b").count() == 3_000
    late = other.transaction()
    assert late.table("a").count("v = 11") == 1
    late.table("shop.b").upsert(kv((1, -1)))
    database.open_table("a").upsert(kv((1, 12)))
    with pytest.raises(CommitConflict):
        late.commit()
    database.tag("q3")
    other.open_table("shop.b").delete("k > 5")
    assert pairs(rs.open_table(other.open_table("a").uri)) == [(1, 12)]
    assert database.open_table("shop.b", ref="q3").count() == 3_000
    for name in database.tables():
        database.open_table(name).maintain(retain_last=1, grace_s=0)
    database.vacuum(retain_s=0)
    assert other.open_table("shop.b").count() == 6
    assert other.open_table("shop.b", ref="q3").count() == 3_000
