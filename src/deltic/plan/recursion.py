"""Making recursions of relations that read one another by name."""

from __future__ import annotations

from collections.abc import Mapping

from deltic.plan.nodes import Aggregate, Join, MultiwayJoin, Plan, Recursion, Reference, SetOperation, Table, Values, inputs, references
from deltic.plan.walk import map_inputs


def has_base(relations: Mapping[str, Plan], name: str) -> bool:
    """Whether the iteration from empty can bring rows into the relation `name`: that of a relation that rests on itself alone cannot.

    >>> from deltic.plan.nodes import Union
    >>> from deltic.schema import BIGINT, Field, Schema
    >>> t, one = Reference("t", Schema((Field("n", BIGINT, False),))), Values(((1,),), Schema((Field("n", BIGINT, False),)))
    >>> has_base({"t": t}, "t"), has_base({"t": Union((one, t))}, "t")
    (False, True)
    """
    return name not in _empty(relations, frozenset())


def _empty(relations: Mapping[str, Plan], around: frozenset[str]) -> frozenset[str]:
    """The relations that stay empty, when those of `around` do."""
    empty = frozenset(relations)
    while True:
        now = frozenset(name for name in empty if _is_empty(relations[name], (around - relations.keys()) | empty))
        if now == empty:
            return now
        empty = now


def _is_empty(plan: Plan, empty: frozenset[str]) -> bool:
    """Whether the plan has no rows, whatever the tables hold, when the relations of `empty` have none."""
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
    """The relations in groups that rest on one another, what a group rests on before it; in a group as given."""
    reads = {name: _read(body) & relations.keys() for name, body in relations.items()}
    reach = {name: _reached(name, reads) for name in relations}
    groups = {tuple(n for n in relations if n == name or (n in reach[name] and name in reach[n])) for name in relations}
    return sorted(groups, key=lambda group: (len(frozenset().union(group, *(reach[name] for name in group))), group))


def _reached(name: str, reads: Mapping[str, frozenset[str]]) -> frozenset[str]:
    found: set[str] = set()
    todo = [name]
    while todo:
        new = reads[todo.pop()] - found
        found |= new
        todo += new
    return frozenset(found)


def _read(plan: Plan) -> frozenset[str]:
    return frozenset(name for name, _ in references(plan))


def closed(plan: Plan, bodies: Mapping[str, Plan], limits: Mapping[str, int]) -> Plan:
    """The plan with each Reference to one of `bodies` replaced by what it denotes: a Recursion of the bodies that rest on one another.

    limits: of iterations, by name; the largest of a group counts.
    """
    return bound_to(plan, finished(bodies, limits))


def finished(bodies: Mapping[str, Plan], limits: Mapping[str, int]) -> dict[str, Plan]:
    """What each name denotes; limits as in `closed`."""
    done: dict[str, Plan] = {}
    for group in components(bodies):
        mine = {name: bound_to(bodies[name], done) for name in group}
        if not any(_read(body) & mine.keys() for body in mine.values()):
            done |= mine
            continue
        done |= _denoted(mine, max(limits[name] for name in group))
    return done


def _denoted(group: Mapping[str, Plan], limit: int) -> dict[str, Plan]:
    """What relations that rest on one another denote, by as few recursions as may be.

    At the fixed point each relation is what its body makes of the others, so one that reads only relations known already needs no
    recursion of its own. One that reads itself does; else those come first that most others read.
    """
    relations = tuple(group.items())
    reads = {name: _read(body) & group.keys() for name, body in relations}
    known: dict[str, Plan] = {}
    while len(known) < len(group):
        rest = [name for name in group if name not in known]
        name = next((name for name in rest if reads[name] <= known.keys()), None)
        if name is None:
            name = max(rest, key=lambda name: (name in reads[name], sum(name in reads[other] for other in rest)))
            known[name] = Recursion(relations, name, limit)
        else:
            known[name] = bound_to(group[name], known)
    return known


def bound_to(plan: Plan, meanings: Mapping[str, Plan]) -> Plan:
    """The plan with each free Reference to one of `meanings` replaced by it."""
    known: dict[int, Plan] = {}

    def bound(node: Plan) -> Plan:
        if id(node) not in known:
            known[id(node)] = _bound(node)
        return known[id(node)]

    def _bound(node: Plan) -> Plan:
        if isinstance(node, Reference):
            return meanings.get(node.name, node)
        if isinstance(node, Recursion):
            own = [name for name, _ in node.relations]
            free = {name: meaning for name, meaning in meanings.items() if name not in own}
            return map_inputs(node, lambda body: bound_to(body, free)) if _read(node) & free.keys() else node
        return map_inputs(node, bound) if _read(node) & meanings.keys() else node

    return bound(plan)
