"""Reads SQL text: limits, tokens, sqlglot's tree, and each node as a condition or an operand."""
