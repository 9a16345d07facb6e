"""What an Arrow column may hold and its type does not: years outside 1 to 9999, parts of an interval's last field, keys of a MAP twice."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from deltic.intervals import FIRST, UNITS
from deltic.types import Type


class Outside(NamedTuple):
    """A value that the type does not have: its row, and what it is, for messages."""

    row: int
    what: str


def outside(type: Type, column: pa.Array | pa.ChunkedArray[Any]) -> Outside | None:
    """The first row with a value that the type does not have; None if there is none. Cost: a pass where the type has such values."""
    if type.is_nested:
        return _in_parts(type, column) if _may_have(type) else None
    if not _may_have(type) or column.null_count == len(column):
        return None
    if type.is_interval:
        return _in_interval(type, column)
    first, last = (pa.scalar(end, column.type) for end in type.kind.ends or ())
    row: int = pc.index(pc.or_(pc.less(column, first), pc.greater(column, last)), True).as_py()
    return None if row < 0 else Outside(row, f"a {type.sql} outside the years 1 to 9999")


def _in_interval(type: Type, column: pa.Array | pa.ChunkedArray[Any]) -> Outside | None:
    numbers, unit = column.cast(pa.int64()), UNITS[type.fields[1]]
    if type.is_day_time and (row := pc.index(pc.less(numbers, FIRST), True).as_py()) >= 0:
        return Outside(row, f"an {type.sql} of less than {FIRST} microseconds")
    row = pc.index(pc.equal(pc.multiply(pc.divide(numbers, unit), unit), numbers), False).as_py()
    return Outside(row, f"an {type.sql} with a part of a {type.fields[1].lower()}") if row >= 0 else None


@cache
def _may_have(type: Type) -> bool:
    return type.kind.ends is not None or type.is_interval or any(_may_have(part.type) for part in type.parts)


def _in_parts(type: Type, column: pa.Array | pa.ChunkedArray[Any]) -> Outside | None:
    """As `outside`, of a nested type."""
    array = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) and column.num_chunks else column
    if type.name == "MAP":
        return _in_parts(type.entries, array.cast(type.entries.arrow))
    if type.name == "STRUCT":
        found = [outside(part.type, values) for part, values in zip(type.parts, array.flatten(), strict=True)]
        return min((one for one in found if one is not None), default=None)
    element = outside(type.parts[0].type, array.flatten())
    return None if element is None else Outside(int(pc.list_parent_indices(array)[element.row].as_py()), element.what)


def has_distinct_keys(value: Any, type: Type) -> bool:
    """Whether no MAP in a frozen value has a key that is NULL or comes twice."""
    if value is None or not type.is_nested:
        return True
    if type.name == "STRUCT":
        return all(has_distinct_keys(part, f.type) for part, f in zip(value, type.parts, strict=True))
    if type.name == "ARRAY":
        return all(has_distinct_keys(part, type.parts[0].type) for part in value)
    keys = {key for key, _ in value}
    return None not in keys and len(keys) == len(value) and all(has_distinct_keys(item, type.parts[1].type) for _, item in value)
