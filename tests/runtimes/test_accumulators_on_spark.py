"""Accumulators with sets, maps and objects, and batches of ticks, on Spark: on state that another engine has written, and back."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import deltic
from deltic.plan.evaluate import Moment, evaluate
from deltic.plan.relation import Relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]
EVENT = {"k": int, "page": str}


def circuit() -> deltic.Circuit:
    """Its functions are local, so that workers get their code."""

    def visited(held: Any, row: Any) -> Any:
        if row.page == "none":
            return None
        if row.page in held.pages:
            held.again[row.page] = held.again.get(row.page, 0) + 1
        held.pages.add(row.page)
        held.longest.append(row.page)
        return len(held.pages), held.pages, held.again, sorted(held.longest)[-2:]

    made = deltic.Circuit()
    events = made.stream("events", schema=EVENT)
    columns = {
        "n": int,
        "pages": deltic.SetOf(str),
        "again": deltic.MapOf(str, int),
        "longest": deltic.Encoded(lambda pages: "\n".join(sorted(pages)), lambda text: text.split("\n"), str),
    }
    held = events.index_with("k").stream_aggregate(step=visited, init=(0, None, None, [""]), schema=columns)
    made.output("held", held)
    made.output("pages", held.elements("pages"))
    made.output("again", held.elements("again"))
    made.output("some", events.batched(2).index_with("k").aggregate(n="count(*)"))
    made.output("every", events.index_with("k").stream_aggregate(lambda n, rows: n + len(rows), init=0, schema={"n": int}, every=3))
    return made


def test_accumulators_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's first tick applies what waits: opening had an even epoch, and `install` none, as no stream had rows for readers."""
    rng, made, moments = Random(7), circuit(), [Moment({"events": Relation()})]
    seen, last, unchanged = 0, 0, []
    for options, ticks in (({"shards": 2}, 2), ({"spark": spark}, 4), ({"shards": 3}, 3)):
        with deltic.Session(state=str(tmp_path), **options) as session:
            opened = session.epoch
            session.install(made)
            unchanged.append(session.epoch == opened)
            last = last if session.epoch == opened else session.epoch
            for _ in range(ticks):
                pages = ("a", "b", "c", "a long page that has more than twenty-three characters", "none")
                events = Relation(((rng.randrange(3), rng.choices(pages, (3, 3, 3, 3, 1))[0]), 1) for _ in range(6))
                session.apply({"events": [{"k": k, "page": page, "_weight": weight} for (k, page), weight in events.pairs()]})
                for name, plan in made.outputs.items():
                    expected = evaluate(plan, {"events": events}, past=moments, epoch=session.epoch, since=last + 1)
                    assert Relation((tuple(row.values()), 1) for row in session.view(name).rows()) == expected, name
                    seen += len(expected)
                moments.append(Moment({"events": events}, epoch=session.epoch, since=last + 1))
                last = session.epoch
    assert seen > 50 and unchanged == [False, True, False]
