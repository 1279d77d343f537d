"""Other languages of filters, to predicates and back."""
