"""Reject Polars columns of Python objects: Polars exports the objects' addresses."""

from __future__ import annotations

import sys
from typing import Any

from rowsieve.errors import InvalidData


def refuse_polars_objects(data: Any, what: str) -> None:
    """Raise InvalidData for a DataFrame or Series with objects, at any depth.

    Does not import Polars.
    """
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
                f"{place} holds Python objects ({type_}); cast it to an Arrow type or drop it"
            )


def _has_objects(type_: Any, object_type: Any) -> bool:
    inner = [field.dtype for field in getattr(type_, "fields", ())]
    if hasattr(type_, "inner"):
        inner.append(type_.inner)
    return bool(type_ == object_type) or any(_has_objects(part, object_type) for part in inner)
