"""Benchmarks: the bars that a release must meet, and a small suite that compares us with peers.

`python -m benchmarks.bars` and `python -m benchmarks.suite`. Every case runs in a process of its
own, with the systems interleaved in it, and checks its answers before it times them.
"""
