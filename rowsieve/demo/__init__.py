"""A year of flights out of New York as a story of change data, told on real rows."""
