"""Integrates our tables into DataFusion: reads, the change feed, and SQL that changes tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowsieve.bridges.extras import imported

if TYPE_CHECKING:
    from rowsieve.providers.datafusion.sql_session import SessionContext

__all__ = ["SessionContext"]


def __getattr__(name: str) -> Any:
    """Import the context at its first use; MissingExtra without DataFusion."""
    if name != "SessionContext":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    imported("datafusion", "datafusion")
    from rowsieve.providers.datafusion.sql_session import SessionContext  # noqa: PLC0415 - as an extra

    return SessionContext
