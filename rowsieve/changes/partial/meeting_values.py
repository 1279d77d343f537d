"""The values that meet in one column of a key, and the rules that choose or combine them.

The candidates of a key are its value before the changes, if there is one, and then the values that
the changes give, in the order in which they apply. A rule makes one value of them. Every rule is
associative: combining the first values, and the result with the rest, gives the same. So it does
not matter how changes are cut into batches. `json_merge` is associative where a path does not
change between an object and another value.

| rule           | value                                         | commutes | idempotent |
|----------------|-----------------------------------------------|----------|------------|
| last           | the last one; NULL is a value                 | no       | yes        |
| first          | the first one; NULL is a value                | no       | yes        |
| last_not_null  | the last one that is not NULL                 | no       | yes        |
| sum            | the exact sum, NULL aside                     | yes      | no         |
| min, max       | the least, the greatest; NaN is the greatest  | yes      | yes        |
| union_of_lists | the items of all lists, each once, as they came | no     | yes        |
| json_merge     | each merged into those before (RFC 7396)      | no       | yes        |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.types.logical import Float, LogicalType
from rowsieve.types.ordering.keys import KeyColumns, sort_form

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The values of one column that meet, by key.

    `members` (m,) are places in `pool`, in the order in which they apply to their key, and `owners`
    (m,), ascending, the number of that key, of `count` keys. A key without a member gets NULL.
    """

    pool: pa.Array
    type: LogicalType
    members: Places
    owners: Places
    count: int

    def without_nulls(self) -> Candidates:
        """The candidates that are not NULL."""
        is_valid = pc.is_valid(self.pool.take(pa.array(self.members)))
        present = np.asarray(is_valid.to_numpy(zero_copy_only=False), dtype=bool)
        return Candidates(
            self.pool, self.type, self.members[present], self.owners[present], self.count
        )

    def values(self) -> pa.Array:
        """(m,) the values."""
        return self.pool.take(pa.array(self.members))

    def chosen(self, members: Places, owners: Places) -> pa.Array:
        """(count,) the value of each key: of several members of a key the last one."""
        places = np.full(self.count, -1, dtype=np.int64)
        places[owners] = members
        return self.pool.take(pa.array(places, mask=places < 0))


def last(candidates: Candidates) -> pa.Array:
    """The last value of each key."""
    return candidates.chosen(candidates.members, candidates.owners)


def first(candidates: Candidates) -> pa.Array:
    """The first value of each key."""
    return candidates.chosen(candidates.members[::-1], candidates.owners[::-1])


def last_not_null(candidates: Candidates) -> pa.Array:
    """The last value of each key that is not NULL."""
    return last(candidates.without_nulls())


def least(candidates: Candidates) -> pa.Array:
    """The least value of each key, NULL aside."""
    return first(_by_value(candidates.without_nulls()))


def greatest(candidates: Candidates) -> pa.Array:
    """The greatest value of each key, NULL aside."""
    return last(_by_value(candidates.without_nulls()))


def _by_value(candidates: Candidates) -> Candidates:
    """The candidates of each key in the order of their values; -0.0 is before 0.0."""
    values = candidates.values()
    forms = [pa.array(candidates.owners), sort_form(values, candidates.type)]
    if isinstance(candidates.type, Float):
        negative = np.signbit(values.to_numpy(zero_copy_only=False))
        forms.append(pa.array((~negative).astype(np.int8)))
    order = KeyColumns(tuple(forms)).sort()
    return Candidates(
        candidates.pool,
        candidates.type,
        candidates.members[order],
        candidates.owners[order],
        candidates.count,
    )
