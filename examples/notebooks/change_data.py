# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Change data, from events to a second table
#
# Accounts change all day. Their changes come in batches, sometimes twice and sometimes too late;
# a second table follows them.

# %%
import tempfile

import pyarrow as pa

import rowsieve as rs

folder = tempfile.mkdtemp()
schema = pa.schema(
    [("account", pa.int64()), ("owner", pa.string()), ("cents", pa.int64()), ("lsn", pa.int64())]
)
accounts = rs.create_table(f"{folder}/accounts", schema, key=["account"], sequence="lsn")


def changes(*rows: tuple[int, str, int, int]) -> pa.Table:
    """Changes as (account, owner, cents, lsn)."""
    columns = list(zip(*rows, strict=True))
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


accounts.upsert(changes((1, "Ada", 100, 10), (2, "Max", 50, 11), (3, "Eve", 70, 12)))
accounts

# %% [markdown]
# ## Late and repeated changes
#
# The table orders the changes of a key by `lsn`. A change that a newer one has overtaken changes
# nothing, in whatever order they come.

# %%
accounts.upsert(changes((2, "Max", 80, 20)))
accounts.upsert(changes((2, "Max", 60, 15)))  # late: 20 has overtaken it
accounts.scan(order_by_key=True).to_arrow().to_pylist()

# %% [markdown]
# A token makes a batch take effect once: the second call returns the first commit.

# %%
batch = changes((4, "Kim", 5, 30))
first = accounts.upsert(batch, token=("loader", 1))
again = accounts.upsert(batch, token=("loader", 1))
(first.version, again.version)

# %% [markdown]
# ## What changed?
#
# The change feed has the rows that commits inserted, updated and deleted.

# %%
accounts.delete("account = 3")
feed = accounts.changes(1).read_all()
feed.select(["_change_type", "_commit_version", "account", "cents"])

# %% [markdown]
# ## Follow it
#
# A second table applies the feed from the version that it has seen, and remembers that version
# with its commit.

# %%
balances = rs.create_table(
    f"{folder}/balances",
    pa.schema([("account", pa.int64()), ("cents", pa.int64())]),
    key=["account"],
)
start = accounts.scan(columns=["account", "cents"], version=1).to_arrow()
balances.upsert(start, metadata={"seen": "1"})
news = accounts.changes(2).read_all().to_pylist()
kept = {row["account"]: row for row in news if row["_change_type"] != "update_preimage"}
written = [row for row in kept.values() if row["_change_type"] != "delete"]
balances.upsert(pa.Table.from_pylist(written).select(["account", "cents"]))
for row in kept.values():
    if row["_change_type"] == "delete":
        balances.delete(f"account = {row['account']}")
same = accounts.scan(columns=["account", "cents"], order_by_key=True).to_arrow()
balances.scan(order_by_key=True).to_arrow().equals(same)

# %% [markdown]
# ## How it looks on disk
#
# The parts lie over the keys; hidden rows are those that newer parts have replaced.

# %%
accounts.maintenance_advice()

# %%
accounts.compact()
accounts.history()
