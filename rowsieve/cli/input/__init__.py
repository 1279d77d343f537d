"""The files that commands read: formats, and the types of their columns."""
