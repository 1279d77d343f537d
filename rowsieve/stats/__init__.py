"""Statistics of columns: what a part may say about its rows before it is read."""
