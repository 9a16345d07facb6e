"""Random tables and random sequences of changes to them, for differential tests.

Domains are small, so that joins match and groups gather, and hold what engines get wrong: NULL, -0.0, NaN, infinities, the least and
greatest integers, empty strings and strings that differ late, dates before 1970. Everything comes from the random generator given.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from random import Random

from deltic.expr.nodes import Value
from deltic.expr.rows.ordering import equal
from deltic.intervals import UNITS, interval_of
from deltic.plan.relation import Row
from deltic.schema import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TO_SECOND,
    DOUBLE,
    FLOAT,
    INT,
    INTEGER_BITS,
    SMALLINT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    YEAR_TO_MONTH,
    Field,
    Schema,
    TableSchema,
    Type,
    decimal,
    interval,
    time_type,
)
from deltic.types import array_type, limited, struct

Change = tuple[Row, int]
Tick = dict[str, list[Change]]

PAIR = struct((Field("a", INT), Field("b", STRING)))
TYPES = (
    *(BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, decimal(5, 2), decimal(18, 4), decimal(30, 10), STRING, DATE, TIMESTAMP),
    *(
        TIME,
        time_type(0),
        TIMESTAMP_NTZ,
        BINARY,
        DAY_TO_SECOND,
        interval("HOUR", "HOUR"),
        YEAR_TO_MONTH,
        limited("CHAR", 4),
        limited("VARCHAR", 4),
    ),
    *(array_type(INT), array_type(DOUBLE), PAIR, array_type(PAIR), struct((Field("d", array_type(DATE)), Field("i", DAY_TO_SECOND)))),
)
"""All but those with a MAP in them, which is no key of a group."""
DRAWN = (*TYPES, TIMESTAMP, TIMESTAMP, TIMESTAMP, TIMESTAMP)
"""Times more often: conditions on now() need them."""
KEY_TYPES = (INT, BIGINT, SMALLINT, STRING, DATE, DAY_TO_SECOND)
EXACT = Context(prec=38)
LONG = "a long string, the same for its first bytes: "


def _instant(*parts: int) -> datetime.datetime:
    return datetime.datetime(*parts, tzinfo=datetime.UTC)  # type: ignore[arg-type,misc]


STRINGS = ("", "a", "A", "b", "ab", "é", "😀", "\uffff", LONG + "1", LONG + "2", "a ", "1")
DATES = tuple(
    datetime.date(*parts) for parts in ((1970, 1, 1), (1969, 12, 31), (2024, 2, 29), (1582, 10, 15), (9999, 12, 31), (2024, 3, 1))
)
INSTANTS = (
    _instant(1970, 1, 1),
    _instant(1969, 12, 31, 23, 59, 59, 999_999),
    _instant(2024, 2, 29, 12, 30),
    _instant(1900, 1, 1),
    _instant(2024, 2, 29, 12, 30, 0, 1),
)
SPANS = tuple(datetime.timedelta(microseconds=n) for n in (0, 86_400_000_000, -1, 500_000, -93_784_500_000, 10**15, 1, 60_000_000))
TIMES = tuple(datetime.time(*parts) for parts in ((), (12, 30), (23, 59, 59, 999_999), (0, 0, 0, 1), (12, 30, 0, 500_000)))
FLOATS = (0.0, -0.0, 1.5, -2.5, math.nan, math.inf, -math.inf, 0.25, 16777216.0)
DOUBLES = (0.0, -0.0, 1.5, -2.5, math.nan, math.inf, -math.inf, 0.1, 1e308, -1e308, 5e-324, 2.0**53)


def domain(type: Type, *, extreme: bool = False) -> tuple[Value, ...]:
    """Values of the type, the commonest first; `extreme` adds the ends of an integer's range."""
    if type.is_integer:
        half = 1 << (INTEGER_BITS[type.name] - 1)
        return (1, 2, 3, 0, *((half - 1, -half) if extreme else (-1, 5)), 4, 7, 8, 9, 10, 11)
    if type.is_decimal:
        one = 10**type.scale
        large = 10 ** min(12 + type.scale, type.precision) - 1
        return tuple(EXACT.scaleb(Decimal(units), -type.scale) for units in (one, 2 * one, one // 2, -1, 1, 0, large))
    if type.is_nested:
        return _nested(type)
    if type.is_interval:
        units = (interval_of(n * UNITS[type.fields[1]], type) for n in (0, 1, -1, 14, -25, 1200, 2, 3))
        return SPANS if type == DAY_TO_SECOND else tuple(units)
    fixed: dict[str, tuple[Value, ...]] = {
        "TIME": TIMES,
        "TIMESTAMP_NTZ": tuple(moment.replace(tzinfo=None) for moment in INSTANTS),
        "BINARY": (b"", b"\x00", b"\xff\xfe", b"text", LONG.encode() + b"\x00", LONG.encode() + b"\x01"),
        "CHAR": tuple(text[:4].ljust(4) for text in STRINGS[:8]),
        "VARCHAR": tuple(text[:4] for text in STRINGS[:8]),
        "BOOLEAN": (True, False),
        "FLOAT": FLOATS,
        "DOUBLE": DOUBLES,
        "STRING": STRINGS,
        "DATE": DATES,
        "TIMESTAMP": INSTANTS,
    }
    return fixed[type.name]


def _nested(type: Type) -> tuple[Value, ...]:
    """The empty ARRAY, and values of the first values of the parts, NULL among them."""
    first, second, *rest = (domain(part.type)[:3] for part in (*type.parts, *type.parts))
    if type.name == "ARRAY":
        a, b, *_ = first
        return ((), (a,), (a, None), (b, a), (None,), (a, a, b))
    pairs = [(a, b) for a in (*first[:2], None) for b in (*second[:2], None)]
    assert type.name == "STRUCT" and len(type.parts) == 2 and rest
    return tuple(pairs)


def bound(type: Type, values: Sequence[Value]) -> int | None:
    """The largest size of a number among the values, rounded up; None for what is not an exact number."""
    if not (type.is_integer or type.is_decimal):
        return None
    return max((math.ceil(abs(value)) for value in values if isinstance(value, int | Decimal)), default=0)


@dataclass(frozen=True, slots=True)
class Source:
    """A table and what its columns hold: `domains` without NULL, and the `bounds` of their numbers."""

    table: TableSchema
    domains: tuple[tuple[Value, ...], ...]

    @property
    def bounds(self) -> tuple[int | None, ...]:
        return tuple(bound(f.type, values) for f, values in zip(self.table.schema, self.domains, strict=True))


def random_source(rng: Random, name: str, theme: Type) -> Source:
    """A table of 2 to 4 columns. The first has the type `theme`, which all tables share; half of the tables have a primary key."""
    types = [theme, *(rng.choice(DRAWN) for _ in range(rng.randint(1, 3)))]
    keyed = rng.random() < 0.5
    second = keyed and types[1] in KEY_TYPES and rng.random() < 0.4
    key = ((0, 1) if second else (0,)) if keyed else ()
    domains = []
    for i, type in enumerate(types):
        values = domain(type, extreme=rng.random() < 0.3)
        expected = len(values) if key == (i,) else rng.randint(3, 4) if i == 0 else rng.randint(2, 6)
        domains.append(_some(rng, values, expected))
    fields = [Field(f"{name}{i}", type, i not in key and rng.random() < 0.6) for i, type in enumerate(types)]
    return Source(TableSchema(name, Schema(tuple(fields)), key), tuple(domains))


def random_graph(rng: Random, name: str, theme: Type) -> Source:
    """Edges between a few nodes of the type `theme`, sometimes with a number beside each. It has no key: an edge may be there twice."""
    nodes = domain(theme)[:7]
    fields = [Field(f"{name}{i}", theme, rng.random() < 0.2) for i in range(2)]
    domains = [nodes, nodes]
    if rng.random() < 0.6:
        fields.append(Field(f"{name}2", rng.choice((INT, BIGINT)), rng.random() < 0.2))
        domains.append(domain(INT)[:6])
    return Source(TableSchema(name, Schema(tuple(fields))), tuple(domains))


def _some(rng: Random, values: Sequence[Value], expected: int) -> tuple[Value, ...]:
    """The first two, so that tables have values in common, and others."""
    rest = list(values[2:])
    rng.shuffle(rest)
    return (*values[:2], *rest)[:expected]


def random_row(rng: Random, source: Source) -> Row:
    return tuple(
        None if f.nullable and rng.random() < 0.15 else rng.choice(values)
        for f, values in zip(source.table.schema, source.domains, strict=True)
    )


@dataclass(slots=True)
class Content:
    """What a table holds while changes are made up: its rows, each as often as it is there."""

    source: Source
    rows: list[Row] = field(default_factory=list)

    def load(self, rng: Random, size: int) -> list[Change]:
        return [change for _ in range(size) for change in self.insert(rng)]

    def change(self, rng: Random) -> list[Change]:
        """One insert, delete or update; sometimes an insert that is taken back at once."""
        roll = rng.random()
        if roll < 0.04:
            inserted = self.insert(rng)
            for row, weight in inserted:
                self._remove(row, weight)
            return [*inserted, *((row, -weight) for row, weight in inserted)]
        if roll < 0.4 or not self.rows:
            return self.insert(rng)
        return self.delete(rng) if roll < 0.65 else self.update(rng)

    def insert(self, rng: Random) -> list[Change]:
        """A new row; nothing where its key is taken. A table without a key may get several copies."""
        row = random_row(rng, self.source)
        if self._is_taken(row):
            return []
        weight = 1 if self.source.table.key or rng.random() < 0.85 else rng.randint(2, 3)
        self.rows.extend([row] * weight)
        return [(row, weight)]

    def delete(self, rng: Random) -> list[Change]:
        row = rng.choice(self.rows)
        self._remove(row, 1)
        return [(row, -1)]

    def update(self, rng: Random) -> list[Change]:
        """One column of a row changes, mostly not a key's."""
        old = rng.choice(self.rows)
        fresh = random_row(rng, self.source)
        at = rng.randrange(len(old))
        new = (*old[:at], fresh[at], *old[at + 1 :])
        self._remove(old, 1)
        if self._is_taken(new):
            self.rows.append(old)
            return []
        self.rows.append(new)
        return [(old, -1), (new, 1)]

    def _is_taken(self, row: Row) -> bool:
        key = self.source.table.key
        return bool(key) and any(all(equal(row[i], other[i]) for i in key) for other in self.rows)

    def _remove(self, row: Row, copies: int) -> None:
        """By identity of the values: an equal row may differ in the sign of a zero."""
        for _ in range(copies):
            at = next(i for i, other in enumerate(self.rows) if all(a is b for a, b in zip(row, other, strict=True)))
            del self.rows[at]
