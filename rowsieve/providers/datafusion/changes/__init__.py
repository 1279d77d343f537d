"""Statements that change our tables: INSERT, UPDATE, DELETE, MERGE and TRUNCATE."""
