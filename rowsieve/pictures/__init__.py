"""Pictures: plain data to HTML with inline SVG, for notebooks, files and the page of a table.

Knows no table. Every picture is a subclass of `Picture`, and has all its facts.

Soundness: each name and value goes through `markup.text`. There is no script and no request.
"""
