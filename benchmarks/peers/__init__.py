"""The systems that the benchmarks compare, one file each, behind one small protocol.

A file imports its own system and what `benchmarks.data` needs (numpy, pyarrow), nothing more: each
runs in a process of its own, some of them in an environment where nothing else is installed.
"""
