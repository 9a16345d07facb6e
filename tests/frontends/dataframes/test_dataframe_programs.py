"""DataFrames as views: programs of notebooks bind, and give what Spark gives."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import deltic
from dataframe_programs import EXPECTED_REFUSALS, MAKERS, PROGRAMS, TABLES, TYPES, Notebook
from deltic.errors import Unsupported
from deltic.types import frozen
from parts import slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark.sql.connect.proto")
from deltic.frontends.dataframes import Frames

pytestmark = pytest.mark.filterwarnings("ignore:WARN WindowExpression")

SIZES = {"orders": 200, "customers": 10, "events": 80}
CHUNK = 21


def test_programs_bind() -> None:
    with deltic.Session() as session:
        session.sql(TABLES)
        frames = Frames(lambda: session._catalog)
        refused = set()
        for name, make in PROGRAMS.items():
            try:
                frames.define(lambda spark: make(Notebook(spark))).bound(session._catalog)  # noqa: B023
            except Unsupported:
                refused.add(name)
    assert refused == EXPECTED_REFUSALS
    assert len(PROGRAMS) >= 200 and len(refused) <= 15


@pytest.mark.spark
@pytest.mark.parametrize("start", slow(*range(0, len(PROGRAMS), CHUNK)))
def test_programs_are_as_in_spark(start: int, spark: SparkSession) -> None:
    names = [name for name in [*PROGRAMS][start : start + CHUNK] if name not in EXPECTED_REFUSALS]
    draw = random.Random(start)
    content = {table: {i: make(i, draw) for i in range(SIZES[table])} for table, make in MAKERS.items()}
    with deltic.Session() as session:
        session.sql(TABLES)
        for name in names:
            session.view_of(name, lambda spark: PROGRAMS[name](Notebook(spark)))  # noqa: B023
        session.apply({table: [{**row, "_op": "insert"} for row in rows.values()] for table, rows in content.items()})
        wrong: dict[str, str] = {}
        for tick in range(2):
            if tick:
                session.apply({table: list(_change(rows, draw, table)) for table, rows in content.items()})
            for table, rows in content.items():
                spark.createDataFrame([tuple(row.values()) for row in rows.values()], TYPES[table]).createOrReplaceTempView(table)
            notebook = Notebook(spark)
            for name in names:
                expected, answer = PROGRAMS[name](notebook).toArrow(), session.view(name).to_arrow()
                if (difference := _difference(answer, expected)) is not None:
                    wrong[name] = difference
        assert not wrong, wrong


@pytest.mark.slow
@pytest.mark.spark
def test_views_of_dataframes_run_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    names = ("join_left", "group_agg", "pivot_count", "udf", "explode_count", "top", "union_by_name_missing", "fillna_dict")
    draw = random.Random(7)
    content = {table: {i: make(i, draw) for i in range(SIZES[table])} for table, make in MAKERS.items()}
    with deltic.Session() as embedded, deltic.Session(spark=spark, state=tmp_path / "state", shards=2) as distributed:
        for session in (embedded, distributed):
            session.sql(TABLES)
            for name in names:
                session.view_of(name, lambda spark: PROGRAMS[name](Notebook(spark)))  # noqa: B023
        for tick in range(3):
            inserts = {table: [{**row, "_op": "insert"} for row in rows.values()] for table, rows in content.items()}
            changes = {table: list(_change(rows, draw, table)) for table, rows in content.items()} if tick else inserts
            for session in (embedded, distributed):
                session.apply(changes)
            for name in names:
                assert _rows(distributed.view(name).to_arrow()) == _rows(embedded.view(name).to_arrow()), (tick, name)


def _difference(answer: pa.Table, expected: pa.Table) -> str | None:
    """What differs in names, types and rows."""
    for part in (lambda table: table.schema.names, lambda table: [str(_kind(kind)) for kind in table.schema.types]):
        if part(answer) != part(expected):
            return f"{part(answer)}, and in Spark {part(expected)}"
    extra, missing = _rows(answer) - _rows(expected), _rows(expected) - _rows(answer)
    return f"extra {[*extra][:3]}, missing {[*missing][:3]}" if extra or missing else None


def _change(rows: dict[int, dict[str, Any]], draw: random.Random, table: str) -> Iterator[dict[str, Any]]:
    """Deletes a fifth of the rows, changes a fifth, and inserts as many."""
    for number in list(rows):
        fate = draw.randrange(5)
        if fate < 2:
            yield {**rows.pop(number), "_op": "delete"}
        if fate == 1:
            rows[number] = MAKERS[table](number, draw)
            yield {**rows[number], "_op": "insert"}
    new = max(1_000, *(number + 1 for number in rows))
    for number in range(new, new + SIZES[table] // 5):
        rows[number] = MAKERS[table](number, draw)
        yield {**rows[number], "_op": "insert"}


def _kind(type: pa.DataType) -> Any:
    """A type without what Arrow leaves to the writer."""
    if pa.types.is_list(type):
        return pa.list_(pa.field("element", _kind(type.value_type)))
    if pa.types.is_map(type):
        return pa.map_(_kind(type.key_type), pa.field("value", _kind(type.item_type)))
    if pa.types.is_struct(type):
        return pa.struct([pa.field(part.name, _kind(part.type)) for part in type])
    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(type) and type.tz else type


def _rows(table: pa.Table) -> Counter[str]:
    """The rows with their counts; entries of maps in one order."""
    return Counter(repr(tuple(frozen(_sorted(value)) for value in row.values())) for row in table.to_pylist())


def _sorted(value: Any) -> Any:
    if isinstance(value, list) and value and all(isinstance(part, tuple) for part in value):
        return sorted(value)
    return value
