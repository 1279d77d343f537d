"""The demo: loads, changes and queries a year of real flights from New York."""
