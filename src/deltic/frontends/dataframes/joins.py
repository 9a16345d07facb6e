"""Joins and set operations of DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final
from typing import Literal as OneOf

import pyspark.sql.connect.proto as pb

from deltic.errors import Span, TypeMismatch, UnknownName, Unsupported
from deltic.expr import Call, resolve
from deltic.expr.functions.comparison import check_ordered
from deltic.frontends.dataframes.binder import FrameBinder
from deltic.frontends.dataframes.by_name import by_name
from deltic.frontends.dataframes.frame import BoundFrame, FrameColumn, over
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.scope import Outer
from deltic.plan.columns import named_columns, reference, shift
from deltic.plan.equalities import EQUAL, split
from deltic.plan.nearest_by import nearest_join
from deltic.plan.nodes import DependentJoin, Join, JoinKind, Plan, Project

_KINDS: Final[dict[int, JoinKind]] = {
    pb.Join.JOIN_TYPE_UNSPECIFIED: "inner",
    pb.Join.JOIN_TYPE_INNER: "inner",
    pb.Join.JOIN_TYPE_CROSS: "inner",
    pb.Join.JOIN_TYPE_FULL_OUTER: "full",
    pb.Join.JOIN_TYPE_LEFT_OUTER: "left",
    pb.Join.JOIN_TYPE_RIGHT_OUTER: "right",
    pb.Join.JOIN_TYPE_LEFT_ANTI: "anti",
    pb.Join.JOIN_TYPE_LEFT_SEMI: "semi",
}
_SETS: Final = {
    pb.SetOperation.SET_OP_TYPE_UNION: "UNION",
    pb.SetOperation.SET_OP_TYPE_INTERSECT: "INTERSECT",
    pb.SetOperation.SET_OP_TYPE_EXCEPT: "EXCEPT",
}


def join(message: pb.Join, left: BoundFrame, right: BoundFrame, binder: FrameBinder) -> BoundFrame:
    """A join on a condition, or on columns of equal names, which occur once, first."""
    left, right = left.alone(), _apart(left, right)
    kind = _KINDS[message.join_type]
    if message.using_columns:
        return _using(message.using_columns, left, right, kind, binder)
    both = _beside(left, right, Join(left.plan, right.plan, "inner"))
    if not message.HasField("join_condition"):
        return _beside(left, right, Join(left.plan, right.plan, kind))
    condition = ExpressionBinder(both.scope, "join").condition(binder.expressions(both).node(message.join_condition))
    keys, residual = split(condition, len(left.plan.schema))
    return _beside(left, right, Join(left.plan, right.plan, kind, keys, residual))


def lateral_join(message: pb.LateralJoin, left: BoundFrame, bind: Callable[[FrameBinder], BoundFrame], binder: FrameBinder) -> BoundFrame:
    """Each row of the left side with those of the right side for it. bind: the right side."""
    left, env = left.alone(), binder.env
    outer = Outer(replace(left.scope, outer=env.outer))
    right = _apart(left, bind(binder.within(env.within(outer), binder.expressions(left))))
    condition = None
    if message.HasField("join_condition"):
        both = _beside(left, right, Join(left.plan, right.plan, "inner"))
        scope = replace(both.scope, outer=env.outer)
        condition = ExpressionBinder(scope, "lateralJoin").condition(binder.expressions(both).node(message.join_condition))
    kind: OneOf["inner", "left"] = "left" if _KINDS[message.join_type] == "left" else "inner"
    values = tuple((one.number, column) for column, one in outer.columns.values())
    return _beside(left, right, env.unnest(DependentJoin(left.plan, right.plan, kind, values, condition)))


def nearest_by_join(message: pb.NearestByJoin, left: BoundFrame, right: BoundFrame, binder: FrameBinder) -> BoundFrame:
    """The rows of the least or greatest ranking. PySpark has checked the other arguments."""
    left, right = left.alone(), _apart(left, right)
    both = _beside(left, right, Join(left.plan, right.plan, "inner"))
    node = binder.expressions(both).node(message.ranking_expression)
    ranking = ExpressionBinder(replace(both.scope, outer=binder.env.outer), "nearestByJoin").bind(node)
    check_ordered("nearestByJoin", ranking.type, node.span)
    kind: OneOf["inner", "left"] = "inner" if message.join_type.lower() == "inner" else "left"
    greatest = message.direction.lower() == "similarity"
    plan = nearest_join(left.plan, right.plan, kind, ranking, message.num_results, greatest=greatest, span=binder.here)
    return _beside(left, right, binder.env.unnest(plan))


def _apart(left: BoundFrame, right: BoundFrame) -> BoundFrame:
    """The right side by itself, with columns of its own where both sides come of one DataFrame."""
    right = right.alone()
    shared = {column.id for column in left.columns} & {column.id for column in right.columns}
    return right.renewed() if shared else right


def _beside(left: BoundFrame, right: BoundFrame, plan: Plan) -> BoundFrame:
    if isinstance(plan, Join) and plan.kind in ("semi", "anti"):
        return replace(left, plan=plan, below=())
    width = len(left.plan.schema)
    moved = tuple(replace(column, index=column.index + width) for column in right.columns)
    return BoundFrame(plan, left.columns + moved, ids=_united(left.ids, right.ids))


def _united(left: Mapping[int, frozenset[int]], right: Mapping[int, frozenset[int]]) -> dict[int, frozenset[int]]:
    return {plan_id: left.get(plan_id, frozenset()) | right.get(plan_id, frozenset()) for plan_id in (*left, *right)}


def _using(names: Sequence[str], left: BoundFrame, right: BoundFrame, kind: JoinKind, binder: FrameBinder) -> BoundFrame:
    width = len(left.plan.schema)
    pairs = [(_side(name, left, "left", binder), _side(name, right, "right", binder)) for name in names]
    keys = []
    for a, b in pairs:
        sides = [reference(left.plan.schema, a.index, binder.here), shift(reference(right.plan.schema, b.index, binder.here), width)]
        equal = resolve(EQUAL, sides, binder.here)
        assert isinstance(equal, Call)
        keys.append((equal.arguments[0], shift(equal.arguments[1], -width)))
    plan = Join(left.plan, right.plan, kind, tuple(keys))
    frame = _beside(left, right, plan)
    firsts, seconds = {a.id for a, _ in pairs}, {b.id for _, b in pairs}
    rest = tuple(column for column in frame.columns if column.id not in firsts | seconds)
    moved = {column.id: column for column in frame.columns}
    if kind in ("semi", "anti"):
        return replace(frame, columns=(*(moved[a.id] for a, _ in pairs), *rest))
    if kind == "full":
        return _merged(frame, [(moved[a.id], moved[b.id]) for a, b in pairs], rest, binder.here)
    shown = tuple(moved[(b if kind == "right" else a).id] for a, b in pairs)
    hidden = tuple(moved[(a if kind == "right" else b).id] for a, b in pairs)
    return replace(frame, columns=(*shown, *rest), below=hidden)


def _merged(frame: BoundFrame, pairs: Sequence[tuple[FrameColumn, FrameColumn]], rest: tuple[FrameColumn, ...], here: Span) -> BoundFrame:
    """The frame of a full join, in which a column of its keys is that of the side that has it."""
    schema = frame.plan.schema
    columns = named_columns(schema)
    made = [(a.name, resolve("coalesce", [reference(schema, one.index, here) for one in (a, b)], here)) for a, b in pairs]
    shown = tuple(FrameColumn(name, len(columns) + i) for i, (name, _) in enumerate(made))
    return BoundFrame(Project(frame.plan, (*columns, *made)), (*shown, *rest), tuple(one for pair in pairs for one in pair), frame.ids)


def _side(name: str, frame: BoundFrame, side: str, binder: FrameBinder) -> FrameColumn:
    columns = [column for column in frame.columns if column.name.lower() == name.lower()]
    if len(columns) != 1:
        what = "is ambiguous" if columns else "does not exist"
        raise UnknownName(f"the column {name!r} {what} on the {side} side of the join", span=binder.here)
    return columns[0]


def set_operation(message: pb.SetOperation, left: BoundFrame, right: BoundFrame, binder: FrameBinder) -> BoundFrame:
    """UNION, INTERSECT or EXCEPT, by position or by name."""
    if message.set_op_type not in _SETS:
        raise Unsupported("this set operation is not supported", span=binder.here)
    if message.by_name:
        left, right = by_name(left.alone(), right.alone(), message.allow_missing_columns, binder)
    sides = (left.alone(), right.alone())
    if len(sides[0].columns) != len(sides[1].columns):
        expected = f"{len(sides[0].columns)}, found {len(sides[1].columns)}"
        raise TypeMismatch("the DataFrames have different numbers of columns", span=binder.here, expected=expected)
    parts = tuple(_part(f"side{i}", side, binder) for i, side in enumerate(sides))
    env = binder.env
    for i, side in enumerate(sides):
        env = env.with_cte(f"side{i}", side.plan)
    plan = replace(binder, env=env).query(tree.SetQuery(_SETS[message.set_op_type], not message.is_all, parts, binder.here))
    return over(plan, [column.name for column in sides[0].columns])


def _part(name: str, side: BoundFrame, binder: FrameBinder) -> tree.SelectQuery:
    source = tree.TableName(tree.Name(name, binder.here), None, binder.here)
    star = tree.SelectItem(tree.Star(None, (), binder.here), (), binder.here)
    return tree.SelectQuery((star,), False, None, source, (), None, None, None, binder.here)
