"""Predicates: the tree, its binding to a schema, its exact evaluation and its interpretation.

`bind` gives names and constants their types, `evaluate` says what a predicate is on each row of a
batch, `interpret` what it may be on parts of which only statistics are known. The interpreter never
refutes a part that holds a row the evaluator keeps, or one that it fails on.
"""
