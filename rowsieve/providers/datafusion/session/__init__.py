"""What the parts of a statement ask of our session, and the values that it answers with."""
