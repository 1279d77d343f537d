"""The files of a table: parts, the commit log, checkpoints."""
