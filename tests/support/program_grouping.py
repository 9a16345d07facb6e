"""Random grouping sets over the rows of a plan: the sets of ROLLUP and CUBE, and any others, some of them twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltic.plan.columns import reference
from deltic.plan.nodes import Aggregate, Expand

if TYPE_CHECKING:
    from program_plans import Bound, Programs, Sized


def grouping_sets_of(programs: Programs, source: Sized) -> tuple[Aggregate, tuple[Bound, ...]]:
    """(an Aggregate by grouping sets, the bounds of its columns)."""
    rng = programs.rng
    keys = [programs.scalars.any(source, 1) for _ in range(rng.choice([1, 1, 2, 2, 3]))]
    expand = Expand(source.plan, tuple((f"k{i}", expr) for i, (expr, _) in enumerate(keys)), _sets(programs, len(keys)), "grouping_set")
    width = len(source.schema)
    grouped = tuple((expand.schema[i].name, reference(expand.schema, i)) for i in range(width, len(expand.schema)))
    calls = [programs.call(source) for _ in range(rng.randint(0, 3))]
    plan = Aggregate(expand, grouped, tuple((f"a{i}", call) for i, (call, _) in enumerate(calls)))
    return plan, (*(bound for _, bound in keys), max(expand.sets), *(bound for _, bound in calls))


def _sets(programs: Programs, keys: int) -> tuple[int, ...]:
    rng = programs.rng
    match rng.choice(["rollup", "cube", "some", "twice"]):
        case "rollup":
            return tuple((1 << omitted) - 1 for omitted in range(keys + 1))
        case "cube":
            return tuple(range(1 << keys))
        case "some":
            return tuple(rng.sample(range(1 << keys), rng.randint(1, 1 << keys)))
        case _:
            number = rng.randrange(1 << keys)
            return (number, 1 << keys | number)
