"""Convert text from one dialect's syntax to another's, without a promise about its rows.

For dialects that sqlglot supports but that are not verified here, and for conditions whose columns
have no known types.

Soundness: the exactness is UNSUPPORTED and the residual is the original, whatever the text. The
caller must ask for it by name, so the result is not mistaken for a filter.
"""

from __future__ import annotations

from rowsieve.bridges.sql import parse_predicate, to_sql
from rowsieve.bridges.sql.dialects import DIALECTS, dialect_named
from rowsieve.bridges.translation import Exactness, Translation
from rowsieve.errors import InvalidInput, InvalidPredicate, UnsupportedOperation

_NOTE = "syntax only: nothing is known of the rows that the text keeps there"
_BETWEEN = "postgres"  # intermediate syntax for a dialect without a table of ours


def in_syntax(text: str, source: str, target: str) -> Translation[str, str]:
    """Convert the condition to another dialect; both may be any dialect of sqlglot."""
    if not isinstance(text, str):
        raise InvalidInput(f"a change of syntax is of SQL text, not of {type(text).__name__}")
    plain, dialect = (text, source) if source in DIALECTS else (_via(text, source), _BETWEEN)
    tree = parse_predicate(plain, dialect)
    if target in DIALECTS:
        written = to_sql(tree, target)
    else:
        written = _via(to_sql(tree, _BETWEEN), _BETWEEN, target)
    return Translation(written, Exactness.UNSUPPORTED, text, (_NOTE,))


def _via(text: str, source: str, target: str = _BETWEEN) -> str:
    import sqlglot  # noqa: PLC0415 - it takes 0.1 s to import
    from sqlglot.dialects.dialect import Dialect as Grammar  # noqa: PLC0415

    from rowsieve.bridges.sql.grammars import damage_as_parse_error  # noqa: PLC0415

    names = [
        name if name not in DIALECTS else dialect_named(name).grammar for name in (source, target)
    ]
    for name in names:
        if Grammar.get(name) is None:
            known = ", ".join(sorted(name for name in Grammar.classes if name))
            raise InvalidInput(f"there is no SQL dialect {name!r}; sqlglot knows {known}")
    level = sqlglot.ErrorLevel.RAISE
    try:
        with damage_as_parse_error():
            node = sqlglot.parse_one(text, read=names[0])
            return str(node.sql(dialect=names[1], unsupported_level=level))
    except (sqlglot.ParseError, sqlglot.TokenError) as error:
        raise InvalidPredicate(f"cannot read the filter as {source} SQL: {error}") from error
    except sqlglot.UnsupportedError as error:
        raise UnsupportedOperation(f"{target} SQL has no equivalent: {error}") from error
