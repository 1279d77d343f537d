"""The order of rows: keys, their words and ranks, curves, and the order of tables without a key."""
