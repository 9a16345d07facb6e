"""Inner joins whose variables form a cycle become one multiway join.

A tree of inner equality joins, with the filters and cheap projections between them, is a conjunctive query over its leaves: columns that
must be equal are one variable. Joined two at a time, relations that close a cycle make intermediate results larger than any result can be
(a triangle's paths of two edges), and these would be stored. So a connected tree with a cyclic core (hypergraph.py) becomes one
MultiwayJoin, acyclic parts and all; an acyclic one stays as it is. A hint on any join of the tree overrides that.

A key that is more than a column is computed below the join, on every row of its leaf. So is one of floats, which must not tell -0.0 from
0.0, while the column keeps its zeros. An equality that reads more than one leaf on a side is a condition.

A join stays a leaf, whatever lies around it, if it compares values that are more than a word, if one of its conditions can fail, or if
one of its keys can and is computed only on rows that other joins let through. `binary_cycles` says why where this leaves a cycle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, NoReturn

from deltic.errors import Unsupported
from deltic.expr.failing import can_fail
from deltic.expr.functions import resolve
from deltic.expr.nodes import Call, Column, Expr, columns_of
from deltic.optimizer.hypergraph import cyclic_core, is_connected
from deltic.plan.columns import conjunction, conjuncts, reference, remap, shift, substitute
from deltic.plan.nodes import Filter, Hint, Join, MultiwayJoin, Plan, Project, inputs, is_word
from deltic.plan.traits import is_cheap
from deltic.plan.walk import map_inputs
from deltic.schema import BOOLEAN, Schema

FALLIBLE: Final = "a condition can fail on rows that other joins or conditions leave out (compute it in a subquery of its relation)"
COMPUTED: Final = "a column is computed between two of them (compute it in a subquery of its relation)"


def form_multiway_joins(plan: Plan) -> Plan:
    """Every tree of joins in the plan as one multiway join, where its hypergraph is cyclic or a hint says so.

    Raises Unsupported, with the hint's place, where a multiway join is asked for and cannot be.

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
    tree = _tree(plan)
    if tree is None:
        return map_inputs(plan, form_multiway_joins)
    edges = tree.edges()
    if not is_connected(edges):
        if isinstance(plan, Join) and plan.hint is not None:
            _refuse(plan.hint, "not all of its relations are joined by equality")
        return map_inputs(plan, form_multiway_joins)
    if not tree.hinted and not cyclic_core(edges):
        return _over_leaves(plan)
    return tree.formed(plan.schema)


def binary_cycles(plan: Plan) -> Iterator[str]:
    """Of each tree of joins that closes a cycle, and yet is left two by two in an optimized plan, why; unless a hint wants it so."""
    told: list[str] = []
    tree = _tree(plan, told) if isinstance(plan, Filter | Join) else None
    if tree is not None and told:
        equal = ((part.arguments[0], part.arguments[1]) for part in tree.conditions if isinstance(part, Call) and part.function == "equal")
        if cyclic_core(replace(tree, equal=(*tree.equal, *equal)).edges()):
            yield told[0]
    for part in inputs(plan) if tree is None else tree.leaves:
        yield from binary_cycles(part)


