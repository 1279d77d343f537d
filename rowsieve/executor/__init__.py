"""Executes a plan: reads parts, merges versions, filters rows and builds output batches."""
