"""Format a condition for pasting: SQL text, or Python code that builds an engine's expression.

Soundness: Python code consists of the calls that built the expression of `translate`, with exact
values. A Spark column is `F.expr` of text with the same meaning in a Spark session; a DataFusion
expression is text that the filtered frame `df` parses.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rowsieve.bridges.languages import bridge_named
from rowsieve.bridges.native import is_predicate
from rowsieve.bridges.python_text import Recorded, recording, spelled
from rowsieve.bridges.session import Session
from rowsieve.bridges.translate import translate
from rowsieve.bridges.translation import Exactness
from rowsieve.predicate.codec import predicate_to_json

_SPARK: Final = "from pyspark.sql import functions as F"
# Bridges whose expressions an engine parses from text: the dialect, the call, its imports.
_PARSED: Final[Mapping[str, tuple[str, str, frozenset[str]]]] = {
    "spark_columns": ("spark", "F.expr", frozenset({_SPARK})),
    "datafusion_exprs": ("datafusion", "df.parse_sql_expr", frozenset()),
}


@dataclass(frozen=True, slots=True)
class Pasted:
    """The text, None if nothing could be translated, and the imports it needs.

    `exactness`, `residual` and `notes` are those of the translation.
    """

    text: str | None
    is_python: bool
    imports: tuple[str, ...]
    exactness: Exactness
    residual: Any
    notes: tuple[str, ...]


def pasted(
    condition: Any,
    source: str | None,
    *,
    target: str,
    schema: Any,
    session: Session | None = None,
    target_session: Session | None = None,
    strict: bool = False,
) -> Pasted:
    """Translate a condition, such as SQL text of the dialect `source`, to text in `target`."""
    aim = bridge_named(target)
    target, is_python = aim.name, not (aim.is_text or str in aim.named_forms)
    with recording():
        translation = translate(
            condition,
            source,
            target=_PARSED[target][0] if target in _PARSED else target,
            schema=schema,
            session=session,
            target_session=target_session,
            strict=strict,
        )
    text, imports = translation.expression, frozenset[str]()
    if is_python and text is not None:
        text, imports = _parsed(text, target) if target in _PARSED else _python(text)
    return Pasted(
        text,
        is_python,
        tuple(sorted(imports)),
        translation.exactness,
        translation.residual,
        translation.notes,
    )


def _parsed(text: str, target: str) -> tuple[str, frozenset[str]]:
    _, call, imports = _PARSED[target]
    return f"{call}({text!r})", imports


def _python(expression: Any) -> tuple[str, frozenset[str]]:
    if isinstance(expression, Recorded):
        return expression.text, expression.imports
    if isinstance(expression, bytes):
        encoded = base64.b64encode(expression).decode()
        return f'base64.b64decode("{encoded}")', frozenset({"import base64"})
    if is_predicate(expression):
        form = json.dumps(predicate_to_json(expression))
        imports = {"import json", "from rowsieve.predicate import predicate_from_json"}
        return f"predicate_from_json(json.loads({form!r}))", frozenset(imports)
    return spelled(expression)
