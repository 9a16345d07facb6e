"""Test support: small tables with NULLs, ties, duplicates and odd floats, and their catalog."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from deltic.frontends.sql import bind_query
from deltic.frontends.statements import DefinedFunction
from deltic.plan.nodes import Plan
from deltic.schema import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Field, Schema, TableSchema, Type, decimal

Row = tuple[Any, ...]


def _table(name: str, key: tuple[int, ...], *columns: tuple[str, Type]) -> TableSchema:
    return TableSchema(name, Schema(tuple(Field(column, type, i not in key) for i, (column, type) in enumerate(columns))), key)


def _day(text: str | None) -> datetime.date | None:
    return None if text is None else datetime.date.fromisoformat(text)


def _moment(text: str | None) -> datetime.datetime | None:
    return None if text is None else datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)


TABLES: Mapping[str, TableSchema] = {
    table.name: table
    for table in (
        _table(
            "t",
            (0,),
            ("id", BIGINT),
            ("k", INT),
            ("x", DOUBLE),
            ("s", STRING),
            ("d", DATE),
            ("ts", TIMESTAMP),
            ("m", decimal(10, 2)),
            ("b", BOOLEAN),
        ),
        _table("u", (0,), ("id", BIGINT), ("k", INT), ("y", INT), ("name", STRING)),
        _table("w", (), ("k", INT), ("z", BIGINT)),
        _table("e", (), ("k", INT), ("v", STRING)),
    )
}

_T = (
    (1, 1, 1.5, "a", "2020-01-31", "2020-01-31T10:00:00", "1.10", True),
    (2, 1, -0.0, "b", "1969-12-31", "1969-12-31T23:59:59.999999", "-2.50", False),
    (3, 2, 0.0, "", "2024-02-29", "2024-02-29T00:00:00", "0.00", None),
    (4, 2, math.nan, "B", None, None, None, True),
    (5, None, 1.5, None, "2020-01-31", "2020-02-01T00:00:00", "99999999.99", False),
    (6, None, None, "a%c", "1970-01-01", "1970-01-01T00:00:00", "1.10", None),
    (7, 3, 1e300, "ab", "9999-12-31", "2020-01-31T10:00:00", "3.33", True),
    (8, 3, -7.25, "a", "2020-01-31", None, "2.22", False),
)

ROWS: Mapping[str, tuple[Row, ...]] = {
    "t": tuple((i, k, x, s, _day(d), _moment(ts), None if m is None else Decimal(m), b) for i, k, x, s, d, ts, m, b in _T),
    "u": (
        (1, 1, 10, "one"),
        (2, 1, None, "two"),
        (3, 3, 30, None),
        (4, None, 40, "four"),
        (9, 5, 50, "nine"),
        (-9223372036854775808, 2, 2147483647, "least"),
    ),
    "w": ((1, 1), (1, 1), (1, 2), (2, None), (None, 3), (None, 3), (4, 9223372036854775807)),
    "e": (),
}


def weighted(rows: Iterable[Row]) -> dict[Row, int]:
    """Rows as a multiset."""
    return dict(Counter(rows))


class TestCatalog:
    """The tables, and views by their plans."""

    __test__ = False

    def __init__(self, views: Mapping[str, Plan] | None = None) -> None:
        self.views = dict(views or {})

    def relation(self, name: str) -> TableSchema | Plan | None:
        return TABLES.get(name.lower()) or self.views.get(name.lower())

    def names(self) -> tuple[str, ...]:
        return (*TABLES, *self.views)

    def functions(self) -> dict[str, DefinedFunction]:
        return {}


def bound(sql: str) -> Plan:
    """The plan of a query over these tables."""
    return bind_query(sql, "test", TestCatalog())
