"""Nested values as bytes: equal exactly where the values are, and in their order, so that a value is identified and sorted by its bytes.

An ARRAY, a MAP or a STRUCT is written value by value, most significant byte first:
- A part of a nested value begins with a tag: 01 for NULL, 02 before a value. 00 ends an ARRAY or a MAP; so a shorter one is less, and NULL
  is less than every value. A STRUCT is its fields. A MAP is its entries, keys and values, in the order that they have.
- Integers, dates, times: their bytes with the sign bit flipped; DECIMAL so, in 16 bytes. FLOAT and DOUBLE: their bits, all flipped if
  negative, else the sign; there is one NaN, and -0.0 is written as 0.0.
- STRING and BINARY: their bytes with 00 as 00 FF, then 00.
A value with a -0.0 in it is followed by 00 and the same once more, zeros with their signs: so it is another value, and sorts beside
the one with 0.0.

What always holds: `from_bytes(to_bytes(x)) = x`, with one NaN. Where the bytes are kept is defined elsewhere.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from deltic import canonical_rows
from deltic.canonical_reading import Damaged, field_of_bytes, values_of_bytes
from deltic.canonical_writing import value_bytes
from deltic.types import Type

__all__ = ["Damaged", "field_from_bytes", "from_bytes", "key_bytes", "normalized", "to_bytes"]


def to_bytes(array: pa.Array, type: Type) -> pa.BinaryArray:
    """The bytes of each value of a nested type, NULL where it is NULL. array: of `type.arrow`. O(bytes)."""
    if len(array) <= canonical_rows.FEW and array.type == type.arrow and canonical_rows.is_plain(type):
        return canonical_rows.to_bytes(array, type)
    plain = key_bytes(array, type)
    if not type.has_zeros:
        return plain
    exact = value_bytes(array, type, signed=True)
    return pc.if_else(pc.equal(plain, exact), plain, pc.binary_join_element_wise(plain, exact, canonical_rows.END))


def key_bytes(array: pa.Array, type: Type) -> pa.BinaryArray:
    """As `to_bytes`, the same for 0.0 and -0.0: the bytes by which values of a nested type are compared in SQL."""
    return value_bytes(array, type, signed=False)


def from_bytes(values: pa.Array, type: Type) -> pa.Array:
    """The values, of `type.arrow`. Raises Damaged. O(bytes · log bytes), and a pass for each element of the longest ARRAY or MAP."""
    if len(values) <= canonical_rows.FEW and canonical_rows.is_plain(type):
        try:
            return canonical_rows.from_bytes(values, type)
        except (IndexError, ValueError, AttributeError) as error:
            raise Damaged(f"the bytes of a {type.sql} are not one: {error}") from None
    return values_of_bytes(values, type, last=True)


def field_from_bytes(values: pa.Array, type: Type, path: tuple[int, ...]) -> pa.Array:
    """Of each STRUCT the field at a path of positions, NULL where it or a STRUCT on the path is. Raises Damaged.

    O(bytes), of which those after the field are not read.
    """
    if type.has_zeros:  # a value may be written twice
        whole = from_bytes(values, type)
        for position in path:
            whole = whole.flatten()[position]
        return whole
    if len(values) <= canonical_rows.FEW and canonical_rows.is_plain(type):
        try:
            return canonical_rows.field_from_bytes(values, type, path)
        except (IndexError, ValueError, AttributeError) as error:
            raise Damaged(f"the bytes of a {type.sql} are not one: {error}") from None
    return field_of_bytes(values, type, path)


def normalized(array: pa.Array, type: Type) -> pa.Array:
    """0.0 for each -0.0, and one NaN."""
    return values_of_bytes(to_bytes(array, type), type, last=False) if type.has_zeros else array
