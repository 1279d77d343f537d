"""Functions of integers, floats and decimals."""
