"""Parse with sqlglot's grammars, where `<=>` groups like `=` and `<`.

sqlglot parses `<=>` to the node of IS NOT DISTINCT FROM, and adds parentheses around the rest.
Engines group it with their comparisons: `a <=> b LIKE 'x'` is `(a <=> b) LIKE 'x'` in Spark. So its
token is parsed as `=`, and the reader rejects an adjacent condition without parentheses, as it does
for `=`. The grammar hands the comments of an operator's token to its node: the token carries a mark
as its comment, and nodes with the mark of `<=>` become IS NOT DISTINCT FROM afterwards.

A sign before a number with a suffix (`-128Y`, `-9BD`) belongs to the number in Spark, for which the
grammar negates it; its token is joined with that of the number.

No class of sqlglot is subclassed: those of its compiled build (`sqlglot[c]`) cannot be.
Soundness: the given tokens have no comments of their own, and each marked operator must be met
again in one node; otherwise the text is refused, such as `struct(a <=> b)`, which the grammar reads
as `struct(b AS a)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as Grammar
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from rowsieve.errors import InvalidPredicate

_WRITTEN: Final = "written_as"
_SAFE_EQUALITY: Final = "<=>"
_BEGINS_ARGUMENT: Final = frozenset({TokenType.L_PAREN, TokenType.COMMA})
_EQUALITIES: Final = frozenset({TokenType.EQ, TokenType.NULLSAFE_EQ})
# After these tokens an operand begins: a minus there is its sign, not a subtraction.
_BEFORE_OPERANDS: Final = frozenset(
    {TokenType.L_PAREN, TokenType.COMMA, *_EQUALITIES, TokenType.NEQ, TokenType.LT, TokenType.LTE}
    | {TokenType.GT, TokenType.GTE, TokenType.AND, TokenType.OR, TokenType.BETWEEN, TokenType.FROM}
    | {TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.PLUS, TokenType.DASH}
    | {TokenType.STAR, TokenType.SLASH, TokenType.MOD, TokenType.DIV, TokenType.AMP}
    | {TokenType.PIPE, TokenType.CARET}
)


def tokens_of(text: str, grammar: str) -> list[Any]:
    """Return the tokens of the text, without its comments."""
    tokens = list(Grammar.get_or_raise(grammar).tokenize(text))
    for token in tokens:
        if token.comments:
            token.comments = []
    return tokens


def condition_of(
    tokens: Sequence[Any], text: str, grammar: str, *, arrows_are_json: bool = False
) -> Any:
    """Return the tree of a condition or a value from its tokens (`tokens_of`); None for none.

    `arrows_are_json`: the dialect has no lambdas, for which the grammar takes `f(j -> 'a')`.
    """
    kinds = {token.token_type for token in tokens}
    if arrows_are_json and TokenType.ARROW in kinds:
        tokens = list(_without_lambdas(tokens))
    if TokenType.DCOLON in kinds and TokenType.DASH in kinds:
        tokens = _with_signed_literals(tokens)
    parser = Grammar.get_or_raise(grammar).parser()
    named = kinds & _EQUALITIES and _may_name_fields(tokens, parser)
    if TokenType.NULLSAFE_EQ not in kinds and not named:
        return _parsed(parser, list(tokens), text)
    node = _parsed(parser, [_marked(token) for token in tokens], text)
    return None if node is None else _with_safe_equalities(node, tokens)


@contextmanager
def damage_as_parse_error() -> Iterator[None]:
    """Raise ParseError where the grammar has an internal error, for text without a needed part.

    It continues with None there: its functions then raise an AttributeError, an IndexError, or, in
    the compiled build, a TypeError.
    """
    try:
        yield
    except (AttributeError, IndexError, TypeError) as error:
        raise ParseError("a part is missing") from error


def is_safe_equality(node: Any) -> bool:
    """Whether the node is IS NOT DISTINCT FROM written as `<=>`."""
    return bool(node.meta.get(_WRITTEN) == _SAFE_EQUALITY)


def _parsed(parser: Any, tokens: list[Any], text: str) -> Any:
    try:
        return parser.parse_into(exp.Condition, tokens, text)[0]
    except (AttributeError, TypeError):  # as above; this error has the place, too
        return parser.raise_error("an operand is missing")


def _without_lambdas(tokens: Sequence[Any]) -> Iterator[Any]:
    """Put a name before `->` that begins an argument in parentheses, two because one is a lambda's.

    The parentheses have the place of the name.
    """
    before = [None, *tokens]
    after = [*tokens[1:], None]
    for previous, token, following in zip(before, tokens, after, strict=False):
        begins = previous is not None and previous.token_type in _BEGINS_ARGUMENT
        if not (begins and following is not None and following.token_type == TokenType.ARROW):
            yield token
            continue
        place = (token.line, token.col, token.start, token.end)
        yield from (Token(TokenType.L_PAREN, "(", *place) for _ in range(2))
        yield token
        yield from (Token(TokenType.R_PAREN, ")", *place) for _ in range(2))


def _with_signed_literals(tokens: Sequence[Any]) -> list[Any]:
    """Join a sign with the number with a suffix that follows it.

    The suffix is a cast (`::`) at the place of its number.
    """
    joined: list[Any] = []
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        has_suffix = (
            token.token_type == TokenType.NUMBER
            and following is not None
            and following.token_type == TokenType.DCOLON
            and following.start == token.start
        )
        if has_suffix and _ends_with_sign(joined):
            sign = joined.pop()
            place = (sign.line, sign.col, sign.start, token.end)
            token = Token(TokenType.NUMBER, f"-{token.text}", *place)  # noqa: PLW2901
        joined.append(token)
    return joined


def _ends_with_sign(tokens: Sequence[Any]) -> bool:
    if not tokens or tokens[-1].token_type != TokenType.DASH:
        return False
    return len(tokens) == 1 or tokens[-2].token_type in _BEFORE_OPERANDS


def _may_name_fields(tokens: Sequence[Any], parser: Any) -> bool:
    """Whether a function is called in which the grammar reads `a = b` as a value with a name."""
    return any(token.text.upper() in parser.FUNCTIONS_WITH_ALIASED_ARGS for token in tokens)


def _marked(token: Any) -> Any:
    """Return `=` for both equalities, with the token's place and text as a comment."""
    if token.token_type not in _EQUALITIES:
        return token
    place = (token.line, token.col, token.start, token.end)
    return Token(TokenType.EQ, token.text, *place, [_mark(token)])


def _mark(token: Any) -> str:
    safe = token.token_type == TokenType.NULLSAFE_EQ
    return f"{token.start} {_SAFE_EQUALITY if safe else '='}"


def _with_safe_equalities(root: Any, tokens: Sequence[Any]) -> Any:
    equalities = list(root.find_all(exp.EQ))
    marks = [tuple(node.comments or ()) for node in equalities]
    written = [(_mark(token),) for token in tokens if token.token_type in _EQUALITIES]
    if sorted(marks) != sorted(written):
        raise InvalidPredicate(
            "cannot read the filter: a comparison with = or <=> would be read as a field's name; "
            "put it in parentheses"
        )
    for node, (mark,) in zip(equalities, marks, strict=True):
        if mark.endswith(_SAFE_EQUALITY):
            safe = exp.NullSafeEQ(this=node.this, expression=node.expression)
            safe.meta[_WRITTEN] = _SAFE_EQUALITY
            if node is root:
                root = safe
            else:
                node.replace(safe)
    return root
