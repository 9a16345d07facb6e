"""Trees of inner joins as conjunctive queries: their leaves, and the conditions on the leaves' columns.

Inner equijoins, with the filters, temporal filters and cheap projections between them, are one query over their leaves. Equalities between
two leaves define variables: columns that must be equal. Everything else is a condition. A condition that cannot fail may be evaluated as
soon as its columns are bound. Conditions that can fail are evaluated last, in plan order, on rows of the whole join, which are a subset of
those that the plan evaluates them on.

A join is a leaf if it compares values of more than one word, or if one of its keys can fail and is computed only on rows that passed other
joins. With `beyond`, such obstacles are passed and recorded, to report cycles that stay binary because of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, NoReturn, assert_never

from deltic.errors import Span, Unsupported
from deltic.expr.failing import can_fail
from deltic.expr.nodes import Call, Column, Expr, Literal, columns_of, unwidened
from deltic.optimizer.push_time_down import Bounds, map_bounds, with_bounds
from deltic.plan.columns import all_columns, compared, conjunction, conjuncts, normalized, shift, substitute
from deltic.plan.node import once_per_node
from deltic.plan.nodes import Filter, FlatMap, Hint, Join, Plan, Project, TemporalFilter, is_word
from deltic.plan.traits import is_cheap
from deltic.plan.walk import map_inputs
from deltic.schema import INT, Schema
from deltic.stacks import unbounded

FALLIBLE: Final = "a condition can fail on rows that other joins or conditions leave out (compute it in a subquery of its relation)"
COMPUTED: Final = "a column is computed between two of them (compute it in a subquery of its relation)"
OUTER: Final = "an outer join is one of them or between them (use an inner join, or join it last)"
SEMI: Final = "EXISTS and IN are joined separately (use a join with the DISTINCT relation instead)"
ANTI: Final = "NOT EXISTS or NOT IN is between two of them (apply it last)"
TABLE_FUNCTION: Final = "a table function is between two of them (apply it in a subquery of its relation)"
NULL_SAFE: Final = "<=> compares nested values that can be NULL (use =, or declare the columns NOT NULL)"
HINTED: Final = "a hint asks for it"

LARGEST: Final = 64
"""The maximum number of relations in a tree of joins that is examined as a whole; in a larger tree each side is examined separately."""

Late = Expr | Bounds
"""A condition that can fail: a predicate, or temporal bounds."""


@dataclass(frozen=True, slots=True)
class JoinTree:
    """A tree of joins as its leaves. Expressions are over the concatenated columns of the leaves.

    columns: those of the result. equal: pairs of expressions that must be equal and not NULL, each over one leaf. conditions: predicates
    that cannot fail. bounds: temporal bounds that cannot fail. late: conditions that are evaluated after all these, in this order.
    hinted: whether a hint requests one multiway join. obstacles: reasons obstacle the tree is not a multiway join. places: of the leaves
    in the text.
    """

    leaves: tuple[Plan, ...]
    columns: tuple[Expr, ...]
    equal: tuple[tuple[Expr, Expr], ...] = ()
    conditions: tuple[Expr, ...] = ()
    bounds: Bounds = ((), ())
    late: tuple[Late, ...] = ()
    hinted: bool = False
    obstacles: tuple[str, ...] = ()
    places: tuple[Span | None, ...] = (None,)

    @staticmethod
    def of(leaf: Plan) -> JoinTree:
        """The plan as a tree of one leaf."""
        return JoinTree((leaf,), all_columns(leaf.schema))

    @property
    def starts(self) -> list[int]:
        """The position of each leaf's first column, followed by the number of columns."""
        return [0, *accumulate(len(leaf.schema) for leaf in self.leaves)]

    def moved(self, by: int) -> JoinTree:
        """The same with all columns shifted right by `by`."""
        return replace(
            self,
            columns=tuple(shift(expr, by) for expr in self.columns),
            equal=tuple((shift(a, by), shift(b, by)) for a, b in self.equal),
            conditions=tuple(shift(expr, by) for expr in self.conditions),
            bounds=map_bounds(self.bounds, lambda moment: shift(moment, by)),
            late=tuple(map_late(each, lambda expr: shift(expr, by)) for each in self.late),
        )

    def with_conditions(self, parts: Sequence[Expr]) -> JoinTree:
        """With further predicates over the tree's columns, in order of evaluation."""
        over = [substitute(part, self.columns) for part in parts]
        sure, late = (tuple(part for part in over if can_fail(part) is fallible) for fallible in (False, True))
        return replace(self, conditions=(*self.conditions, *sure), late=(*self.late, *late))

    def with_bounds(self, bounds: Bounds) -> JoinTree:
        """With more temporal bounds, over the tree's columns."""
        lower, upper = map_bounds(bounds, lambda moment: substitute(moment, self.columns))
        if any(can_fail(bound.moment) for bound in (*lower, *upper)):
            return replace(self, late=(*self.late, (lower, upper)))
        return replace(self, bounds=(self.bounds[0] + lower, self.bounds[1] + upper))

    def leaf_of(self, expr: Expr) -> int | None:
        """The leaf whose columns the expression reads; None unless it is exactly one."""
        starts = self.starts
        leaves = {bisect_right(starts, column) - 1 for column in columns_of(expr)}
        return leaves.pop() if len(leaves) == 1 else None

    def classes(self) -> list[list[Expr]]:
        """The equivalence classes of expressions that must be equal."""
        classes: list[list[Expr]] = []
        for pair in self.equal:
            touched = [members for members in classes if any(expr in members for expr in pair)]
            merged = list(dict.fromkeys(expr for part in (*touched, pair) for expr in part))
            classes = [members for members in classes if members not in touched] + [merged]
        return classes

    def edges(self) -> list[frozenset[int]]:
        """For each leaf the classes with an expression over it."""
        classes = [{self.leaf_of(expr) for expr in members} for members in self.classes()]
        return [frozenset(c for c, members in enumerate(classes) if i in members) for i in range(len(self.leaves))]

    def with_all_equalities(self) -> JoinTree:
        """With equalities among its conditions as variables too; one that can fail, or that is TRUE of NULLs, is an obstacle."""
        sure, late = ([pair for part in parts if (pair := self._equality(part))] for parts in (self.conditions, self.late))
        null_safe = any(self._equality(part) is not None and part.function == "same" for part in self.conditions if isinstance(part, Call))
        obstacles = (*([FALLIBLE] if late else []), *([NULL_SAFE] if null_safe else []))
        return replace(self, equal=(*self.equal, *sure, *late), obstacles=(*self.obstacles, *obstacles))

    def _equality(self, part: Late) -> tuple[Expr, Expr] | None:
        if isinstance(part, Call) and part.function in ("equal", "same") and all(self.leaf_of(side) is not None for side in part.arguments):
            return part.arguments[0], part.arguments[1]
        return None


