"""Runs SQL over a catalog in a session of its own, and provides catalogs to other sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from rowsieve.bridges.extras import imported
from rowsieve.errors import RowsieveError
from rowsieve.providers.datafusion.catalog_tables import CATALOG, provider_class
from rowsieve.statements.statement_parameters import bound_statement
from rowsieve.statements.versions import with_named_versions


def catalog_provider(catalog: Any) -> Any:
    """Return a provider of all tables of a `Catalog`, for `register_catalog_provider`."""
    return provider_class()(catalog)


def query(
    catalog: Any,
    statement: str,
    *,
    params: Mapping[str, Any] | None = None,
    changes: bool = False,
    creates: bool = False,
) -> pa.Table:
    """Run a SELECT over the versions that it names; without one, over the newest.

    `params` are bound to its parameters. `changes`: also a statement that changes rows. `creates`:
    the statement is CREATE TABLE … AS, for which DataFusion plans the query alone.
    """
    text, values = bound_statement(statement, params)
    datafusion = imported("datafusion", "datafusion")
    from rowsieve.providers.datafusion.sql_session import SessionContext  # noqa: PLC0415 - as an extra

    config = datafusion.SessionConfig().with_create_default_catalog_and_schema(enabled=False)
    config = config.with_default_catalog_and_schema(CATALOG, "default")
    context = SessionContext(config)
    context.register_catalog_provider(CATALOG, provider_class()(catalog, any_namespace=True))
    (provider,) = context.own_catalogs()
    allowed = datafusion.SQLOptions().with_allow_ddl(allow=False)
    allowed = allowed.with_allow_dml(allow=changes).with_allow_statements(allow=False)
    try:
        options = None if creates else allowed
        return context.sql(with_named_versions(text), options, values).to_arrow_table()
    except RowsieveError:
        raise
    except Exception as error:
        raise provider.own_error(error) from error
