"""The functions of expressions: one row per function, with a vectorised evaluator."""
