"""The facts that pictures show, collected from a table, and the methods of `Table` for them."""
