"""Arguments of public calls, checked against the annotations of the signature.

`checked` wraps a function and `checked_methods` a class: each argument must be of the type that its
annotation says, or the call is InvalidInput before anything happens. Rules that a type cannot say
stay where the value is used.
"""

from rowsieve.arguments.checking import checked, checked_methods
from rowsieve.arguments.kinds import ANY_TEXT, Example

__all__ = ["ANY_TEXT", "Example", "checked", "checked_methods"]
