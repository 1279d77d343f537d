"""An event order by column: a late event changes what nothing newer has set."""
