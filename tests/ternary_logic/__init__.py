"""Conditions over random tables: each reader keeps the rows that its engine keeps from memory."""
