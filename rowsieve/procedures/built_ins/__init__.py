"""The procedures that come with Rowsieve; `built_in` lists them."""
