"""Reads the name and the arguments of a call of a procedure, with a grammar of sqlglot.

It is Trino's, or that of a dialect whose texts may have double quotes, as Spark's. Separate from
`calls`, which recognises statements: sqlglot takes 0.2 s to import.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as Grammar
from sqlglot.tokenizer_core import Token

from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.bridges.sql.grammars import damage_as_parse_error
from rowsieve.errors import InvalidInput
from rowsieve.statements.call_values import Argument, TimeLiteral

_GRAMMAR: Final = "trino"
_TIMES: Final = exp.DataType.TEMPORAL_TYPES


def read_call(
    text: str, dialect: str
) -> tuple[str, Sequence[Argument], Mapping[str, Argument], str | None]:
    """Read `[catalog.][system.]name(…)`: name, arguments by position and by name, catalog."""
    node, catalog = _parsed(text, dialect), None
    if isinstance(node, exp.Dot):  # [catalog.][system.]name(…)
        first, node = node.parts[0], node.parts[-1]
        if first is not node and first.name.lower() != "system":
            catalog = first.name
    if not isinstance(node, exp.Anonymous):
        raise InvalidInput(
            f"CALL {_shown(text)}: name a procedure and its arguments, as in "
            "CALL system.rewrite_data_files('db', 'table')"
        )
    positional: list[Argument] = []
    named: dict[str, Argument] = {}
    name = node.name.strip('"').lower()
    for argument in node.expressions:
        if isinstance(argument, exp.Kwarg):
            key = str(argument.this.name)
            if key.lower() in named:
                raise InvalidInput(f"{name}: the argument {key} is given twice; remove one")
            named[key.lower()] = _value(name, argument.expression)
        elif named:
            raise InvalidInput(
                f"{name}: a positional argument follows a named one; name it, or move it first"
            )
        else:
            positional.append(_value(name, argument))
    return name, positional, named, catalog


def _parsed(text: str, dialect: str) -> Any:
    """Parse a call to a tree; its name gets the prefix `system`, as it may be a keyword."""
    rules = dialect_named(dialect)
    grammar = Grammar.get_or_raise(rules.grammar if rules.backslash_strings else _GRAMMAR)
    try:
        whole = f"system.{text.lstrip()}"
        tokens = grammar.tokenize(whole)
        while tokens and tokens[-1].token_type is sqlglot.TokenType.SEMICOLON:
            tokens.pop()
        if any(token.token_type is sqlglot.TokenType.SEMICOLON for token in tokens):
            raise InvalidInput(
                f"CALL {_shown(text)}: a second statement follows after a semicolon; run one "
                "statement at a time"
            )
        tokens = _with_varied_maps(_with_doubled_quotes(tokens, whole))
        with damage_as_parse_error():
            return grammar.parser().parse(tokens, whole)[0]
    except sqlglot.errors.ParseError as error:
        if isinstance(error.__cause__, IndexError):  # a map with an odd number of arguments
            raise InvalidInput(
                f"CALL {_shown(text)}: a map has a key without a value; give each key a value"
            ) from error
        raise InvalidInput(
            f"CALL {_shown(text)} cannot be read: a part is missing or too many; a call looks "
            "like CALL system.compact('db', 'table')"
        ) from error
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise InvalidInput(f"CALL {_shown(text)} cannot be read: {error}") from error


def _shown(text: str) -> str:
    """Return the beginning of a text, for a message."""
    return repr(text.strip()[:60])


def _with_doubled_quotes(tokens: Sequence[Any], text: str) -> list[Any]:
    """Join texts that touch, such as `'it''s'`, which Spark's grammar reads as two of them."""
    joined_tokens: list[Any] = []
    for token in tokens:
        before = joined_tokens[-1] if joined_tokens else None
        if (
            before is not None
            and before.token_type == token.token_type == sqlglot.TokenType.STRING
            and before.end + 1 == token.start
        ):
            span = (before.line, before.col, before.start, token.end)
            joined = f"{before.text}{text[token.start]}{token.text}"
            joined_tokens[-1] = Token(sqlglot.TokenType.STRING, joined, *span)
        else:
            joined_tokens.append(token)
    return joined_tokens


def _with_varied_maps(tokens: Sequence[Any]) -> list[Any]:
    """Replace the token `map` by VAR_MAP, sqlglot's map of alternating keys and values.

    The function of Trino takes two arrays only. A subclass of its parser could change that, but the
    classes of sqlglot's compiled build (`sqlglot[c]`) cannot be subclassed.
    """
    new_tokens = list(tokens)
    for place, (token, after) in enumerate(pairwise(tokens)):
        kinds = (token.token_type, after.token_type)
        if kinds == (sqlglot.TokenType.MAP, sqlglot.TokenType.L_PAREN):
            span = (token.line, token.col, token.start, token.end)
            new_tokens[place] = Token(sqlglot.TokenType.VAR, "VAR_MAP", *span)
    return new_tokens


def _value(procedure: str, node: Any) -> Argument:
    """Return the value of a literal."""
    match node:
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(node.this)
        case exp.Literal() if node.is_string:
            return str(node.this)
        case exp.Literal() | exp.Neg(this=exp.Literal()):
            if re.fullmatch(r"-?\d{1,38}", whole := node.sql(), re.ASCII):
                return int(whole)
        case exp.Cast(this=exp.Literal(), to=exp.DataType(this=kind)) if kind in _TIMES:
            return TimeLiteral(str(node.this.this))  # TIMESTAMP '…'
        case exp.VarMap() | exp.Map():
            return _map(procedure, node)
        case exp.Array():
            raise InvalidInput(
                f"{procedure}: the argument {node.sql(dialect='trino')} is a list, which no "
                "procedure takes; versions are chosen by older_than and retain_last"
            )
    raise InvalidInput(
        f"{procedure}: the argument {node.sql(dialect='trino')} is not a literal; give a text in "
        "single quotes, a whole number, TRUE, FALSE, NULL or a map"
    )


def _map(procedure: str, node: Any) -> Mapping[str, str]:
    keys, values = _items(node.args["keys"]), _items(node.args["values"])
    if len(keys) == len(values) == 1 and isinstance(keys[0], exp.Array):  # MAP(ARRAY[…], ARRAY[…])
        keys, values = _items(keys[0]), _items(values[0])
    if len(keys) != len(values):
        raise InvalidInput(
            f"{procedure}: a map has {len(keys)} keys and {len(values)} values; give as many of "
            "each"
        )
    pairs = [
        (_option(procedure, key), _option(procedure, value))
        for key, value in zip(keys, values, strict=True)
    ]
    if len(dict(pairs)) < len(pairs):
        raise InvalidInput(f"{procedure}: a map has a key twice; remove one")
    return dict(pairs)


def _items(node: Any) -> Sequence[Any]:
    return node.expressions if isinstance(node, exp.Array) else [node]


def _option(procedure: str, node: Any) -> str:
    match _value(procedure, node):
        case bool(value):
            return str(value).lower()
        case str() | int() as value:
            return str(value)
    raise InvalidInput(
        f"{procedure}: {node.sql()} in a map is not a text; write it in single quotes"
    )
