"""Text from one dialect's syntax to another's, of which nothing is promised but that it is said so.

For dialects that sqlglot knows and nobody has proved here, and for conditions whose columns have no
known types. Soundness: the exactness is UNSUPPORTED and the residual is the original, whatever the
text looks like; it is asked for by name, so that nobody takes it for a filter.
"""

from __future__ import annotations

from rowsieve.bridges.sql import parse_predicate, to_sql
from rowsieve.bridges.sql.dialects import DIALECTS, dialect_named
from rowsieve.bridges.translation import Exactness, Translation
from rowsieve.errors import InvalidInput, InvalidPredicate, UnsupportedOperation

_NOTE = "syntax only: nothing is known of the rows that the text keeps there"
_BETWEEN = "postgres"  # the form that a dialect without a table of ours goes through


def in_syntax(text: str, source: str, target: str) -> Translation[str, str]:
    """The condition in the words of another dialect; either may be any that sqlglot knows."""
    if not isinstance(text, str):
        raise InvalidInput(f"a change of syntax is of SQL text, not of {type(text).__name__}")
    plain, dialect = (text, source) if source in DIALECTS else (_via(text, source), _BETWEEN)
    tree = parse_predicate(plain, dialect)
    if target in DIALECTS:
        made = to_sql(tree, target)
    else:
        made = _via(to_sql(tree, _BETWEEN), _BETWEEN, target)
    return Translation(made, Exactness.UNSUPPORTED, text, (_NOTE,))


def _via(text: str, source: str, target: str = _BETWEEN) -> str:
    import sqlglot  # noqa: PLC0415 - it takes 0.1 s to import
    from sqlglot.dialects.dialect import Dialect as Grammar  # noqa: PLC0415

    names = [
        name if name not in DIALECTS else dialect_named(name).grammar for name in (source, target)
    ]
    for name in names:
        if Grammar.get(name) is None:
            known = ", ".join(sorted(name for name in Grammar.classes if name))
            raise InvalidInput(f"no SQL dialect is called {name!r}; sqlglot knows {known}")
    level = sqlglot.ErrorLevel.RAISE
    try:
        node = sqlglot.parse_one(text, read=names[0])
        return str(node.sql(dialect=names[1], unsupported_level=level))
    except sqlglot.ParseError as error:
        raise InvalidPredicate(f"cannot read the filter as {source} SQL: {error}") from error
    except sqlglot.UnsupportedError as error:
        raise UnsupportedOperation(f"{target} SQL has no such thing: {error}") from error
