"""Functions of DOUBLE have the bits of Java's StrictMath: on random numbers of every size, columns as rows, and both as Spark."""

from __future__ import annotations

import math
import random
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deltic.expr import resolve
from deltic.expr.columns import evaluate_columns
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import Column
from deltic.schema import DOUBLE
from seeds import ROTATION

OF_ONE = ("exp", "ln", "log2", "log10", "log1p", "expm1", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "asin", "acos", "atan", "cbrt")
OF_TWO = ("power", "atan2", "hypot", "log")
X, Y = Column(0, DOUBLE, True, "x"), Column(1, DOUBLE, True, "y")
CALLS = {**{name: resolve(name, [X]) for name in OF_ONE}, **{name: resolve(name, [X, Y]) for name in OF_TWO}}
COUNT = 1_500
SPECIAL = (
    0.0,
    -0.0,
    math.inf,
    -math.inf,
    math.nan,
    5e-324,
    1.0,
    -1.0,
    0.5,
    2.0,
    709.782712893384,
    -745.1332191019411,
    1e308,
    2.0**-28,
    22.0,
)


def number(draw: random.Random) -> float:
    kind = draw.random()
    if kind < 0.1:
        return draw.choice(SPECIAL)
    if kind < 0.4:
        return draw.gauss(0, 1)
    if kind < 0.6:
        return draw.uniform(-760, 760)
    return math.ldexp(draw.uniform(-1, 1), draw.randint(-40, 40) if kind < 0.8 else draw.randint(-1070, 1020))


def pairs(seed: int) -> list[tuple[float, float]]:
    draw = random.Random(seed)
    return [(number(draw), number(draw)) for _ in range(COUNT)]


def bits(value: Any) -> bytes | None:
    return None if value is None else b"NaN" if math.isnan(value) else struct.pack("<d", value)


def different(rows: list[tuple[float, float]], name: str, values: list[Any]) -> list[Any]:
    ours = [evaluate(CALLS[name], row) for row in rows]
    return [(row, a, b) for row, a, b in zip(rows, ours, values, strict=True) if bits(a) != bits(b)][:3]


@pytest.mark.parametrize("name", CALLS)
def test_columns_equal_rows(name: str) -> None:
    rows = pairs(ROTATION)
    columns = [pa.array(np.array(column)) for column in zip(*rows, strict=True)]
    assert different(rows, name, evaluate_columns(CALLS[name], columns, len(rows)).to_pylist()) == []


@pytest.mark.spark
def test_rows_equal_spark(spark: Any) -> None:
    rows = pairs(ROTATION + 1)
    x, y = (list(column) for column in zip(*rows, strict=True))
    spark.createDataFrame(pa.table({"i": range(len(rows)), "x": x, "y": y})).coalesce(1).createOrReplaceTempView("doubles")
    calls = [f"{name}(x)" for name in OF_ONE] + [f"{name}(x, y)" for name in OF_TWO]
    answer = spark.sql(f"SELECT i, {', '.join(f'{call} AS c{k}' for k, call in enumerate(calls))} FROM doubles").toArrow().sort_by("i")
    assert {name: wrong for k, name in enumerate(CALLS) if (wrong := different(rows, name, answer.column(f"c{k}").to_pylist()))} == {}
