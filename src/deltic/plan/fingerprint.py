"""A hash of a plan's meaning: plans with equal fingerprints denote equal relations, so state can be shared and survive program changes.

A Merkle hash: that of a node covers its own meaning and its inputs' hashes. Spans and the names of columns do not count; literals count by
type and identity (1 and 1.0, 0.0 and -0.0 differ), tables by name, schema and key, without regard to case. A recursive relation counts by
its number in its recursion, not by its name. The limit of a recursion and Inspect nodes do not count.
"""

from __future__ import annotations

import hashlib
from typing import assert_never

from deltic.expr.nodes import (
    Call,
    Case,
    Cast,
    Column,
    Constants,
    Expr,
    Lambda,
    LambdaVariable,
    Literal,
    OuterColumn,
    PythonFunction,
    UserFunction,
)
from deltic.plan.accumulators import AccumulateElements
from deltic.plan.node import once_per_node
from deltic.plan.nodes import (
    Aggregate,
    AggregateCall,
    Bound,
    ByWatermark,
    DependentJoin,
    Distinct,
    Expand,
    Filter,
    FlatMap,
    Generate,
    Inspect,
    Join,
    Multiset,
    MultiwayJoin,
    OverTicks,
    Plan,
    Project,
    Recursion,
    Reduce,
    Reference,
    SetOperation,
    Table,
    TemporalFilter,
    TopK,
    Union,
    Values,
    Weighted,
    Window,
    inputs,
    references,
)
from deltic.plan.sort_terms import Order
from deltic.plan.window_nodes import WindowCall
from deltic.schema import Schema, StreamSchema

Meaning = str | int | bool | None | tuple["Meaning", ...]
"""Nested data whose repr is the same in every process."""


EnclosingNames = tuple[tuple[str, ...], ...]
"""The names of the relations of the enclosing recursions, the innermost last."""


def fingerprint(plan: Plan, enclosing: EnclosingNames = ()) -> str:
    """64 hexadecimal digits; equal for plans with the same meaning, up to names and places in the text.

    enclosing: the recursions around it.

    >>> from deltic.schema import BIGINT, Field, TableSchema
    >>> one, other = (Values(((1,),), Schema((Field(name, BIGINT, False),))) for name in ("a", "b"))
    >>> fingerprint(one) == fingerprint(other), fingerprint(one) == fingerprint(Distinct(one))
    (True, False)
    """
    return _fingerprint(plan, enclosing if references(plan) else ())


@once_per_node
def _fingerprint(plan: Plan, enclosing: EnclosingNames) -> str:
    if isinstance(plan, Inspect):
        return fingerprint(plan.input, enclosing)
    inside = (*enclosing, tuple(name for name, _ in plan.relations)) if isinstance(plan, Recursion) else enclosing
    meaning: Meaning = (type(plan).__name__, _own(plan, enclosing), tuple(fingerprint(below, inside) for below in inputs(plan)))
    return hashlib.sha256(repr(meaning).encode()).hexdigest()


@once_per_node
def column_names(plan: Plan) -> str:
    """A hash of the names of all columns in the plan."""
    names = () if isinstance(plan, Inspect) else plan.schema.names
    return hashlib.sha256(repr((names, tuple(map(column_names, inputs(plan))))).encode()).hexdigest()


def _place(name: str, enclosing: EnclosingNames) -> Meaning:
    """(number of recursions between a Reference and its own, the relation's number there); the name if it is outside all of them."""
    places = [(out, names.index(name)) for out, names in enumerate(reversed(enclosing)) if name in names]
    return places[0] if places else name


