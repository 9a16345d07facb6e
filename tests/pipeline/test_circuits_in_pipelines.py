"""Pipelines whose views are circuits and SQL: exact over restarts, on both engines, and aware of changed definitions."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import deltic
from deltic.pipeline.dry_run import dry_run
from deltic.plan.evaluate import evaluate
from deltic.plan.relation import Relation
from shop import CUSTOMERS, EXPECTED, LETTERS, ORDERS, SPEND, SPEND_OUT, Shop, views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = deltic.Program(ORDERS.format(letters=LETTERS) + CUSTOMERS + SPEND)
OUT = SPEND_OUT + "CREATE SINK bands_out FROM bands USING parquet OPTIONS (path 'made/bands', mode 'changes');"
ORDER_ROWS = {(2, 3, 25): 1, (5, 3, 50): 1, (6, 1, 60): 1}
"""The orders that remain of what `Shop.fill` writes."""
BANDS = Counter({(1, 2): 1, (2, 1): 1})


def band(order: Any) -> int:
    return 1 if order.amount <= 50 else 2


def narrower(order: Any) -> int:
    return 1 if order.amount <= 25 else 2


def banded(function: Callable[[Any], int], name: str = "bands") -> deltic.Circuit:
    """How many orders are in each band, and how many customers that spent something, as a circuit over a table and a SQL view."""
    circuit = deltic.Circuit(TABLES)
    known = circuit.input("orders").filter("amount IS NOT NULL")
    circuit.output(name, known.map(function, schema={"band": int}).index_with("band").count("orders"))
    circuit.output("buyers", circuit.view("spend").map({"name": "name"}).distinct().aggregate(buyers="count(*)"))
    return circuit


def program(function: Callable[[Any], int] = band) -> deltic.Program:
    return deltic.Program(TABLES, banded(function), OUT)


def test_circuits_read_tables_with_sources_and_sinks_read_circuits(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.fill()
    circuit = banded(band)
    bands = evaluate(circuit.outputs["bands"], {"orders": Relation(ORDER_ROWS.items())})
    assert Counter(dict(bands.items())) == BANDS
    with shop.pipeline(program()) as pipeline:
        assert str(pipeline.start) == "a new state"
        pipeline.run_once(lambda _: pipeline.stop())
    with shop.pipeline(program()) as pipeline:
        assert str(pipeline.start).endswith("views reused: spend, bands, buyers")
        pipeline.run_once()
        assert views(pipeline) == {"spend": EXPECTED["spend"], "bands": BANDS, "buyers": Counter({(2,): 1})}
    assert shop.summed() == EXPECTED["spend"] and shop.summed("bands") == BANDS


def test_a_changed_function_is_a_changed_definition(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.fill()
    shop.run(program())
    changed = program(narrower)
    outcome = dry_run(changed, state=str(shop.state), base=tmp_path)
    assert (outcome.start.reused, outcome.start.filled, outcome.start.dropped) == (("spend", "buyers"), ("bands",), ())
    with shop.pipeline(changed) as pipeline:
        assert str(pipeline.start).endswith("; views reused: spend, buyers; filled: bands")
        assert views(pipeline)["bands"] == Counter({(1, 1): 1, (2, 2): 1})
    assert shop.summed("bands") == Counter({(1, 1): 1, (2, 2): 1})
    with shop.pipeline(TABLES) as pipeline:
        assert pipeline.start.dropped == ("bands", "buyers") and pipeline.session.views == ("spend",)


def test_a_lambda_of_the_same_code_is_the_same_definition(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.fill()

    def over(limit: int) -> deltic.Program:
        return program(lambda order: 1 if order.amount <= limit else 2)

    assert shop.run(over(50))["bands"] == BANDS
    with shop.pipeline(over(50)) as pipeline:
        assert pipeline.start.filled == ()
    with shop.pipeline(over(25)) as pipeline:
        assert pipeline.start.filled == ("bands",)


def test_rows_that_wait_for_their_time_in_a_circuit_make_ticks(tmp_path: Path) -> None:
    """A pipeline runs by the wall clock; all times here are past."""
    shop = Shop(tmp_path)
    shop.fill()
    circuit = deltic.Circuit(TABLES)
    past = circuit.input("orders").filter("amount IS NOT NULL")
    circuit.output("due", past.temporal_filter(lower="TIMESTAMP'2020-01-01'"))
    assert set(shop.run(deltic.Program(TABLES, circuit))["due"]) == set(ORDER_ROWS)


@pytest.fixture
def shipped(spark: SparkSession) -> Iterator[SparkSession]:
    """A Spark session whose workers need not import this module."""
    from deltic.runtimes.spark.by_value import pickled_by_value  # noqa: PLC0415  pyspark is an optional extra

    with pickled_by_value([sys.modules[__name__]]):
        yield spark


@pytest.mark.slow
@pytest.mark.spark
def test_from_one_engine_to_the_other_with_circuits(shipped: SparkSession, tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.fill()
    with shop.pipeline(program()) as embedded:
        embedded.run_once(lambda _: embedded.stop())
    with shop.pipeline(program(), spark=shipped, shards=2) as pipeline:
        assert str(pipeline.start).endswith("views reused: spend, bands, buyers")
        pipeline.run_once(lambda _: pipeline.stop())
    with shop.pipeline(program(narrower), spark=shipped) as pipeline:
        assert (pipeline.start.reused, pipeline.start.filled) == (("spend", "buyers"), ("bands",))
        pipeline.run_once()
        assert views(pipeline)["bands"] == Counter({(1, 1): 1, (2, 2): 1})
    with shop.pipeline(program(), shards=3) as embedded:
        assert views(embedded) == {"spend": EXPECTED["spend"], "bands": BANDS, "buyers": Counter({(2,): 1})}
    assert shop.summed() == EXPECTED["spend"] and shop.summed("bands") == BANDS


@pytest.mark.slow
@pytest.mark.spark
def test_a_streaming_pipeline_of_circuits(shipped: SparkSession, tmp_path: Path) -> None:
    from deltic.spark import StreamingPipeline  # noqa: PLC0415  pyspark is an optional extra

    shop = Shop(tmp_path)
    shop.fill()
    with StreamingPipeline(program(), shipped, state=str(shop.state), shards=2, base=tmp_path) as pipeline:
        pipeline.start(once=True).awaitTermination()
        assert Counter((row["band"], row["orders"]) for row in pipeline.session.view("bands").rows()) == BANDS
    with StreamingPipeline(program(narrower), shipped, state=str(shop.state), base=tmp_path) as pipeline:
        assert {row["band"]: row["orders"] for row in pipeline.session.view("bands").rows()} == {1: 1, 2: 2}
    assert shop.summed("bands") == Counter({(1, 1): 1, (2, 2): 1})
