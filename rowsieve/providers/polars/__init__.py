"""Tables as Polars frames."""
