"""Faults of pyarrow."""

from __future__ import annotations

import io
import random
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.engine_faults.fault import Fault, Probe, raises, run_apart


def decimals_are_divided_wrongly() -> bool:
    value = 2**64 - 1
    rounded = pc.round(pa.array([Decimal(value)], pa.decimal256(76, 18)), ndigits=0)
    return int(rounded[0].as_py()) != value


def zones_have_no_summer_after_2037() -> bool:
    second = int(datetime(2038, 7, 15, tzinfo=UTC).timestamp())
    instants = pa.array([second], pa.timestamp("s", "America/New_York"))
    local = pc.local_timestamp(instants).cast(pa.int64())[0].as_py()
    return bool(local - second != -4 * 3600)


def decimals_become_floats_inexactly() -> bool:
    numbers = random.Random(0)
    values = [Decimal(numbers.randrange(10**37)).scaleb(-18) for _ in range(1_000)]
    converted = pa.array(values, pa.decimal128(38, 18)).cast(pa.float64())
    return bool(converted.to_pylist() != [float(value) for value in values])


def null_documents_end_the_process() -> bool:
    code = (
        "import io, pyarrow as pa, pyarrow.json as json\n"
        "schema = pa.schema([pa.field('a', pa.int64(), nullable=False)])\n"
        "options = json.ParseOptions(explicit_schema=schema)\n"
        "json.read_json(io.BytesIO(b'null\\n'), parse_options=options)"
    )
    return run_apart(code).code < 0


def counts_test_the_start_again() -> bool:
    return bool(pc.count_substring_regex(pa.array(["aaa"]), "^a")[0].as_py() != 1)


def views_of_text_cannot_be_taken() -> bool:
    views = pa.array(["a"], pa.string_view())
    return raises("no kernel", lambda: pc.take(views, pa.array([0])))


def casts_look_below_null_parents() -> bool:
    member = pa.array([None, 1], pa.int32())
    structs = pa.StructArray.from_arrays([member], ["a"], mask=pa.array([True, False]))
    target = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    return raises("has nulls", lambda: structs.cast(target))


def untyped_values_import_pandas() -> bool:
    code = "import sys, pyarrow as pa; pa.array([1]); print('pandas' in sys.modules)"
    return run_apart(code).output.strip() == "True"


def bounds_leave_nan_out() -> bool:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": [1.0, float("nan")]}), sink)
    statistics = pq.ParquetFile(sink).metadata.row_group(0).column(0).statistics
    return bool(statistics is not None and statistics.has_min_max and statistics.max == 1.0)


def json_text_is_not_checked() -> bool:
    from pyarrow import json

    column = json.read_json(io.BytesIO(b'{"a": "\xff"}\n')).column("a")
    return raises("UTF8", lambda: column.validate(full=True))


def lists_compare_bits_of_zeros() -> bool:
    return not pc.is_in(pa.array([-0.0]), pa.array([0.0]))[0].as_py()


def expressions_with_bytes_cannot_be_shown() -> bool:
    expression = pc.match_substring(pc.field("b"), b"\xff")  # bytes that are not UTF-8
    return raises("decode", lambda: str(expression))


def json_instants_become_local_times() -> bool:
    from pyarrow import json

    options = json.ParseOptions(explicit_schema=pa.schema([("t", pa.timestamp("us"))]))
    text = io.BytesIO(b'{"t": "2020-01-01T00:00:00Z"}\n')
    return not raises("", lambda: json.read_json(text, parse_options=options))


def lists_cannot_be_repeated_no_times() -> bool:
    constant = pa.scalar([1], pa.list_(pa.int64()))
    return raises("at least one array", lambda: pa.repeat(constant, 0))


def coalesce_mixes_up_units_of_times() -> bool:
    table = pa.table({"t": pa.array([None], pa.timestamp("ns"))})
    chosen = pc.coalesce(pc.field("t"), pa.scalar(1, pa.timestamp("us")))
    return bool(table.filter(chosen == pa.scalar(1, pa.timestamp("us"))).num_rows == 0)


def _row(probe: Probe, does: str, *here: str, upstream: str = "") -> Fault:
    return Fault("pyarrow", does, here, probe, upstream)


_FUNCTIONS: Final = "rowsieve.predicate.functions"
FAULTS: Final = (
    _row(
        decimals_are_divided_wrongly,
        "divides decimals by 2^32 and more wrongly where a quotient has a 32-bit digit of all "
        "ones. We round nine digits at a time.",
        f"{_FUNCTIONS}.numbers.decimal_rounding:rounded",
    ),
    _row(
        zones_have_no_summer_after_2037,
        "knows no daylight saving time after 2037. We compute with tables of changes of our own.",
        "rowsieve.types.time_zones:Zone",
        upstream="apache/arrow#51226",
    ),
    _row(
        decimals_become_floats_inexactly,
        "converts decimals to floats that may be off by one unit. We convert through text.",
        f"{_FUNCTIONS}.casting.casts:_decimal_to_float",
    ),
    _row(
        null_documents_end_the_process,
        "takes a JSON document `null` for a row of NULLs, or ends the process. The command line "
        "refuses one before.",
        "rowsieve.input_files.json_files:_refuse_null",
    ),
    _row(
        counts_test_the_start_again,
        "counts a match of `^` after each match. We count what a replacement adds.",
        f"{_FUNCTIONS}.texts.found_patterns:_count",
    ),
    _row(
        views_of_text_cannot_be_taken,
        "has no `take` and no `filter` for views of text. We select the views by their bytes.",
        "rowsieve.executor.text_views:_taken",
        upstream="apache/arrow#43010",
    ),
    _row(
        casts_look_below_null_parents,
        "fails in a cast of a NULL struct whose member may not be NULL. We cast the members alone.",
        "rowsieve.providers.spark.row_types:_sent",
    ),
    _row(
        untyped_values_import_pandas,
        "imports pandas to convert Python values without a type, which takes half a second. "
        "Every array of ours is made with its type.",
        "rowsieve.planner.prune_row_groups:_point",
    ),
    _row(
        bounds_leave_nan_out,
        "writes bounds of floats that leave NaN out. Our files have no statistics of such columns.",
        "rowsieve.storage.parts.part_writer:_nan_columns",
    ),
    _row(
        json_text_is_not_checked,
        "reads text of a JSON file that is not UTF-8 as text. The command line checks the file.",
        "rowsieve.input_files.files:_read_json",
    ),
    _row(
        json_instants_become_local_times,
        "reads an instant of a JSON file as a local time, a local time as an instant, and a number "
        "as a date. We read these as text and parse them as the values of CSV files.",
        "rowsieve.input_files.json_values:type_to_read",
    ),
    _row(
        expressions_with_bytes_cannot_be_shown,
        "fails in the text of an expression that has bytes other than UTF-8 as an option. Notes "
        "name it without its text.",
        "rowsieve.bridges.pyarrow_exprs:_shown",
    ),
    _row(
        lists_cannot_be_repeated_no_times,
        "fails to repeat a list no times, and copies it to repeat it. We take its only row.",
        "rowsieve.predicate.arrays:repeated",
    ),
    _row(
        lists_compare_bits_of_zeros,
        "compares floats with a list by their bits, so that -0.0 is not in it. Lists with a zero "
        "have both here.",
        "rowsieve.predicate.semantics:Semantics",
    ),
    _row(
        coalesce_mixes_up_units_of_times,
        "takes the microseconds of a constant for nanoseconds in `coalesce`, in an expression with "
        "a column of these. We write `if_else`.",
        "rowsieve.bridges.pyarrow_exprs.write:PyArrowWriter",
    ),
)
