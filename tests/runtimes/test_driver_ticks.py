"""Small ticks of a Spark session, which its driver computes, beside large ones, which are jobs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import deltic
from deltic.errors import DuplicateKey, SetupError
from deltic.runtimes.embedded import DurableEmbedded
from deltic.runtimes.spark import SparkRuntime
from deltic.trace.identity import Identity
from engines import Engine, restarts, run
from programs import case, expected
from tests.support.strings import identity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("driver_ticks")]
RUNTIME = "deltic.runtimes.spark.runtime"
SETTING = "spark.deltic.driverRows"
SCRIPT = """
    CREATE TABLE orders (id BIGINT, customer STRING NOT NULL, amount BIGINT NOT NULL, PRIMARY KEY (id));
    CREATE MATERIALIZED VIEW spend AS SELECT upper(customer) AS customer, sum(amount) AS amount FROM orders GROUP BY customer;
    CREATE MATERIALIZED VIEW pairs AS SELECT a.id AS a, b.id AS b FROM orders a JOIN orders b ON a.customer = b.customer;
"""


@pytest.fixture
def session(spark: SparkSession, tmp_path: Path) -> Iterator[deltic.Session]:
    with deltic.Session(spark=spark, state=tmp_path / "state", shards=2) as session:
        session.sql(SCRIPT)
        yield session


def jobs(spark: SparkSession) -> int:
    """How many jobs there were so far."""
    return int(spark.sparkContext._jsc.sc().statusStore().jobsList(None).size())


def insert(session: deltic.Session, numbers: Iterable[int], customer: Callable[[int], str] = lambda _: "ä") -> None:
    """A tick of one order for each number."""
    session.apply({"orders": [{"id": i, "customer": customer(i), "amount": i, "_op": "insert"} for i in numbers]})


def test_definitions_and_small_ticks_take_no_job(spark: SparkSession, tmp_path: Path) -> None:
    with deltic.Session(spark=spark, state=tmp_path / "state", shards=2) as session:
        before = jobs(spark)
        session.sql(SCRIPT)
        insert(session, [1, 2, 3])
        session.apply({"orders": [{"id": 3, "_op": "delete"}]})
        assert jobs(spark) == before
        assert session.view("spend").rows() == [{"customer": "Ä", "amount": 3}]
        assert len(session.view("pairs").rows()) == 4


def test_ticks_of_more_rows_are_jobs_on_the_same_state(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set(SETTING, "3")
    with deltic.Session(spark=spark, state=tmp_path / "state", shards=2) as session:
        session.sql(SCRIPT)
        made = []
        for start, rows in ((0, 3), (10, 4), (20, 2), (30, 9), (40, 1)):
            before = jobs(spark)
            insert(session, range(start, start + rows), lambda i: f"customer {i % 10}")
            made.append(jobs(spark) - before)
        assert made == [0, 1, 0, 1, 0]
        amounts = {row["customer"]: row["amount"] for row in session.view("spend").rows()}
        assert amounts["CUSTOMER 0"] == 10 + 20 + 30 + 40
        assert amounts["CUSTOMER 3"] == 13 + 33
        assert amounts["CUSTOMER 8"] == 38
        before = jobs(spark)
        session.sql("CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM orders")
        assert jobs(spark) > before, "a backfill of more rows is a job"
        assert session.view("counted").rows() == [{"n": 19}]


def test_a_tick_of_much_work_starts_again_on_spark(spark: SparkSession, session: deltic.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{RUNTIME}.SMALL_WORK", 1_000)
    attempts = []
    own = SparkRuntime._ran

    def counted(*given: Any) -> Any:
        attempts.append(given)
        return own(*given)

    monkeypatch.setattr(SparkRuntime, "_ran", counted)
    made = []
    for numbers in (range(3), range(100, 160), range(160, 165), range(200, 201), range(201, 202)):
        before = jobs(spark), len(attempts)
        insert(session, numbers, lambda i: "one" if 100 <= i < 200 else f"customer {i}")
        made.append((jobs(spark) - before[0], len(attempts) - before[1]))
    assert made[0] == (0, 1), "little work is done by the driver"
    assert made[1] == (1, 1), "60 orders make 3,600 pairs"
    assert made[2:4] == [(1, 0), (1, 0)], "a tick after such a one is a job; that of 5 orders makes 625 pairs"
    assert made[4] == (0, 1), "the tick before took little work"
    assert len(session.view("pairs").rows()) == 65 * 65 + 5


def test_an_error_rolls_the_tick_back(spark: SparkSession, session: deltic.Session) -> None:
    insert(session, [1])
    epoch, before = session.epoch, jobs(spark)
    with pytest.raises(DuplicateKey, match="id=1"):
        insert(session, [2, 1])
    assert (session.epoch, jobs(spark)) == (epoch, before)
    insert(session, [2])
    assert session.view("spend").rows() == [{"customer": "Ä", "amount": 3}]


def test_strings_of_abandoned_runs_and_of_tasks_collide(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the driver interned in a run that it gave up stays interned; the tasks compute ids of their own for the same strings."""
    monkeypatch.setattr(Identity, "drawn", staticmethod(lambda: identity(1, 6)))
    monkeypatch.setattr(f"{RUNTIME}.SMALL_WORK", 40)
    with deltic.Session(spark=spark, state=tmp_path / "state", shards=2) as session, deltic.Session() as plain:
        before = jobs(spark)
        for each in (session, plain):
            each.sql(SCRIPT)
            for numbers in (range(2), range(2, 12), range(12, 13), range(13, 15)):
                insert(each, numbers, lambda i: f"customer {i % 20}")
            each.apply({"orders": [{"id": i, "_op": "delete"} for i in range(0, 15, 5)]})
        assert jobs(spark) - before > 1
        assert len(session.notes["strings"]["overrides"]) > 1
        for view in ("spend", "pairs"):
            assert sorted(session.view(view).rows(), key=str) == sorted(plain.view(view).rows(), key=str)


