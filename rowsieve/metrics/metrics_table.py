"""Counters as an HTML table, for notebooks."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any


class ShownAsTable:
    """A base of metrics: a notebook shows the counters that are not zero as a table."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """The counters as plain values."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        facts = {n: value for n, value in self.as_dict().items() if value and not _is_nested(value)}
        rows = "".join(
            f"<tr><th scope='row'>{html.escape(name)}</th><td>{html.escape(_text(value))}</td></tr>"
            for name, value in facts.items()
        )
        caption = f"<caption>{html.escape(type(self).__name__)}</caption>"
        empty = "<tr><td>all counters are zero</td></tr>"
        return f"<table>{caption}<tbody>{rows or empty}</tbody></table>"


def _is_nested(value: Any) -> bool:
    """Return whether this is a mapping of mappings, such as the values of flags."""
    return isinstance(value, Mapping) and all(isinstance(each, Mapping) for each in value.values())


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_text(each)}" for name, each in value.items())
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
