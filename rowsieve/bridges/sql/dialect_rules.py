"""How dialects differ: groups of fields of `dialects.Dialect`, named for what an engine does.

Readers and writers ask for the behaviour, never for the name of a dialect: a new dialect is a row
of `dialects`, and handlers of the functions that it alone has. The defaults are those of the SQL
standard or, where it is silent, the refusal.

Soundness: a flag allows a construct only where its engine has been run with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Subscripts(Enum):
    """What `list[i]` takes, and where it counts from."""

    CONSTANT = "constant"  # a constant place from 1
    FROM_START = "from start"  # also a column; NULL below 1
    BOTH_ENDS = "both ends"  # also a column; -1 is the last item
    TYPED = "typed"  # from 0 in a list, a key in a map: `spark_calls` knows the types


class AnyOf(Enum):
    """What `value = ANY(list)` is to the engine."""

    REFUSED = "refused"
    STANDARD = "standard"  # NULL if no item is equal and one is NULL
    FUNCTION = "function"  # array_has(list, value), which its optimiser rewrites, too
    QUERY = "query"  # a query over the items: FALSE for a NULL list


class Contains(Enum):
    """What `array_contains(list, value)` gives if no item is equal and one is NULL."""

    REFUSED = "refused"
    FALSE = "false"
    NULL = "null"


class ListPair(Enum):
    """The lists for which a function of two lists gives our values."""

    ANY = "any"
    WITHOUT_NULL = "constants without NULL"
    NONE = "none"


class LikeLists(Enum):
    """The form of several patterns after LIKE ANY and LIKE ALL."""

    REFUSED = "refused"
    VALUES = "values"  # ('a%', 'b%')
    ONE_LIST = "one list"  # (ARRAY['a%', 'b%'])


class SimilarTo(Enum):
    """What `SIMILAR TO` matches."""

    REFUSED = "refused"
    PATTERN = "pattern"  # the whole text, by a pattern of the SQL standard
    WHOLE_REGEX = "whole regex"  # the whole text, by a regular expression
    PART_REGEX = "part regex"  # any part of it, by a regular expression without ESCAPE


class AtTimeZone(Enum):
    """What `x AT TIME ZONE z` gives."""

    REFUSED = "refused"
    CONVERTED = "converted"  # local time of an instant, the instant of a local time
    DISPLAYED = "displayed"  # the same instant; its fields and dates are local


@dataclass(frozen=True, slots=True)
class ListRules:
    """How lists, structs and maps are read and written."""

    subscripts: Subscripts = Subscripts.CONSTANT
    subscripts_nest: bool = True  # in x[1:2][1] the second subscript is of the slice
    slices: bool = False  # x[1:2]
    element: str = "{list}[{place}]"  # writes an element; `index` is its place from 0
    keyed_elements: bool = False  # element_at(map, 'key')
    one_value_lists: frozenset[str] = frozenset()  # functions of map and key: a list of at most one
    any_of: AnyOf = AnyOf.REFUSED
    contains: Contains = Contains.REFUSED
    overlaps: ListPair = ListPair.NONE
    contains_all: ListPair = ListPair.NONE
    in_list_column: bool = False  # value IN list_column
    missing_place_is_zero: bool = False  # array_position of a missing value; otherwise NULL
    dimensions: bool = False  # array_length(x, 1), which is NULL for an empty list
    braces: bool = False  # '{1,2}' is a list
    compares_rows: bool = False  # (a, b) < (1, 2)
    shows_members_of_null: bool = False  # a field of a NULL struct has the value stored below it
    forgets_null_members: bool = False  # its optimiser loses a NULL in one of several lists
    merges: bool = False  # its optimiser merges lists about one value


@dataclass(frozen=True, slots=True)
class TextRules:
    """How patterns and text are read and written."""

    like_escape: str | None = "\\"  # the default escape character of LIKE
    empty_escape: bool = False  # ESCAPE '' turns escaping off
    strict_escapes: bool = False  # an escape stands only before a wildcard and itself
    like_lists: LikeLists = LikeLists.REFUSED
    glob: bool = False  # GLOB
    similar_to: SimilarTo = SimilarTo.REFUSED
    regex_match: str = "{0} ~ {1}"  # writes a match by a regular expression
    substring_by_regex: bool = False  # substring(text FROM 'pattern')
    trims_all_spaces: bool = False  # trim(s) removes all Unicode spaces
    orders_by_collation: bool = False  # text does not order by code points; it has COLLATE "C"


@dataclass(frozen=True, slots=True)
class Moves:
    """Our function that `date + interval` is: `add_interval` gives a timestamp, `shift` a date."""

    function: str
    by_clock: str  # by an interval with hours, minutes or seconds

    @property
    def differ(self) -> bool:
        """Whether a timestamp needs another function if the interval has a time of day."""
        return self.function != self.by_clock

    def of(self, micros: int) -> str:
        """Return the function for an interval with these microseconds."""
        return self.by_clock if micros else self.function


@dataclass(frozen=True, slots=True)
class Bins:
    """The function of bins: `function(width, time, origin)`."""

    function: str
    by_months: bool = True  # a width of months
    origin: int | None = None  # the default in microseconds; None: it must be given
    month_origin: int | None = None  # the same for bins of months


@dataclass(frozen=True, slots=True)
class TimeRules:
    """How dates, times, intervals and zones are read and written."""

    timestamp_is_instant: bool = False  # TIMESTAMP names an instant
    nanoseconds: bool = False  # a TIMESTAMP has nanoseconds, which end in 2262, in bins, too
    cut_units: frozenset[str] = frozenset()  # of columns that constants are cut to
    named_zone_texts: bool = False  # '2024-01-01 12:00 Europe/Berlin' is an instant
    far_texts: bool = False  # it has text for days outside of the years 1 to 9999
    moves: Moves | None = None
    mixed_intervals: bool = True  # one interval has both months and days
    interval_functions: frozenset[str] = frozenset()  # that make a constant interval
    interval_spans: bool = False  # INTERVAL '1 02:03:04' DAY TO SECOND
    interval_quarters: bool = True  # INTERVAL '1 quarter'
    days_before_hours: bool = False  # intervals compare by days first: 25 hours < 1 day
    difference_is_days: bool = True  # DATE - DATE is a number
    epoch_is_float: bool = False  # EXTRACT(EPOCH FROM x) is a double
    date_part_is_float: bool = False  # date_part('second', x) is a double, EXTRACT a decimal
    bins: Bins | None = None
    at_time_zone: AtTimeZone = AtTimeZone.REFUSED
    offset_zones: bool = False  # '+05:30' is a zone, east of Greenwich
    zone_database: str = ""  # the suffix of its zones in `time_zones`, if it has other changes
    truncates_in_zone: bool = False  # date_trunc('day', x, 'Europe/Berlin')
    declared_zones: bool = False  # casts and fields go by the zone that a column declares
    now_in_session_zone: bool = False  # now() has the session's zone, not UTC
    has_year_zero: bool = True  # otherwise the year before 1 is -1
