"""Inner joins whose variables form a cycle become one multiway join.

Binary joins of a cycle have intermediate results larger than any result can be (the two-edge paths of a triangle), and store them. So in a
tree of joins (join_tree.py), leaves that are connected by equalities and have a cyclic core (hypergraph.py) become one MultiwayJoin,
including the acyclic parts; a tree without a cycle is unchanged. A hint on any join of a connected tree overrides this. Leaves that are not
connected with a cycle are joined with it afterwards.

Conditions over several leaves are evaluated within the multiway join, as soon as it has bound their columns. Temporal conditions, and those
that can fail, are evaluated above it.

A key that is not a plain column is computed below the join, on every row of its leaf. So is a key of floats, which must not distinguish
-0.0 from 0.0, while the column keeps its zeros. An equality with a side that reads several leaves is a condition.

`binary_cycles` explains why a cycle stays binary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from deltic.expr.nodes import Column, Expr, columns_of
from deltic.optimizer.hypergraph import components, cyclic_core
from deltic.optimizer.join_tree import (
    LARGEST,
    JoinTree,
    expressions_above,
    join_tree,
    over_joined,
    over_leaves,
    refuse_hint,
    tree_size,
)
from deltic.plan.columns import columns_of_all, compared, conjunction, named_columns, reference, remap, shift
from deltic.plan.node import once_per_node
from deltic.plan.nodes import Filter, Join, MultiwayJoin, Plan, Project, TemporalFilter, inputs
from deltic.plan.walk import map_inputs
from deltic.schema import Schema
from deltic.stacks import unbounded


@once_per_node
def form_multiway_joins(plan: Plan) -> Plan:
    """Replaces every tree of joins by one multiway join if its hypergraph is cyclic or a hint requests it.

    Raises Unsupported at a hint that requests an impossible multiway join.

    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, TableSchema
    >>> g = Table(TableSchema("g", Schema((Field("s", BIGINT), Field("d", BIGINT)))))
    >>> s, d, last = Column(0, BIGINT, True, "s"), Column(1, BIGINT, True, "d"), Column(3, BIGINT, True, "d")
    >>> path = Join(g, g, "inner", ((d, s),))
    >>> form_multiway_joins(path) == path
    True
    >>> print(show(form_multiway_joins(Join(path, g, "inner", ((s, s), (last, d))))))
    Project s#0, d#1, s#2, d#3, s#4, d#5
      MultiwayJoin on s#0 = s#4, d#1 = s#2, d#3 = d#5: s#0, d#1, s#2, d#3, s#4, d#5
        Table g (s, d)
        Table g (s, d)
        Table g (s, d)
    """
    tree = join_tree(plan) if 1 < tree_size(plan) <= LARGEST else None
    if tree is None:
        return map_inputs(plan, form_multiway_joins)
    edges = tree.edges()
    connected = len(components(edges)) == 1
    if tree.hinted and not connected:
        if isinstance(plan, Join) and plan.hint is not None:
            refuse_hint(plan.hint, "not all of its relations are joined by equality")
        return map_inputs(plan, form_multiway_joins)
    if not tree.hinted and not cyclic_core(edges):
        return over_leaves(plan, tree, form_multiway_joins)
    return _formed(tree, plan.schema)


def binary_cycles(plan: Plan) -> Iterator[str]:
    """The reasons why trees of joins in an optimized plan have a cycle but stay binary, each once.

    They include a tree that is too large to be examined as a whole, since it may have a cycle.
    """
    seen: set[int] = set()
    reasons: dict[str, None] = {}
    waiting = [plan]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        large = tree_size(part) > LARGEST
        tree = join_tree(part, beyond=True) if _closes(part) and not large else None
        if large and isinstance(part, Join):
            reasons[f"more than {LARGEST} relations are joined (make a view of some of them DISTINCT, or join fewer)"] = None
        if tree is not None:
            whole = tree.with_all_equalities()
            if whole.obstacles and cyclic_core(whole.edges()):
                reasons["; ".join(dict.fromkeys(whole.obstacles))] = None
        waiting += inputs(part) if tree is None else tree.leaves
    yield from reasons


@unbounded
def _closes(plan: Plan) -> bool:
    """Whether the plan is a join that can close a cycle, or filters over one."""
    match plan:
        case Filter() | TemporalFilter():
            return _closes(plan.input)
        case Join():
            return plan.kind not in ("anti", "not_in")
        case _:
            return False


def _formed(tree: JoinTree, schema: Schema) -> Plan:
    """The tree with its cycles as multiway joins, and the columns of `schema`."""
    classes, edges = tree.classes(), tree.edges()
    within = [_Component(tree, classes, numbers) for numbers in components(edges)]
    above = columns_of_all(expressions_above(tree))
    outer = [part for part in tree.conditions if not any(columns_of(part) <= component.columns for component in within)]
    needed = above | columns_of_all(outer)
    parts = [part.multiway(needed) if tree.hinted or cyclic_core([edges[i] for i in part.numbers]) else part.binary() for part in within]
    plan, positions = parts[0]
    for part, component in zip(parts[1:], within[1:], strict=True):
        width = len(plan.schema)
        plan = Join(plan, part[0], "inner", span=tree.places[component.numbers[0]])
        positions = {**positions, **{column: width + position for column, position in part[1].items()}}

    def over(expr: Expr) -> Expr:
        return remap(expr, positions, plan.schema)

    return over_joined(tree, schema, plan, outer, over)


Part = tuple[Plan, Mapping[int, int]]
"""(a plan, column of the tree → position in the plan)."""


@dataclass(frozen=True, slots=True)
class _Component:
    """Leaves of a tree that equalities connect. numbers: those of the leaves. classes: those of the tree."""

    tree: JoinTree
    classes: list[list[Expr]]
    numbers: Sequence[int]

    @property
    def columns(self) -> frozenset[int]:
        """The columns of the tree that belong to its leaves."""
        starts = self.tree.starts
        return frozenset(column for i in self.numbers for column in range(starts[i], starts[i + 1]))

    def conditions(self) -> list[Expr]:
        """The conditions of the tree that read only these leaves."""
        return [part for part in self.tree.conditions if columns_of(part) <= self.columns]

    def leaves(self) -> Iterator[tuple[Plan, list[int], dict[int, int]]]:
        """For each leaf (the plan with its computed keys, the variable of each column, column of the tree → position in the component)."""
        start = 0
        for i in self.numbers:
            first = self.tree.starts[i]
            members = [[expr for expr in each if self.tree.leaf_of(expr) == i] for each in self.classes]
            leaf = _Leaf(self.tree.leaves[i], first, members)
            variables = leaf.variables(len(self.classes), start)
            yield leaf.plan(), variables, {first + j: start + j for j in range(len(leaf.leaf.schema))}
            start += len(variables)

    def multiway(self, needed: frozenset[int]) -> Part:
        """The leaves as one multiway join. needed: the columns of the tree that it must have."""
        leaves, variables, places = zip(*self.leaves(), strict=True)
        position = {column: place for part in places for column, place in part.items()}
        columns = Schema(tuple(field for leaf in leaves for field in leaf.schema))
        conditions = [remap(expr, position, columns) for expr in self.conditions()]
        output = sorted(position[column] for column in needed & self.columns)
        join = MultiwayJoin(leaves, _numbered(variables), tuple(output), conjunction(conditions) if conditions else None)
        return join, {column: output.index(position[column]) for column in needed & self.columns}

    def binary(self) -> Part:
        """The leaves as binary joins, each with a shared variable."""
        (plan, variables, position), *rest = self.leaves()
        while rest:
            near = next(i for i, (_, others, _) in enumerate(rest) if not set(variables).isdisjoint(others))
            leaf, others, places = rest.pop(near)
            shared = [variable for variable in variables if variable in others]
            keys = [
                (reference(plan.schema, variables.index(each)), reference(leaf.schema, others.index(each)))
                for each in dict.fromkeys(shared)
            ]
            moved = len(variables) - min(places.values(), default=0)
            position |= {column: place + moved for column, place in places.items()}
            plan, variables = Join(plan, leaf, "inner", tuple(keys)), variables + others
        if conditions := self.conditions():
            plan = Filter(plan, conjunction(remap(expr, position, plan.schema) for expr in conditions))
        return plan, position


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One leaf of a tree. start: the position of its first column. classes: for each class of the tree, its expressions over the leaf."""

    leaf: Plan
    start: int
    classes: list[list[Expr]]

    def own(self, expr: Expr) -> Expr:
        return shift(expr, -self.start)

    def computed(self) -> list[Expr]:
        """The representatives of classes that are not columns, in order of the columns, so that two occurrences of a relation are equal."""
        return sorted((self.own(each[0]) for each in self.classes if each and not isinstance(each[0], Column)), key=_columns)

    def plan(self) -> Plan:
        """The formed leaf followed by its computed keys. Two expressions of the leaf in one class become a filter on it."""
        plan = form_multiway_joins(self.leaf)
        twice = [compared("equal", self.own(each[0]), self.own(other)) for each in self.classes for other in each[1:]]
        if twice:
            plan = Filter(plan, conjunction(twice))
        if computed := self.computed():
            own = named_columns(plan.schema)
            plan = Project(plan, (*own, *((f"key{i}", expr) for i, expr in enumerate(computed, 1))))
        return plan

    def variables(self, classes: int, start: int) -> list[int]:
        """The class of each column of the plan; other columns have numbers of their own, from classes + start on."""
        width, computed = len(self.leaf.schema), self.computed()
        variables = [classes + start + i for i in range(width + len(computed))]
        for number, each in enumerate(self.classes):
            if each:
                first = self.own(each[0])
                variables[first.index if isinstance(first, Column) else width + computed.index(first)] = number
        return variables


def _columns(expr: Expr) -> list[int]:
    return sorted(columns_of(expr))


def _numbered(variables: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """The variables, renumbered from 0 in order of appearance."""
    numbers = {old: new for new, old in enumerate(dict.fromkeys(variable for each in variables for variable in each))}
    return tuple(tuple(numbers[variable] for variable in each) for each in variables)
