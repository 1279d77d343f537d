"""Changed columns and odd names under random settings of the session: each route has the same rows.

The rows of memory, in the same session, are the oracle. The conditions fail on no row: whether
Spark evaluates a condition that fails depends on its plan.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.providers.spark import read, sql
from tests.profiles import IS_DEEP
from tests.providers.spark.test_spark_hybrid import QUERIES, evolved, rows_of

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not IS_DEEP, reason="a new session of Spark's for each case"),
]
ROUNDS = int(os.environ.get("ROWSIEVE_ROUNDS", "40"))
BOTH = ["true", "false"]
SETTINGS = {
    "spark.sql.adaptive.enabled": BOTH,
    "spark.sql.ansi.enabled": BOTH,
    "spark.sql.autoBroadcastJoinThreshold": ["-1", "1"],
    "spark.sql.codegen.wholeStage": BOTH,
    "spark.sql.columnVector.offheap.enabled": BOTH,
    "spark.sql.constraintPropagation.enabled": BOTH,
    "spark.sql.datetime.java8API.enabled": BOTH,
    "spark.sql.decimalOperations.allowPrecisionLoss": BOTH,
    "spark.sql.execution.arrow.maxRecordsPerBatch": ["1", "3"],
    "spark.sql.execution.arrow.useLargeVarTypes": BOTH,
    "spark.sql.files.ignoreCorruptFiles": BOTH,
    "spark.sql.files.ignoreMissingFiles": BOTH,
    "spark.sql.files.ignoredPathSegmentRegex": [".*", ".*parquet"],
    "spark.sql.files.maxPartitionBytes": ["500", "4000"],
    "spark.sql.legacy.timeParserPolicy": ["LEGACY", "EXCEPTION"],
    "spark.sql.optimizer.excludedRules": [
        f"org.apache.spark.sql.catalyst.optimizer.{rule}"
        for rule in ("CombineUnions", "PushDownPredicates", "ColumnPruning", "PruneFilters")
    ],
    "spark.sql.optimizer.expression.nestedPruning.enabled": BOTH,
    "spark.sql.optimizer.inSetConversionThreshold": ["0", "100"],
    "spark.sql.optimizer.nestedSchemaPruning.enabled": BOTH,
    "spark.sql.parquet.aggregatePushdown": BOTH,
    "spark.sql.parquet.binaryAsString": BOTH,
    "spark.sql.parquet.columnarReaderBatchSize": ["1", "7"],
    "spark.sql.parquet.datetimeRebaseModeInRead": ["LEGACY", "EXCEPTION"],
    "spark.sql.parquet.enableNestedColumnVectorizedReader": BOTH,
    "spark.sql.parquet.enableVectorizedReader": BOTH,
    "spark.sql.parquet.fieldId.read.enabled": BOTH,
    "spark.sql.parquet.fieldId.read.ignoreMissing": BOTH,
    "spark.sql.parquet.filterPushdown": BOTH,
    "spark.sql.parquet.inferTimestampNTZ.enabled": BOTH,
    "spark.sql.parquet.int96TimestampConversion": BOTH,
    "spark.sql.parquet.mergeSchema": BOTH,
    "spark.sql.parquet.pushdown.inFilterThreshold": ["0", "1"],
    "spark.sql.parquet.recordLevelFilter.enabled": BOTH,
    "spark.sql.session.timeZone": ["America/Sao_Paulo", "Asia/Kathmandu", "-18:00", "UTC"],
    "spark.sql.sources.useV1SourceList": ["", "csv"],
    "spark.sql.timestampType": ["TIMESTAMP_NTZ", "TIMESTAMP_LTZ"],
}
ODD_NAMES = ["id", "a", "A", "a.b", "x`y", "é", "É", "\u212a", "select", " "]
ODD = [
    "SELECT * FROM t",
    "SELECT a, count(*) FROM t WHERE A < 3 GROUP BY a",
    "SELECT id FROM t WHERE `a.b` = 2 OR `x``y` IN (1, 3)",
    "SELECT `é` FROM t WHERE `É` > 1 AND `É` <=> `a.b`",
    "SELECT `\u212a`, `select` FROM t WHERE `\u212a` IS NOT NULL AND ` ` < 4",
    "SELECT x.id FROM t x JOIN t y ON x.a = y.A WHERE y.id < 9",
]


def odd(folder: str) -> rs.Table:
    """Columns whose names differ in case alone, or have characters of SQL; some rows are hidden."""
    columns = {
        name: pa.array([(i * (place + 3)) % 7 or None for i in range(30)], pa.int64())
        for place, name in enumerate(ODD_NAMES)
    }
    rows = pa.table({**columns, "id": pa.array(range(30), pa.int64())})
    table = rs.create_table(folder, rows.slice(0, 20), key=["id"])
    table.upsert(rows.slice(20))
    table.upsert(rows.slice(3, 4))
    return table


def shown(frame: Any) -> Counter[str]:
    """The rows as text; of 0.0 and -0.0 an aggregate returns either."""
    return Counter(row.replace("-0.0", "0.0") for row in rows_of(frame).elements())


def test_each_route_has_the_rows_of_memory_in_any_session(spark: Any, tmp_path: Path) -> None:
    chance = random.Random()
    tables = [
        (evolved(str(tmp_path / "evolved")), QUERIES, {}),
        (odd(str(tmp_path / "odd")), ODD, {"spark.sql.caseSensitive": "true"}),
    ]
    for _ in range(ROUNDS):
        table, queries, fixed = chance.choice(tables)
        names = chance.sample(sorted(SETTINGS), chance.choice([1, 3, 8, 16]))
        settings = {name: chance.choice(SETTINGS[name]) for name in names} | fixed
        session = spark.newSession()
        for name, value in settings.items():
            session.conf.set(name, value)
        types = spark_schema(table.handle.pinned.schema)
        memory = session.createDataFrame(table.to_arrow(), types)
        frames = {
            "any": table.to_spark(session),
            "bitmap": read(session, table.uri, routes=["bitmap", "source"]),
            "native": read(session, table.uri, routes=["native", "source"]),
        }
        for query in chance.sample(queries, 4):
            memory.createOrReplaceTempView("t")
            wanted = shown(session.sql(query))
            for route, frame in frames.items():
                frame.createOrReplaceTempView("t")
                found = shown(sql(session, query) if route == "any" else session.sql(query))
                assert found == wanted, (route, query, settings)
