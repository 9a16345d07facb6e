"""Which columns of a recursive relation all of its steps pass on as they are: by these it can be spread over the shards."""

from __future__ import annotations

from collections.abc import Iterator

from deltic.expr.nodes import Column
from deltic.plan.nodes import Distinct, Filter, Join, Plan, Project, Recursion, Reference, Union, references
from deltic.schema import Schema
from deltic.trace.encoding import Layout, words_of

Sources = tuple[int | None, ...]
"""For each column of a plan, which column of the relation it is; None if it is none of them."""


def spread_by(plan: Recursion) -> tuple[int, ...]:
    """The words of the columns' values, without those that say whether they are NULL; () where there are no such columns."""
    slices = Layout.of(plan.schema).slices
    return tuple(word for i in passed_on(plan) for word in range(slices[i].stop - words_of(plan.schema[i].type, False), slices[i].stop))


def passed_on(plan: Recursion) -> tuple[int, ...]:
    """The columns, of a recursion that lies in no other; none where it has several relations, or a step that is not linear or is more
    than joins, filters and projections.

    Rows whose values there differ never meet, so each shard can have the recursion of its values to itself. No column of floats, whose
    equal values can have different words.
    """
    if len(plan.relations) > 1:
        return ()
    (_, body), schema = plan.relations[0], plan.schema
    steps = [term for term in _terms(body, schema) if references(term)]
    sources = [_sources(step) for step in steps]
    if not all(sources):
        return ()
    kept = (i for i, field in enumerate(schema) if not field.type.is_float)
    return tuple(i for i in kept if all(found[i] == i for found in sources)) if steps else ()


def _terms(plan: Plan, schema: Schema) -> Iterator[Plan]:
    """What is added up, as far as it has the relation's columns."""
    if isinstance(plan, Distinct):
        yield from _terms(plan.input, schema)
    elif isinstance(plan, Union) and _kinds(plan.schema) == _kinds(schema):
        for term in plan.inputs:
            yield from _terms(term, schema)
    else:
        yield plan


def _sources(plan: Plan) -> Sources:
    """() where the plan reads the relation otherwise."""
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
    if all(reading) or (plan.kind == "semi" and reading[1]):
        return ()
    found = [_sources(side) if reads else (None,) * len(side.schema) for side, reads in zip(sides, reading, strict=True)]
    if not found[reading.index(True)]:
        return ()
    return found[0] if plan.kind == "semi" else (*found[0], *found[1])


def _kinds(schema: Schema) -> list[object]:
    return [(field.type, field.nullable) for field in schema]
