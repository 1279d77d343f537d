"""Differential tables: appending updates, frontiers, subscriptions and conversions."""
