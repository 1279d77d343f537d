"""What expressions can call: one row per function, with an evaluator over whole arrays."""
