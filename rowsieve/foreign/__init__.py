"""Files and tables of other writers: read in place, or imported without a copy."""
