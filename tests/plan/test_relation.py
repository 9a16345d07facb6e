"""Relations: consolidation, and SQL's equality of rows, which differs from Python's."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from deltic.expr.rows.ordering import order_key, total_key
from deltic.plan.relation import Relation, key_of, normal_row

values = st.one_of(st.none(), st.sampled_from([0.0, -0.0, math.nan, math.inf, 1.0, -1.0]))
pairs = st.lists(st.tuples(st.tuples(values, values), st.integers(-3, 3)), max_size=12)


def test_equalities_of_python_do_not_count() -> None:
    assert Relation([((True,), 1)]) != Relation([((1,), 1)])
    assert Relation([((1,), 1)]) != Relation([((1.0,), 1)])
    assert Relation([((0.0,), 1)]) != Relation([((-0.0,), 1)])
    assert Relation([((float("nan"),), 1)]) == Relation([((float("nan"),), 1)])
    assert Relation([((1,), 2), ((1,), -2)]) == {}


@given(pairs, pairs)
def test_relations_are_a_group(a: list[tuple[tuple[float | None, ...], int]], b: list[tuple[tuple[float | None, ...], int]]) -> None:
    left, right = Relation(a), Relation(b)
    assert left + right == right + left == Relation(a + b)
    assert left + right - right == left
    assert left - left == Relation()
    assert 0 not in (left + right).values()


@given(st.lists(values, max_size=8))
def test_orders_agree_with_keys(row: list[float | None]) -> None:
    for a in row:
        for b in row:
            assert (order_key(a) == order_key(b)) == (key_of([a]) == key_of([b]))
            assert (total_key(a) == total_key(b)) == (Relation([((a,), 1)]) == Relation([((b,), 1)]))
            assert order_key(a) <= order_key(b) or total_key(a) > total_key(b)
    assert key_of(row) == key_of(normal_row(tuple(row)))
