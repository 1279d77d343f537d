"""A hundred tasks of an analyst, each written as users of the named library write it.

A task gets `t`, a table of six flights with the key `id`, and the folder of the test. It fails if a
line raises, or a claim of `assert` does not hold. The text after `#` names the library whose users
write it so; `own` has no counterpart there.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Task(NamedTuple):
    """A script with its name and the library whose users write it so."""

    name: str
    library: str
    script: str


def tasks() -> list[Task]:
    """All tasks."""
    found = []
    for block in _TEXT.strip().split("\n\n"):
        head, script = block.split("\n", 1)
        library, _, name = head.removeprefix("# ").partition(": ")
        found.append(Task(name, library, script))
    return found


_TEXT: Final = """
# deltalake: read all rows as an Arrow table
assert t.to_arrow().num_rows == 6

# deltalake: read as a pandas frame
assert len(t.to_pandas()) == 6

# polars: read as a Polars frame
assert t.to_polars().height == 6

# polars: a lazy frame with a filter
assert rs.scan_polars(t).filter(pl.col("delay") > 5).collect().height == 2

# polars: a frame from the object
assert pl.DataFrame(t).height == 6

# pyarrow: a table from the object
assert pa.table(t).num_rows == 6

# duckdb: query the object by its variable
assert duckdb.sql("SELECT count(*) FROM t").fetchall() == [(6,)]

# duckdb: query a dataset with a filter
d = t.to_dataset()
assert duckdb.sql("SELECT id FROM d WHERE delay > 5 ORDER BY id").fetchall() == [(2,), (5,)]

# lance: rows that match a condition
assert t.to_arrow("delay > 5").num_rows == 2

# lance: some columns
assert t.to_arrow(columns=["id", "carrier"]).column_names == ["id", "carrier"]

# lance: count rows
assert t.count() == len(t) == 6

# lance: count rows that match
assert t.count("carrier = 'AA'") == 3

# polars: the first rows
assert t.head(2).column("id").to_pylist() == [1, 2]

# polars: the last rows
assert t.tail(2).column("id").to_pylist() == [5, 6]

# polars: rows at random
assert t.sample(3, seed=1).num_rows == 3

# duckdb: print a few rows
t.show(3)

# duckdb: summarize the columns
assert len(t.summarize()) == 4

# lance: batches
assert sum(batch.num_rows for batch in t.scan().to_batches()) == 6

# pyarrow: a condition as an expression
assert t.to_arrow(pc.field("delay") > 5).num_rows == 2

# polars: a condition as an expression of Polars
assert t.to_arrow(pl.col("delay") > 5).num_rows == 2

# duckdb: limit and order
assert t.scan(limit=2, order_by_key=True).to_arrow().column("id").to_pylist() == [1, 2]

# deltalake: create a table from a frame
made = rs.create_table(folder / "new", pd.DataFrame({"a": [1, 2]}))
assert made.count() == 2

# deltalake: create a table from a Polars frame
assert rs.create_table(folder / "new", pl.DataFrame({"a": [1]}), ["a"]).key == ("a",)

# deltalake: create a table only if there is none
assert rs.create_table(t.uri, t.schema, ["id"], if_exists="ignore").count() == 6

# deltalake: replace a table
rs.create_table(folder / "new", [{"a": 1}])
assert rs.create_table(folder / "new", [{"b": 1}], if_exists="replace").schema.names == ["b"]

# deltalake: open a table
assert rs.open_table(t.uri).version == t.version

# own: drop a table
rs.drop_table(t.uri)

# deltalake: append rows
made = rs.create_table(folder / "log", pa.schema([("a", pa.int64())]))
made.append([{"a": 1}, {"a": 2}])
assert made.count() == 2

# lance: upsert rows
t.upsert([{"id": 1, "carrier": "ZZ", "delay": 0.0, "day": None}])
assert t.count() == 6

# lance: upsert a pandas frame
t.upsert(t.to_pandas().assign(delay=1.0))
assert t.count("delay = 1") == 6

