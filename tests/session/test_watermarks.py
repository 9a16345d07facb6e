"""Time by watermarks: after every tick the time is that of all rows ever added, and views equal the oracle at that time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.errors import ClockError, DataError, QueryError, SetupError
from deltic.plan.evaluate import evaluate
from deltic.plan.relation import Relation

START = datetime(2024, 5, 1, tzinfo=UTC)
BEGINNING = datetime.min.replace(tzinfo=UTC)
SECOND = timedelta(seconds=1)
DELAY = 10 * SECOND
TABLES = "CREATE TABLE orders (id BIGINT PRIMARY KEY, at TIMESTAMP); CREATE TABLE clicks (at TIMESTAMP, page STRING);"
VIEWS = """
    CREATE MATERIALIZED VIEW open AS SELECT id, at FROM orders WHERE at <= now() AND now() < at + INTERVAL 1 MINUTE;
    CREATE MATERIALIZED VIEW recent AS SELECT page, count(*) AS n FROM clicks WHERE at > now() - INTERVAL 30 SECONDS GROUP BY page;
    CREATE MATERIALIZED VIEW both AS SELECT o.id, c.page FROM orders o JOIN clicks c ON o.at = c.at WHERE c.at >= now() - INTERVAL 1 MINUTE;
"""
TIMED = """
    CREATE TABLE orders (id BIGINT PRIMARY KEY, at TIMESTAMP) OPTIONS (watermark 'AT', watermark_delay '10 seconds');
    CREATE TABLE clicks (at TIMESTAMP, page STRING) OPTIONS (watermark 'at');
