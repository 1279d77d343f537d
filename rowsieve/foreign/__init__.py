"""Files and tables of others: read in place, imported without a copy, and written for others."""
