"""Plan scans: find the parts that can match, and group them into pieces with disjoint keys."""