"""
MARKS = (deltic.Watermark("orders", "at", DELAY), deltic.Watermark("CLICKS", "at"))


@pytest.fixture
def session() -> Iterator[deltic.Session]:
    with deltic.Session(clock=deltic.Watermark("orders", "at", delay="10 seconds")) as session:
        session.sql(TABLES + VIEWS)
        yield session


def order(id: int, seconds: int | None) -> dict[str, Any]:
    return {"id": id, "at": None if seconds is None else START + seconds * SECOND}


class Model:
    """A session, and the expected content of its tables and time."""

    def __init__(self, make: Callable[[], deltic.Session], script: str) -> None:
        self.make, self.script = make, script
        self.orders: dict[int, datetime | None] = {}
        self.clicks: list[tuple[datetime | None, str]] = []
        self.latest: dict[str, datetime] = {}
        self.now, self.seen = BEGINNING, 0
        self.open()

    def open(self) -> None:
        self.session = self.make()
        self.session.sql(self.script)
        self.check()

    def restart(self) -> None:
        self.session.close()
        self.open()

    def record(self, table: str, at: datetime | None) -> None:
        if at is not None:
            self.latest[table] = max(at, self.latest.get(table, at))

    def check(self) -> None:
        if len(self.latest) == 2:
            self.now = max(self.now, min(self.latest["orders"] - DELAY, self.latest["clicks"]))
        assert self.session.now == self.now and self.session.clock == "watermark"
        tables = {"orders": Relation((row, 1) for row in self.orders.items()), "clicks": Relation((row, 1) for row in self.clicks)}
        for name, plan in self.session._definitions.catalog.plans().items():
            content = Relation((tuple(row.values()), 1) for row in self.session.view(name).rows())
            assert content == evaluate(plan, tables, now=self.now), name
            self.seen += len(content)

    def step(self, rng: random.Random) -> None:
        with self.session.transaction() as tx:
            self._orders(rng, tx)
            if rng.random() < 0.5:
                self._clicks(rng, tx)
        self.check()

    def _moment(self, rng: random.Random) -> datetime | None:
        since = max(self.now, START) - START
        return rng.choice((None, *(START + since + rng.randint(-70, 40) * SECOND for _ in range(6))))

    def _orders(self, rng: random.Random, tx: deltic.Transaction) -> None:
        for id in rng.sample(range(10), rng.randrange(4)):
            if id in self.orders and rng.random() < 0.4:
                tx.delete("orders", [id])
                del self.orders[id]
                continue
            self.orders[id] = self._moment(rng)
            self.record("orders", self.orders[id])
            tx.upsert("orders", [{"id": id, "at": self.orders[id]}])

    def _clicks(self, rng: random.Random, tx: deltic.Transaction) -> None:
        rows = []
        for at in (self._moment(rng) for _ in range(rng.randrange(4))):
            self.clicks.append((at, rng.choice("ab")))
            self.record("clicks", at)
            rows.append({"at": at, "page": self.clicks[-1][1], "_weight": 1})
        if self.clicks and rng.random() < 0.4:
            at, page = self.clicks.pop(rng.randrange(len(self.clicks)))
            rows.append({"at": at, "page": page, "_weight": -1})
        if rows:
            tx.apply("clicks", rows)


@pytest.mark.parametrize(("shards", "options"), [(1, False), (3, False), (1, True)])
def test_views_equal_the_oracle_at_the_time_of_the_watermark(shards: int, options: bool) -> None:
    seen = 0
    for seed in range(3):
        rng = random.Random(seed)
        clock: Any = "manual" if options else MARKS
        model = Model(lambda clock=clock: deltic.Session(shards=shards, clock=clock), (TIMED if options else TABLES) + VIEWS)
        for _ in range(15):
            model.step(rng)
        model.session.close()
        seen += model.seen
    assert seen > 50


@pytest.mark.parametrize("script", [TABLES, TIMED])
def test_the_time_is_in_the_state(tmp_path: Path, script: str) -> None:
    rng = random.Random(7)
    clock = MARKS if script is TABLES else ()
    model = Model(lambda: deltic.Session(state=str(tmp_path / "s"), clock=clock or "wall"), script + VIEWS)
    for step in range(12):
        model.step(rng)
        if step % 3 == 2:
            model.restart()
    assert model.seen
    model.session.close()


def test_the_rows_of_a_tick_count_for_its_time(session: deltic.Session) -> None:
    assert session.now == BEGINNING
    session.apply({"orders": [{**order(1, 0), "_op": "insert"}]})
    assert session.now == START - DELAY and session.view("open").rows() == []
    session.apply({"orders": [{**order(2, 15), "_op": "insert"}]})
    assert session.now == START + 5 * SECOND and [row["id"] for row in session.view("open").rows()] == [1]
    session.apply({"orders": [{**order(3, -20), "_op": "insert"}, {**order(4, None), "_op": "insert"}]})  # late, and NULL
    assert session.now == START + 5 * SECOND and sorted(row["id"] for row in session.view("open").rows()) == [1, 3]


def test_deleted_and_refused_rows_do_not_count_for_the_time(session: deltic.Session) -> None:
    session.apply({"orders": [{**order(1, 0), "_op": "insert"}]})
    session.apply({"orders": [{**order(1, 0), "_op": "delete"}]})
    with pytest.raises(DataError):
        session.apply({"orders": [{**order(2, 90), "_op": "insert"}, {**order(3, 95), "_op": "update"}]})
    session.apply({"clicks": [{"at": START + 300 * SECOND, "page": "a", "_weight": 1}]})  # no clock
    assert session.now == START - DELAY
    session.advance_to(START + 30 * SECOND)
    session.apply({"orders": [{**order(5, 35), "_op": "insert"}]})
    assert session.now == START + 30 * SECOND


def test_how_rows_fall_into_ticks_makes_no_difference() -> None:
    rows = [{**order(id, id * 7 % 100), "_op": "insert"} for id in range(40)]
    runs = []
    for size in (1, 7, 40):
        with deltic.Session(clock=MARKS[:1]) as session:
            session.sql(TABLES + VIEWS)
            for at in range(0, 40, size):
                session.apply({"orders": rows[at : at + size]})
            runs.append((session.now, sorted(row["id"] for row in session.view("open").rows())))
    assert runs[0] == runs[1] == runs[2] and runs[0][1]


def test_rows_from_before_the_watermark_count(tmp_path: Path) -> None:
    state = str(tmp_path / "s")
    with deltic.Session(state=state, shards=3) as session:
        session.sql(TABLES)
        session.apply({"orders": [{**order(id, id), "_op": "insert"} for id in range(30)]})
        session.apply({"orders": [{**order(29, 29), "_op": "delete"}]})
    with deltic.Session(state=state, clock=MARKS[0]) as session:
        session.sql(TABLES + VIEWS)
        assert session.now == START + 18 * SECOND
        assert len(session.view("open").rows()) == 19


def test_a_dropped_table_starts_again(tmp_path: Path) -> None:
    with deltic.Session(state=str(tmp_path / "s"), clock=MARKS[1]) as session:
        session.sql(TABLES)
        session.apply({"clicks": [{"at": START, "page": "a", "_weight": 1}]})
        assert session.notes["watermarks"] == {"clicks": ["at", int(START.timestamp()) * 1_000_000]}
        session.sql("DROP TABLE clicks")
        assert "watermarks" not in session.notes
        session.sql("CREATE TABLE clicks (at TIMESTAMP, page STRING)")
        session.apply({"clicks": [{"at": START - SECOND, "page": "a", "_weight": 1}]})
        assert session.now == START and session.notes["watermarks"]["clicks"][1] < int(START.timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("clock", "error", "message"),
    [
        (deltic.Watermark("visits", "at"), ClockError, "that table does not exist"),
        (deltic.Watermark("orders", "al"), ClockError, "'al' is not in table orders"),
        (deltic.Watermark("clicks", "page"), ClockError, "clicks.page is of type STRING"),
        (deltic.Watermark("orders", "at", "soon"), SetupError, "is 'soon'"),
        (deltic.Watermark("orders", "at", -SECOND), SetupError, "delay of the watermark orders.at"),
        ((MARKS[0], deltic.Watermark("Orders", "id")), SetupError, "orders has two watermarks"),
        ((), SetupError, "clock="),
        (3, SetupError, "clock=3"),
    ],
)
def test_an_invalid_watermark_is_refused(clock: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message), deltic.Session(clock=clock) as session:
        session.sql(TABLES + VIEWS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("watermark 'when'", "the watermark 'when' is not a column of table t"),
        ("watermark 'a'", "the watermark a is of type BIGINT"),
        ("watermark 'at', watermark_delay '10'", "watermark_delay is '10'"),
        ("watermark 'at', watermark_delay '1 month'", "watermark_delay is '1 month'"),
        ("watermark_delay '10 seconds'", "watermark_delay is given, and no watermark"),
        ("watermark 'at', header true", "OPTIONS without USING"),
    ],
)
def test_invalid_watermark_options_are_refused(options: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught, deltic.Session() as session:
        session.sql(f"CREATE TABLE t (a BIGINT, at TIMESTAMP) OPTIONS ({options})")
    assert caught.value.span is not None
