"""A small suite that compares us with peers: reads, upserts, compaction, opening and planning."""
