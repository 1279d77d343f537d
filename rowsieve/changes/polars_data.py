"""Polars hands over Python objects as their addresses: a column of them is refused."""

from __future__ import annotations

import sys
from typing import Any

from rowsieve.errors import InvalidData


def refuse_polars_objects(data: Any, what: str) -> None:
    """InvalidData for a DataFrame or Series with objects, at any depth; Polars is not imported."""
    polars = sys.modules.get("polars")
    if polars is None:
        return
    if isinstance(data, polars.DataFrame):
        types = {f"{what}: column {name!r}": type_ for name, type_ in data.schema.items()}
    elif isinstance(data, polars.Series):
        types = {what: data.dtype}
    else:
        return
    for place, type_ in types.items():
        if _has_objects(type_, polars.Object):
            raise InvalidData(
                f"{place} holds Python objects ({type_}); cast it to a type of Arrow or drop it"
            )


def _has_objects(type_: Any, object_type: Any) -> bool:
    inner = [field.dtype for field in getattr(type_, "fields", ())]
    if hasattr(type_, "inner"):
        inner.append(type_.inner)
    return bool(type_ == object_type) or any(_has_objects(part, object_type) for part in inner)
