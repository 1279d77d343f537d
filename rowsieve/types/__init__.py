"""Logical types, schemas with field ids, and the Arrow types that store them."""
