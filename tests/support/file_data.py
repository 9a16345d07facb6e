"""Test support: random tables of every type that a file can hold, and files read and sinks summed in one call."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
from collections import Counter
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deltic.connectors.files import FileReader, Portion
from deltic.connectors.source import DeadLetter
from deltic.expr.rows.ordering import order_key
from deltic.intervals import UNITS, interval_of
from deltic.schema import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
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
    VARIANT,
    Field,
    Schema,
    TableSchema,
    Type,
    decimal,
    time_type,
)
from deltic.types import INTERVALS, PLAIN, array_type, frozen, map_type, struct
from deltic.variants import Variant

TYPES = (BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, STRING, DATE, TIMESTAMP, decimal(5, 2), decimal(18, 0), decimal(38, 10))
OWN_TYPES = (*TYPES, BINARY, TIMESTAMP_NTZ, TIME, time_type(0), *(PLAIN[name] for name in INTERVALS))
EVERY = TableSchema("every", Schema(tuple(Field(f"c{i}_{type_.name.lower()}", type_) for i, type_ in enumerate(TYPES))))
OWN = TableSchema("own", Schema(tuple(Field(f"c{i}", type_, nullable=i % 2 == 0) for i, type_ in enumerate(OWN_TYPES))))
"""Types that others do not write as Deltic does, too."""
PLAIN_WORDS = ["a", "null", "NULL", "a,b", "ärger", "日本", "😀", "'", "{}", "1", "a|b;c", "in between"]
WORDS = [*PLAIN_WORDS, "", " ", '"', '""', 'say "x"', "x\ny", "x\r\ny", "\t", "\\", "\\n", " a "]
FIRST, LAST = dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_ENOUGH_DIGITS = Context(prec=60)


def random_value(chance: random.Random, type_: Type, *, plain: bool = False) -> Any:
    """plain: nothing of which readers differ, such as empty strings, NaN, and years before 1938 or after 2096."""
    if type_.held.is_nested:
        return _random_nested(chance, type_)
    if type_.is_integer:
        bound = 2 ** (INTEGER_BITS[type_.name] - 1)
        return chance.choice([0, 1, -1, -bound, bound - 1, chance.randrange(-bound, bound)])
    if type_.is_decimal:
        most = 10**type_.precision - 1
        unscaled = chance.choice([0, 1, -1, most, -most // 2, chance.randrange(10 ** chance.randint(1, type_.precision))])
        return Decimal(unscaled).scaleb(-type_.scale, _ENOUGH_DIGITS)
    if type_.is_interval:
        unit = UNITS[type_.fields[1]]
        most = ((2**63 if type_.is_day_time else 2**31) - 1) // unit
        return interval_of(chance.choice([0, 1, -1, most, -most // 2, chance.randrange(most)]) * unit, type_)
    match type_.name:
        case "BINARY":
            return chance.choice([b"", b"\xff", b"text", chance.randbytes(40)])
        case "TIME":
            return chance.choice([dt.time.min, dt.time.max, random_timestamp(chance, plain=plain).time()])
        case "TIMESTAMP_NTZ":
            return random_timestamp(chance, plain=plain).replace(tzinfo=None)
        case "BOOLEAN":
            return chance.random() < 0.5
        case "FLOAT":
            value = chance.choice([0.0, -0.0, 0.1, 1e20, 3.4028234e38, 1.4e-45, chance.gauss(0, 1e5)])
            return pa.scalar(value, pa.float32()).as_py()
        case "DOUBLE":
            odd = [] if plain else [math.nan, math.inf, -math.inf]
            return chance.choice([0.0, -0.0, 0.1, 1e300, 5e-324, 2.0**53 + 2, chance.gauss(0, 1), *odd])
        case "STRING":
            return chance.choice(PLAIN_WORDS if plain else WORDS) * chance.choice([1, 1, 3])
        case "DATE":
            return random_timestamp(chance, plain=plain).date()
    assert type_ == TIMESTAMP
    return random_timestamp(chance, plain=plain)


def random_type(chance: random.Random, depth: int, *, key: bool = False) -> Type:
    """Any type that a file can hold, nested to the depth. key: one that a key of a MAP can have."""
    kind = chance.choice(["ARRAY", "STRUCT", "STRUCT", "ARRAY" if key else "MAP"]) if depth and chance.random() < 0.7 else ""
    if kind == "ARRAY":
        return array_type(random_type(chance, depth - 1, key=key))
    if kind == "MAP":
        return map_type(random_type(chance, depth - 1, key=True), random_type(chance, depth - 1))
    if kind == "STRUCT":
        names = chance.sample(["a", "b", "value", "with space", "ß"], chance.randint(1, 3))
        return struct(tuple(Field(name, random_type(chance, depth - 1, key=key)) for name in names))
    return chance.choice(OWN_TYPES if key else (*OWN_TYPES, VARIANT))


def _random_nested(chance: random.Random, type_: Type) -> Any:
    """With NULLs in it, and VARIANTs that JSON holds: the null of JSON is a VARIANT and not NULL."""

    def part(of: Type) -> Any:
        return None if of != VARIANT and chance.random() < 1 / 6 else random_value(chance, of)

    kinds = [field.type for field in type_.parts]
    if type_.name == "ARRAY":
        return [part(kinds[0]) for _ in range(chance.randrange(4))]
    if type_.name == "MAP":
        given = [random_value(chance, kinds[0]) for _ in range(chance.randrange(4))]
        keys = {order_key(frozen(key)): key for key in given}
        return [(key, part(kinds[1])) for key in keys.values()]
    if type_.name == "STRUCT":
        return {field.name: part(field.type) for field in type_.parts}
    value, metadata = Variant.of(chance.choice([None, 1, "x", [1, None], {"a": {"b": []}}]))
    return {"value": value, "metadata": metadata}


def random_timestamp(chance: random.Random, *, plain: bool) -> dt.datetime:
    if plain:
        return EPOCH + dt.timedelta(microseconds=chance.randrange(-(10**15), 4 * 10**15))
    far = FIRST + dt.timedelta(microseconds=chance.randrange((LAST - FIRST) // dt.timedelta(microseconds=1)))
    return chance.choice([FIRST, LAST, far, far.replace(microsecond=0), dt.datetime(2024, 2, 29, tzinfo=dt.UTC)])


def random_rows(chance: random.Random, table: TableSchema, count: int, *, plain: bool = False) -> pa.Table:
    """A sixth of nullable values is NULL."""

    def value(field: Field) -> Any:
        return (
            None if field.nullable and field.type != VARIANT and chance.random() < 1 / 6 else random_value(chance, field.type, plain=plain)
        )

    columns = [pa.array([value(field) for _ in range(count)], field.type.arrow) for field in table.schema]
    return pa.Table.from_arrays(columns, schema=table.schema.arrow)


def read(folder: Path, table: TableSchema, format: str, *, start: int = 0, **options: Any) -> list[Portion]:
    """All portions of the folder's first file."""
    reader = FileReader(table, format, str(folder), **options)
    return list(reader.read(reader.listing()[0], start))


def rows(portions: list[Portion]) -> list[dict[str, Any]]:
    return [row for portion in portions for row in portion.changes.to_pylist()]


def letters(portions: list[Portion]) -> list[DeadLetter]:
    return [letter for portion in portions for letter in portion.letters]


def same(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> bool:
    """Equal, NaN equal to itself and -0.0 other than 0.0."""
    return [list(map(repr, row.values())) for row in one] == [list(map(repr, row.values())) for row in other]


def summed(folder: Path) -> Counter[str]:
    """What the files of a `changes` sink of Parquet or JSON lines add up to: row as JSON -> weight, none of them 0. O(rows)."""
    total: Counter[str] = Counter()
    for path in sorted(folder.glob("changes-*")):
        changes = pq.read_table(path).to_pylist() if path.suffix == ".parquet" else list(map(json.loads, path.read_text().splitlines()))
        for row in changes:
            weight, epoch = row.pop("_weight"), row.pop("_epoch")
            assert int(path.stem.removeprefix("changes-")) == epoch
            total[as_json(row)] += weight
    return Counter({row: weight for row, weight in total.items() if weight})


def as_json(row: dict[str, Any]) -> str:
    return json.dumps(row, default=str, sort_keys=True)
