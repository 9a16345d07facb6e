"""The benchmarks' workloads: reproducible change feeds as NumPy arrays.

Every feed is an int64[n, 2 + columns] array sorted by its first column: tick (0 loads), weight (+1 or -1), then the row.
An update is a -1 row and a +1 row. No row is deleted that is not there. `write` makes the files that differential/ reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

Feed = np.ndarray
Edge = tuple[int, int]


def join_aggregate(
    orders: int = 1_000_000, customers: int = 100_000, ticks: int = 100, changes: int | Sequence[int] = 1_000, seed: int = 1
) -> tuple[Feed, Feed]:
    """Orders (order, customer, amount) and customers (customer, region of 50).

    `changes` is the size of a tick, or a size for each tick (then `ticks` is not read). A tick has 50 % new orders, 25 % deleted ones,
    20 % with a new amount, and 5 % of customers who move.
    """
    rng = np.random.default_rng(seed)
    customer = rng.integers(0, customers, orders).tolist()
    amount = rng.integers(1, 1001, orders).tolist()
    region = rng.integers(0, 50, customers)
    feed_orders = [np.column_stack([np.zeros(orders, np.int64), np.ones(orders, np.int64), np.arange(orders), customer, amount])]
    feed_customers = [np.column_stack([np.zeros(customers, np.int64), np.ones(customers, np.int64), np.arange(customers), region])]
    live = list(range(orders))
    sizes = [changes] * ticks if isinstance(changes, int) else changes
    for tick, size in enumerate(sizes, 1):
        rows, moves = [], []
        pick = _each_once(rng, len(live))
        deleted = [pick() for _ in range(size // 4)]
        for order in (live[position] for position in deleted):
            rows.append((tick, -1, order, customer[order], amount[order]))
        for order in (live[pick()] for _ in range(size // 5)):
            changed = (amount[order] + int(rng.integers(0, 999))) % 1000 + 1
            rows += [(tick, -1, order, customer[order], amount[order]), (tick, 1, order, customer[order], changed)]
            amount[order] = changed
        for _ in range(size // 2):
            customer.append(int(rng.integers(0, customers)))
            amount.append(int(rng.integers(1, 1001)))
            live.append(len(customer) - 1)
            rows.append((tick, 1, live[-1], customer[-1], amount[-1]))
        for who in rng.choice(customers, size // 20, replace=False):
            moved = (region[who] + 1 + rng.integers(0, 49)) % 50
            moves += [(tick, -1, who, region[who]), (tick, 1, who, moved)]
            region[who] = moved
        for position in sorted(deleted, reverse=True):
            live[position] = live[-1]
            live.pop()
        feed_orders.append(np.array(rows, np.int64).reshape(-1, 5))
        feed_customers.append(np.array(moves, np.int64).reshape(-1, 4))
    return np.concatenate(feed_orders).astype(np.int64), np.concatenate(feed_customers).astype(np.int64)


def single_changes(orders: Feed, customers: Feed, after: int, ticks: int, seed: int = 7) -> tuple[Feed, Feed]:
    """The feeds of `join_aggregate` with `ticks` more of one change each after tick `after`.

    Each changes an order's amount and the next one changes it back, so that the ticks that follow fit as they did.
    """
    assert ticks % 2 == 0, "changes come in pairs"
    rng = np.random.default_rng(seed)
    before = orders[orders[:, 0] <= after]
    alive, last = np.zeros(int(before[:, 2].max()) + 1, np.int64), np.zeros((int(before[:, 2].max()) + 1, 3), np.int64)
    np.add.at(alive, before[:, 2], before[:, 1])
    inserted = before[before[:, 1] > 0]
    last[inserted[:, 2]] = inserted[:, 2:]
    rows = []
    for tick in range(after + 1, after + ticks + 1, 2):
        order, customer, amount = last[rng.choice(np.flatnonzero(alive))].tolist()
        changed = amount % 1000 + 1
        rows += [(tick, -1, order, customer, amount), (tick, 1, order, customer, changed)]
        rows += [(tick + 1, -1, order, customer, changed), (tick + 1, 1, order, customer, amount)]
    return np.concatenate([before, np.array(rows, np.int64).reshape(-1, 5), _later(orders, after, ticks)]), np.concatenate(
        [customers[customers[:, 0] <= after], _later(customers, after, ticks)]
    )


def _later(feed: Feed, after: int, ticks: int) -> Feed:
    rest = feed[feed[:, 0] > after].copy()
    rest[:, 0] += ticks
    return rest


def power_law(
    nodes: int = 200_000, edges: int = 1_000_000, exponent: float = 0.6, ticks: int = 100, changes: int = 1_000, seed: int = 2
) -> Feed:
    """Directed edges whose endpoints are drawn with probability ~ (rank + 10)^-exponent, ranks shuffled; 70 % inserts."""
    rng = np.random.default_rng(seed)
    weight = (np.arange(nodes) + 10.0) ** -exponent
    cumulative = np.cumsum(weight / weight.sum())
    node = rng.permutation(nodes)
    return _graph(
        lambda: _pairs(rng, lambda n: node[np.minimum(np.searchsorted(cumulative, rng.random(n)), nodes - 1)]),
        edges,
        ticks,
        changes,
        0.7,
        rng,
    )


def hub(edges: int = 20_000, ticks: int = 100, changes: int = 100, seed: int = 3) -> Feed:
    """Node 0 has 45 % of the edges coming in and 45 % going out; the rest are random; 70 % inserts."""
    rng = np.random.default_rng(seed)

    def draw() -> list[Edge]:
        kind, a, b = rng.random(10_000), rng.integers(1, edges + 1, 10_000), rng.integers(1, edges + 1, 10_000)
        return list(zip(np.where((kind >= 0.45) & (kind < 0.9), 0, a).tolist(), np.where(kind < 0.45, 0, b).tolist(), strict=True))

    return _graph(draw, edges, ticks, changes, 0.7, rng)


def nearly_acyclic(
    nodes: int = 2_000, edges: int = 4_000, backward: float = 0.01, ticks: int = 50, changes: int = 10, seed: int = 15
) -> Feed:
    """Random edges from smaller to larger node, but for a share `backward`; half of the changes are deletions."""
    rng = np.random.default_rng(seed)

    def draw() -> list[Edge]:
        ends = np.sort(rng.integers(0, nodes, (10_000, 2)), axis=1)
        flip = rng.random(10_000) < backward
        ends[flip] = ends[flip][:, ::-1]
        return [tuple(edge) for edge in ends.tolist()]

    return _graph(draw, edges, ticks, changes, 0.5, rng)


def layered(levels: int = 60, width: int = 100, ticks: int = 50, changes: int = 10, seed: int = 17) -> Feed:
    """Random edges from each level of `width` nodes to the next, one a node on average; half of the changes are deletions.

    So as many ways lead from a level to any later one as there are edges in between two, and their number stays small.
    """
    rng = np.random.default_rng(seed)

    def draw() -> list[Edge]:
        source, target = rng.integers(0, (levels - 1) * width, 10_000), rng.integers(0, width, 10_000)
        return list(zip(source.tolist(), ((source // width + 1) * width + target).tolist(), strict=True))

    return _graph(draw, (levels - 1) * width, ticks, changes, 0.5, rng)


def uniform(nodes: int = 100_000, edges: int = 400_000, ticks: int = 50, changes: int = 100, seed: int = 5) -> Feed:
    """Uniformly random edges; half of the changes are deletions."""
    rng = np.random.default_rng(seed)
    return _graph(lambda: _pairs(rng, lambda n: rng.integers(0, nodes, n)), edges, ticks, changes, 0.5, rng)


def path(nodes: int = 1_500, ticks: int = 20, seed: int = 9) -> Feed:
    """The edges from each node to the next one; a tick removes one of them, and the next tick adds it again."""
    assert ticks % 2 == 0, "each cut edge is restored"
    source = np.arange(nodes - 1)
    cut = np.repeat(np.random.default_rng(seed).integers(0, nodes - 1, ticks // 2), 2)
    loaded = np.column_stack([np.zeros_like(source), np.ones_like(source), source, source + 1])
    return np.concatenate([loaded, np.column_stack([np.arange(1, ticks + 1), np.resize([-1, 1], ticks), cut, cut + 1])]).astype(np.int64)


def deletions(edges: np.ndarray, ticks: int = 1_000, seed: int = 11) -> Feed:
    """The given edges, int64[n, 2], each once, of which every tick deletes one."""
    deleted = edges[np.random.default_rng(seed).choice(len(edges), ticks, replace=False)]
    loaded = np.column_stack([np.zeros(len(edges), np.int64), np.ones(len(edges), np.int64), edges])
    return np.concatenate([loaded, np.column_stack([np.arange(1, ticks + 1), np.full(ticks, -1), deleted])]).astype(np.int64)


def churn(edges: np.ndarray, removed: int, changes: int = 100, seed: int = 13) -> Feed:
    """The given edges, int64[n, 2], each once; `removed` of them are removed in ticks of `changes`, then added again in another order."""
    rng = np.random.default_rng(seed)
    out = rng.choice(len(edges), removed, replace=False)
    back = rng.permutation(out)
    ticks = np.arange(removed) // changes + 1
    last = int(ticks[-1])
    columns = (
        np.concatenate([np.zeros(len(edges), np.int64), ticks, ticks + last]),
        np.repeat([1, -1, 1], [len(edges), removed, removed]),
        np.concatenate([edges, edges[out], edges[back]]),
    )
    return np.column_stack(columns).astype(np.int64)


def nexmark(events: int = 1_000_000, seed: int = 6) -> dict[str, np.ndarray]:
    """Nexmark-like integer events: 2 % persons, 6 % auctions, 92 % bids; 10 events a millisecond, so 10,000 in a tick of one second.

    person: id, state, time. auction: id, seller, category, time, expires. bid: auction, bidder, price, time. Times are ms from 0.
    """
    rng = np.random.default_rng(seed)
    kind = np.tile(np.array([0] + [1] * 3 + [2] * 46), events // 50 + 1)[:events]
    time, persons, auctions = np.arange(events) // 10, np.cumsum(kind == 0), np.cumsum(kind == 1)
    at = np.nonzero(kind == 0)[0]
    person = np.stack([persons[at] - 1, rng.integers(0, 5, len(at)), time[at]], 1)
    at = np.nonzero(kind == 1)[0]
    seller = np.maximum(0, persons[at] - 1 - rng.integers(0, 100, len(at)))
    auction = np.stack(
        [auctions[at] - 1, seller, rng.integers(10, 15, len(at)), time[at], time[at] + rng.integers(1000, 20000, len(at))], 1
    )
    at = np.nonzero(kind == 2)[0]
    hot = rng.random(len(at)) < 0.5
    about = np.where(hot, (np.maximum(auctions[at] - 1, 0) // 100) * 100, np.maximum(0, auctions[at] - 1 - rng.integers(0, 1000, len(at))))
    bidder = np.maximum(0, persons[at] - 1 - rng.integers(0, 1000, len(at)))
    bid = np.stack([about, bidder, (10 ** (rng.random(len(at)) * 4 + 1)).astype(np.int64), time[at]], 1)
    return {"person": person, "auction": auction, "bid": bid}


def write(feed: Feed, path: str | Path) -> None:
    """Rows of little-endian int64, as differential/ reads them."""
    np.ascontiguousarray(feed, dtype="<i8").tofile(path)


def _each_once(rng: np.random.Generator, count: int) -> Callable[[], int]:
    """Draws from 0 to count - 1 without repetition."""
    drawn: set[int] = set()

    def pick() -> int:
        while True:
            position = int(rng.integers(0, count))
            if position not in drawn:
                drawn.add(position)
                return position

    return pick


def _pairs(rng: np.random.Generator, draw: Callable[[int], np.ndarray]) -> list[Edge]:
    return list(zip(draw(10_000).tolist(), draw(10_000).tolist(), strict=True))


def _graph(draw: Callable[[], list[Edge]], edges: int, ticks: int, changes: int, inserts: float, rng: np.random.Generator) -> Feed:
    """Loads `edges` distinct edges without loops, then changes that many a tick; nothing is inserted and deleted in one tick."""
    pool: list[Edge] = []

    def fresh(known: set[Edge]) -> Edge:
        while True:
            if not pool:
                pool.extend(draw())
            edge = pool.pop()
            if edge[0] != edge[1] and edge not in known:
                return edge

    known: set[Edge] = set()
    while len(known) < edges:
        known.add(fresh(known))
    live = sorted(known)
    feed = [(0, 1, *edge) for edge in live]
    for tick in range(1, ticks + 1):
        count = round(changes * inserts)
        added: list[Edge] = []
        while len(added) < count:
            added.append(fresh(known))
            known.add(added[-1])
        for position in sorted(rng.choice(len(live), changes - count, replace=False).tolist(), reverse=True):
            feed.append((tick, -1, *live[position]))
            known.discard(live[position])
            live[position] = live[-1]
            live.pop()
        feed += [(tick, 1, *edge) for edge in added]
        live += added
    return np.array(feed, np.int64)