def map_late(late: Late, change: Callable[[Expr], Expr]) -> Late:
    """The same with `change` applied to the predicate, or to each moment."""
    return map_bounds(late, change) if isinstance(late, tuple) else change(late)


@unbounded
def join_tree(plan: Plan, *, beyond: bool = False) -> JoinTree | None:
    """The tree of joins with the plan as its root; None if it is not a join. beyond: passes and records obstacles.

    Raises Unsupported at a hint that requests a multiway join of a join that must be a leaf.
    """
    match plan:
        case Join(kind="inner") if plan.hint is None or plan.hint.kind != "binary":
            return _of_join(plan, beyond)
        case Filter():
            below = join_tree(plan.input, beyond=beyond)
            return None if below is None else below.with_conditions(conjuncts(plan.predicate))
        case TemporalFilter():
            below = join_tree(plan.input, beyond=beyond)
            return None if below is None else below.with_bounds((plan.lower, plan.upper))
        case Project():
            below = join_tree(plan.input, beyond=beyond)
            return None if below is None else _of_projection(plan, below, beyond)
        case Join() if beyond:
            return _past_join(plan)
        case FlatMap() if beyond:
            below = join_tree(plan.input, beyond=True)
            return None if below is None else _past_table_function(plan, below)
        case _:
            return None


