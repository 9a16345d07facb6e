"""The columns of a recursive relation that all of its steps pass on unchanged, by which it can be spread over the shards."""

from __future__ import annotations

from collections.abc import Iterator

from deltic.expr.failing import can_fail
from deltic.expr.nodes import Column
from deltic.plan.nodes import Distinct, Filter, Join, Plan, Project, Recursion, Reference, Union, references
from deltic.schema import Schema
from deltic.trace.encoding import Layout, words_of

Sources = tuple[int | None, ...]
"""For each column of a plan the column of the relation that it equals; None if there is none."""


def spread_by(plan: Recursion) -> tuple[int, ...]:
    """The words of the columns' values, without flag words; () if there are no such columns."""
    slices = Layout.of(plan.schema).slices
    return tuple(word for i in passed_on(plan) for word in range(slices[i].stop - words_of(plan.schema[i].type, False), slices[i].stop))


def passed_on(plan: Recursion) -> tuple[int, ...]:
    """The columns that an outermost recursion passes on. None if it has several relations, or a step other than a linear combination of
    joins, filters and projections.

    Rows with different values in them never interact, so each shard can run the recursion of its values. Columns of floats are left out,
    since equal values can have different words.
    """
    if len(plan.relations) > 1:
        return ()
    (_, body), schema = plan.relations[0], plan.schema
    steps = [term for term in _terms(body, schema) if references(term)]
    sources = [_sources(step) for step in steps]
    if not all(sources):
        return ()
    kept = (i for i, field in enumerate(schema) if not field.type.has_zeros)
    return tuple(i for i in kept if all(columns[i] == i for columns in sources)) if steps else ()


def _terms(plan: Plan, schema: Schema) -> Iterator[Plan]:
    """The terms of the union that have the relation's columns."""
    if isinstance(plan, Distinct):
        yield from _terms(plan.input, schema)
    elif isinstance(plan, Union) and plan.schema.unnamed == schema.unnamed:
        for term in plan.inputs:
            yield from _terms(term, schema)
    else:
        yield plan


def _sources(plan: Plan) -> Sources:
    """The columns that the plan passes on; () if it reads the relation in another way."""
    match plan:
        case Reference():
            return tuple(range(len(plan.schema)))
        case Filter():
            return _sources(plan.input)
        case Project():
            below = _sources(plan.input)
            return tuple(below[e.index] if isinstance(e, Column) else None for _, e in plan.columns) if below else ()
        case Join(kind="inner" | "semi"):
            return _joined(plan)
        case _:
            return ()


def _joined(plan: Join) -> Sources:
    sides = [plan.left, plan.right]
    reading = [bool(references(side)) for side in sides]
    if all(reading) or (plan.kind == "semi" and (reading[1] or _fails_on_right(plan))):
        return ()
    sources = [_sources(side) if reads else (None,) * len(side.schema) for side, reads in zip(sides, reading, strict=True)]
    if not sources[reading.index(True)]:
        return ()
    return sources[0] if plan.kind == "semi" else (*sources[0], *sources[1])


def _fails_on_right(plan: Join) -> bool:
    """Whether a key fails on rows of the right side, which then are compared with the relation's rows of every value."""
    return plan.evaluates_pairs and any(can_fail(right) for _, right in plan.compared)
