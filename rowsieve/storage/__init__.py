"""What lies in a table's folder: parts, the log, checkpoints."""
