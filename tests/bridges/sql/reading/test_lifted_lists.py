"""Long IN lists: taken out of the text exactly where the grammar would have read the same list."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.sql import parse_predicate
from rowsieve.bridges.sql.dialects import DIALECTS, POSTGRES, SPARK
from rowsieve.bridges.sql.reading import lifted_lists as lists_module
from rowsieve.bridges.sql.reading.lifted_lists import lift_lists
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.types.logical import Date, Decimal, Float, Int, Timestamp
from tests.profiles import examples

NUMBERS = ", ".join(map(str, range(100)))
TEXTS = ",".join(f"'k{i}'" for i in range(100))


def lifted(text: str, dialect: str = "postgres") -> ir.InList:
    assert lift_lists(text, DIALECTS[dialect]).lists
    tree = parse_predicate(text, dialect)
    assert isinstance(tree, ir.InList)
    return tree


@pytest.mark.parametrize(
    ("body", "type_", "first"),
    [
        (NUMBERS, Int(64), 0),
        (f"-5 , +7, {NUMBERS}", Int(64), -5),
        (f"null, {NUMBERS}", Int(64), None),
        (f"{NUMBERS}, NULL", Int(64), 0),
        (f"\n{NUMBERS.replace(', ', chr(10))}".replace("\n", ", ")[2:], Int(64), 0),
        (TEXTS, None, "k0"),
        (f"'it''s', {TEXTS}", None, "it's"),
        (f"'a,b', {TEXTS}", None, "a,b"),
        (f"'NULL', {TEXTS}", None, "NULL"),
        (f"NULL, {TEXTS}", None, None),
        (f"'', {TEXTS}", None, ""),
    ],
)
def test_a_long_list_is_one_array(body: str, type_: Int | None, first: object) -> None:
    values = lifted(f"a IN ({body})").values
    assert values.type == type_
    assert values.array[0].as_py() == first


def test_decimals_and_doubles() -> None:
    body = ",".join(f"{i}.25" for i in range(100))
    exact = lifted(f"a IN (-1.5, 7, {body})").values
    assert exact.type == Decimal(4, 2)
    assert [str(item) for item in exact.array[:3]] == ["-1.50", "7.00", "0.25"]
    assert lifted(f"a IN ({body})", "datafusion").values.type == Float(64)


def test_dates_and_time_stamps() -> None:
    dates = lifted("a IN (" + ",".join(["DATE '2013-01-01'"] * 99) + ", NULL)").values
    assert dates.type == Date()
    assert dates.array.cast(pa.int32()).to_pylist() == [15706] * 99 + [None]
    stamps = lifted("a IN (" + ",".join(["timestamp '1970-01-01 00:00:01.5'"] * 99) + ")").values
    assert stamps.type == Timestamp()
    assert stamps.array.cast(pa.int64())[0].as_py() == 1_500_000


@pytest.mark.parametrize(
    "member",
    ["'x'", "b", "1e5", "DATE '2013-01-01'", "99999999999999999999", "TRUE", "(1)", "1 + 1"],
)
def test_a_list_of_mixed_items_is_read_by_the_parser(member: str) -> None:
    text = f"a IN ({NUMBERS}, {member})"
    assert not lift_lists(text, POSTGRES).lists
    assert isinstance(parse_predicate(text), ir.InList | ir.Or)


@pytest.mark.parametrize("member", ["2013-1-1", "2013-02-30", "today"])
def test_a_malformed_date_in_a_long_list_is_refused(member: str) -> None:
    body = ", ".join([f"DATE '{member}'"] * 100)
    with pytest.raises(InvalidPredicate, match="is not a valid date"):
        parse_predicate(f"a IN ({body})")


def test_strings_with_backslashes_are_taken_where_they_escape_a_quote_or_themselves() -> None:
    values = lifted(rf"a IN ({TEXTS}, 'x\'y', 'x\\y', 'x\\\'')", "spark").values
    assert values.array[-3:].to_pylist() == ["x'y", "x\\y", "x\\'"]
    assert not lift_lists(rf"a IN ({TEXTS}, 'x\ny')", SPARK).lists
    assert not lift_lists(f"a IN ({TEXTS}, 'x''y')", SPARK).lists
    assert lifted(f"a IN ({TEXTS})", "spark").values.type is None


@pytest.mark.parametrize(
    "text",
    [
        f"a = 'x IN ({NUMBERS})'",
        f'"x IN ({NUMBERS})" = 1',
        f"a = 1 -- x IN ({NUMBERS})",
        f"a = 1 /* x IN ({NUMBERS}) */",
        f"a = 1 /* /* */ x IN ({NUMBERS}) */",
    ],
)
def test_text_that_only_looks_like_a_list_is_not_extracted(text: str) -> None:
    assert isinstance(parse_predicate(text), ir.Comparison)


def test_the_tokens_decide_where_the_scan_is_wrong() -> None:
    """A nested comment fools the scan into seeing a list inside a string."""
    text = f"/* /* */ ' */ a = 'x IN ({NUMBERS})'"
    assert lift_lists(text, POSTGRES).lists
    assert parse_predicate(text) == ir.Comparison(
        ir.ComparisonOp.EQ, ir.Column("a"), ir.Literal(f"x IN ({NUMBERS})")
    )


def test_names_in_the_text_are_never_replaced_by_a_list() -> None:
    text = f'"\ue0000" = 1 AND a IN ({NUMBERS})'
    tree = parse_predicate(text)
    assert isinstance(tree, ir.And)
    assert isinstance(tree.terms[0], ir.Comparison)
    assert tree.terms[0].left == ir.Column("\ue0000")
    assert isinstance(tree.terms[1], ir.InList)


def test_a_list_is_supported_only_after_in() -> None:
    with pytest.raises(InvalidPredicate):
        parse_predicate(f"position('a' IN ({NUMBERS})) = 1")


def test_errors_after_a_list_point_into_the_text_given() -> None:
    text = f"a IN ({NUMBERS}) AND b IN ({TEXTS}) AND initcap(c) = 1"
    with pytest.raises(InvalidPredicate, match="INITCAP") as caught:
        parse_predicate(text)
    assert caught.value.position == text.index("c) = 1")


def test_too_many_members_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists_module, "MAX_MEMBERS", 150)
    parse_predicate(f"a IN ({NUMBERS})")
    with pytest.raises(InvalidPredicate, match="more than 150 members"):
        parse_predicate(f"a IN ({NUMBERS}) OR b IN ({NUMBERS})")


@examples(60)
@given(
    st.lists(
        st.sampled_from(
            [
                f"a IN ({NUMBERS})",
                f"b NOT IN ({TEXTS})",
                "'it''s'",
                '"x""y"',
                "-- c\n",
                "/* ' */",
                "c",
            ]
        ),
        min_size=1,
        max_size=6,
    )
)
def test_taking_lists_out_changes_no_tree(pieces: list[str]) -> None:
    text = " AND ".join(pieces)
    assert _outcome(text) == _outcome(text, lift=False)


def _outcome(text: str, *, lift: bool = True) -> object:
    with pytest.MonkeyPatch.context() as patch:
        if not lift:
            patch.setattr(lists_module, "SHORT", 1_000_000)
        try:
            return parse_predicate(text)
        except InvalidPredicate as error:
            return error.position, str(error)


def test_the_members_read_alike_both_ways() -> None:
    for body in (NUMBERS, f"NULL, {TEXTS}", ", ".join(["DATE '2013-01-01'"] * 70)):
        text = f"a IN ({body}) OR NOT b IN ({body}) OR c"
        tree = _outcome(text)
        assert tree == _outcome(text, lift=False)
        assert isinstance(tree, ir.Or)
        assert isinstance(tree.terms[1], ir.Not)
        assert tree.terms[2] == ir.BooleanOperand(ir.Column("c"))
