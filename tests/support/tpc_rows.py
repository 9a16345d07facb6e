"""Test support: random rows for the tables that a query of TPC-H or TPC-DS reads, on which the query has an answer.

Real data of a small scale leaves most of these queries without an answer. Here the values of a column are drawn from the constants with
which the query compares it, and keys from few values, so that some rows satisfy each condition and join. Columns do not depend on one
another: a d_moy need not be the month of its d_date.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any, Final

import pyarrow as pa

from deltic.schema import TableSchema

Row = tuple[Any, ...]
Content = dict[Row, Row]
"""The rows of a table by their primary keys."""

FACTS: Final = {"lineitem", "store_sales", "store_returns", "catalog_sales", "catalog_returns", "web_sales", "web_returns", "inventory"}
COPIED: Final[Mapping[str, tuple[str, tuple[tuple[str, str], ...]]]] = {
    "store_returns": (
        "store_sales",
        (("sr_item_sk", "ss_item_sk"), ("sr_ticket_number", "ss_ticket_number"), ("sr_customer_sk", "ss_customer_sk")),
    ),
    "catalog_returns": (
        "catalog_sales",
        (("cr_item_sk", "cs_item_sk"), ("cr_order_number", "cs_order_number"), ("cr_returning_customer_sk", "cs_bill_customer_sk")),
    ),
    "web_returns": (
        "web_sales",
        (
            ("wr_item_sk", "ws_item_sk"),
            ("wr_order_number", "ws_order_number"),
            ("wr_web_page_sk", "ws_web_page_sk"),
            ("wr_refunded_customer_sk", "ws_bill_customer_sk"),
            ("wr_returning_customer_sk", "ws_bill_customer_sk"),
        ),
    ),
    "lineitem": ("partsupp", (("l_partkey", "ps_partkey"), ("l_suppkey", "ps_suppkey"))),
}
"""Columns that most rows have from a row of another table, as returns from sales."""
SIZES: Final = {"region": 2, "nation": 4, "partsupp": 40, "orders": 40, "customer": 16, "date_dim": 16}
"""Those of facts and of the other tables are in _Shape."""
OPTIONAL: Final = ("customer_sk", "addr_sk", "promo_sk", "quantity", "net_profit", "store_sk")
"""The ends of names of columns of facts that are sometimes NULL."""

_NUMBER: Final = r"-?\d*\.?\d+(?:\s*[-+*]\s*\d*\.?\d+(?!\s*(?:day|month|year)))?"
_LITERAL: Final = rf"(?:date\s*'[^']*'|cast\s*\(\s*'[^']*'\s+as\s+date\s*\)|'[^']*'|\(?\s*{_NUMBER}\s*\)?)"
_COLUMN: Final = r"\b([a-z]\w*)(?:\s*,\s*\d+\s*,\s*\d+\s*\))?"
_COMPARED: Final = re.compile(rf"{_COLUMN}\s*(?:=|<>|!=|<=|>=|<|>|\blike\b)\s*({_LITERAL})", re.IGNORECASE)
_REVERSED: Final = re.compile(rf"({_LITERAL})\s*=\s*(?:\w+\.)?([a-z]\w*)", re.IGNORECASE)
_LISTED: Final = re.compile(rf"{_COLUMN}\s*\)?\s*(?:\bnot\s+)?in\s*\(\s*({_LITERAL}(?:\s*,\s*{_LITERAL})*)\s*\)", re.IGNORECASE)
_BETWEEN: Final = re.compile(rf"{_COLUMN}\s*between\s+\(?({_LITERAL})\s*\)?\s*and\s+\(*({_LITERAL})", re.IGNORECASE)
_EXCLUDED: Final = re.compile(r"([a-z]\w*)\s*(?:<>|!=|\bnot\s+(?:in|like)\b)", re.IGNORECASE)
_DAYS: Final = (-95, -1, 0, 1, 10, 14, 29, 45, 59, 75)
_DEFAULTS: Final[Mapping[str, tuple[Any, ...]]] = {
    "d_week_seq": (5270, 5271, 5270 + 52, 5270 + 53, 5271 + 52, 5271 + 53),
    "d_month_seq": (1190, 1195, 1200, 1201),
    "d_quarter_seq": (10, 11, 12, 14),
    "d_qoy": (1, 2, 3, 4),
    "d_day_name": ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"),
    "cd_purchase_estimate": (500, 1000),
    "n_name": ("GERMANY", "CANADA", "SAUDI ARABIA", "FRANCE", "BRAZIL"),
    "l_quantity": (1, 2, 30, 50),
    "l_discount": (Decimal("0.05"), Decimal("0.06"), Decimal("0.07")),
    "s_county": ("Williamson County", "Walker County"),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """How the rows of a query differ from those of others. values: by column, in place of all others. months: d_month_seq follows from
    d_year and d_moy. days: each d_date is that of one row, and each d_dom of one row for each of
    the two years in `values`.
    """

    facts: int = 120
    others: int = 8
    tickets: int = 30
    seed: int = 0
    months: bool = False
    days: bool = False
    values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


def constants(text: str) -> dict[str, list[str]]:
    """The literals with which a query compares each name.

    >>> constants("SELECT a FROM t WHERE a.b = 'x' AND c BETWEEN 1200 AND 1200 + 11 AND substr(d, 1, 2) IN ('13', '31')")
    {'b': ["'x'"], 'd': ["'13'", "'31'"], 'c': ['1200', '1200 + 11']}
    """
    pools: dict[str, list[str]] = {}
    for name, literal in _COMPARED.findall(text):
        pools.setdefault(name.lower(), []).append(literal)
    for literal, name in _REVERSED.findall(text):
        pools.setdefault(name.lower(), []).append(literal)
    for name, literals in _LISTED.findall(text):
        pools.setdefault(name.lower(), []).extend(re.findall(_LITERAL, literals, re.IGNORECASE))
    for name, low, high in _BETWEEN.findall(text):
        pools.setdefault(name.lower(), []).extend((low, high))
    return pools


class QueryRows:
    """The content of the tables that a query reads, and its changes."""

    def __init__(self, text: str, tables: Mapping[str, TableSchema], shape: Shape) -> None:
        self._rng, self._shape = Random(shape.seed), shape
        words = set(re.findall(r"\w+", text.lower()))
        self.tables = {name: table for name, table in tables.items() if name in words}
        bare = re.sub(r"--[^\n]*", "", text)
        self._pools = constants(bare)
        self._dates = re.findall(r"'\d{4}-\d\d?-\d\d?'", bare)
        self._excluded = {name.lower() for name in _EXCLUDED.findall(bare)}
        self.content: dict[str, Content] = {}
        for name in sorted(self.tables, key=lambda name: name in COPIED):
            rows = (self._row(name, number) for number in range(self._size(name)))
            self.content[name] = {self._key(name, row): row for row in rows}

    def arrow(self, table: str) -> pa.Table:
        return self._arrow(table, list(self.content[table].values()))

    def refreshes(self, count: int) -> Iterator[dict[str, tuple[pa.Table, pa.Table]]]:
        """For each table the rows that go and those that come, an updated row among both. `content` is what is left then."""
        for _ in range(count):
            changes = {}
            for name, content in self.content.items():
                removed = [content.pop(key) for key in self._rng.sample(list(content), max(1, len(content) // 12))]
                added = [self._changed(name, row, number) for number, row in enumerate(removed)]
                new = {self._key(name, row): row for row in added}
                new = {key: row for key, row in new.items() if key not in content}
                content.update(new)
                changes[name] = self._arrow(name, removed), self._arrow(name, list(new.values()))
            yield changes

    def _changed(self, table: str, row: Row, number: int) -> Row:
        """A row with the same key for each second one, and otherwise any."""
        key = self.tables[table].key
        if number % 2:
            return self._row(table, self._rng.randrange(self._size(table) + 2))
        new = self._row(table, row[key[0]] - 1)
        return tuple(old if i in key else value for i, (old, value) in enumerate(zip(row, new, strict=True)))

    def _size(self, table: str) -> int:
        if table in FACTS:
            return self._shape.facts
        return SIZES.get(table, self._shape.others)

    def _key(self, table: str, row: Row) -> Row:
        return tuple(row[i] for i in self.tables[table].key)

    def _row(self, table: str, number: int) -> Row:
        schema = self.tables[table]
        other, columns = COPIED.get(table, ("", ()))
        copied: dict[str, Any] = {}
        if self.content.get(other) and self._rng.random() < 0.8:
            source = self._rng.choice(list(self.content[other].values()))
            names = self.tables[other].schema.names
            copied = {own: source[names.index(name)] for own, name in columns}
        copied = {name: value for name, value in copied.items() if name not in self._shape.values}
        row = {field.name: copied.get(field.name, self._numbered(table, i, number)) for i, field in enumerate(schema.schema)}
        if self._shape.months and table == "date_dim":
            row["d_month_seq"] = row["d_year"] * 12 + row["d_moy"]
        if self._shape.days and table == "date_dim":
            years = self._shape.values.get("d_year", (2000,))
            row["d_dom"], row["d_year"] = number // 2 + 9, years[number % len(years)]
            row["d_date"] = datetime.date(2000, 1, 1) + datetime.timedelta(days=number)
        return tuple(row.values())

    def _numbered(self, table: str, column: int, number: int) -> Any:
        """A key is the number of the row, and two rows each have an identifier."""
        schema = self.tables[table]
        field = schema.schema[column]
        if schema.key == (column,):
            return number + 1
        if field.name.endswith("_id") and field.type.sql == "STRING":
            return f"id{number // 2}"
        return self._value(table, field.name, field.type.sql, column in schema.key)

    def _value(self, table: str, name: str, kind: str, is_key: bool) -> Any:
        rng = self._rng
        if not is_key and table in FACTS and table != "lineitem" and name.endswith(OPTIONAL) and rng.random() < 0.05:
            return None
        if name in self._shape.values:
            return _typed(rng.choice(self._shape.values[name]), kind)
        if name.endswith(("_sk", "key")) and kind in ("INT", "BIGINT"):
            return self._reference(name)
        pool = self._pools.get(name, self._dates if kind == "DATE" else [])
        if pool and rng.random() < (0.5 if name in self._excluded else 0.9):
            return _varied(rng, rng.choice(pool), kind, len(pool) > 1)
        if name in _DEFAULTS:
            return _typed(rng.choice(_DEFAULTS[name]), kind)
        if name.endswith(("ticket_number", "order_number")):
            return rng.randrange(1, self._shape.tickets)
        return _any(rng, name, kind)

    def _reference(self, name: str) -> int:
        """The key of a row that another table may have; the first two are frequent."""
        many = self._size("date_dim") if "date_sk" in name else self._size("customer") if name.endswith(("customer_sk", "custkey")) else 0
        size = many or {"regionkey": 2, "nationkey": 4, "orderkey": 40}.get(name.rsplit("_", maxsplit=1)[-1], self._shape.others)
        return self._rng.randrange(1, 3) if self._rng.random() < 0.3 else self._rng.randrange(1, size + 1)

    def _arrow(self, table: str, rows: list[Row]) -> pa.Table:
        schema = self.tables[table].schema
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
        arrays = [pa.array(column, _arrow_type(field.type.sql)) for column, field in zip(columns, schema, strict=True)]
        return pa.table(arrays, names=list(schema.names))


def _arrow_type(kind: str) -> pa.DataType:
    if match := re.fullmatch(r"DECIMAL\((\d+), ?(\d+)\)", kind):
        return pa.decimal128(int(match[1]), int(match[2]))
    return {"INT": pa.int32(), "BIGINT": pa.int64(), "STRING": pa.string(), "DATE": pa.date32()}[kind]


def _typed(value: Any, kind: str) -> Any:
    return Decimal(value).quantize(Decimal("0.01")) if kind.startswith("DECIMAL") else value


def _varied(rng: Random, literal: str, kind: str, is_one_of: bool) -> Any:
    """The constant or a value near it, which an inequality or the bounds of BETWEEN take or leave."""
    if kind == "STRING":
        return literal.strip("() ").strip("'").replace("%", rng.choice(("x", " "))).replace("_", "y")
    if kind == "DATE":
        (text,) = re.findall(r"\d+-\d+-\d+", literal) or ["2000-06-01"]
        year, month, day = map(int, text.split("-"))
        return datetime.date(year, month, day) + datetime.timedelta(days=rng.choice(_DAYS))
    if "'" in literal:
        return _any(rng, "", kind)
    number = _computed(literal)
    if rng.random() < 0.3:
        number += rng.choice((-1, 1, 2))
    return _typed(number, kind) if kind.startswith("DECIMAL") else int(number)


def _computed(literal: str) -> Decimal:
    first, *rest = re.findall(r"[-+*]|\d*\.?\d+", literal) or ["0"]
    sign, number = (-1, Decimal(rest.pop(0))) if first == "-" else (1, Decimal(first))
    number *= sign
    for operator, operand in zip(rest[::2], rest[1::2], strict=True):
        number = {"+": number.__add__, "-": number.__sub__, "*": number.__mul__}[operator](Decimal(operand))
    return number


def _any(rng: Random, name: str, kind: str) -> Any:
    if kind == "STRING":
        return rng.choice(("a", "b", "c")) + name[-2:]
    if kind == "DATE":
        return datetime.date(2000, 1, 1) + datetime.timedelta(days=rng.randrange(100))
    if kind.startswith("DECIMAL"):
        return Decimal(rng.randrange(-500 if "profit" in name else 100, 20000)) / 100
    return rng.randrange(1, 6)
