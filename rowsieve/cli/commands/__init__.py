"""The commands, one file for what they are for; each is imported when it runs."""