@dataclass(frozen=True, slots=True)
class _Tree:
    """A tree of joins as its leaves. Expressions are over the leaves' columns laid side by side.

    columns: what it gives. equal: pairs of what must be equal and not NULL, each of one leaf. conditions: what must be TRUE.
    hinted: whether a hint wants it to be one multiway join.
    """

    leaves: tuple[Plan, ...]
    columns: tuple[Expr, ...]
    equal: tuple[tuple[Expr, Expr], ...] = ()
    conditions: tuple[Expr, ...] = ()
    hinted: bool = False

    @staticmethod
    def of(leaf: Plan) -> _Tree:
        return _Tree((leaf,), tuple(reference(leaf.schema, i) for i in range(len(leaf.schema))))

    @property
    def starts(self) -> list[int]:
        """The position of each leaf's first column, and that behind the last."""
        return [0, *accumulate(len(leaf.schema) for leaf in self.leaves)]

    def moved(self, by: int) -> _Tree:
        """The same, `by` columns further to the right."""
        return replace(
            self,
            columns=tuple(shift(expr, by) for expr in self.columns),
            equal=tuple((shift(a, by), shift(b, by)) for a, b in self.equal),
            conditions=tuple(shift(expr, by) for expr in self.conditions),
        )

    def leaf_of(self, expr: Expr) -> int | None:
        """The leaf whose columns the expression reads; None unless it is exactly one."""
        starts, read = self.starts, columns_of(expr)
        found = [i for i in range(len(self.leaves)) if any(starts[i] <= column < starts[i + 1] for column in read)]
        return found[0] if len(found) == 1 else None

    def classes(self) -> list[list[Expr]]:
        """The expressions that must be equal to one another, class by class."""
        found: list[list[Expr]] = []
        for pair in self.equal:
            met = [mine for mine in found if any(expr in mine for expr in pair)]
            merged = list(dict.fromkeys(expr for part in (*met, pair) for expr in part))
            found = [mine for mine in found if mine not in met] + [merged]
        return found

    def edges(self) -> list[frozenset[int]]:
        """For each leaf the classes that have a part in it."""
        classes = [{self.leaf_of(expr) for expr in mine} for mine in self.classes()]
        return [frozenset(c for c, mine in enumerate(classes) if i in mine) for i in range(len(self.leaves))]

    def formed(self, schema: Schema) -> Plan:
        """The tree as one multiway join, under the columns of `schema`."""
        leaves, variables, places = [], [], {}
        classes = self.classes()
        starts, at = self.starts, 0
        for i, leaf in enumerate(self.leaves):
            mine = [[expr for expr in members if self.leaf_of(expr) == i] for members in classes]
            here = _Leaf(leaf, starts[i], mine)
            leaves.append(here.plan())
            variables.append(here.variables(len(classes), at))
            places.update({starts[i] + j: at + j for j in range(len(leaf.schema))})
            at += len(variables[-1])
        columns = Schema(tuple(field for leaf in leaves for field in leaf.schema))
        wanted = [remap(expr, places, columns) for expr in self.columns]
        output = sorted({column for expr in wanted for column in columns_of(expr)})
        condition = conjunction(remap(expr, places, columns) for expr in self.conditions) if self.conditions else None
        join = MultiwayJoin(tuple(leaves), _numbered(variables), tuple(output), condition)
        back = {old: new for new, old in enumerate(output)}
        return Project(join, tuple((field.name, remap(expr, back, join.schema)) for field, expr in zip(schema, wanted, strict=True)))


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One leaf of a tree. start: the position of its first column. classes: of each class of the tree the expressions over the leaf."""

    leaf: Plan
    start: int
    classes: list[list[Expr]]

    def own(self, expr: Expr) -> Expr:
        return shift(expr, -self.start)

    def computed(self) -> list[Expr]:
        """What stands for a class and is no column, in the order of the columns, so that a relation that stands there twice is one."""
        return sorted((self.own(mine[0]) for mine in self.classes if mine and not isinstance(mine[0], Column)), key=_columns)

    def plan(self) -> Plan:
        """The leaf, formed itself, with what is computed behind its columns; what one class says of it twice is a filter on it."""
        plan = form_multiway_joins(self.leaf)
        twice = [_equal(self.own(mine[0]), self.own(other)) for mine in self.classes for other in mine[1:]]
        if twice:
            plan = Filter(plan, conjunction(twice))
        if computed := self.computed():
            own = [(field.name, reference(plan.schema, i)) for i, field in enumerate(plan.schema)]
            plan = Project(plan, (*own, *((f"key{i}", expr) for i, expr in enumerate(computed, 1))))
        return plan

    def variables(self, classes: int, at: int) -> list[int]:
        """The class of each column of the plan; others have numbers of their own, from classes + at on."""
        width, computed = len(self.leaf.schema), self.computed()
        found = [classes + at + i for i in range(width + len(computed))]
        for number, mine in enumerate(self.classes):
            if mine:
                first = self.own(mine[0])
                found[first.index if isinstance(first, Column) else width + computed.index(first)] = number
        return found


def _columns(expr: Expr) -> list[int]:
    return sorted(columns_of(expr))


def _tree(plan: Plan, told: list[str] | None = None) -> _Tree | None:
    """The tree of joins whose root the plan is; None if it is none. told: gets why it would be none, and is then none the less."""
    match plan:
        case Join(kind="inner") if plan.hint is None or plan.hint.kind != "binary":
            return _joined(plan, told)
        case Filter():
            parts = conjuncts(plan.predicate)
            below = _tree(plan.input, told)
            if below is None or (any(map(can_fail, parts)) and _stays(told, FALLIBLE)):
                return None
            return replace(below, conditions=(*below.conditions, *_over(below, parts)))
        case Project():
            exprs = [expr for _, expr in plan.columns]
            below = _tree(plan.input, told)
            if below is None or (not all(map(is_cheap, exprs)) and _stays(told, COMPUTED)):
                return None
            return replace(below, columns=tuple(_over(below, exprs)))
        case _:
            return None


def _stays(told: list[str] | None, why: str) -> bool:
    if told is not None:
        told.append(why)
    return told is None


def _joined(plan: Join, told: list[str] | None) -> _Tree | None:
    left, right = (_tree(side, told) or _Tree.of(side) for side in (plan.left, plan.right))
    conditions = () if plan.residual is None else conjuncts(plan.residual)
    if why := _obstacle(plan, left, right, conditions):
        if plan.hint is not None and told is None:
            _refuse(plan.hint, why)
        if _stays(told, why):
            return None
    right = right.moved(left.starts[-1])
    columns = (*left.columns, *right.columns)
    tree = _Tree((*left.leaves, *right.leaves), columns, (*left.equal, *right.equal), (*left.conditions, *right.conditions))
    pairs = [(substitute(ours, left.columns), substitute(theirs, right.columns)) for ours, theirs in plan.keys]
    keys = [pair for pair in pairs if all(tree.leaf_of(side) is not None for side in pair)]
    others = [_equal(*pair) for pair in pairs if pair not in keys]
    return replace(
        tree,
        equal=(*tree.equal, *((_key(ours), _key(theirs)) for ours, theirs in keys)),
        conditions=(*tree.conditions, *others, *(substitute(part, columns) for part in conditions)),
        hinted=plan.hint is not None or left.hinted or right.hinted,
    )


def _key(expr: Expr) -> Expr:
    """What is equal where the expression is: of floats -0.0 is 0.0."""
    return resolve("normalize", [expr])


def _obstacle(plan: Join, left: _Tree, right: _Tree, conditions: Sequence[Expr]) -> str | None:
    """Why a join of these two is no part of a tree; None if it is."""
    guarded = [pair[at] for pair in plan.keys for at, side in enumerate((left, right)) if len(side.leaves) > 1]
    if any(map(can_fail, (*guarded, *conditions))):
        return FALLIBLE
    wide = next((ours.type for ours, _ in plan.keys if not is_word(ours.type)), None)
    return None if wide is None else f"values of type {wide} are compared"


def _over(tree: _Tree, exprs: Sequence[Expr]) -> Iterator[Expr]:
    """Expressions over what the tree gives, as ones over its leaves."""
    return (substitute(expr, tree.columns) for expr in exprs)


def _over_leaves(plan: Plan) -> Plan:
    """A tree that stays as it is, its leaves formed."""
    return map_inputs(plan, form_multiway_joins if _tree(plan) is None else _over_leaves)


def _numbered(variables: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Variables by number, from 0 in order of appearance."""
    numbers = {old: new for new, old in enumerate(dict.fromkeys(variable for mine in variables for variable in mine))}
    return tuple(tuple(numbers[variable] for variable in mine) for mine in variables)


def _equal(one: Expr, other: Expr) -> Expr:
    return Call("equal", (one, other), BOOLEAN, one.nullable or other.nullable)


def _refuse(hint: Hint, why: str) -> NoReturn:
    raise Unsupported(f"this cannot be one multiway join: {why}", span=hint.span, remedy="leave the hint out")
