"""A small suite: reads of clean and changed tables, upserts, compaction, opening, beside peers."""
