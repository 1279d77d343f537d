"""Values of events become values of columns: by their JSON kind, and what is declared of them."""
