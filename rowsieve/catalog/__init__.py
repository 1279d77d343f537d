"""Catalogs: the tables under one URI by name, and the statements that name them."""

from rowsieve.catalog.named_tables import Catalog

__all__ = ["Catalog"]
