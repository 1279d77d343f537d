"""Events of change data capture tools become one Arrow table of changes for each table."""
