"""Random JSON documents, well formed or not, with values of every kind at the path `a.k`."""

from __future__ import annotations

import json

from hypothesis import strategies as st

NUMBERS = ["0", "-0", "7", "-12", "128", "-0.0", "1.0", "0.1", "-2.675", "1e2", "-1.5E-3"]
NUMBERS += [str(2**63 - 1), str(2**63), str(-(2**63)), str(-(2**63) - 1), str(10**30)]
NUMBERS += ["9007199254740993", "9007199254740993.0", "1e300", "9" * 309, "1e400", "5e-324"]
LONG = "é" * 63
TEXTS = ["", "a", "b", "12", "NaN", "Infinity", "null", "\0", "\U0010ffff" * 65, "\ud7ff" * 64]
TEXTS += [LONG, LONG + "a", LONG + "z", LONG + "zz", LONG + "\U0010ffff\U0010ffff", "z" * 300]
OTHERS = ["true", "false", "null", "[1]", '["a", 5]', "[]", "{}", '{"k": 3}', "NaN", "01", "'a'"]


def quoted(text: str, *, escaped: bool) -> str:
    return json.dumps(text, ensure_ascii=escaped)


texts = st.builds(
    lambda text, escaped: quoted(text, escaped=escaped),
    st.sampled_from(TEXTS) | st.text(st.characters(codec="utf-8"), max_size=4),
    st.booleans(),
)
numbers = st.sampled_from(NUMBERS) | st.integers(-(2**70), 2**70).map(str)
numbers |= st.floats(allow_nan=False, allow_infinity=False).map(repr)
values = numbers | texts | st.sampled_from(OTHERS)
keys = st.sampled_from(['"k"', '"k"', '"k"', '"\\u006b"', '"x"'])


@st.composite
def documents(draw: st.DrawFn, at_path: st.SearchStrategy[str] = values) -> str:
    """A document with a value at `a.k`, or two, or none."""
    pairs = draw(st.lists(st.tuples(keys, at_path), min_size=0, max_size=2))
    inner = "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
    whole = f'{{"a": {inner}, "k": {draw(st.sampled_from(["1", "[]"]))}}}'
    return draw(
        st.sampled_from(
            [whole, whole, whole, f" {whole} ", f'{{"a": 1, "a": {inner}}}', whole[:-1]]
        )
    )


uniform = st.sampled_from([numbers, texts, st.sampled_from(["true", "false"])]).flatmap(
    lambda kind: st.lists(kind.map(lambda value: f'{{"a":{{"k":{value}}}}}'), max_size=6)
)
batches = st.lists(
    uniform | st.lists(documents() | st.sampled_from([None, "", "null", "[1]", '"a"']), max_size=6),
    min_size=1,
    max_size=4,
).map(lambda runs: [document for run in runs for document in run])
"""Documents of a table, in runs that have values of one kind, or of all of them."""
