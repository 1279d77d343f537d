"""Lets readers of Iceberg read the files of a version: `table.export("iceberg")`."""
