"""Transactions: several changes of a table, and reads that see them, as one commit or none."""
