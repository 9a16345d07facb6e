"""Arrays for Spark, which compares types exactly.

Its VARIANTs have parts that are NOT NULL, and Arrow's cast refuses NULLs in them. Its TIMEs are nanoseconds.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from deltic.kinds import VARIANT_ARROW
from deltic.types import is_variant

_TIME: Final = pa.time64("ns")
_VARIANT: Final = pa.struct([part.with_nullable(False) for part in VARIANT_ARROW])


def in_spark(arrow: pa.DataType) -> pa.DataType:
    """The Arrow type as Spark has it."""
    t = pa.types
    if is_variant(arrow):
        return _VARIANT
    if t.is_time(arrow):
        return _TIME
    if t.is_struct(arrow):
        return pa.struct([part.with_type(in_spark(part.type)) for part in arrow])
    if t.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(in_spark(arrow.value_type)))
    return pa.map_(in_spark(arrow.key_type), in_spark(arrow.item_type)) if t.is_map(arrow) else arrow


def for_spark(array: pa.Array) -> pa.Array:
    """The same values, of `in_spark` of the type. Copies no values but those of TIME."""
    arrow = in_spark(array.type)
    if arrow.equals(array.type):
        return array
    if pa.types.is_time(arrow):
        return array.cast(arrow)
    if pa.types.is_struct(arrow):
        parts = [for_spark(array.field(i)) for i in range(arrow.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(arrow), mask=array.is_null())
    if pa.types.is_list(arrow):
        children = [for_spark(array.values)]
    else:
        entries = [for_spark(array.keys), for_spark(array.items)]
        children = [pa.StructArray.from_arrays(entries, fields=[arrow.key_field, arrow.item_field])]
    return pa.Array.from_buffers(arrow, len(array), array.buffers()[:2], offset=array.offset, children=children)
