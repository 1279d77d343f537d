# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # An analyst looks at sales
#
# Three months of sales arrive day by day, a price is corrected afterwards, and questions follow.
# Each cell shows its answer, and how little was read for it.

# %%
import tempfile
from datetime import date, timedelta

import pyarrow as pa

import rowsieve as rs
from rowsieve.providers.datafusion import SessionContext

folder = tempfile.mkdtemp()


def sales_of(day: int) -> pa.Table:
    """A thousand sales of one day."""
    numbers = range(day * 1_000, (day + 1) * 1_000)
    return pa.table(
        {
            "sale": pa.array(numbers, pa.int64()),
            "day": [date(2026, 8, 1) + timedelta(days=day)] * 1_000,
            "shop": [("north", "south", "harbour", "station")[n % 4] for n in numbers],
            "cents": pa.array([100 + n * 7 % 900 for n in numbers], pa.int64()),
        }
    )


sales = rs.create_table(f"{folder}/sales", sales_of(0), key=["sale"])
for day in range(1, 92):
    sales.upsert(sales_of(day))
sales

# %% [markdown]
# A prompt shows a table as a summary. `show` prints rows as a data frame does, and `summarize`
# describes the columns, mostly from statistics.

# %%
sales.show(5)

# %%
sales.summarize()

# %% [markdown]
# ## Ask in SQL
#
# Our session of DataFusion reads the newest version for each statement.

# %%
session = SessionContext()
session.register_table("sales", sales)
session.sql(
    "SELECT shop, sum(cents) / 100.0 AS total FROM sales "
    "WHERE day >= DATE '2026-10-01' GROUP BY shop ORDER BY total DESC"
).to_arrow_table()

# %% [markdown]
# ## Why was so little read?
#
# A condition on any column skips the parts whose statistics contradict it. The picture has the
# rows, pages and parts that were considered, and what skipped them.

# %%
late = sales.scan("day >= DATE '2026-10-28' AND shop = 'harbour'")
print(f"{late.to_arrow().num_rows} rows, {late.metrics.parts_read} parts read")
late.explain(analyze=True)

# %% [markdown]
# ## A correction
#
# One shop had written a wrong price for a day. The update writes the rows that it changes, and
# the version before stays readable.

# %%
before = sales.version
sales.update({"cents": "cents + 50"}, where="shop = 'station' AND day = DATE '2026-08-02'")
now = sales.scan("day = DATE '2026-08-02'", columns={"total": "cents"}).to_arrow()
then = sales.scan("day = DATE '2026-08-02'", columns={"total": "cents"}, version=before).to_arrow()
sum(now["total"].to_pylist()) - sum(then["total"].to_pylist())

# %%
sales.history()
