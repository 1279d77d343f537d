"""Plans of differential tables: which updates a read at a time needs."""
