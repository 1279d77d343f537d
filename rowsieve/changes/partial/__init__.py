"""Changes that give some columns of a row: the others keep their values, or are combined."""
