"""Check the arguments of public calls against the annotations of the signature.

`checked` wraps a function and `checked_methods` a class. An argument that does not have its
annotated type raises InvalidInput before the function runs. Rules that a type cannot express are
checked where the value is used.
"""

from rowsieve.arguments.checking import checked, checked_methods, checked_names
from rowsieve.arguments.kinds import ANY_TEXT, Example

__all__ = ["ANY_TEXT", "Example", "checked", "checked_methods", "checked_names"]
