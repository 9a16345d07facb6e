"""What Spark shows of Deltic's jobs: a description of each, and a name of each level in its plan."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import deltic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCRIPT = """
    CREATE TABLE orders (id BIGINT, customer BIGINT NOT NULL, amount BIGINT NOT NULL, PRIMARY KEY (id));
    CREATE MATERIALIZED VIEW spend AS SELECT customer, sum(amount) AS amount FROM orders GROUP BY customer;
"""


@pytest.fixture
def session(spark: SparkSession, tmp_path: Path) -> Iterator[deltic.Session]:
    with deltic.Session(spark=spark, state=str(tmp_path / "state"), shards=2) as session:
        session.sql(SCRIPT)
        yield session


def jobs(spark: SparkSession) -> list[tuple[int, str | None]]:
    """Number and description of all jobs that Spark's UI would list."""
    store = spark.sparkContext._jsc.sc().statusStore()
    listed: Any = store.jobsList(None)
    found = [listed.apply(i) for i in range(listed.size())]
    return sorted((job.jobId(), job.description().get() if job.description().isDefined() else None) for job in found)


def test_jobs_say_state_epoch_levels_and_tables(spark: SparkSession, session: deltic.Session, tmp_path: Path) -> None:
    before = len(jobs(spark))
    session.apply({"orders": [{"id": 1, "customer": 1, "amount": 5, "_op": "insert"}]})
    made = [text for _, text in jobs(spark)[before:]]
    state = tmp_path / "state"
    assert made and set(made) == {f"deltic {state}: epoch {session.epoch}, 2 levels, changes of orders"}
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None, "later jobs are not Deltic's"


def test_a_description_of_the_user_stays(spark: SparkSession, session: deltic.Session) -> None:
    spark.sparkContext.setJobDescription("nightly load")
    try:
        before = len(jobs(spark))
        with pytest.raises(deltic.errors.AbsentRow):
            session.apply({"orders": [{"id": 1, "customer": 1, "amount": 5, "_op": "delete"}]})
        session.apply({"orders": [{"id": 1, "customer": 1, "amount": 5, "_op": "insert"}]})
        assert all(text is not None and text.startswith("nightly load; deltic ") for _, text in jobs(spark)[before:])
        assert spark.sparkContext.getLocalProperty("spark.job.description") == "nightly load"
    finally:
        spark.sparkContext.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]  # its annotation lacks None, which clears it


def test_levels_have_names_in_the_plan(session: deltic.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    from deltic.runtimes.spark import runtime  # noqa: PLC0415  needs the extra

    plans: list[str] = []
    framed = runtime.SparkRuntime._frame

    def seen(*arguments: Any) -> Any:
        frame = framed(*arguments)
        plans.append(frame._jdf.queryExecution().toString())
        return frame

    monkeypatch.setattr(runtime.SparkRuntime, "_frame", seen)
    session.apply({"orders": [{"id": 1, "customer": 1, "amount": 5, "_op": "insert"}]})
    assert "MapInArrow deltic_level_1_of_2(" in plans[0] and "MapInArrow deltic_level_2_of_2(" in plans[0]
