"""The kinds of types: one record for each, with how it looks in SQL, in Arrow, in Python, in words and in messages.

What always holds: a kind stands here and nowhere else. types.py makes types of kinds.
"""

from __future__ import annotations

import datetime
import decimal as decimals
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from types import MappingProxyType
from typing import Any, Final
from typing import Literal as OneOf

import pyarrow as pa

Stored = OneOf["bits", "i1", "i2", "i4", "i8", "f4", "f8", "decimal", "bytes", "none"]
"""What a value is in Arrow's buffer: a bit, a number of NumPy's dtype, 16 bytes of a DECIMAL; or bytes of any length, or nothing at all."""


@dataclass(frozen=True, slots=True)
class TypeKind:
    """What all types of one name have in common.

    words: how SQL calls it, Spark's own name first. arrow: the Arrow type of a column; None where it depends on the type's parameters.
    stored: of a value in Arrow. A kind of `bytes` has values of any length: a value's word is the id of its bytes (trace/strings.py).
    python: the classes whose values may be values of it. values: what it takes, for messages; None for numbers, which say their range.
    zero: any value of it. ends: its first and last value, where Arrow has others. fields: of an interval, the first and the last.
    """

    words: tuple[str, ...]
    arrow: pa.DataType | None
    stored: Stored
    python: tuple[type, ...]
    values: str | None = None
    zero: Any = 0
    ends: tuple[Any, Any] | None = field(default=None, compare=False)
    fields: tuple[str, str] | None = None

    @property
    def name(self) -> str:
        return self.words[0]


DAY_TIME: Final = ("DAY", "HOUR", "MINUTE", "SECOND")
YEAR_MONTH: Final = ("YEAR", "MONTH")
"""The fields of intervals, from long to short."""


def interval_word(start: str, end: str) -> str:
    """The name of the type of intervals from one field to another."""
    return f"INTERVAL {start}" if start == end else f"INTERVAL {start} TO {end}"


def _intervals(fields: tuple[str, ...]) -> Iterator[TypeKind]:
    """The widest first."""
    for i, j in sorted(combinations_with_replacement(range(len(fields)), 2), key=lambda pair: pair[0] - pair[1]):
        word, ends = interval_word(fields[i], fields[j]), (fields[i], fields[j])
        if fields is DAY_TIME:
            takes = "a timedelta" if ends[1] == "SECOND" else f"a timedelta of whole {ends[1].lower()}s"
            yield TypeKind((word,), pa.duration("us"), "i8", (datetime.timedelta,), takes, datetime.timedelta(0), fields=ends)
        else:
            takes = "an integer, the number of months" if ends[1] == "MONTH" else "an integer, the number of months of whole years"
            yield TypeKind((word,), pa.int32(), "i4", (int, pa.MonthDayNano), takes, fields=ends)


VARIANT_ARROW: Final = pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary(), metadata={"variant": "true"})])
"""As in Spark, where this metadata of the field marks a VARIANT; but Spark's fields are NOT NULL, with which Arrow casts no NULL."""
_LAST_MOMENT: Final = datetime.datetime.max.replace(tzinfo=datetime.UTC)
_FIRST_MOMENT: Final = datetime.datetime.min.replace(tzinfo=datetime.UTC)
_ALL: Final = (
    TypeKind(("BOOLEAN",), pa.bool_(), "bits", (bool,), "true or false", False),
    TypeKind(("TINYINT", "BYTE"), pa.int8(), "i1", (int,)),
    TypeKind(("SMALLINT", "SHORT"), pa.int16(), "i2", (int,)),
    TypeKind(("INT", "INTEGER"), pa.int32(), "i4", (int,)),
    TypeKind(("BIGINT", "LONG"), pa.int64(), "i8", (int,)),
    TypeKind(("FLOAT", "REAL"), pa.float32(), "f4", (float, int)),
    TypeKind(("DOUBLE",), pa.float64(), "f8", (float, int)),
    TypeKind(("DECIMAL", "DEC", "NUMERIC"), None, "decimal", (decimals.Decimal, int)),
    TypeKind(("STRING",), pa.string(), "bytes", (str,), "text in UTF-8", ""),
    TypeKind(("VARCHAR",), pa.string(), "bytes", (str,), "text of at most so many characters", ""),
    TypeKind(("CHAR", "CHARACTER"), pa.string(), "bytes", (str,), "text of at most so many characters, filled with blanks", ""),
    TypeKind(("BINARY",), pa.binary(), "bytes", (bytes, bytearray), "bytes", b""),
    TypeKind(("DATE",), pa.date32(), "i4", (datetime.date,), "a date without a time", 0, (datetime.date.min, datetime.date.max)),
    TypeKind(
        ("TIMESTAMP", "TIMESTAMP_LTZ"),
        pa.timestamp("us", tz="UTC"),
        "i8",
        (datetime.datetime,),
        "a date with a time in whole microseconds, in UTC if it names no zone",
        0,
        (_FIRST_MOMENT, _LAST_MOMENT),
    ),
    TypeKind(
        ("TIMESTAMP_NTZ", "TIMESTAMP WITHOUT TIME ZONE"),
        pa.timestamp("us"),
        "i8",
        (datetime.datetime,),
        "a date with a time in whole microseconds, without a zone",
        0,
        (datetime.datetime.min, datetime.datetime.max),
    ),
    TypeKind(
        ("TIME", "TIME WITHOUT TIME ZONE"),
        pa.time64("us"),
        "i8",
        (datetime.time,),
        "a time of day in whole microseconds, without a zone",
        0,
        (datetime.time.min, datetime.time.max),
    ),
    *_intervals(DAY_TIME),
    *_intervals(YEAR_MONTH),
    TypeKind(("ARRAY",), None, "bytes", (list, tuple), "a list", []),
    TypeKind(("MAP",), None, "bytes", (dict, list, tuple), "a dict, or pairs of keys and values", []),
    TypeKind(("STRUCT",), None, "bytes", (dict, tuple), "a dict with its fields", {}),
    TypeKind(
        ("VARIANT",),
        VARIANT_ARROW,
        "bytes",
        (tuple, dict),
        "a deltic.Variant, such as Variant.of(value)",
        (b"\0", b"\1\0\0"),
    ),
    TypeKind(("VOID",), pa.null(), "none", (), "nothing but NULL", None),
)
KINDS: Final[Mapping[str, TypeKind]] = MappingProxyType({kind.name: kind for kind in _ALL})
"""By Spark's name."""
KIND_WORDS: Final[Mapping[str, TypeKind]] = MappingProxyType({word: kind for kind in _ALL for word in kind.words if word != "VOID"})
"""By what SQL calls it in the declaration of a column."""
