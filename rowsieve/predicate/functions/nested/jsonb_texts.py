"""The text of a JSON value as PostgreSQL's `jsonb` shows it, which differs from the stored text.

`jsonb` keeps numbers by value (`1e2` is `100`), of equal keys the last, keys in the order of their
lengths, and no spaces of its own. `jsonb_text` is `->>` of such a value, `jsonb_document` is its
cast to text. Text that is not JSON gives NULL, as for all functions of JSON here.

Source: PostgreSQL 15, by `tests/predicate/functions/test_jsonb_texts.py`.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, as_mask
from rowsieve.predicate.functions.nested.json_access import is_json
from rowsieve.predicate.functions.nested.json_members import unquoted
from rowsieve.predicate.functions.row import Argument, Function, NullRule, Signature
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Json, String

TEXT, DOCUMENT = "jsonb_text", "jsonb_document"
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_STRING = msgspec.json.Decoder(str)
# Values whose text is the same in both forms.
_SAME_WORD = r"^(?:true|false|null|-?(?:[1-9][0-9]*|0)(?:\.[0-9]+)?)$"
_NEGATIVE_ZERO = r"^-0(?:\.0*)?$"
_MOST_WHOLE, _MOST_FRACTION = 131_072, 16_383  # digits of PostgreSQL's numeric
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r"}
_ESCAPES |= {"\t": "\\t"}
_ESCAPED = re.compile(r'["\\\x00-\x1f]')


def _shown(text: str) -> str:
    """Return the text that `jsonb` shows for a JSON value; ValueError if it has no such value."""
    text = text.strip()
    if text.startswith("{"):
        members = _MEMBERS.decode(text)
        names = sorted(members, key=lambda name: (len(name.encode()), name.encode()))
        parts = (f"{_string(name)}: {_shown(bytes(members[name]).decode())}" for name in names)
        return f"{{{', '.join(parts)}}}"
    if text.startswith("["):
        return f"[{', '.join(_shown(bytes(item).decode()) for item in _ITEMS.decode(text))}]"
    if text.startswith('"'):
        return _string(_STRING.decode(text))
    return text if text in ("true", "false", "null") else _number(text)


def _string(value: str) -> str:
    if "\0" in value:
        raise ValueError("jsonb holds no character 0")
    return f'"{_ESCAPED.sub(_escape, value)}"'


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04x}"


def _number(text: str) -> str:
    value = decimal.Decimal(text)
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    whole = value.adjusted() + 1 if value else 0
    if whole > _MOST_WHOLE or -exponent > _MOST_FRACTION:
        raise ValueError("it has more digits than numeric holds")
    if not value:
        return f"{decimal.Decimal(0).scaleb(min(exponent, 0)):f}"
    return f"{value:f}"


def _is_same(texts: pa.Array) -> pa.Array:
    """Return for which values both texts are equal, without looking into them; text is not one."""
    word = pc.match_substring_regex(texts, _SAME_WORD)
    return pc.and_not(word, pc.match_substring_regex(texts, _NEGATIVE_ZERO))


def _evaluator(*, quoted: bool) -> Callable[..., Computed]:
    def evaluate(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
        encoded = arguments[0].cast(pa.string()).dictionary_encode()
        texts = pc.utf8_trim(encoded.dictionary, " \t\n\r")
        same = _is_same(texts)
        if not quoted:
            same = pc.or_(same, pc.starts_with(texts, '"'))
        others = np.flatnonzero(~as_mask(same))
        shown: list[str | None] = texts.to_pylist()
        failed = np.zeros(len(texts), np.bool_)
        for place in others.tolist():
            text = shown[place]
            shown[place] = None
            if text is None or not is_json(text):
                continue
            try:
                shown[place] = _shown(text)
            except ValueError:
                failed[place] = True
        values = pa.array(shown, pa.string())
        values = values if quoted else unquoted(values)
        rows = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
        bad = failed[rows] & as_mask(encoded.indices.is_valid()) if len(failed) else failed[:0]
        return Computed(values.take(encoded.indices), bad if bad.any() else None)

    return evaluate


def _resolve(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 1 or not isinstance(arguments[0].type, Json | None):
        return None
    return Signature((Json(),), String())


ROWS = tuple(
    Function(f"{name}(json)", _resolve, _evaluator(quoted=quoted), nulls=NullRule.PARTIAL)
    for name, quoted in ((TEXT, False), (DOCUMENT, True))
)
