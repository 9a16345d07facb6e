"""Datalog's types, and the types of deltic.types in which their values are stored.

An integer is stored in the narrowest type that holds it; where that holds more, results are checked. A struct is a STRUCT of its fields, a
tagged union a STRUCT of `tag`, the constructor's name, and the fields of all constructors, of which those of others are NULL. A tuple is a
STRUCT of _0, _1, …. No value of Datalog is NULL. Values are compared as those of their types, so values with a Map are not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from deltic.schema import BIGINT, BOOLEAN, DATE, DOUBLE, FLOAT, INT, SMALLINT, STRING, TIME, TIMESTAMP, TINYINT, Field, Type, decimal
from deltic.types import array_type, map_type, struct

TAG: Final = "tag"


@dataclass(frozen=True, slots=True)
class PlainKind:
    """A type without parameters; `name` is Datalog's."""

    name: str
    type: Type

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class IntegerKind:
    """signed<bits> or bit<bits>, 1 to 64 bits."""

    bits: int
    signed: bool

    @property
    def least(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def greatest(self) -> int:
        return (1 << (self.bits - self.signed)) - 1

    @property
    def type(self) -> Type:
        needed = self.bits + (not self.signed)
        return next((type for bits, type in ((8, TINYINT), (16, SMALLINT), (32, INT), (64, BIGINT)) if needed <= bits), decimal(20, 0))

    @property
    def is_exact(self) -> bool:
        """Whether the stored type holds no other values."""
        return self.signed and self.bits in (8, 16, 32, 64)

    def __str__(self) -> str:
        if self == USIZE:
            return "usize"
        if self.bits in (8, 16, 32, 64, 128):
            return f"{'s' if self.signed else 'u'}{self.bits}"
        return f"{'signed' if self.signed else 'bit'}<{self.bits}>"


@dataclass(frozen=True, slots=True)
class TupleKind:
    """A tuple of two or more values."""

    items: tuple[Kind, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.items))})"


@dataclass(frozen=True, slots=True)
class VectorKind:
    """Vec<item>; Set<item> is one without duplicates, in order."""

    item: Kind
    name: str = "Vec"

    def __str__(self) -> str:
        return f"{self.name}<{self.item}>"


@dataclass(frozen=True, slots=True)
class MapKind:
    """Map<key, value>."""

    key: Kind
    value: Kind

    def __str__(self) -> str:
        return f"Map<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class Constructor:
    """A constructor of a struct or a tagged union, with its fields."""

    name: str
    fields: tuple[tuple[str, Kind], ...]


@dataclass(frozen=True, slots=True)
class UnionKind:
    """A struct, which has one constructor, or a tagged union; two are equal if name and arguments are."""

    name: str
    arguments: tuple[Kind, ...]
    constructors: tuple[Constructor, ...] = field(compare=False, repr=False)

    @property
    def is_tagged(self) -> bool:
        return len(self.constructors) > 1 or not self.constructors[0].fields

    @property
    def fields(self) -> dict[str, Kind]:
        """All fields, each once."""
        return {name: kind for one in self.constructors for name, kind in one.fields}

    def __str__(self) -> str:
        return self.name + (f"<{', '.join(map(str, self.arguments))}>" if self.arguments else "")


Kind: TypeAlias = PlainKind | IntegerKind | TupleKind | VectorKind | MapKind | UnionKind

