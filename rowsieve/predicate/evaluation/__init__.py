"""Parts of the concrete evaluator: alternatives at once, nested values, sorted IN lists."""
