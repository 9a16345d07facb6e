"""Strings whose hashes collide: with hashes of few bits whole programs equal the oracle, on all engines.

`few_bits` makes every new state or session hash to so few bits that many strings get ids of their own; each test says how many did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import In

import deltic
from deltic.runtimes import Runtime
from deltic.runtimes.embedded import DurableEmbedded, Embedded
from deltic.runtimes.spark import SparkRuntime
from deltic.runtimes.spark.datasource import DelticSource
from deltic.runtimes.stored_view import StoredView
from deltic.schema import STRING
from deltic.storage.reader import StateReader
from deltic.trace.identity import Identity
from engines import Engine, restarts, run
from programs import Case, case, expected, mixed
from tests.support.strings import identity

BITS = 1
BITS_ON_SPARK = 7
"""More bits, since each collision that a task detects repeats its tick."""
SCRIPT = """
CREATE TABLE people (name STRING NOT NULL PRIMARY KEY, city STRING);
CREATE TABLE cities (city STRING NOT NULL PRIMARY KEY, land STRING);
CREATE MATERIALIZED VIEW by_land AS SELECT land, count(*) AS n, min(upper(name)) AS first
    FROM people JOIN cities ON people.city = cities.city GROUP BY land;
CREATE MATERIALIZED VIEW of_seven AS SELECT name, concat(name, '@', city) AS address FROM people WHERE city = 'city 7';
CREATE MATERIALIZED VIEW everybody AS SELECT name, city FROM people;
"""
ATTACK = ["user0000@example", "user3454.UIlg/fn"]
"""Equal under the hash of earlier versions."""


@pytest.fixture
def few_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Identity, "drawn", staticmethod(lambda: identity(1, BITS)))


@pytest.fixture
def more_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Identity, "drawn", staticmethod(lambda: identity(1, BITS_ON_SPARK)))


def overrides(runtime: Runtime) -> int:
    return len(runtime.strings.identity.overrides)


def check(program: Case, engine: Engine, reopeners: object = None) -> int:
    """The number of strings with overridden ids."""
    try:
        run(engine, program, expected(program), restarts=reopeners)  # type: ignore[arg-type]
        return overrides(engine.runtime)
    finally:
        engine.runtime.close()


def of_strings(first: int, count: int, make: Callable[[int], Case] = case) -> Iterator[Case]:
    """Random programs over tables with mostly strings."""
    programs = (make(seed) for seed in range(first, first + 1000, 1 if make is case else 10))
    return islice((p for p in programs if _share_of_strings(p) > 0.3), count)


def _share_of_strings(program: Case) -> float:
    types = [f.type for table in program.tables.values() for f in table.schema]
    return types.count(STRING) / len(types)


@pytest.mark.usefixtures("few_bits")
@pytest.mark.parametrize("shards", [1, 3])
def test_random_programs(shards: int) -> None:
    programs = [*of_strings(40_000, 12), *of_strings(41_005, 2, mixed)]
    assert sum(check(p, Engine(Embedded(shards), p.tables, p.views)) for p in programs) > 50


@pytest.mark.usefixtures("few_bits")
def test_random_programs_with_restarts_merges_and_other_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RATIO": 2, "BASE_ROWS": 2, "TICK_ROWS": 16}.items():
        monkeypatch.setattr(f"deltic.storage.merging.{name}", value)
    collisions = 0
    for program in of_strings(42_000, 8):
        seed, state = program.seed, str(tmp_path / str(program.seed))
        reopened = restarts(seed, len(program.ticks), lambda shards, state=state: DurableEmbedded(state, shards))  # type: ignore[misc]
        collisions += check(program, Engine(DurableEmbedded(state, 1 + seed % 3), program.tables, program.views), reopened)
    assert collisions > 20


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("few_bits")
def test_random_programs_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    collisions = 0
    for program in of_strings(43_001, 1):
        seed, state = program.seed, str(tmp_path / str(program.seed))
        openers = [lambda shards, state=state, kind=kind: kind(state, shards) for kind in (_on_spark(spark), DurableEmbedded)]
        reopened = restarts(seed, len(program.ticks), *openers)  # type: ignore[arg-type]
        collisions += check(program, Engine(SparkRuntime(spark, state, 2), program.tables, program.views), reopened)
    assert collisions > 2


def _on_spark(spark: SparkSession) -> object:
    return lambda state, shards: SparkRuntime(spark, state, shards)


def people(start: int, end: int) -> pa.Table:
    return pa.table({"name": [f"name {i}" for i in range(start, end)], "city": [f"city {i % 11}" for i in range(start, end)]})


CITIES = pa.table({"city": [f"city {i}" for i in range(11)], "land": [f"land {i % 3}" for i in range(11)]})


def filled(session: deltic.Session) -> None:
    session.sql(SCRIPT)
    with session.transaction() as tx:
        tx.insert("people", people(0, 40))
        tx.insert("cities", CITIES)
    with session.transaction() as tx:
        tx.delete("people", people(0, 10)["name"].to_pylist())
        tx.insert("people", people(40, 60))


def check_filled(session: deltic.Session, names: range = range(10, 60)) -> None:
    """The expected rows of people with these numbers."""
    lands = {f"land {land}": [i for i in names if i % 11 % 3 == land] for land in range(3)}
    expected_lands = {land: (len(numbers), min(f"NAME {i}" for i in numbers)) for land, numbers in lands.items()}
    assert {row["land"]: (row["n"], row["first"]) for row in session.view("by_land").rows()} == expected_lands
    assert sorted(row["address"] for row in session.view("of_seven").rows()) == sorted(f"name {i}@city 7" for i in names if i % 11 == 7)
    everybody = session.view("everybody")
    for i in range(names.stop + 10):
        city = [{"name": f"name {i}", "city": f"city {i % 11}"}] if i in names else []
        assert everybody.lookup(f"name {i}") == city


@pytest.mark.usefixtures("few_bits")
@pytest.mark.parametrize("shards", [1, 3])
def test_lookups_literals_and_inputs(tmp_path: Path, shards: int) -> None:
    state = str(tmp_path / "state")
    with deltic.Session(state=state, shards=shards) as session:
        filled(session)
        check_filled(session)
        past = [session.view("everybody").changes(epoch).num_rows for epoch in range(2, session.epoch + 1)]
    with deltic.Session(state=state, shards=5 - shards) as session:
        session.program(SCRIPT)
        check_filled(session)
        assert [session.view("everybody").changes(epoch).num_rows for epoch in range(2, 2 + len(past))] == past
        assert len(session.notes["strings"]["overrides"]) > 50
    with StateReader.open(state) as reader:
        table = StoredView(reader, "everybody").to_arrow()
        assert sorted(table["name"].to_pylist()) == sorted(f"name {i}" for i in range(10, 60))
    source = DelticSource({"path": state, "view": "everybody", "pushdown": "true"})
    reader: Any = source.reader(source.schema())
    assert list(reader.pushFilters([In(("name",), ("name 9", "name 33"))]))
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert [row for batch in batches for row in batch.to_pylist()] == [{"name": "name 33", "city": "city 0"}]


@pytest.mark.usefixtures("few_bits")
def test_a_past_change_is_read_although_its_ids_are_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.runtimes.durable.core.STRINGS_BYTES", 0)
    script = "CREATE TABLE t (s STRING); CREATE MATERIALIZED VIEW v AS SELECT s FROM t"
    state = str(tmp_path / "state")
    history: dict[int, dict[str, int]] = {}
    with deltic.Session(state=state) as session:
        session.sql(script)
        for i in range(60):
            changes = {f"s{i}": 1, **({f"s{i - 1}": -1} if i else {})}
            session.apply({"t": pa.table({"s": list(changes), "_weight": list(changes.values())})})
            history[session.epoch] = changes
        for epoch, changes in history.items():
            change = session.view("v").changes(epoch)
            assert dict(zip(change["s"].to_pylist(), change["_weight"].to_pylist(), strict=True)) == changes


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_strings_that_collided_under_the_old_hash_coexist(tmp_path: Path, kind: str) -> None:
    with deltic.Session(state=None if kind == "memory" else str(tmp_path / "state"), shards=3) as session:
        session.sql("CREATE TABLE t (s STRING NOT NULL PRIMARY KEY, n BIGINT); CREATE MATERIALIZED VIEW v AS SELECT s, n FROM t")
        for n, s in enumerate(ATTACK):
            session.apply({"t": pa.table({"s": [s], "n": [n], "_op": ["insert"]})})
        assert [session.view("v").lookup(s) for s in ATTACK] == [[{"s": s, "n": n}] for n, s in enumerate(ATTACK)]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("more_bits")
def test_strings_of_frames_on_spark_collide_with_each_other_and_the_state(spark: SparkSession, tmp_path: Path) -> None:
    with deltic.Session(spark=spark, state=str(tmp_path / "state"), shards=2) as session:
        session.sql(SCRIPT)
        for start, end in ((0, 14), (14, 18)):
            frame = spark.createDataFrame(
                [(*row.values(), "insert") for row in people(start, end).to_pylist()], "name STRING, city STRING, _op STRING"
            )
            session.apply({"people": frame.repartition(4)})
        session.apply({"cities": CITIES.append_column("_op", pa.array(["insert"] * 11))})
        with session.transaction() as tx:
            tx.delete("people", people(0, 5)["name"].to_pylist())
        check_filled(session, range(5, 18))
        assert len(session.notes["strings"]["overrides"]) > 3


@pytest.mark.spark
@pytest.mark.usefixtures("more_bits")
def test_pending_changes_keep_their_ids(spark: SparkSession, tmp_path: Path) -> None:
    with deltic.Session(spark=spark, state=str(tmp_path / "state"), shards=2) as session:
        session.sql(SCRIPT)
        with session.transaction() as tx:
            tx.insert("people", people(0, 20))
            frame = spark.createDataFrame([(f"other {i}", "city 1", "insert") for i in range(20)], "name STRING, city STRING, _op STRING")
            session.apply({"people": frame})
        actual = {row["name"]: row["city"] for row in session.view("everybody").rows()}
        assert actual == {**{f"other {i}": "city 1" for i in range(20)}, **{f"name {i}": f"city {i % 11}" for i in range(20)}}


@pytest.mark.usefixtures("few_bits")
def test_concurrent_readers_see_whole_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltic.runtimes.durable.core.STRINGS_BYTES", 0)
    wrong: list[object] = []
    with deltic.Session(state=str(tmp_path / "state")) as session:
        session.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, s STRING); CREATE MATERIALIZED VIEW v AS SELECT k, s FROM t")
        done = False

        def read() -> None:
            while not done:
                names = {row["s"] for row in session.view("v").rows()}
                if len({name.split()[0] for name in names}) > 1:
                    wrong.append(names)

        reader = Thread(target=read)
        reader.start()
        try:
            for i in range(60):
                session.apply({"t": pa.table({"k": range(5), "s": [f"tick{i} {k}" for k in range(5)], "_op": ["upsert"] * 5})})
        finally:
            done = True
            reader.join()
    assert not wrong
