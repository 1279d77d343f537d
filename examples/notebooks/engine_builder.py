# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Build an engine on plans
#
# An engine needs three things of a table: which files to read, which of their rows count, and
# what is left of the condition. A plan has all of them, and travels between processes.

# %%
import tempfile

import pyarrow as pa

import rowsieve as rs
from rowsieve import predicate as p

folder = tempfile.mkdtemp()
rows = pa.table({"id": range(1_000), "v": [n % 10 for n in range(1_000)]})
table = rs.create_table(f"{folder}/t", rows, key=["id"])
for start in range(1_000, 5_000, 1_000):
    ids = range(start, start + 1_000)
    table.upsert(pa.table({"id": ids, "v": [n % 10 for n in ids]}))
table.upsert(pa.table({"id": [7, 1_007], "v": [99, 99]}))
table.delete("id = 8")
table

# %% [markdown]
# ## Which parts can match?
#
# A condition is a tree. Over the statistics of each part it is refuted, or not; the explanation
# names the conjunct and the bounds.

# %%
scan = table.scan("id < 20 AND v > 5")
print(scan.explain())

# %% [markdown]
# ## A resolved plan
#
# `resolve=True` reads footers, Bloom filters and page indexes, and leaves out the rows that newer
# parts hide: an engine needs to read Parquet, and no more.

# %%
plan = scan.plan(resolve=True)
again = rs.ScanPlan.from_bytes(plan.to_bytes())
(len(plan.splits), again == plan)

# %% [markdown]
# ## Translate the condition
#
# Other languages get what they can express; the residual is what they cannot.

# %%
translation = rs.translate("id < 20 AND v > 5", "postgres", target="polars", schema=table.schema)
translation

# %%
print(rs.translate("id < 20 AND v > 5", "postgres", target="spark", schema=table.schema).expression)

# %% [markdown]
# ## Rows are sets
#
# Which rows count is a set of numbers, as runs or as a bitmap; engines with deletion vectors take
# them as they are.

# %%
rows_to_read = p.RowSet.from_ranges([(0, 8), (9, 20)], 1_000)
(len(rows_to_read), list(rows_to_read.ranges()))
