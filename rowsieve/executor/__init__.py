"""Reading a plan: sources, the merge, packaging."""
