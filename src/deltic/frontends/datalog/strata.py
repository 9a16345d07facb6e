"""Strata: groups of relations that depend on one another, each after the groups that it reads. No group passes through negation."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn
from typing import Literal as OneOf

from deltic.errors import Span, Unsupported
from deltic.frontends.datalog.bind_term import GROUP_BY, STREAM_AGGREGATE
from deltic.frontends.datalog.fold_uses import FLAT_MAP
from deltic.frontends.datalog.groups import aggregate_name
from deltic.frontends.datalog.rewriting import parts_of_kind
from deltic.frontends.datalog.tree import AtomTerm, CallTerm, DatalogRule, OperationTerm, Term

MONOTONE: Final = ("min", "max", "first", "count", "count_distinct", "sum")
"""Aggregates that a recursion may pass through, if its values are used monotonically (deltic.plan.monotone)."""

USE: Final = (
    "in a cycle, sum() takes numbers that are not negative: unsigned ones, or x after x >= 0 in the body. Use the values of aggregates "
    "only in x + y, in x * y of such numbers, and in conditions that better values still satisfy, such as n >= 3 of a count. "
    "Or derive this outside the cycle, in a relation that the others do not read"
)
"""How such values may be used; words for the errors of deltic.plan.monotone, whose own remedies are in SQL."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """The relation `head` reads `relation`, or as of an earlier tick. span: of the atom, or of the aggregate over it."""

    head: str
    relation: str
    how: OneOf["read", "negated", "aggregated"]
    span: Span
    delayed: bool = False


def dependencies(rules: Sequence[DatalogRule]) -> list[Dependency]:
    """What each head reads, in the order of the text."""
    reads = []
    for rule in rules:
        for atom, how, span in _read(rule.body):
            reads += [Dependency(head.name, atom.name, how, span, atom.delay > 0) for head in rule.heads]
    return reads


def _read(body: Sequence[Term]) -> list[tuple[AtomTerm, OneOf["read", "negated", "aggregated"], Span]]:
    """The atoms of a body; those before an aggregate that is not monotone are aggregated."""
    atoms: list[tuple[AtomTerm, OneOf["read", "negated", "aggregated"], Span]] = []
    for term in body:
        groups = parts_of_kind(term, CallTerm, lambda call: call.name in (GROUP_BY, STREAM_AGGREGATE))
        calls = [call for call in parts_of_kind(term, CallTerm) if call.arguments and call.arguments[0] in groups]
        if groups and not (calls and all(aggregate_name(call.name) in MONOTONE for call in calls)):
            atoms = [(atom, "negated" if how == "negated" else "aggregated", groups[0].span) for atom, how, _ in atoms]
        negated = parts_of_kind(term, OperationTerm, lambda one: one.operator == "not" and isinstance(one.operands[0], AtomTerm))
        for atom in parts_of_kind(term, AtomTerm, lambda one: one.name != FLAT_MAP):
            is_negated = any(atom is one.operands[0] for one in negated)
            atoms.append((atom, "negated" if is_negated else "read", atom.place))
    return atoms


def strata(names: Sequence[str], reads: Sequence[Dependency], unwritten: Container[str] = ()) -> list[tuple[str, ...]]:
    """The groups in order. Raises Unsupported, with the cycle, if one passes through negation or an aggregate within a tick.

    unwritten: relations that are not in the text, but stand for its aggregates.
    """
    edges = _edges(names, [one for one in reads if not one.delayed])
    group_of = {name: i for i, group in enumerate(_components(names, edges)) for name in group}
    for one in reads:
        same = one.head in group_of and group_of.get(one.relation) == group_of[one.head]
        if same and one.how != "read" and not one.delayed:
            _refuse(one, edges, unwritten)
    return _components(names, _edges(names, reads))


def recursive(names: Sequence[str], reads: Sequence[Dependency]) -> set[str]:
    """The relations that depend on themselves within a tick."""
    edges = _edges(names, [one for one in reads if not one.delayed])
    return {name for group in _components(names, edges) for name in group if len(group) > 1 or name in edges[name]}


def _edges(names: Sequence[str], reads: Sequence[Dependency]) -> dict[str, list[str]]:
    edges: dict[str, list[str]] = {name: [] for name in names}
    for one in reads:
        if one.head in edges and one.relation in edges:
            edges[one.head].append(one.relation)
    return edges


def _refuse(cause: Dependency, edges: Mapping[str, Sequence[str]], unwritten: Container[str]) -> NoReturn:
    back = _path(cause.relation, cause.head, edges)
    written = [name for name in back if name not in unwritten]
    if cause.head in unwritten or cause.relation in unwritten:
        raise Unsupported(
            f"relation {written[0]} depends on itself through an aggregate: {' → '.join([*written, written[0]])}",
            span=cause.span,
            expected="recursion through positive atoms, and through min or max",
            remedy=f"more rows replace the value of count, sum or mean: aggregate a relation that does not read {written[0]}",
        )
    mark = "not " if cause.how == "negated" else "group_by over "
    cycle = " → ".join([cause.head, mark + written[0], *written[1:]])
    what = "negation" if cause.how == "negated" else "an aggregate"
    raise Unsupported(
        f"relation {cause.head} depends on itself through {what}: {cycle}",
        span=cause.span,
        expected="recursion through positive atoms, and through min(), max(), count() or sum()"
        if what != "negation"
        else "recursion through positive atoms",
        remedy=_remedy(cause),
    )


def _remedy(cause: Dependency) -> str:
    """Why the cycle has no fixed point to begin with, and what serves instead."""
    if cause.how == "negated":
        return f"more rows of {cause.relation} would remove rows of {cause.head}: negate a relation that does not depend on {cause.head}"
    return (
        f"more rows of {cause.relation} would replace rows of {cause.head}: aggregate outside the cycle; "
        "of a least way, min() finds its length in the cycle, and a rule after it the way"
    )


def _path(start: str, end: str, edges: Mapping[str, Sequence[str]]) -> list[str]:
    """The shortest way from one relation to another."""
    before: dict[str, str | None] = {start: None}
    waiting = [start]
    for name in waiting:
        if name == end:
            break
        for other in edges[name]:
            if other not in before:
                before[other] = name
                waiting.append(other)
    path: list[str] = []
    relation: str | None = end
    while relation is not None:
        path.append(relation)
        relation = before[relation]
    return path[::-1]


def _components(names: Sequence[str], edges: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """Strongly connected components, each after those that it reads: Tarjan's algorithm (1972), without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    groups: list[tuple[str, ...]] = []
    for root in names:
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            name, successors = work[-1]
            other = next(successors, None)
            if other is not None:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(edges[other])))
                elif other in on_stack:
                    low[name] = min(low[name], index[other])
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[name])
            if low[name] == index[name]:
                group: list[str] = []
                while not group or group[-1] != name:
                    group.append(stack.pop())
                    on_stack.discard(group[-1])
                groups.append(tuple(one for one in names if one in group))
    return groups
