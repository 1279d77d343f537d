"""A database: many tables that share one log, so that a commit can change several of them."""