@pytest.mark.parametrize("seed", [20_003, 20_005])
def test_random_programs_by_the_driver_and_by_jobs(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Every other tick is a job; the state is also opened by the embedded engine in between."""
    monkeypatch.setattr(SparkRuntime, "_is_small", lambda _runtime, _version, _changes, tick: tick.epoch % 2 == 0)
    program = case(seed)
    state = str(tmp_path / "state")

    def on_spark(shards: int | None) -> SparkRuntime:
        return SparkRuntime(spark, state, shards)

    def embedded(shards: int | None) -> DurableEmbedded:
        return DurableEmbedded(state, shards)

    engine = Engine(on_spark(2), program.tables, program.views)
    try:
        run(engine, program, expected(program), restarts=restarts(seed, len(program.ticks), on_spark, embedded))
    finally:
        engine.runtime.close()


@pytest.mark.slow
def test_a_definition_that_calls_a_function_is_a_job_which_needs_its_module(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here_alone.py").write_text("def double(row):\n    return 2 * row.v\n")
    monkeypatch.syspath_prepend(tmp_path)
    double = importlib.import_module("here_alone").double
    circuit = deltic.Circuit()
    circuit.output("o", circuit.input("t", schema={"v": int}).map(double, schema={"v": int}))
    with deltic.Session(spark=spark, state=tmp_path / "state", shards=2) as session:
        session.sql("CREATE TABLE s (v BIGINT); CREATE MATERIALIZED VIEW before AS SELECT sum(v) AS v FROM s")
        with pytest.raises(SetupError, match="Spark's workers cannot import module here_alone"):
            session.install(circuit)
        before = jobs(spark)
        session.sql("CREATE MATERIALIZED VIEW after AS SELECT count(*) AS n FROM s")
        session.apply({"s": [{"v": 4, "_op": "insert"}]})
        assert jobs(spark) == before
        assert session.view("before").rows() == [{"v": 4}] and session.view("after").rows() == [{"n": 1}]


def test_a_setting_that_is_no_number(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set(SETTING, "few")
    with pytest.raises(SetupError, match=r"the Spark setting spark\.deltic\.driverRows is 'few'"):
        deltic.Session(spark=spark, state=tmp_path / "state")
