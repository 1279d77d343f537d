"""The prompt of `sql`, and what runs its statements."""
