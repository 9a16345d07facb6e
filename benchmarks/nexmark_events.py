"""The events of Nexmark (Tucker et al. 2008, as Apache Beam generates them): of each 50, one person, three auctions and 46 bids.

Half of the bids are for a hot auction, three quarters by a hot bidder; the others are for one of the last 100 auctions, and by one of the
last 1,000 people. Prices are spread evenly over six powers of ten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

PERIOD, FIRST = 50, 1000
AUCTIONS: Final = 3
"""Of each period: one person, these auctions, and bids."""
START_US: Final = 1_436_918_400_000_000
CATEGORIES, FIRST_CATEGORY = 5, 10
ACTIVE_PEOPLE, ACTIVE_AUCTIONS, HOT = 1000, 100, 100
NAMES: Final = [f"{first} {last}" for first in ("Peter", "Paul", "Luke", "John", "Saul", "Vicky") for last in ("Shultz", "Abrams", "Noris")]
CITIES: Final = ["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"]
STATES: Final = ["AZ", "CA", "ID", "OR", "WA", "WY"]
CHANNELS: Final = ["Google", "Facebook", "Baidu", "Apple"]
OTHER_CHANNELS: Final = 100
TEXTS: Final = ["accc", "bcde", "xyzc", "lorem ipsum", "dolor", "sit amet, consectetur", "occurrence", "q"]
Tables = Mapping[str, pa.Table]


class Events:
    """Events by number: the same numbers and seed give the same events. step_us: the time between two."""

    def __init__(self, seed: int = 0, step_us: int = 100) -> None:
        self._seed, self._step_us = seed, step_us

    def tables(self, first: int, count: int) -> dict[str, pa.Table]:
        """Events first to first + count - 1, by table."""
        rng = np.random.default_rng((self._seed, first))
        numbers = np.arange(first, first + count)
        place = numbers % PERIOD
        is_bid = place > AUCTIONS
        people, auctions, bids = numbers[place == 0], numbers[(place > 0) & ~is_bid], numbers[is_bid]
        return {"person": self._people(people, rng), "auction": self._auctions(auctions, rng), "bid": self._bids(bids, rng)}

    def side_input(self, rows: int = 10_000) -> pa.Table:
        keys = np.arange(rows)
        return pa.table({"key": keys, "value": pa.array([f"value {key}" for key in keys.tolist()])})

    def _people(self, numbers: np.ndarray, rng: np.random.Generator) -> pa.Table:
        n = len(numbers)
        names = _any(NAMES, rng, n)
        columns = (FIRST + numbers // PERIOD, names, names, _any(["1234 5678", "8765 4321"], rng, n), _any(CITIES, rng, n))
        rest = (_any(STATES, rng, n), self._times(numbers), _any(TEXTS, rng, n))
        return _table("id name emailAddress creditCard city state dateTime extra", (*columns, *rest))

    def _auctions(self, numbers: np.ndarray, rng: np.random.Generator) -> pa.Table:
        n, own = len(numbers), numbers // PERIOD * AUCTIONS + numbers % PERIOD - 1
        bid = _prices(rng, n)
        horizon_us = 2 * ACTIVE_AUCTIONS * PERIOD // AUCTIONS * self._step_us
        expires = self._times(numbers, rng.integers(1, horizon_us, n))
        sellers = FIRST + _hot_or_recent(numbers // PERIOD, ACTIVE_PEOPLE, 0.75, rng)
        columns = (
            FIRST + own,
            _any(TEXTS, rng, n),
            _any(TEXTS, rng, n),
            bid,
            bid + _prices(rng, n),
            self._times(numbers),
            expires,
            sellers,
        )
        categories = rng.integers(FIRST_CATEGORY, FIRST_CATEGORY + CATEGORIES, n)
        names = "id itemName description initialBid reserve dateTime expires seller category extra"
        return _table(names, (*columns, categories, _any(TEXTS, rng, n)))

    def _bids(self, numbers: np.ndarray, rng: np.random.Generator) -> pa.Table:
        n = len(numbers)
        auctions = FIRST + _hot_or_recent(numbers // PERIOD * AUCTIONS + AUCTIONS - 1, ACTIVE_AUCTIONS, 0.5, rng)
        bidders = FIRST + _hot_or_recent(numbers // PERIOD, ACTIVE_PEOPLE, 0.75, rng)
        names = [*CHANNELS, *(f"channel-{i}" for i in range(OTHER_CHANNELS))]
        address = "https://www.nexmark.com/{}/item/page.htm?query=1"
        urls = [address.format(name.lower()) for name in CHANNELS]
        urls += [f"{address.format(f'c{i % 7}')}&channel_id={i}" for i in range(OTHER_CHANNELS)]
        chosen = np.where(rng.random(n) < 0.5, rng.integers(0, len(CHANNELS), n), rng.integers(len(CHANNELS), len(names), n))
        channels = (pa.array(names).take(pa.array(chosen)), pa.array(urls).take(pa.array(chosen)))
        columns = (auctions, bidders, _prices(rng, n), *channels, self._times(numbers), _any(TEXTS, rng, n))
        return _table("auction bidder price channel url dateTime extra", columns)

    def _times(self, numbers: np.ndarray, after_us: np.ndarray | int = 0) -> pa.Array:
        return pa.array(START_US + numbers * self._step_us + after_us, pa.int64()).cast(pa.timestamp("us", "UTC"))


def _hot_or_recent(last: np.ndarray, active: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """Numbers up to `last`: that share of them the last hot one, the others one of the last `active`."""
    recent = last - rng.integers(0, np.minimum(active, last + 1))
    return np.where(rng.random(len(last)) < share, last // HOT * HOT, recent)


def _prices(rng: np.random.Generator, n: int) -> np.ndarray:
    prices: np.ndarray = np.round(10 ** (6 * rng.random(n)) * 100).astype(np.int64)
    return prices


def _any(texts: Sequence[str], rng: np.random.Generator, n: int) -> pa.Array:
    return pa.array(texts).take(pa.array(rng.integers(0, len(texts), n)))


def _table(names: str, columns: Sequence[object]) -> pa.Table:
    return pa.table([pa.array(column) for column in columns], names=names.split())
