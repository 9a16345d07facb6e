"""Builds recursions from relations that read one another by name."""

from __future__ import annotations

from collections.abc import Mapping

from deltic.errors import Span
from deltic.expr.nodes import Column
from deltic.plan.columns import reference
from deltic.plan.nodes import (
    Aggregate,
    Distinct,
    Join,
    Multiset,
    MultiwayJoin,
    Plan,
    Project,
    Recursion,
    Reference,
    SetOperation,
    Table,
    Union,
    Values,
    inputs,
    references,
)
from deltic.plan.walk import map_inputs, nodes
from deltic.schema import Schema
from deltic.stacks import unbounded


def is_set(body: Plan) -> bool:
    """Whether a relation keeps each row, or each group, once."""
    while isinstance(body, Multiset) or (isinstance(body, Project) and _keeps_columns(body)):
        body = body.input
    return isinstance(body, Distinct | Aggregate)


def _keeps_columns(plan: Project) -> bool:
    return len({expr.index for _, expr in plan.columns if isinstance(expr, Column)}) == len(plan.input.schema)


def has_base(relations: Mapping[str, Plan], name: str) -> bool:
    """Whether iteration from empty can add rows to the relation `name`: it cannot if the relation depends only on itself.

    >>> from deltic.plan.nodes import Union
    >>> from deltic.schema import BIGINT, Field, Schema
    >>> t, one = Reference("t", Schema((Field("n", BIGINT, False),))), Values(((1,),), Schema((Field("n", BIGINT, False),)))
    >>> has_base({"t": t}, "t"), has_base({"t": Union((one, t))}, "t")
    (False, True)
    """
    return name not in _empty(relations, frozenset())


def _empty(relations: Mapping[str, Plan], around: frozenset[str]) -> frozenset[str]:
    """The relations that stay empty if those of `around` do."""
    empty = frozenset(relations)
    while True:
        now = frozenset(name for name in empty if _is_empty(relations[name], (around - relations.keys()) | empty))
        if now == empty:
            return now
        empty = now


@unbounded
def _is_empty(plan: Plan, empty: frozenset[str]) -> bool:
    """Whether the plan has no rows for any content of the tables, given that the relations of `empty` have none."""
    match plan:
        case Table():
            return False
        case Reference():
            return plan.name in empty
        case Values():
            return not plan.rows
        case Aggregate(keys=()):
            return False
        case Join():
            left, right = _is_empty(plan.left, empty), _is_empty(plan.right, empty)
            return {"inner": left or right, "semi": left or right, "right": right, "full": left and right}.get(plan.kind, left)
        case MultiwayJoin():
            return any(_is_empty(part, empty) for part in plan.inputs)
        case SetOperation():
            return _is_empty(plan.left, empty) or (plan.kind.startswith("intersect") and _is_empty(plan.right, empty))
        case Recursion():
            return plan.result in _empty(dict(plan.relations), empty)
        case _:
            return all(_is_empty(part, empty) for part in inputs(plan))


def components(relations: Mapping[str, Plan]) -> list[tuple[str, ...]]:
    """Groups of mutually dependent relations, each after the groups that it depends on; within a group in the given order."""
    reads = {name: _read(body) & relations.keys() for name, body in relations.items()}
    reach = {name: _reached(name, reads) for name in relations}
    groups = {tuple(n for n in relations if n == name or (n in reach[name] and name in reach[n])) for name in relations}
    return sorted(groups, key=lambda group: (len(frozenset().union(group, *(reach[name] for name in group))), group))


def _reached(name: str, reads: Mapping[str, frozenset[str]]) -> frozenset[str]:
    reached: set[str] = set()
    todo = [name]
    while todo:
        new = reads[todo.pop()] - reached
        reached |= new
        todo += new
    return frozenset(reached)


def _read(plan: Plan) -> frozenset[str]:
    return frozenset(name for name, _ in references(plan))


def closed(plan: Plan, bodies: Mapping[str, Plan], limits: Mapping[str, int]) -> Plan:
    """The plan with each Reference to one of `bodies` replaced by its denotation: a Recursion of mutually dependent bodies.

    limits: iteration limits by name; the largest of a group applies.
    """
    return bound_to(plan, finished(bodies, limits))


def finished(bodies: Mapping[str, Plan], limits: Mapping[str, int]) -> dict[str, Plan]:
    """The denotation of each name; limits as in `closed`."""
    done: dict[str, Plan] = {}
    for group in components(bodies):
        group_bodies = {name: bound_to(bodies[name], done) for name in group}
        if not any(_read(body) & group_bodies.keys() for body in group_bodies.values()):
            done |= group_bodies
            continue
        done |= _denoted(group_bodies, max(limits[name] for name in group))
    return done


def _denoted(group: Mapping[str, Plan], limit: int) -> dict[str, Plan]:
    """The denotations of mutually dependent relations, with as few recursions as possible.

    At the fixed point each relation equals its body over the others, so a relation that reads only relations already denoted needs no
    recursion. A relation that reads itself needs one; among the others, those that most others read come first.
    """
    relations = tuple(group.items())
    reads = {name: _read(body) & group.keys() for name, body in relations}
    denoted: dict[str, Plan] = {}
    while len(denoted) < len(group):
        rest = [name for name in group if name not in denoted]
        name = next((name for name in rest if reads[name] <= denoted.keys()), None)
        if name is None:
            name = max(rest, key=lambda name: (name in reads[name], sum(name in reads[other] for other in rest)))
            denoted[name] = Recursion(relations, name, limit)
        else:
            denoted[name] = bound_to(group[name], denoted)
    return denoted


def bound_to(plan: Plan, meanings: Mapping[str, Plan]) -> Plan:
    """The plan with each free Reference to one of `meanings` replaced by it."""
    denoted: dict[int, Plan] = {}

    @unbounded
    def bound(node: Plan) -> Plan:
        if id(node) not in denoted:
            denoted[id(node)] = _bound(node)
        return denoted[id(node)]

    def _bound(node: Plan) -> Plan:
        if isinstance(node, Reference):
            return meanings.get(node.name, node)
        if isinstance(node, Recursion):
            own = [name for name, _ in node.relations]
            free = {name: meaning for name, meaning in meanings.items() if name not in own}
            return map_inputs(node, lambda body: bound_to(body, free)) if _read(node) & free.keys() else node
        return map_inputs(node, bound) if _read(node) & meanings.keys() else node

    return bound(plan)


def as_declared(plan: Plan, schema: Schema) -> Plan:
    """The plan under a schema of the same types with more nullable columns."""
    if plan.schema.names != schema.names:
        plan = Project(plan, tuple((field.name, reference(plan.schema, i)) for i, field in enumerate(schema)))
    return plan if plan.schema == schema else Union((plan, Values((), schema)))


def place_of(plan: Recursion, name: str) -> Span | None:
    """A reference in the program to a relation of the recursion, for errors: in its own body, if that has one."""
    bodies = sorted(plan.relations, key=lambda pair: pair[0] != name)
    reading = (node for _, body in bodies for node in nodes(body) if isinstance(node, Reference) and node.name == name)
    return next((node.span for node in reading if node.span is not None), None)