@once_per_node
def tree_size(plan: Plan) -> int:
    """An upper bound of the number of leaves of the tree of joins rooted here; exponential if views over views are read twice."""
    match plan:
        case Join():
            return tree_size(plan.left) + tree_size(plan.right)
        case Filter() | TemporalFilter() | Project() | FlatMap():
            return tree_size(plan.input)
        case _:
            return 1


def over_leaves(plan: Plan, tree: JoinTree, change: Callable[[Plan], Plan]) -> Plan:
    """The plan, of which this is the tree, with its leaves changed."""
    leaves = {id(leaf) for leaf in tree.leaves}

    @unbounded
    def over(part: Plan) -> Plan:
        return change(part) if id(part) in leaves else map_inputs(part, over)

    return over(plan)


def _of_join(plan: Join, beyond: bool) -> JoinTree | None:
    left, right = (join_tree(side, beyond=beyond) or JoinTree.of(side) for side in (plan.left, plan.right))
    obstacle = _obstacle(plan, left, right)
    if obstacle is not None and not beyond:
        if plan.hint is not None:
            refuse_hint(plan.hint, obstacle)
        return None
    return _joined(plan, left, right, obstacle)


def _joined(plan: Join, left: JoinTree, right: JoinTree, obstacle: str | None = None) -> JoinTree:
    right = right.moved(left.starts[-1])
    tree = JoinTree(
        (*left.leaves, *right.leaves),
        (*left.columns, *right.columns),
        (*left.equal, *right.equal),
        (*left.conditions, *right.conditions),
        (left.bounds[0] + right.bounds[0], left.bounds[1] + right.bounds[1]),
        (*left.late, *right.late),
        plan.hint is not None or left.hinted or right.hinted,
        (*left.obstacles, *right.obstacles, *([] if obstacle is None else [obstacle])),
        (*left.places, plan.span or right.places[0], *right.places[1:]),
    )
    pairs = [(substitute(one, left.columns), substitute(other, right.columns)) for one, other in plan.keys]
    wait = _may_wait(plan)
    keys = [pair for pair in pairs if all(tree.leaf_of(side) is not None for side in pair) and (is_word(pair[0].type) or not wait)]
    others = tuple(compared("equal", *pair) for pair in pairs if pair not in keys)
    tree = replace(
        tree,
        equal=(*tree.equal, *((_key(one), _key(other)) for one, other in keys)),
        conditions=(*tree.conditions, *others),
    )
    return tree if plan.residual is None else tree.with_conditions(conjuncts(plan.residual))


def _key(expr: Expr) -> Expr:
    """The expression as a key: floats with -0.0 as 0.0."""
    return normalized(unwidened(expr))


def _obstacle(plan: Join, left: JoinTree, right: JoinTree) -> str | None:
    """The reason why a join of these two is not part of a tree; None if it is."""
    guarded = [pair[i] for pair in plan.keys for i, side in enumerate((left, right)) if len(side.leaves) > 1]
    if any(map(can_fail, guarded)):
        return FALLIBLE
    wide = next((one.type for one, _ in plan.keys if not is_word(one.type)), None)
    return None if wide is None or _may_wait(plan) else f"values of type {wide} are compared"


def _may_wait(plan: Join) -> bool:
    """Whether keys of more than a word are conditions on what the others join: they are where a hint requests it, since that costs more."""
    return plan.hint is not None and any(is_word(one.type) for one, _ in plan.keys)


