"""Pages of a table or catalog over HTTP, read-only: `rowsieve ui`.

Soundness: there is no route that changes anything, and none that opens a table which was not given
when the server began. It listens on loopback unless told otherwise, and answers only requests that
name it, so that a page of another site cannot read from it.
"""
