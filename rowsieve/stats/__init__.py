"""Statistics of columns: facts about a part's rows that are known before it is read."""
