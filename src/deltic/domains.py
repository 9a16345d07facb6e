"""What an Arrow column may hold and its type does not: years outside 1 to 9999, times outside a day, parts of an
interval's last field, keys of a MAP twice, bytes that are no VARIANT.

A cast of Arrow's gives NULL for a field of a STRUCT that the value has not, also where only the case of the name differs, and drops others:
`has_fields` and `with_fields` come before it.
"""

from __future__ import annotations

import datetime
import re
from datetime import MAXYEAR, MINYEAR
from functools import cache
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from deltic.intervals import FIRST, UNITS, interval_of
from deltic.types import DAY_TO_SECOND, Type, frozen_list
from deltic.variant_bytes import fault

_UNIT: Final = re.compile(r"\[(\d*)(\w+)\]")
"""A multiple and a unit in the name of NumPy's type."""
_MONTHS: Final = {"Y": 12, "M": 1}
_ATTOSECONDS: Final = {
    **{"W": 7 * 86_400 * 10**18, "D": 86_400 * 10**18, "h": 3_600 * 10**18, "m": 60 * 10**18},
    **{"s": 10**18, "ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1},
}


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
    if type.name == "VARIANT":
        return _in_variants(column)
    if type.is_interval:
        return _in_interval(type, column)
    first, last = (pa.scalar(end, column.type) for end in type.kind.ends or ())
    least = pc.min_max(column)
    if first.value <= least["min"].value and least["max"].value <= last.value:
        return None
    row: int = pc.index(pc.or_(pc.less(column, first), pc.greater(column, last)), True).as_py()
    return None if row < 0 else Outside(row, f"a {type.sql} outside {'a day' if type.is_time else 'the years 1 to 9999'}")


def unfit(type: Type, column: pa.Array | pa.ChunkedArray[Any]) -> Outside | None:
    """As `outside`, and of MAPs `with_bad_keys`."""
    wrong = outside(type, column)
    if wrong is None and (row := with_bad_keys(type, column)) >= 0:
        return Outside(row, "a MAP with a key that is NULL, or there twice")
    return wrong


@cache
def is_restricted(type: Type) -> bool:
    """Whether a column may hold values that the type does not have, by `unfit`."""
    return _may_have(type) or type.has_map


def _in_variants(column: pa.Array | pa.ChunkedArray[Any]) -> Outside | None:
    for row, value in enumerate(column.to_pylist()):
        if value is not None and (wrong := fault(value["value"], value["metadata"])) is not None:
            return Outside(row, f"bytes that are no VARIANT: {wrong}")
    return None


def _in_interval(type: Type, column: pa.Array | pa.ChunkedArray[Any]) -> Outside | None:
    numbers, unit = column.cast(pa.int64()), UNITS[type.fields[1]]
    if type.is_day_time and (row := pc.index(pc.less(numbers, FIRST), True).as_py()) >= 0:
        return Outside(row, f"an {type.sql} of less than {FIRST} microseconds")
    row = pc.index(pc.equal(pc.multiply(pc.divide(numbers, unit), unit), numbers), False).as_py()
    return Outside(row, f"an {type.sql} with a part of a {type.fields[1].lower()}") if row >= 0 else None


@cache
def _may_have(type: Type) -> bool:
    return type.kind.ends is not None or type.is_interval or type.name == "VARIANT" or any(_may_have(part.type) for part in type.parts)


def _in_parts(type: Type, column: pa.Array | pa.ChunkedArray[Any]) -> Outside | None:
    """As `outside`, of a nested type."""
    array = column
    if isinstance(column, pa.ChunkedArray):
        array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if type.name == "MAP":
        return _in_parts(type.entries, array.cast(type.entries.arrow))
    if type.name == "STRUCT":
        firsts = [outside(part.type, values) for part, values in zip(type.parts, array.flatten(), strict=True)]
        return min((one for one in firsts if one is not None), default=None)
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


def of_numpy(value: Any, target: Type) -> Any:
    """A scalar or an array of NumPy as Python's; any other value is itself. NumPy is not imported here: the oracle does without.

    Times and durations stay NumPy's scalars if Python's classes do not hold them, or months where the type has none.
    """
    if type(value).__module__ != "numpy" or not hasattr(value, "dtype"):
        return value
    if isinstance(value, str | bytes):
        return value[:]  # item() leaves out trailing zeros
    is_time = value.dtype.kind in "mM"
    if value.shape:
        return list(value) if is_time else value.tolist()
    return _time_of_numpy(value[()], target) if is_time else value.item()


def _time_of_numpy(scalar: Any, target: Type) -> Any:
    """Computed by integers of any size: NumPy's conversions wrap around."""
    if scalar != scalar:  # NaT
        return None
    found = _UNIT.search(scalar.dtype.name)
    if found is None:
        return scalar
    count, unit, is_duration = int(scalar.view("int64")) * int(found[1] or 1), found[2], scalar.dtype.kind == "m"
    value: Any = None
    if unit in _MONTHS:
        months = count * _MONTHS[unit]
        if not is_duration and MINYEAR <= 1970 + months // 12 <= MAXYEAR:
            value = datetime.date(1970 + months // 12, months % 12 + 1, 1)
        elif is_duration and target.is_year_month:
            value = interval_of(months, target)
    else:
        microseconds, rest = divmod(count * _ATTOSECONDS[unit], _ATTOSECONDS["us"])
        value = interval_of(microseconds, DAY_TO_SECOND) if not rest else None
        if value is not None and not is_duration:
            value = _moment(value, unit)
    return scalar if value is None else value


def _moment(since_1970: datetime.timedelta, unit: str) -> datetime.date | None:
    """A datetime, of days and weeks a date; None if it is outside the calendar."""
    try:
        time = datetime.datetime(1970, 1, 1) + since_1970
    except OverflowError:
        return None
    return time.date() if unit in ("W", "D") else time


def has_nanoseconds(value: Any) -> bool:
    """Whether a Timestamp or Timedelta of pandas has parts of a microsecond, which Arrow would leave out."""
    return bool(getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0))


def with_bad_keys(type: Type, column: pa.Array | pa.ChunkedArray[Any]) -> int:
    """The first row with a MAP of which a key is NULL or comes twice, or -1."""
    if not type.has_map:
        return -1
    return next((row for row, value in enumerate(frozen_list(column)) if not has_distinct_keys(value, type)), -1)


def has_fields(type: Type, source: pa.DataType) -> bool:
    """Whether each STRUCT in an Arrow type has the fields of the type's, by name (any case) and in its order."""
    if type.name == "STRUCT" and pa.types.is_struct(source):
        names = [part.name.lower() for part in source] == [part.name.lower() for part in type.parts]
        return names and all(has_fields(part.type, given.type) for part, given in zip(type.parts, source, strict=True))
    if type.name == "MAP" and pa.types.is_map(source):
        return has_fields(type.parts[0].type, source.key_type) and has_fields(type.parts[1].type, source.item_type)
    return type.name != "ARRAY" or not hasattr(source, "value_type") or has_fields(type.parts[0].type, source.value_type)


def with_fields(type: Type, array: pa.Array) -> pa.Array:
    """The array with the type's names of fields. Precondition: has_fields. Cost: no copy of values."""
    source = array.type
    if type.name == "VARIANT" and pa.types.is_struct(source):
        parts = [array.field(part.name).cast(pa.binary()) for part in type.held.parts]
        return pa.StructArray.from_arrays(parts, names=[part.name for part in type.held.parts], mask=array.is_null())
    if not pa.types.is_nested(source) or not len(array) or not type.has(lambda part: part.name in ("STRUCT", "VARIANT")):
        return array
    if type.name == "STRUCT":
        parts = [with_fields(part.type, values) for part, values in zip(type.parts, array.flatten(), strict=True)]
        fields = [pa.field(part.name, values.type) for part, values in zip(type.parts, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=array.is_null()) if parts else array
    if type.name == "MAP":
        items = with_fields(type.parts[1].type, array.items)
        fields = [pa.field("key", array.keys.type, nullable=False), pa.field("value", items.type)]
        entries = pa.StructArray.from_arrays([array.keys, items], fields=fields)
        return _around(pa.map_(array.keys.type, items.type), array, entries)
    # Not by a cast where none is needed: Arrow refuses it to lists of NULLs of structs with NOT NULL fields, as Spark sends them.
    listed = array if pa.types.is_list(source) else array.cast(pa.list_(source.value_type))
    values = with_fields(type.parts[0].type, listed.values)
    return _around(pa.list_(values.type), listed, values)


def _around(arrow: pa.DataType, array: pa.Array, values: pa.Array) -> pa.Array:
    """The lists of `array`, of other values."""
    return pa.Array.from_buffers(arrow, len(array), array.buffers()[:2], offset=array.offset, children=[values])
