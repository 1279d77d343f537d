"""Branches and tags of a table: create, list and drop them, and publish a branch."""