def _own(plan: Plan, enclosing: EnclosingNames) -> Meaning:
    match plan:
        case Table():
            fields = tuple((f.name.lower(), f.type.sql, f.nullable) for f in plan.table.schema)
            stream = ("stream",) if isinstance(plan.table, StreamSchema) else ()
            return (plan.table.name.lower(), fields, plan.table.key, *stream)
        case Values():
            return (tuple(tuple(repr(value) for value in row) for row in plan.rows), _types(plan.schema))
        case Project():
            return tuple(_expr(expr) for _, expr in plan.columns)
        case Filter():
            return _expr(plan.predicate)
        case Join():
            keys = tuple((_expr(left), _expr(right)) for left, right in plan.keys)
            value = None if plan.value is None else (_expr(plan.value[0]), _expr(plan.value[1]))
            return (plan.kind, keys, _optional(plan.residual), value)
        case MultiwayJoin():
            return (plan.variables, plan.output, _optional(plan.condition))
        case DependentJoin():
            outer = tuple((number, _expr(expr)) for number, expr in plan.outer)
            value = None if plan.value is None else (_expr(plan.value[0]), _expr(plan.value[1]))
            return (plan.kind, outer, _optional(plan.condition), value)
        case Aggregate():
            return (tuple(_expr(expr) for _, expr in plan.keys), tuple(_aggregate(call) for _, call in plan.aggregates))
        case Expand():
            return (tuple(_expr(expr) for _, expr in plan.keys), plan.sets)
        case FlatMap():
            return (plan.function, tuple(_expr(argument) for argument in plan.arguments), plan.position, plan.outer)
        case TemporalFilter():
            return tuple(tuple(map(_bound, bounds)) for bounds in (plan.lower, plan.upper))
        case ByWatermark():
            return (plan.table.name.lower(), _bound(plan.end), plan.phase)
        case Generate():
            return (_function(plan.function), _types(plan.returned), plan.weighted)
        case Distinct() | Union() | Multiset() | Weighted() | Inspect():
            return None
        case OverTicks():
            return (plan.function, plan.size) if plan.size else plan.function
        case AccumulateElements():
            groups, parts = tuple(_expr(expr) for _, expr in plan.keys), tuple(_types(Schema(part.fields)) for part in plan.parts)
            return (groups, plan.values, _function(plan.function), _types(plan.returned), parts, plan.part)
        case Reduce():
            return (tuple(_expr(expr) for _, expr in plan.keys), plan.values, _function(plan.function), _types(plan.returned))
        case SetOperation():
            return plan.kind
        case Reference():
            return (_place(plan.name, enclosing), _types(plan.schema))
        case Recursion():
            return [name for name, _ in plan.relations].index(plan.result)
        case TopK():
            skipped = (plan.offset,) if plan.offset else ()
            return (_terms(plan.order), plan.limit, tuple(_expr(key) for key in plan.keys), *skipped)
        case Window():
            return (tuple(_expr(key) for key in plan.keys), _terms(plan.order), tuple(_window_call(call) for _, call in plan.calls))
        case _:
            assert_never(plan)


def _terms(order: tuple[Order, ...]) -> Meaning:
    return tuple((_expr(term.expr), term.descending, term.nulls_first) for term in order)


def _window_call(call: WindowCall) -> Meaning:
    edges = tuple((edge.kind, edge.rows, _optional(edge.limit)) for edge in (call.frame.start, call.frame.end))
    aggregate = None if call.aggregate is None else _aggregate(call.aggregate)
    arguments = tuple(_expr(argument) for argument in call.arguments)
    return (call.function, call.type.sql, call.nullable, arguments, call.number, call.ignore_nulls, edges, aggregate)


def _aggregate(call: AggregateCall) -> Meaning:
    arguments = tuple(_expr(argument) for argument in call.arguments)
    user = () if call.user is None else (_function(call.user),)
    directions = (call.directions,) if call.directions else ()
    return (call.function, arguments, call.type.sql, call.nullable, call.distinct, _optional(call.filter), *user, *directions)


def _bound(bound: Bound) -> Meaning:
    return (_expr(bound.moment), bound.offset, *(("optional",) if bound.optional else ()))


def _function(function: UserFunction) -> Meaning:
    return (function.name, function.digest, function.parameters, function.width, function.on_batches)


def _types(schema: Schema) -> Meaning:
    return tuple((field.type.sql, field.nullable) for field in schema)


def _optional(expr: Expr | None) -> Meaning:
    return None if expr is None else _expr(expr)


def _expr(expr: Expr) -> Meaning:
    match expr:
        case Column():
            return ("column", expr.index, expr.type.sql, expr.nullable)
        case Literal():
            return ("literal", expr.identity, expr.type.sql)
        case Constants():
            return ("constants", expr.identity, expr.type.sql)
        case OuterColumn():
            return ("outer", expr.number, expr.type.sql, expr.nullable)
        case LambdaVariable():
            return ("variable", expr.level, expr.place, expr.type.sql, expr.nullable)
        case Lambda():
            return ("lambda", tuple(_expr(one) for one in expr.parameters), _expr(expr.body))
        case PythonFunction():
            return (
                "python",
                _function(expr.function),
                expr.part,
                tuple(_expr(part) for part in expr.arguments),
                expr.type.sql,
                expr.nullable,
            )
        case Call():
            return ("call", expr.function, tuple(_expr(part) for part in expr.arguments), expr.type.sql, expr.nullable)
        case Cast():
            return ("cast", _expr(expr.argument), expr.type.sql, expr.nullable, expr.lenient)
        case Case():
            branches = tuple((_expr(condition), _expr(value)) for condition, value in expr.branches)
            return ("case", branches, _expr(expr.otherwise), expr.type.sql, expr.nullable)
        case _:
            assert_never(expr)
