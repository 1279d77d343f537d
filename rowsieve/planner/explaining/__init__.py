"""Explanations in detail: row groups, the tree of a condition, and the picture of a query."""