BOOL: Final = PlainKind("bool", BOOLEAN)
BIGINT_KIND: Final = PlainKind("bigint", decimal(38, 0))
FLOAT_KIND: Final = PlainKind("float", FLOAT)
DOUBLE_KIND: Final = PlainKind("double", DOUBLE)
STRING_KIND: Final = PlainKind("string", STRING)
DATE_KIND: Final = PlainKind("date", DATE)
TIMESTAMP_KIND: Final = PlainKind("timestamp", TIMESTAMP)
TIME_KIND: Final = PlainKind("time", TIME)
MOMENT_KINDS: Final = (DATE_KIND, TIMESTAMP_KIND, TIME_KIND)
"""Kinds whose constants are written as text."""
PLAIN_KINDS: Final = {one.name: one for one in (BOOL, BIGINT_KIND, FLOAT_KIND, DOUBLE_KIND, STRING_KIND, *MOMENT_KINDS)}
USIZE: Final = IntegerKind(63, False)
"""Of counts: what BIGINT has of numbers that are not negative."""
S64: Final = IntegerKind(64, True)
U64: Final = IntegerKind(64, False)
ALIASES: Final[dict[str, Kind]] = {
    **PLAIN_KINDS,
    **{f"s{bits}": IntegerKind(bits, True) for bits in (8, 16, 32, 64)},
    **{f"u{bits}": IntegerKind(bits, False) for bits in (8, 16, 32, 64)},
    "usize": USIZE,
    "istring": STRING_KIND,
}


def is_integral(kind: Kind) -> bool:
    return isinstance(kind, IntegerKind) or kind == BIGINT_KIND


def is_number(kind: Kind) -> bool:
    return is_integral(kind) or kind in (FLOAT_KIND, DOUBLE_KIND)


def option(item: Kind) -> UnionKind:
    """Option<item>: None, or Some{x}."""
    return UnionKind("Option", (item,), (Constructor("None", ()), Constructor("Some", (("x", item),))))


def stored(kind: Kind) -> Type:
    """The type of a column of this kind.

    >>> stored(option(IntegerKind(32, False))).sql
    'STRUCT<tag: STRING, x: BIGINT>'
    """
    match kind:
        case PlainKind() | IntegerKind():
            return kind.type
        case TupleKind():
            return struct(tuple(Field(f"_{i}", stored(item)) for i, item in enumerate(kind.items)))
        case VectorKind():
            return array_type(stored(kind.item))
        case MapKind():
            return map_type(stored(kind.key), stored(kind.value))
        case UnionKind():
            tag = (Field(TAG, STRING),) if kind.is_tagged else ()
            return struct((*tag, *(Field(name, stored(part)) for name, part in kind.fields.items())))


def is_comparable(kind: Kind) -> bool:
    """Whether its values can be equal: as in SQL, a Map has no equality, nor has what has one in it."""
    return stored(kind).is_ordered


def widens(narrow: Kind, wide: Kind) -> bool:
    """Whether every value of the one is a value of the other, which then needs no conversion in the text."""
    if narrow == wide:
        return True
    if isinstance(narrow, IntegerKind) and isinstance(wide, IntegerKind):
        return wide.least <= narrow.least and narrow.greatest <= wide.greatest
    return (isinstance(narrow, IntegerKind) and wide == BIGINT_KIND) or (narrow == FLOAT_KIND and wide == DOUBLE_KIND)


def kind_of(type: Type) -> Kind | None:
    """The kind of a column of SQL; None if Datalog has none."""
    if type.is_integer:
        return IntegerKind({"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}[type.name], True)
    if type.is_decimal:
        return PlainKind(type.sql, type) if type.scale or type.precision < 38 else BIGINT_KIND
    if type.name == "ARRAY":
        item = kind_of(type.parts[0].type)
        return None if item is None else VectorKind(item)
    if type.name == "MAP":
        key, value = (kind_of(part.type) for part in type.parts)
        return None if key is None or value is None else MapKind(key, value)
    if type.name == "STRUCT":
        return _record(type)
    return next((kind for kind in PLAIN_KINDS.values() if kind.type == type), None)


def _record(type: Type) -> Kind | None:
    kinds = [kind_of(part.type) for part in type.parts]
    items = [kind for kind in kinds if kind is not None]
    if len(items) < len(kinds):
        return None
    if len(items) > 1 and [part.name for part in type.parts] == [f"_{i}" for i in range(len(items))]:
        return TupleKind(tuple(items))
    fields = tuple((part.name, kind) for part, kind in zip(type.parts, items, strict=True))
    return UnionKind(type.sql, (), (Constructor("Record", fields),))
