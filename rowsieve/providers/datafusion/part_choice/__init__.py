"""The parts of our tables that a query must read, found before it runs."""
