"""Test support: circuits made in Python, in a session beside the oracle, tick after tick; and random ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import deltic
from deltic.plan.evaluate import Moment, evaluate
from deltic.plan.relation import Relation

PAIR = {"src": int, "dst": int}
Build = Callable[[deltic.Stream, deltic.Stream], deltic.Stream]
Content = Mapping[tuple[Any, ...], int]


class Ticking:
    """Outputs over the tables edges and marks, of pairs. seen: rows that the oracle expected; retracted: how many of them it removed."""

    def __init__(self, builds: Mapping[str, Build], session: deltic.Session) -> None:
        self.circuit = deltic.Circuit()
        edges, marks = self.circuit.input("edges", schema=PAIR), self.circuit.input("marks", schema=PAIR)
        for name, build in builds.items():
            self.circuit.output(name, build(edges, marks))
        self.tables: dict[str, Relation] = {"edges": Relation(), "marks": Relation()}
        self.moments: list[Moment] = []
        self.before: dict[str, Relation] = {}
        self.seen = self.retracted = 0
        self.open(session)
        self.check()

    def open(self, session: deltic.Session) -> None:
        """Goes on in this session."""
        self.session = session
        session.install(self.circuit)

    def tick(self, changes: Mapping[str, Content]) -> None:
        """One tick of rows with weights."""
        frames = {
            name: [{**dict(zip(PAIR, row, strict=True)), "_weight": weight} for row, weight in rows.items() if weight]
            for name, rows in changes.items()
        }
        self.session.apply(frames)
        for name, rows in changes.items():
            self.tables[name] += Relation(rows.items())
        self.check()

    def check(self) -> None:
        moment = Moment(dict(self.tables), self.session.now, self.session.epoch)
        for name, plan in self.circuit.outputs.items():
            expected = evaluate(plan, moment.tables, now=moment.now, epoch=moment.epoch, past=self.moments)
            actual = Relation((tuple(row.values()), 1) for row in self.session.view(name).rows())
            assert actual == expected, name
            self.seen += len(expected)
            self.retracted += sum(weight < 0 for _, weight in (expected - self.before.get(name, Relation())).pairs())
            self.before[name] = expected
        self.moments.append(moment)

    def random_tick(self, rng: random.Random, domain: int = 4, most: int = 4) -> None:
        """Some rows come, once or twice, some go."""
        changes: dict[str, dict[tuple[int, int], int]] = {"edges": {}, "marks": {}}
        for name, rows in changes.items():
            for _ in range(rng.randrange(most)):
                row = (rng.randrange(domain), rng.randrange(domain))
                there = self.tables[name].get(row, 0)
                rows[row] = -there if there and rng.random() < 0.6 else rng.choice((1, 1, 2))
        self.tick(changes)


def copied_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Each row swapped, and once more where its columns differ, in another order than they come."""
    apart = pc.indices_nonzero(pc.not_equal(batch["src"], batch["dst"])).cast(pa.int64())
    rows = pa.concat_arrays([apart, pa.array(range(batch.num_rows - 1, -1, -1), pa.int64())])
    return pa.record_batch({"_row": rows, "src": batch["dst"].take(rows), "dst": batch["src"].take(rows)})


def random_stream(rng: random.Random, edges: deltic.Stream, marks: deltic.Stream, depth: int = 4) -> deltic.Stream:
    """A stream of pairs, of operators over ticks and others; its weights may be negative."""
    if depth <= 0 or rng.random() < 0.1:
        return rng.choice((edges, marks))

    def below(less: int = 1) -> deltic.Stream:
        return random_stream(rng, edges, marks, depth - less)

    match rng.randrange(19):
        case 0:
            return below().delay()
        case 1:
            return below().differentiate()
        case 2:
            return below(2).integrate()
        case 3:
            return below().delta0()
        case 4:
            return below().plus(below(2))
        case 5:
            return below().minus(below(2))
        case 6:
            return below().map(lambda row: (row.dst, row.src))
        case 7:
            return below().filter(rng.choice(("src < 2", "dst <> src", "src + dst < 5")))
        case 8:
            a, b = below(2).index_with("dst"), below(2).index_with("src")
            return a.join_stream(b, lambda key, one, other: (one.src, other.dst))
        case 9:
            return below(2).distinct_incremental(below(2))
        case 10:
            return below(2).distinct_trace(below(2).trace_append())
        case 11:
            a, trace = below(2).index_with("src"), below(2).index_with("src").trace_append()
            return a.join_trace(trace.delay_trace(), lambda key, one, other: (one.dst, other.src))
        case 12:
            return below().distinct()
        case 13:
            return below().index_with("src").aggregate(n="count(*) + sum(dst)").map({"src": "src", "dst": "n"})
        case 14:
            return below().flat_map(lambda row: [(row.dst, n) for n in range(row.src)], schema=PAIR)
        case 15:
            return below().explode(lambda row: [(row.src, 1, row.dst - 1), (row.dst, row.src, -1)], schema=PAIR)
        case 16:
            return below().flat_map(copied_batch, schema=PAIR, on_batches=True)
        case 17:
            return below().join_function(lambda row: [((row.dst, 0), None, row.src), ((row.src, 1), None, -1)], schema=PAIR)
        case _:
            ordered = below(2).weighted().filter("weight > 0").index_with("src")
            return ordered.top_k(2, "dst DESC").map(lambda row: (row.src, row.dst))
