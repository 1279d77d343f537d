"""Builds the site of the documentation: `python -m tools.site`, which `make docs` calls."""
