"""Procedures: operations on a table that a statement calls by name.

A `Procedure` runs where it is called. A `DistributedProcedure` reads and writes the data of one
table on the workers of an engine: `begin` and `finish` run on the coordinator, `work` runs on any
worker, and `finish` commits once.
"""
