"""Writes a version of a table as a snapshot of Iceberg's format version 3."""
