"""Formats of times in each dialect's words, read and written; what is not listed is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.sql.constructs.time_formats import FIELDS, from_dialect, to_dialect
from rowsieve.bridges.translation import Exactness
from rowsieve.bridges.where import to_operand, to_predicate
from rowsieve.errors import EvaluationError, InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.bind import bind, bind_operand
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.ir import Call
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of

ROWS = pa.record_batch(
    {
        "ts": pa.array([0, 1_700_000_000_000_000, None], pa.timestamp("us")),
        "far": pa.array([2**62, 0, None], pa.timestamp("us")),
        "day": pa.array([0, 19_000, None], pa.date32()),
    }
)
SCHEMA, _ = schema_of(ROWS.schema)


@pytest.mark.parametrize("dialect", FIELDS)
@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d/%m/%Y %H:%M:%S", "%Y-%j", "%H:%M"])
def test_a_format_is_written_and_read_back(form: str, dialect: str) -> None:
    assert from_dialect(to_dialect(form, dialect), dialect) == form


@pytest.mark.parametrize("dialect", ["spark", "duckdb", "datafusion"])
def test_names_are_written_and_read_back_but_not_parsed(dialect: str) -> None:
    form = "%A, %d %B %y / %a %b %I:%M %p"
    assert from_dialect(to_dialect(form, dialect), dialect) == form
    with pytest.raises(ValueError, match="differently"):
        to_dialect(form, dialect, "parse_timestamp")
    with pytest.raises(ValueError, match="differently"):
        to_dialect(form, "postgres")


def test_a_refused_field_of_spark_says_why() -> None:
    with pytest.raises(InvalidPredicate, match="zone are not part of the local time"):
        to_operand("date_format(ts, 'HH:mm XXX')", "spark", SCHEMA)


@pytest.mark.parametrize(
    ("text", "dialect"),
    [("strftime(far, '%y') = '08'", "duckdb"), ("date_format(far, 'd M y') = 'x'", "spark")],
)
def test_a_short_year_of_more_digits_fails(text: str, dialect: str) -> None:
    predicate = bind(to_predicate(text, dialect, SCHEMA), SCHEMA, Semantics.SPARK)
    with pytest.raises(EvaluationError):
        matching(predicate, ROWS)
    assert matching(predicate, ROWS.slice(1)).tolist() == [False, False]


@pytest.mark.parametrize(
    ("form", "read", "written"),
    [
        ("d/M/y H:m:s.SSS", "%-d/%-m/%-Y %-H:%-M:%-S.%g", None),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSSSS", "%Y-%m-%dT%H:%M:%S.%f", None),
        ("'Q'Q yyyy", "Q%q %Y", None),
        ("yyyy[-MM[-dd]]", "%Y-%m-%d", "yyyy-MM-dd"),
        ("EEE d LLLL", "%a %-d %B", "E d MMMM"),
        ("'[d]' d", "[d] %-d", "'[d] 'd"),
        ("yyyy[yy]", "%Y%y", ""),  # as one word it would be another field
        ("M[M]", "%-m%-m", ""),
    ],
)
def test_spark_s_fields_of_any_width_and_optional_sections(
    form: str, read: str, written: str | None
) -> None:
    assert from_dialect(form, "spark") == read
    if written == "":
        with pytest.raises(ValueError, match=r"differently|the field"):
            to_dialect(read, "spark")
    else:
        assert to_dialect(read, "spark") == (written or form)
    if "%-" in read:
        with pytest.raises(ValueError, match=r"differently|the field"):
            to_dialect(read, "duckdb")


@pytest.mark.parametrize(
    ("dialect", "form"),
    [
        *(("spark", form) for form in ("YYYY", "yyy", "XXX", "F", "k", "B", "yyyyy", "'")),
        *(("spark", form) for form in ("[yyyy", "yyyy]", "SS", "SSSS", "G", "QQ", "DD", "EEEEE")),
        *(("postgres", form) for form in ("Month", "HH12", "FMDD", "YYYYth", "YY", "yyyy-mm")),
        *(("duckdb", form) for form in ("%G", "%-d", "%f", "%h", "%", "%%")),
        *(("datafusion", form) for form in ("%G", "%-d", "%h", "%.3f", "%Z")),
        *(("trino", form) for form in ("%M", "%S", "%y", "%f")),
    ],
)
def test_a_field_that_engines_spell_otherwise_is_refused(form: str, dialect: str) -> None:
    with pytest.raises(ValueError, match="the f"):
        from_dialect(form, dialect)


@pytest.mark.parametrize(
    "text",
    [
        "strftime(ts, s)",
        "strftime('%Y', ts)",
        "strftime(ts)",
        "strftime(ts, ('%Y'))",
        "strftime(day, '%H')",
    ],
)
def test_a_format_that_is_not_a_constant_of_its_type_is_rejected(text: str) -> None:
    with pytest.raises((InvalidPredicate, UnsupportedOperation)):
        bind_operand(to_operand(text, "duckdb", SCHEMA), SCHEMA, Semantics.DUCKDB)


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("duckdb", "strftime(ts, '%Y' || '-%m-%d')"),
        ("duckdb", "strptime(s, '%d ' || '%Y-%m-%d')"),
        ("datafusion", "to_char(ts, '%Y' || '-%m')"),
        ("postgres", "to_char(ts, 'YYYY' || '-MM')"),
        ("spark", "date_format(ts, 'yyyy' || '-MM')"),
        ("spark", "date_format(ts, \"yyyy'a''b'\")"),  # a'b to Spark
        ("spark", "date_format(ts, 'yyyy\\055MM')"),  # a hyphen to Spark
    ],
)
def test_a_format_in_pieces_is_refused(dialect: str, text: str) -> None:
    with pytest.raises(InvalidPredicate, match="format"):
        to_operand(text, dialect, SCHEMA)


def test_the_format_is_read_from_the_text_and_not_from_the_grammar_s_tree() -> None:
    read = to_operand("date_format(ts, 'yyyy-MM')", "spark", SCHEMA)
    assert isinstance(read, Call)
    assert "%Y-%m" in str(read)
    with pytest.raises(InvalidPredicate, match="'YYYY'"):
        to_operand("date_format(ts, 'YYYY-MM')", "spark", SCHEMA)


def test_a_year_of_more_digits_has_its_text_where_it_is_known() -> None:
    text = "strftime(far, '%Y') = '148108'"
    predicate = bind(to_predicate(text, "duckdb", SCHEMA), SCHEMA, Semantics.DUCKDB)
    assert matching(predicate, ROWS).tolist() == [True, False, False]
    unknown = bind(to_predicate(text, "duckdb", SCHEMA), SCHEMA, Semantics.TRINO)
    with pytest.raises(EvaluationError):
        matching(unknown, ROWS)
    assert matching(unknown, ROWS.slice(1)).tolist() == [False, False]


@pytest.mark.parametrize("source", ["duckdb", "datafusion"])
@pytest.mark.parametrize("form", ["%I %p", "%y", "%a %b %A %B"])
def test_a_format_that_an_engine_lacks_is_not_written_for_it(form: str, source: str) -> None:
    call = {"duckdb": "strftime", "datafusion": "to_char"}[source]
    written = rs.translate(f"{call}(ts, '{form}') = 'x'", source, target="postgres", schema=SCHEMA)
    assert written.exactness is Exactness.UNSUPPORTED
    assert written.residual is not None
