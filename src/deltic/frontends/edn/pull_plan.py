"""The rows of a pull as the plan of a view: for each level, the entities on it, and what each of its slots has of them."""

from __future__ import annotations

from collections.abc import Sequence

from deltic.expr import resolve
from deltic.expr.nodes import Expr, Literal
from deltic.frontends.edn.kinds import LONG, EdnTerm
from deltic.frontends.edn.patterns import StorePatterns
from deltic.frontends.edn.pull import VALUE_COLUMNS, PullLevel, PullSlot
from deltic.frontends.edn.relation import Bindings, united
from deltic.plan.columns import reference
from deltic.plan.nodes import ITERATION_LIMIT, Order, Plan, Project, Reference, TopK, union_of
from deltic.plan.recursion import finished
from deltic.schema import BIGINT, INT, Field, Schema, Type

_ENTITY, _VALUE = "e", "v"


def pull_plan(levels: Sequence[PullLevel], roots: Bindings, patterns: StorePatterns) -> Plan | None:
    """The rows (level, e, slot, value …) of trees whose roots are the variable e; None if they show nothing but numbers.

    Each type of values has a column, which is NULL in the rows of others.
    """
    entities = _entities(levels, roots, patterns)
    slots = [(level, slot) for level in levels for slot in level.slots]
    used = {slot.attribute.kind.type for _, slot in slots}
    types = [one for one in VALUE_COLUMNS if one in used]
    parts = [_rows(level, slot, entities[level.number], patterns, types) for level, slot in slots]
    return None if not parts else union_of(parts)


def _entities(levels: Sequence[PullLevel], roots: Bindings, patterns: StorePatterns) -> dict[int, Bindings]:
    """The entities of each level. A level is reached from those before it; that of all components also from others, so it is last."""
    reached: dict[int, list[Bindings]] = {levels[0].number: [roots]}
    entities: dict[int, Bindings] = {}
    for level in sorted(levels, key=lambda one: (one.components, one.number)):
        start = united(reached[level.number]).distinct()
        if recursive := [slot for slot in level.slots if slot.level == level.number]:
            start = _closure(level, recursive, start, patterns)
        entities[level.number] = start
        for slot in level.slots:
            if slot.level is not None and slot.level != level.number:
                reached.setdefault(slot.level, []).append(_others(start, slot, patterns))
    return entities


def _closure(level: PullLevel, recursive: Sequence[PullSlot], start: Bindings, patterns: StorePatterns) -> Bindings:
    """The entities that recursive slots lead to. Of each limited one, a column has how often it may still be followed."""
    limited = {str(slot.number): slot for slot in recursive if slot.depth is not None}
    remaining = {name: EdnTerm(Literal(slot.depth, BIGINT), LONG) for name, slot in limited.items()}
    kinds = dict.fromkeys((_ENTITY, *limited), LONG)
    name = f"pull level {level.number}"
    before = Bindings(Reference(name, Schema(tuple(Field(one, BIGINT, False) for one in kinds))), kinds)
    parts = [start.extended(remaining)]
    for slot in recursive:
        counter, following = str(slot.number), before
        if counter in limited:
            following = before.filtered([resolve(">", [before.term(counter).expr, Literal(0, BIGINT)], None)])
        joined = following.joined(_edges(slot, patterns), None)
        counts = {one: joined.term(one) for one in limited}
        if counter in limited:
            counts[counter] = EdnTerm(resolve("-", [counts[counter].expr, Literal(1, BIGINT)], None), LONG)
        parts.append(joined.projected({_ENTITY: joined.term(_VALUE), **counts}))
    denoted = finished({name: united(parts).distinct().plan}, {name: ITERATION_LIMIT})
    return Bindings(denoted[name], kinds).keep([_ENTITY]).distinct()


def _edges(slot: PullSlot, patterns: StorePatterns) -> Bindings:
    """(e, v): an entity of the slot's level, and the value or entity that the slot has of it."""
    plan, entity, value = patterns.facts(slot.attribute)
    left, right = (value, entity) if slot.is_reverse else (entity, value)
    return Bindings(plan, {}).projected({_ENTITY: left, _VALUE: right})


def _others(entities: Bindings, slot: PullSlot, patterns: StorePatterns) -> Bindings:
    """The entities that a slot leads to."""
    joined = entities.joined(_edges(slot, patterns), None)
    return joined.projected({_ENTITY: joined.term(_VALUE)})


def _rows(level: PullLevel, slot: PullSlot, entities: Bindings, patterns: StorePatterns, types: Sequence[Type]) -> Plan:
    """Of a limit only where no value is left out later: an entity of which a pattern shows nothing does not count."""
    joined = entities.joined(_edges(slot, patterns), None)
    plan, entity, value = joined.plan, joined.term(_ENTITY).expr, joined.term(_VALUE).expr
    if slot.limit is not None and slot.level is None:
        plan = TopK(plan, (Order(value),), slot.limit, (entity,))
        entity, value = (reference(plan.schema, list(joined.kinds).index(name)) for name in (_ENTITY, _VALUE))
    columns: list[tuple[str, Expr]] = [("level", Literal(level.number, INT)), (_ENTITY, entity), ("slot", Literal(slot.number, INT))]
    columns += [(VALUE_COLUMNS[one], value if one == value.type else Literal(None, one)) for one in types]
    return Project(plan, tuple(columns))
