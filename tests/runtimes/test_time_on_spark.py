"""Views of now() and table functions on Spark equal the oracle over time, also from state written by another session."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deltic
from deltic.errors import ClockError, NegativeWeight
from seeds import rotating
from timed import QUERIES, START, TABLE, Timed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FEW = TABLE + ";".join(f"CREATE MATERIALIZED VIEW {name} AS {QUERIES[name]}" for name in ("inside", "counted", "elements"))


def run(spark: SparkSession, folder: Path, script: str, seed: int, steps: int) -> None:
    """Random steps, some of them in another session that resumes from the state."""
    rng = random.Random(seed)
    timed = Timed(deltic.Session(spark=spark, state=str(folder), shards=2), script)
    try:
        for step in range(1, steps + 1):
            timed.step(rng)
            if step % 2 == 0:
                now = timed.session.now
                timed.session.close()
                session = deltic.Session(spark=spark, state=str(folder))
                assert session.now == now
                if step % 4 == 0:
                    session.advance_to(now + timedelta(hours=12))  # before the definitions
                timed.open(session)
                timed.check()
        assert timed.seen
    finally:
        timed.session.close()


def test_queued_rows_wait_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    run(spark, tmp_path / "state", FEW, seed=1, steps=4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", rotating(3))
def test_every_condition_after_restarts(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    script = TABLE + ";".join(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in QUERIES.items())
    run(spark, tmp_path / "state", script, seed, steps=12)


def test_a_failed_tick_does_not_change_the_time(spark: SparkSession, tmp_path: Path) -> None:
    with deltic.Session(spark=spark, state=str(tmp_path / "state"), shards=2) as session:
        session.advance_to(START)
        session.sql(TABLE + "CREATE MATERIALIZED VIEW v AS SELECT id FROM r LATERAL VIEW repeat_row(-1) WHERE t <= now()")
        with session.transaction() as tx:
            tx.insert("r", [{"id": 1, "t": START + timedelta(days=1), "u": None, "d": None}])
        with pytest.raises(NegativeWeight, match=r"the row \(1\) would have the weight -1"):
            session.advance_to(START + timedelta(days=1))
        assert session.now == START
        with pytest.raises(ClockError):
            session.advance_to(START - timedelta(days=1))
