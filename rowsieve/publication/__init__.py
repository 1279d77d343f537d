"""Publishes versions of a table as snapshots of other formats, over the same files.

Soundness (invariant 44): a published snapshot has the rows of one version of the table, or it is
not written. It is written after the commit, and never fails the commit.
"""
