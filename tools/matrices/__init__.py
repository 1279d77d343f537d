"""The tables of `docs/reference/bridges`, generated from those of the bridges.

`python -m tests.bridges.test_matrix` writes them anew.
"""
