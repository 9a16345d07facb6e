"""Moves SEMI and ANTI joins below inner joins, to the relation whose columns they read: what is joined, and stored, then has fewer rows.

A row of an inner join has a match by columns of one side if that side's row has one. Only where the side has at most as many rows as the
join, by estimates, since the rows of the side are stored for the SEMI or ANTI join in place of those of the join. A join that others read,
too, stays as it is: it would be computed once more. So does one by a key that can fail, which is compared with the rows of the inner join
alone. The inner join's conditions are then tested on fewer rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

from deltic.expr.failing import can_fail
from deltic.expr.nodes import Column
from deltic.optimizer.drop_distinct import unique_key
from deltic.optimizer.join_tree import side_places
from deltic.optimizer.row_estimates import UNKNOWN, Sizes, rows_of
from deltic.plan.columns import reference
from deltic.plan.nodes import Filter, Join, Plan, Project, inputs
from deltic.plan.streams import reads_ticks
from deltic.plan.walk import map_inputs, nodes
from deltic.stacks import unbounded


class _Place(NamedTuple):
    """Where a join can be: the rows of the relation there, whether it can have several rows of a key, and the plan with the join in it."""

    rows: float
    repeats: bool
    plan: Plan


def push_semijoins_down(plan: Plan, sizes: Sizes = UNKNOWN) -> Plan:
    """Moves each SEMI and ANTI join by plain columns to where the fewest rows are. Plans that read streams stay as they are.

    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> a, b, c = (Table(TableSchema(name, Schema((Field("k", BIGINT, False),)), key=key)) for name, key in zip("abc", ((), (0,), ())))
    >>> k, other = Column(0, BIGINT, False, "k"), Column(1, BIGINT, False, "k")
    >>> plan = Join(Join(a, b, "inner", ((k, k),)), c, "semi", ((other, k),))
    >>> print(show(push_semijoins_down(plan)))
    Join inner on k#0 = k#0
      Table a (k)
      Join semi on k#0 = k#0
        Table b (k)
        Table c (k)
    """
    if not any(_is_movable(node) for node in nodes(plan)):
        return plan
    readers = Counter(below for node in nodes(plan) for below in inputs(node))
    done: dict[Plan, Plan] = {}
    shared: set[Plan] = set()
    for node in nodes(plan):
        done[node] = _pushed(map_inputs(node, done.__getitem__), shared, sizes)
        if readers[node] > 1:
            shared.add(done[node])
    return done[plan]


def _is_movable(plan: Plan) -> bool:
    return (
        isinstance(plan, Join)
        and plan.kind in ("semi", "anti")
        and plan.residual is None
        and bool(plan.keys)
        and all(isinstance(key, Column) and not can_fail(other) for key, other in plan.keys)
        and not reads_ticks(plan)
    )


def _pushed(plan: Plan, shared: AbstractSet[Plan], sizes: Sizes) -> Plan:
    if not isinstance(plan, Join) or not _is_movable(plan):
        return plan
    right = [key for _, key in plan.keys]

    def moved(side: Plan, columns: Sequence[int]) -> Plan:
        return replace(plan, left=side, keys=tuple((reference(side.schema, i), key) for i, key in zip(columns, right, strict=True)))

    place = _place(plan.left, [key.index for key, _ in plan.keys if isinstance(key, Column)], moved, shared, sizes)
    return plan if place is None or place.rows > rows_of(plan.left, sizes) else place.plan


@unbounded
def _place(
    plan: Plan, columns: Sequence[int], moved: Callable[[Plan, Sequence[int]], Plan], shared: AbstractSet[Plan], sizes: Sizes
) -> _Place | None:
    """The best place below an inner join of `plan`; None if there is none. columns: of the plan, by which it is joined."""
    if plan in shared:
        return None
    match plan:
        case Project():
            kept = [expr.index for _, expr in (plan.columns[i] for i in columns) if isinstance(expr, Column)]
            below = _place(plan.input, kept, moved, shared, sizes) if len(kept) == len(columns) else None
            return None if below is None else below._replace(plan=replace(plan, input=below.plan))
        case Filter():
            below = _place(plan.input, columns, moved, shared, sizes)
            return None if below is None else below._replace(plan=replace(plan, input=below.plan))
        case Join(kind="inner"):
            places = []
            sides = plan.left, plan.right
            for number, at in enumerate(side_places(plan)):
                if not at.keys() >= set(columns):
                    continue
                side, own = sides[number], [at[i] for i in columns]
                unique = unique_key(side)
                here = _Place(rows_of(side, sizes), unique is None or not unique <= set(own), moved(side, own))
                deeper = _place(side, own, moved, shared, sizes)
                best = here if deeper is None or deeper.rows > here.rows else deeper
                joined = replace(plan, left=best.plan) if number == 0 else replace(plan, right=best.plan)
                places.append(best._replace(plan=joined))
            return min(places, key=lambda each: (each.rows, each.repeats), default=None)
        case _:
            return None
