"""DataFusion reads our tables."""
