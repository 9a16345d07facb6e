"""A pipeline resumes on the other engine, with another number of shards, and ends with the same views and sinks."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltic
from deltic.connectors.files import source as file_source
from deltic.errors import DuplicateKey, StateError
from shop import EXPECTED, EXPECTED_LETTERS, FAILING, Shop, views

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_from_one_engine_to_the_other_and_back(spark: SparkSession, tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.fill()
    with shop.pipeline() as embedded:
        embedded.run_once(lambda _: embedded.stop())
        before = embedded.session.epoch
    with shop.pipeline(spark=spark, shards=2, rows_per_tick=5) as pipeline:
        assert str(pipeline.start).endswith("views reused: spend, top") and pipeline.session.epoch > before
        pipeline.run_once(lambda _: pipeline.stop())
    with shop.pipeline(shards=3) as embedded:
        rest = embedded.run_once()
        assert views(embedded) == EXPECTED
    assert rest.rows_in == Counter(orders=3)
    assert shop.summed() == EXPECTED["spend"] and shop.snapshot() == EXPECTED["top"] and shop.letters() == EXPECTED_LETTERS


@pytest.mark.slow
def test_a_row_that_the_engine_refuses_is_named_by_file_and_row(spark: SparkSession, tmp_path: Path) -> None:
    """Without dead letters, to which it would go."""
    shop = Shop(tmp_path)
    shop.customers("a.parquet", [(1, "ann")])
    shop.orders("a.csv", "insert,5,1,10")
    path = shop.orders("b.csv", "insert,7,1,1", "insert,5,1,1")
    with shop.pipeline(FAILING, spark=spark, shards=2, rows_per_tick=100) as pipeline:
        refusal = rf"^\[DELTIC-2003\] file {path}, row 2: table orders already has a row with primary key id=5\n"
        with pytest.raises(DuplicateKey, match=refusal):
            pipeline.run_once()
        path.unlink()
        pipeline.run_once()
        assert views(pipeline) == {"spend": Counter([("ann", 10, 1)]), "top": Counter([(5, 10)])}
    assert shop.summed() == Counter([("ann", 10, 1)])


@pytest.mark.parametrize("by_tasks", [False, True])
def test_rows_that_a_table_refuses_in_tasks_are_dead_letters(
    by_tasks: bool, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempts ask each shard for its list, which comes back as data: few attempts find them all."""
    if by_tasks:
        monkeypatch.setattr(file_source, "LARGE_BYTES", 1)
    (tmp_path / "in").mkdir()
    ops = pa.table({"_op": ["insert", "delete"] * 40, "id": pa.array(range(80), pa.int32())})
    pq.write_table(ops, tmp_path / "in/a.parquet", row_group_size=20)
    script = """
        CREATE TABLE t (id INT NOT NULL, PRIMARY KEY (id))
            USING parquet OPTIONS (path 'in', op_column '_op', on_error 'dead_letter', dead_letter_path 'letters');
        CREATE MATERIALIZED VIEW v AS SELECT id FROM t;
    """
    attempts, commit = [], deltic.Pipeline._try_commit
    monkeypatch.setattr(deltic.Pipeline, "_try_commit", lambda *arguments: attempts.append(arguments) or commit(*arguments))
    with deltic.Pipeline(script, spark=spark, shards=2, state=str(tmp_path / "state"), base=tmp_path) as pipeline:
        assert pipeline.run_once().letters == {"t": 40}
        assert sorted(row["id"] for row in pipeline.session.view("v").rows()) == list(range(0, 80, 2))
    assert 2 <= len(attempts) <= 3
    (path,) = (tmp_path / "letters").glob("letters-*")
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted((one["row"], one["reason"]) for one in found) == [(i + 1, f"table t has no row id={i}") for i in range(1, 80, 2)]


def test_a_local_state_under_a_master_that_is_not_local(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(tmp_path)
    shop.fill()
    with monkeypatch.context() as patched:
        patched.setattr("deltic.runtimes.spark.reach.master", lambda spark: "spark://host:7077")
        with pytest.raises(StateError) as caught:
            shop.pipeline(spark=spark)
    assert str(caught.value).splitlines()[:2] == [
        f"[DELTIC-5000] the folder {shop.state} of this machine cannot keep the state of a Spark session on spark://host:7077",
        "expected: a state folder that tasks can reach from every machine",
    ]
    assert not shop.made.exists()
    assert shop.run() == EXPECTED
