"""Work of recursions that are not linear: a change touches rows in proportion to its effect, not to the state."""

from __future__ import annotations

import pytest

from deltic.plan.evaluate import evaluate
from deltic.plan.relation import Relation
from deltic.runtimes import TickResult
from engines import Engine, embedded
from recursive_plans import TABLES, plans

PLANS = plans()
PIECE = ((0, 1), (1, 2), (2, 3), (3, 1), (2, 4))
"""A graph with a cycle, of which there are many disjoint copies."""


def pieces(count: int) -> list[tuple[tuple[int, int], int]]:
    return [((5 * n + a, 5 * n + b), 1) for n in range(count) for a, b in PIECE]


def touched(result: TickResult) -> int:
    """Rows that the operators in scopes touched."""
    return sum(counters.touched for name, counters in result.counters.items() if "." in name)


def loaded(name: str, count: int) -> Engine:
    engine = embedded(TABLES, {"v": PLANS[name]})
    engine.tick({"edges": pieces(count)})
    return engine


@pytest.mark.parametrize("name", ["non_linear_closure", "even_and_odd", "same_generation", "shortest", "labels", "nested_closure"])
def test_a_one_edge_change_touches_rows_in_proportion_to_its_effect(name: str) -> None:
    few, many = loaded(name, 10), loaded(name, 300)
    table = Relation(pieces(1))
    for edge, weight in (((1, 2), -1), ((1, 2), 1), ((0, 3), 1), ((3, 1), -1)):
        before = evaluate(PLANS[name], {"edges": table})
        table += Relation([(edge, weight)])
        alone, among = few.tick({"edges": [(edge, weight)]}), many.tick({"edges": [(edge, weight)]})
        change = many.change("v", among)
        assert change == few.change("v", alone) == evaluate(PLANS[name], {"edges": table}) - before
        assert touched(among) <= 2 * touched(alone) + 40, f"{weight} x {edge}"
