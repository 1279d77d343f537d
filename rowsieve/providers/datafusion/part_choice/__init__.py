"""The parts of our tables that a query must read, known before it runs."""
