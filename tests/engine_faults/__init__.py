"""Register of engines' faults that the package works around, each with a probe."""
