"""Delta tables as a form in which other engines read ours."""
