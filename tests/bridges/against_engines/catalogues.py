"""Names of the functions that an engine has by its own catalogue."""

from __future__ import annotations

import re

from tests.bridges.against_engines import python_expressions
from tests.bridges.against_engines.engines import ENGINES
from tests.bridges.against_engines.judges import SESSIONS
from tests.bridges.sql.postgres import function_names
from tests.duckdb_sessions import duckdb_session

_PLAIN = re.compile(r"[a-z][a-z0-9_]*")
# They change the session, wait, or differ each time.
_LEFT_OUT = re.compile(
    r"(pg_|nextval|setval|lo_|random|setseed|uuid|gen_|now|current|clock|today|sleep|txid|query|"
    r"getvariable|version|error|dblink|inet|binary_upgrade|in_search|statement|transaction|age|"
    r"cluster|database|schema|user|session|timeofday|write|read_|rand)"
)


def names_of(engine: str) -> list[str]:
    """Return the names of the scalar functions of an engine, in order."""
    dialect = ENGINES[engine].dialect
    if not ENGINES[engine].is_sql:
        return python_expressions.names_of(dialect)
    if dialect == "duckdb":
        query = (
            "SELECT DISTINCT function_name FROM duckdb_functions() "
            "WHERE function_type IN ('scalar', 'macro')"
        )
        found = {name for (name,) in duckdb_session().execute(query).fetchall()}
    elif dialect == "datafusion":
        import datafusion

        config = datafusion.SessionConfig().with_information_schema(enabled=True)
        context = datafusion.SessionContext(config)
        query = (
            "SELECT DISTINCT routine_name FROM information_schema.routines "
            "WHERE function_type = 'SCALAR'"
        )
        found = set(context.sql(query).to_arrow_table()["routine_name"].to_pylist())
    elif dialect == "spark":
        (session,) = SESSIONS
        found = {row.name for row in session.catalog.listFunctions()}
    else:
        found = function_names()
    return sorted(n for n in found if _PLAIN.fullmatch(n) and not _LEFT_OUT.match(n))
