"""A process whose Spark driver is killed in a commit: its Python and its JVM, by SIGKILL.

    python -m tests.providers.spark.spark_killed_driver URI MOMENT

MOMENT is `before` or `after` the commit. It writes ids 0 to 99, with the token ("app", 1).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql.datasource import DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from rowsieve.providers.spark.source import RowsieveSource
from rowsieve.providers.spark.source_options import WriteOptions
from rowsieve.providers.spark.writes.write_tasks import RowsieveWriter

TOKEN = {"token_app": "app", "token_sequence": "1"}
ROWS = "SELECT id, id * 2 AS n FROM range(100)"


class KillingWriter(RowsieveWriter):
    """Kills the driver before or after it commits."""

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self._job.metadata["moment"] == "after":
            super().commit(messages)
        kill_driver()


class KillingSource(RowsieveSource):
    """The source whose option `metadata.moment` says when the driver dies."""

    @classmethod
    def name(cls) -> str:
        return "rowsieve_killing"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return KillingWriter.begin(WriteOptions.parse(self.options), schema, overwrite=overwrite)


def kill_driver() -> None:
    """Kill the JVM above this worker, the driver's Python above that, and this worker."""
    process, above = os.getppid(), []
    while process > 1:
        above.append(process)
        if (Path(f"/proc/{process}/cmdline").read_bytes()).find(b"spark_killed_driver\0") >= 0:
            break  # the driver's Python: what is above it runs the test
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    for process in [*reversed(above), os.getpid()]:
        os.kill(process, signal.SIGKILL)


def main(uri: str, moment: str) -> None:
    from rowsieve.providers.spark.jvm.java import spark_session

    conf = {
        "spark.log.level": "OFF",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    spark = spark_session("rowsieve killed driver", conf)
    spark.dataSource.register(KillingSource)
    options = {"mode": "upsert", "metadata.moment": moment, **TOKEN}
    rows = spark.sql(ROWS).repartition(2)
    rows.write.format("rowsieve_killing").mode("append").options(**options).save(uri)


if __name__ == "__main__":
    main(*sys.argv[1:])