def _of_projection(plan: Project, below: JoinTree, beyond: bool) -> JoinTree | None:
    exprs = [expr for _, expr in plan.columns]
    cheap = all(map(is_cheap, exprs))
    if not cheap and not beyond:
        return None
    obstacles = below.obstacles if cheap else (*below.obstacles, COMPUTED)
    return replace(below, columns=tuple(substitute(expr, below.columns) for expr in exprs), obstacles=obstacles)


def _past_join(plan: Join) -> JoinTree | None:
    """A join that is not part of a tree, as one. In NOT EXISTS the right side is a leaf."""
    left, right = (join_tree(side, beyond=True) or JoinTree.of(side) for side in (plan.left, plan.right))
    match plan.kind:
        case "inner":
            return _joined(plan, left, right, HINTED)
        case "semi":
            return replace(_joined(plan, left, right, SEMI), columns=left.columns)
        case "anti" | "not_in":
            whole = _joined(Join(plan.left, plan.right, "inner"), left, JoinTree.of(plan.right), ANTI)
            return replace(whole, columns=left.columns)
        case "left" | "right" | "full":
            return _joined(plan, left, right, OUTER)
        case _:
            assert_never(plan.kind)


def _past_table_function(plan: FlatMap, below: JoinTree) -> JoinTree:
    """The tree over a table function, whose columns are functions of its arguments."""
    arguments = tuple(substitute(argument, below.columns) for argument in plan.arguments)
    columns = (Call(plan.function, (*arguments, Literal(i, INT)), field.type, field.nullable) for i, field in enumerate(plan.returned))
    return replace(below, columns=(*below.columns, *columns), obstacles=(*below.obstacles, TABLE_FUNCTION))


def side_places(join: Join) -> tuple[dict[int, int], dict[int, int]]:
    """For the left and the right side of a join: the column of the side at which a column of the join is.

    The sides of an inner join have also the columns that its keys make equal to one of theirs.
    """
    width = len(join.left.schema)
    left, right = {i: i for i in range(width)}, {width + i: i for i in range(len(join.right.schema))}
    pairs = [(one.index, other.index) for one, other in join.keys if isinstance(one, Column) and isinstance(other, Column)]
    if join.kind == "inner":
        left.update((width + other, one) for one, other in pairs)
        right.update(pairs)
    return left, right


def refuse_hint(hint: Hint, obstacle: str) -> NoReturn:
    """Raises Unsupported at the hint's place."""
    raise Unsupported(f"this cannot be one multiway join: {obstacle}", span=hint.span, remedy="remove the hint")


def over_joined(tree: JoinTree, schema: Schema, plan: Plan, conditions: Sequence[Expr], over: Callable[[Expr], Expr]) -> Plan:
    """The tree's result over its joined leaves, with the columns of `schema`.

    plan: the leaves, joined by the tree's equalities. conditions: those of the tree that are not tested in it. over: rewrites an
    expression over the tree's leaves as one over the plan.
    """
    columns = tuple((field.name, over(expr)) for field, expr in zip(schema, tree.columns, strict=True))
    if conditions:
        plan = Filter(plan, conjunction(map(over, conditions)))
    plan = with_bounds(plan, map_bounds(tree.bounds, over))
    for late in tree.late:
        plan = with_bounds(plan, map_bounds(late, over)) if isinstance(late, tuple) else Filter(plan, over(late))
    return Project(plan, columns)


def expressions_above(tree: JoinTree) -> Iterator[Expr]:
    """All expressions that are evaluated over the joined leaves, except the conditions."""
    yield from tree.columns
    yield from other_conditions(tree)


def other_conditions(tree: JoinTree) -> Iterator[Expr]:
    """The expressions of temporal bounds, and of conditions that can fail."""
    for part in (tree.bounds, *tree.late):
        if isinstance(part, tuple):
            yield from (bound.moment for side in part for bound in side)
        else:
            yield part
