"""One log that many tables share: each entry of it holds entries of the tables that it changes.

    <database>/_database/log/<version, 20 digits>         one commit of all tables that it names
    <database>/_database/log/<version, 20 digits>.root    the pages of a version
    <database>/_database/pages/<uuid>                     some tables: their names and entries
    <database>/_tables/<table id>/…                       all else of a table, as in one alone

`SectionStore` is the store of one of these tables. It keeps the table's log entries as sections of
the shared entries, and passes all other objects on, so that a table need not know of the others.
"""
