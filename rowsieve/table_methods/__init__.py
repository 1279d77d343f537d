"""The methods of `Table`, by what they do: read, hand to engines, change rows."""
