"""Table functions of our DataFusion session."""
