"""Values of other systems that a column with an alias stores: ranges, arrays, geometries."""
