"""Names that keep apart what belongs to different queries and namespaces, broken."""

from __future__ import annotations

from tests.mutants.workshop import Mutant

SINK = "providers/spark/writes/stream_sink.py"
STATE, TABLES = "catalog/catalog_log.py", "catalog/named_tables.py"
_NAMESPACES = ("tests/catalog/test_namespaces.py",)
SUITES = {
    SINK: ("tests/providers/spark/test_spark_stream_batches.py",),
    STATE: _NAMESPACES,
    TABLES: _NAMESPACES,
}

MUTANTS = (
    Mutant(
        SINK,
        "the token of a batch lacks its query",
        'token = (f"{_APPLICATION}{written[0].query_id}", batchId)',
        "token = (_APPLICATION, batchId)",
    ),
    Mutant(
        STATE,
        "a dropped namespace stays dropped where a table gets a name",
        "if there or name not in back",
        "if there or name",
    ),
    Mutant(
        TABLES,
        "a dropped namespace stays dropped where a table is created in its folder",
        "            or not now.is_dropped(name.namespace)\n",
        "            or True\n",
    ),
)
