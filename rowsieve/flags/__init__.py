"""Named switches of reads and writes, and the rules by which some tables get other values."""