# own: upsert some columns
t.upsert([{"id": 1, "delay": 9.0}], columns="given")
assert t.to_arrow("id = 1").column("carrier").to_pylist() == ["AA"]

# duckdb: upsert a file
(folder / "new.csv").write_text("id,carrier,delay,day\\n7,DL,1.5,2026-01-07\\n")
t.upsert(str(folder / "new.csv"))
assert t.count() == 7

# duckdb: create a table from a file
(folder / "new.csv").write_text("zip,n\\n01234,1\\n")
assert rs.create_table(folder / "zips", str(folder / "*.csv")).head().to_pylist() == [
    {"zip": "01234", "n": 1}
]

# deltalake: delete rows
t.delete("delay > 5")
assert t.count() == 4

# deltalake: delete all rows
t.delete("TRUE")
assert t.count() == 0

# lance: delete by keys
t.delete(keys=[{"id": 1}, {"id": 2}])
assert t.count() == 4

# deltalake: update by an expression
t.update({"delay": "delay + 1"}, where="carrier = 'AA'")
assert t.to_arrow("id = 1").column("delay").to_pylist() == [1.0]

# deltalake: update by new values
t.update({"carrier": rs.lit("X"), "delay": 0.5, "day": datetime.date(2026, 2, 1)})
assert t.count("carrier = 'X' AND delay = 0.5") == 6

# deltalake: merge with clauses
news = pa.table({"id": [6, 7], "carrier": ["B6", "DL"], "delay": [0.0, 1.0], "day": [None, None]})
t.merge(
    news, "target.id = source.id"
).when_matched_update_all().when_not_matched_insert_all().execute()
assert t.count() == 7

# lance: merge on a column
t.merge([{"id": 1}], on="id").when_matched_delete().execute()
assert t.count() == 5

# deltalake: merge with conditions and the source's absence
(
    t.merge([{"id": 1, "delay": 50.0}], "t.id = s.id", source_alias="s", target_alias="t")
    .when_matched_update({"delay": "s.delay"}, "s.delay > t.delay")
    .when_not_matched_by_source_delete("t.carrier = 'UA'")
    .execute()
)
assert (t.count(), t.count("delay = 50")) == (4, 1)

# deltalake: overwrite the rows of a condition
t.overwrite([{"id": 1, "carrier": "AA", "delay": 0.0, "day": None}], where="carrier = 'AA'")
assert t.count() == 4

# deltalake: a version of the past
t.delete("id = 1")
assert rs.open_table(t.uri, version=0).count() == 6

# deltalake: the time of the past
before = t.history()[0].timestamp
t.delete("id = 1")
assert rs.open_table(t.uri, as_of=before).count() == 6

# deltalake: the history
assert t.history()[0].operation == "create"

# deltalake: restore a version
t.delete("TRUE")
t.restore(0)
assert t.count() == 6

# deltalake: the change feed
t.delete("id = 1")
assert t.changes(1).read_all().column("_change_type").to_pylist() == ["delete"]

# lance: a tag
t.tag("before", version=0)
t.delete("TRUE")
assert rs.open_table(t.uri, version="before").count() == 6

# lance: add a column
with t.alter() as alteration:
    alteration.add_column("note", pa.string())
assert t.schema.names[-1] == "note"

# lance: drop a column
with t.alter() as alteration:
    alteration.drop_column("day")
assert "day" not in t.schema.names

# deltalake: rows with a new column
t.upsert(
    [{"id": 1, "carrier": "AA", "delay": 0.0, "day": None, "gate": "B7"}], schema_mode="merge"
)
assert t.schema.names[-1] == "gate"

# deltalake: compact
t.upsert(t.head(1))
t.compact()
assert t.detail()["parts"] == 1

# deltalake: vacuum
t.vacuum()

# deltalake: properties
t.set_properties({"checkpoint_interval": 8})
assert t.detail()["properties"]["checkpoint_interval"] == "8"

# deltalake: the schema and the facts of a table
assert (t.schema.field("id").type, t.detail()["key"]) == (pa.int64(), ["id"])

