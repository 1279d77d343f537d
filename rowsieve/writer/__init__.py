"""The writer: changes that are durable in a local log before they are commits of a table."""
