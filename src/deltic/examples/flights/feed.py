"""The change feed: every flight as an airport's board would have shown it in 2013, in order of event time.

A flight is inserted 24 hours before its scheduled departure, with all delays unknown; updated when it departs (scheduled departure +
dep_delay), which sets dep_delay; updated when it arrives (departure + air_time), which sets air_time and arr_delay; and deleted at its
scheduled departure if it never departed. A diverted flight has no air_time: it gets no arrival, and stays departed.
The weather of an hour is inserted when that hour begins; airlines and planes are inserted in the first tick.

Invariants: changes of one flight are in order, in the feed and in every tick; ticks cut the feed at whole multiples of
their length since 1970, and a tick without changes is omitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from deltic.examples.flights.data import Data

Words: TypeAlias = NDArray[np.int64]

KEY: Final = ("year", "month", "day", "carrier", "flight", "origin")
COLUMNS: Final = (*KEY, "dest", "tailnum", "distance", "time_hour", "dep_delay", "arr_delay", "air_time")
INSERTED, DEPARTED, ARRIVED, CANCELLED = range(4)
_OPS: Final = ("insert", "update", "update", "delete")
_DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class FeedTick:
    """The changes of one interval of event time, as change frames by table. until_s: its end, in seconds since 1970, exclusive."""

    until_s: int
    changes: Mapping[str, pa.Table]

    @property
    def size(self) -> int:
        return sum(frame.num_rows for frame in self.changes.values())


@dataclass(frozen=True, slots=True)
class FlightFeed:
    """The whole year.

    flights, weather: change frames in order of time. moments_s, hours_s: int64, their event times, sorted.
    kinds: int64, what happened (INSERTED to CANCELLED). subjects: int64, which flight of the source it happened to.
    """

    flights: pa.Table
    moments_s: Words
    kinds: Words
    subjects: Words
    weather: pa.Table
    hours_s: Words
    airlines: pa.Table
    planes: pa.Table

    @property
    def size(self) -> int:
        return sum(table.num_rows for table in (self.flights, self.weather, self.airlines, self.planes))

    def ticks(self, every_s: int) -> Iterator[FeedTick]:
        """Slices of the feed, without copies. The first has airlines and planes too."""
        assert every_s > 0
        static = {"airlines": self.airlines, "planes": self.planes}
        first = min(int(self.moments_s[0]), int(self.hours_s[0])) // every_s
        last = max(int(self.moments_s[-1]), int(self.hours_s[-1])) // every_s
        ends = (np.arange(first, last + 1) + 1) * every_s
        flights, weather = np.searchsorted(self.moments_s, ends), np.searchsorted(self.hours_s, ends)
        start = (0, 0)
        for until, flight, hour in zip(ends.tolist(), flights.tolist(), weather.tolist(), strict=True):
            flights_here, weather_here = self.flights.slice(start[0], flight - start[0]), self.weather.slice(start[1], hour - start[1])
            parts = {**static, "weather": weather_here, "flights": flights_here}
            changes = {name: frame for name, frame in parts.items() if frame.num_rows}
            if changes:
                yield FeedTick(until, changes)
            start, static = (flight, hour), {}

    def sizes(self, until_s: int) -> dict[str, int]:
        """Rows of each table after all events before `until_s`."""
        happened, measured = self._reached(until_s)
        kinds = self.kinds[:happened]
        flights = int(np.count_nonzero(kinds == INSERTED) - np.count_nonzero(kinds == CANCELLED))
        return {"flights": flights, "weather": measured, "airlines": self.airlines.num_rows, "planes": self.planes.num_rows}

    def _reached(self, until_s: int) -> tuple[int, int]:
        """Changes of flights and of weather before `until_s`."""
        return int(np.searchsorted(self.moments_s, until_s)), int(np.searchsorted(self.hours_s, until_s))

    def tables(self, until_s: int) -> dict[str, pa.Table]:
        """The tables' contents after all events before `until_s`: computed from the source, without an engine."""
        happened, measured = self._reached(until_s)
        _, from_the_end = np.unique(self.subjects[:happened][::-1], return_index=True)
        latest = np.sort(happened - 1 - from_the_end)
        kept = latest[self.kinds[latest] != CANCELLED]
        frames = {
            "flights": self.flights.take(kept),
            "weather": self.weather.slice(0, measured),
            "airlines": self.airlines,
            "planes": self.planes,
        }
        return {name: frame.drop_columns(["_op"]) for name, frame in frames.items()}


def build(data: Data) -> FlightFeed:
    """The feed of the year; about a second."""
    moments, kinds, subjects = _events(data.flights)
    weather = data.weather.sort_by([("time_hour", "ascending"), ("origin", "ascending")])
    return FlightFeed(
        flights=_frame(data.flights, kinds, subjects),
        moments_s=moments,
        kinds=kinds,
        subjects=subjects,
        weather=_inserts(weather),
        hours_s=_seconds(weather.column("time_hour")),
        airlines=_inserts(data.airlines),
        planes=_inserts(data.planes),
    )


def _seconds(times: pa.ChunkedArray[Any]) -> Words:
    microseconds: Words = times.cast(pa.int64()).to_numpy()
    return microseconds // 1_000_000


def _minutes(column: pa.ChunkedArray[Any]) -> Words:
    """A column of minutes, in seconds; 0 for NULL."""
    minutes: Words = pc.fill_null(column, 0).cast(pa.int64()).to_numpy()
    return minutes * 60


def _events(flights: pa.Table) -> tuple[Words, Words, Words]:
    """(time, kind, flight) of each event, in order of time; at equal times inserts, departures, arrivals, deletes."""
    scheduled = _seconds(flights.column("time_hour")) + _minutes(flights.column("minute"))
    departed = flights.column("dep_time").is_valid().to_numpy()
    landed = flights.column("air_time").is_valid().to_numpy()
    departure = scheduled + _minutes(flights.column("dep_delay"))
    arrival = departure + _minutes(flights.column("air_time"))
    every = np.arange(flights.num_rows)
    events = (
        (scheduled - _DAY_S, INSERTED, every),
        (departure, DEPARTED, every[departed]),
        (arrival, ARRIVED, every[landed]),
        (scheduled, CANCELLED, every[~departed]),
    )
    moments = np.concatenate([moment[which] for moment, _, which in events])
    kinds = np.concatenate([np.full(len(which), kind) for _, kind, which in events])
    subjects = np.concatenate([which for _, _, which in events])
    order = np.argsort(moments, kind="stable")
    return moments[order], kinds[order], subjects[order]


def _frame(flights: pa.Table, kinds: Words, subjects: Words) -> pa.Table:
    """The rows as known after each event, and `_op`."""
    rows = flights.select(COLUMNS).take(subjects)
    masks = {"dep_delay": pa.array((kinds == DEPARTED) | (kinds == ARRIVED)), "arr_delay": pa.array(kinds == ARRIVED)}
    masks["air_time"] = masks["arr_delay"]
    for name, mask in masks.items():
        rows = rows.set_column(COLUMNS.index(name), name, pc.if_else(mask, rows.column(name), pa.scalar(None, pa.int32())))
    return rows.append_column("_op", pa.DictionaryArray.from_arrays(pa.array(kinds, pa.int8()), pa.array(_OPS)).cast(pa.string()))


def _inserts(rows: pa.Table) -> pa.Table:
    return rows.append_column("_op", pa.array(["insert"] * rows.num_rows))