# datafusion: SQL over a table
ctx = rowsieve.providers.datafusion.SessionContext()
ctx.register_table("flights", t)
assert ctx.sql("SELECT sum(delay) AS s FROM flights").to_pydict() == {"s": [22.5]}

# duckdb: SQL that changes a table
ctx = rowsieve.providers.datafusion.SessionContext()
ctx.register_table("flights", t)
ctx.sql("UPDATE flights SET delay = 0 WHERE carrier = 'AA'")
assert t.count("delay = 0") == 3

# duckdb: a catalog with names
lake = rs.Catalog(folder / "lake")
lake.create_namespace("db")
lake.create_table("db.t", {"a": [1, 2]}, ["a"])
assert lake.sql("SELECT max(a) AS m FROM db.t").to_pylist() == [{"m": 2}]

# own: a transaction
with t.transaction() as tx:
    tx.delete("id = 1")
    tx.upsert([{"id": 9, "carrier": "AA", "delay": 0.0, "day": None}])
assert (t.count(), t.version) == (6, 1)

# own: what a read skips
assert "part" in str(t.scan("id > 100").explain())

# own: a copy of a table
assert t.clone(folder / "copy").count() == 6

# deltalake: some columns as a pandas frame
assert list(t.to_pandas(columns=["id"]).columns) == ["id"]

# deltalake: rows that match filters of tuples
assert len(t.to_pandas([("delay", ">", 5)])) == 2

# polars: the names of the columns
assert t.columns == ["id", "carrier", "delay", "day"]

# polars: the shape
assert t.shape == (6, 4)

# polars: a lazy frame over the dataset
lazy = pl.scan_pyarrow_dataset(t.to_dataset())
assert lazy.filter(pl.col("delay") > 5).collect().height == 2

# polars: means of groups
assert t.to_polars().group_by("carrier").agg(pl.col("delay").mean()).height == 3

# pandas: the largest value of each group
assert t.to_pandas().groupby("carrier")["delay"].max()["AA"] == 7

# pyarrow: a reader from the object
assert pa.RecordBatchReader.from_stream(t).read_all().num_rows == 6

# pyarrow: count in the dataset
assert t.to_dataset().count_rows(filter=pc.field("delay") > 5) == 2

# pyarrow: the first rows of the dataset
assert t.to_dataset().head(2).num_rows == 2

# duckdb: register the object under a name
connection = duckdb.connect()
connection.register("f", t)
assert connection.sql("SELECT max(id) FROM f").fetchall() == [(6,)]

# duckdb: write the rows to a file
duckdb.sql(f"COPY (SELECT * FROM t) TO '{folder}/rows.parquet'")
assert rs.create_table(folder / "u", folder / "rows.parquet", ["id"]).count() == 6

# duckdb: parameters of a condition
assert t.count("delay > $least AND carrier = $name", params={"least": 5, "name": "AA"}) == 1

# lance: rows of dicts
t.upsert([{"id": 7, "carrier": "X", "delay": None, "day": None}])
assert len(t) == 7

# lance: rows of lists
t.upsert({"id": [1, 8], "carrier": ["X", "X"], "delay": [0.5, None], "day": [None, None]})
assert len(t) == 7

# lance: rename a column
t.rename_column("delay", "late")
assert t.columns == ["id", "carrier", "late", "day"]

# lance: open a tag
t.tag("first", version=0)
assert rs.open_table(t.uri, version="first").count() == 6

# polars: delete by an expression
t.delete(pl.col("id") == 1)
assert len(t) == 5

# lance: delete matched rows by a merge
t.merge(pa.table({"id": [1, 9]}), on="id").when_matched_delete().execute()
assert len(t) == 5

# deltalake: the last commit
assert t.history(1)[0].operation == "create"

# duckdb: values of Python as new values
t.update({"day": datetime.date(2026, 2, 1), "delay": None}, where="id = 1")
assert t.count("day = date '2026-02-01' AND delay IS NULL") == 1

# own: rows of one version before another
t.update({"delay": 3.5}, where="id = 1")
assert t.to_arrow("delay = 3.5").num_rows == 1
assert rs.open_table(t.uri, version=0).count("delay = 3.5") == 0

