"""Parts of the abstract interpreter: abstract values, facts, narrowing, fast paths."""
