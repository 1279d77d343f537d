"""Reading of messages that differ in some values only, by what they share."""