# duckdb: a query that begins with FROM
assert duckdb.sql("FROM t WHERE delay > 5 ORDER BY id").fetchall()[0][0] == 2

# duckdb: a join of two tables by their variables
names = rs.create_table(folder / "names", {"carrier": ["AA"], "name": ["American"]}, ["carrier"])
assert duckdb.sql("SELECT count(*) FROM t JOIN names USING (carrier)").fetchall() == [(3,)]

# duckdb: a table of the engine from ours
connection = duckdb.connect()
connection.register("t", t)
connection.sql("CREATE TABLE late AS FROM t WHERE delay > 5")
assert connection.sql("FROM late").df()["id"].tolist() == [2, 5]

# duckdb: upsert the result of a query
t.upsert(duckdb.sql("SELECT id, carrier, delay + 1 AS delay, day FROM t WHERE id = 1"))
assert t.count("delay = 1 AND id = 1") == 1

# polars: a lazy frame of a folder
assert rs.scan_polars(t.uri).select("id").filter(pl.col("id") > 4).collect().height == 2

# polars: a query of the frame
assert pl.SQLContext(t=t.to_polars()).execute("SELECT count(*) AS n FROM t").collect()["n"][0] == 6

# polars: a frame of a scan
assert pl.DataFrame(t.scan("delay > 5", columns=["id"])).columns == ["id"]

# polars: upsert a frame with a changed column
t.upsert(t.to_polars().with_columns(pl.col("delay").fill_null(0.0)))
assert t.count("delay IS NULL") == 0

# polars: upsert what a lazy frame collects
t.upsert(rs.scan_polars(t).filter(pl.col("id") == 1).with_columns(delay=pl.lit(4.0)).collect())
assert t.to_arrow("id = 1").column("delay").to_pylist() == [4.0]

# polars: rows of chosen values
assert t.to_arrow(pl.col("carrier").is_in(["AA", "B6"])).num_rows == 4

# lance: rows by their places
assert t.to_dataset().take([0, 2]).column("id").to_pylist() == [1, 3]

# lance: a scanner with columns and a filter
scanner = t.to_dataset().scanner(columns=["id"], filter=pc.field("delay") > 5)
assert scanner.to_table().num_rows == 2

# lance: insert the rows whose key is new
news = t.to_arrow("id < 3").to_pandas().assign(id=[1, 8], carrier="X")
t.merge(news, on="id").when_not_matched_insert_all().execute()
assert (len(t), t.count("carrier = 'X'")) == (7, 1)

# lance: write batches of a reader
t.upsert(pa.RecordBatchReader.from_batches(t.schema, t.to_arrow("id < 3").to_batches()))
assert t.count() == 6

# lance: open the version before the last
t.delete("id = 1")
assert rs.open_table(t.uri, version=t.version - 1).count() == 6

# deltalake: what a vacuum would remove
assert t.vacuum(dry_run=True).file_count == 0

# deltalake: restore with a named argument
t.delete("TRUE")
t.restore(version=0)
assert len(t) == 6

# deltalake: a table with properties
made = rs.create_table(folder / "new", {"a": [1]}, properties={"checkpoint_interval": 5})
assert made.detail()["properties"]["checkpoint_interval"] == "5"

# deltalake: the files of the newest version
assert t.files().num_rows >= 0

# deltalake: rows of a partition of dates
assert t.to_pandas("day BETWEEN '2026-01-02' AND '2026-01-03'")["id"].tolist() == [2, 3]

# pandas: rows by a list of keys
assert t.to_pandas("id IN (1, 3, 99)")["id"].tolist() == [1, 3]

# pandas: a frame with its index as the key
frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index([7, 8], name="k")).reset_index()
assert rs.create_table(folder / "new", frame, ["k"]).count("k = 7") == 1

# pyarrow: filter and sort the table
assert pa.table(t).filter(pc.field("delay") > 5).sort_by("id").column("id").to_pylist() == [2, 5]
"""
