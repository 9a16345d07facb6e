"""Binds aggregates, and rewrites expressions over the columns of an Aggregate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from deltic.aggregates import AggregateFunction, Signature, aggregate_function, is_aggregate
from deltic.errors import Span, TypeMismatch, UnknownName, Unsupported
from deltic.expr import Call, Cast, Column, Expr, Literal, Value, case, cast, children, resolve
from deltic.expr.collating import agreed_values, has_text
from deltic.expr.functions.comparison import check_ordered
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import CHAINS, columns_of, free_variables, is_fixed, outer_columns, user_functions
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_function import check_arguments
from deltic.frontends.sql.bind_grouping import FUNCTIONS as GROUPING_FUNCTIONS
from deltic.frontends.sql.bind_grouping import bind_grouping
from deltic.frontends.sql.refusals import LEAVE_OUT, ORDERED_LIST
from deltic.frontends.sql.scope import AGGREGATED, ALIASED, KEYED, SUBQUERY, WINDOWED, Outer
from deltic.frontends.statements import PythonAggregate
from deltic.plan.columns import conjunction, map_children
from deltic.plan.nodes import AggregateCall
from deltic.schema import TIMESTAMP, Type

if TYPE_CHECKING:
    from deltic.frontends.sql.bind_expression import ExpressionBinder

_SKETCH: Final = "COUNT(DISTINCT x), PERCENTILE(x, p) and COUNT(*) by groups are exact, and cost little in a view"
UNSUPPORTED: Final = {
    **dict.fromkeys(("approx_top_k_accumulate", "approx_top_k_combine"), _SKETCH),
    **dict.fromkeys(("hll_sketch_agg", "hll_union_agg", "theta_sketch_agg", "theta_union_agg", "theta_intersection_agg"), _SKETCH),
    "measure": "the aggregate itself",
}
_COMMUTATIVE: Final = frozenset(("add", "multiply", "and", "or", "bit_and", "bit_or", "bit_xor", "equal", "same", "greatest", "least"))
_TREATED: Final = {*UNSUPPORTED, *GROUPING_FUNCTIONS}


class Collector:
    """The distinct aggregates of one SELECT; a column with index AGGREGATED + i represents the i-th."""

    def __init__(self) -> None:
        self.calls: list[AggregateCall] = []

    def add(self, call: AggregateCall) -> Column:
        """The column that represents the aggregate."""
        if call not in self.calls:
            self.calls.append(call)
        position = self.calls.index(call)
        return Column(AGGREGATED + position, call.type, call.nullable, call.function, call.span)


def aggregate_of(node: object) -> str | None:
    """The name if the node is a call of an aggregate, or of GROUPING or GROUPING_ID, which are values of groups, too."""
    if isinstance(node, tree.FunctionCall) and (node.function is not None or is_aggregate(node.name) or node.name in _TREATED):
        return node.name
    return None


def restricted(node: Any, rows: tree.Expression) -> Any:
    """An aggregate over some of its rows only; another node as it is."""
    if not isinstance(node, tree.FunctionCall) or aggregate_of(node) is None:
        return node
    both = rows if node.condition is None else tree.Operation(("AND",), (rows, node.condition), node.span)
    return replace(node, condition=both)


def has_aggregate(node: object) -> bool:
    """Whether the node contains an aggregate outside subqueries; one that is a window function is none, but its arguments may have one."""
    inside = list(tree.walk(node, lambda part: not isinstance(part, tree.QUERIES)))
    windowed = {id(part.call) for part in inside if isinstance(part, tree.OverCall)}
    return any(aggregate_of(part) and id(part) not in windowed for part in inside)


def bind_aggregate(binder: ExpressionBinder, node: tree.FunctionCall) -> Expr:
    """The column that represents an aggregate call, which is added to the binder's collector."""
    name = node.name
    if node.function is None and name in GROUPING_FUNCTIONS:
        return bind_grouping(binder, node)
    _check_supported(node)
    around = list(binder.scope.around())
    if binder.collector is None and not around:
        raise _not_allowed(node, binder.clause)
    read = [dict(outer.columns) for outer in around]
    rows = replace(binder, clause=f"the argument of {name.upper()}", aliases={}, keys=None, collector=None, windows=None)
    call = aggregate_call(rows, node)
    condition = None if node.condition is None else replace(rows, clause="FILTER").condition(node.condition)
    parts = (*call.arguments, *(() if condition is None else (condition,)))
    if any(map(outer_columns, parts)) and not any(map(columns_of, parts)):
        for outer, before in zip(around, read, strict=True):
            outer.columns = before  # the subquery reads the aggregate, not its arguments
        return _of_enclosing(node, around[0])
    if binder.collector is None:
        raise _not_allowed(node, binder.clause)
    for part in parts:
        if free_variables(part):
            raise TypeMismatch("an aggregate cannot read a parameter of a lambda", span=part.span, expected="columns")
    return binder.collector.add(replace(call, filter=condition))


def _of_enclosing(node: tree.FunctionCall, outer: Outer) -> Expr:
    """An aggregate that reads columns of enclosing queries alone, as one of the nearest of these whose columns it reads."""
    if outer.aggregate is None:
        raise _not_allowed(node, "LATERAL")
    bound = outer.aggregate(node)
    return outer.column(bound) if isinstance(bound, Column) else bound


def _not_allowed(node: tree.FunctionCall, clause: str) -> Unsupported:
    if clause in ("SELECT", "ORDER BY"):  # those of a query with aggregates of its own are grouped
        message = f"{node.name.upper()} of columns of an enclosing query that has no groups is not supported"
        return Unsupported(message, span=node.span, remedy="aggregate in a subquery of FROM of the enclosing query")
    remedy = "array_contains(elements, x); = ANY requires a query" if node.name in ("any", "some") else _elsewhere(clause)
    return Unsupported(f"an aggregate is not allowed in {clause}", span=node.span, remedy=remedy)


def aggregate_call(binder: ExpressionBinder, node: tree.FunctionCall) -> AggregateCall:
    """The call of an aggregate without its filter. binder: for its arguments."""
    _check_supported(node)
    if isinstance(node.function, PythonAggregate):
        return _of_user(node, node.function, _arguments(binder, node))
    return _aggregate(node, _arguments(binder, node), _order(binder, node))


def _check_supported(node: tree.FunctionCall) -> None:
    name = node.name
    if node.function is None and name in GROUPING_FUNCTIONS:
        remedy = "compute it in a subquery of FROM first"
        raise Unsupported(f"{name.upper()} is not a window function", span=node.span, remedy=remedy)
    if node.function is None and not is_aggregate(name):
        raise Unsupported(f"the aggregate {name.upper()} is not supported", span=node.span, remedy=UNSUPPORTED[name])


def _elsewhere(clause: str) -> str:
    if clause == "WHERE":
        return "HAVING tests aggregates"
    return "aggregate in a subquery of FROM first"


def _arguments(binder: ExpressionBinder, node: tree.FunctionCall) -> tuple[Expr, ...]:
    """The bound arguments; () for COUNT(*)."""
    match node.arguments:
        case (tree.Star(qualifier=None, is_plain=True),) if node.name == "count":
            if node.distinct and not binder.scope.star(None):
                raise UnknownName("* requires a FROM clause", span=node.span)
            return tuple(binder.scope.column(c) for c in binder.scope.star(None)) if node.distinct else ()
        case () if not node.within:
            expected = "COUNT(*) or COUNT(x)" if node.name == "count" else f"{node.name.upper()}(x)"
            raise TypeMismatch(f"{node.name.upper()} requires an argument", span=node.span, expected=expected)
        case arguments:
            return tuple(binder.bind(part) for part in arguments)


def _order(binder: ExpressionBinder, node: tree.FunctionCall) -> tuple[Expr, ...]:
    """The bound terms of WITHIN GROUP. Raises Unsupported where the function has none, TypeMismatch where it requires one."""
    name, within = node.name.upper(), aggregate_function(node.name).within
    if not node.within:
        if within == "required":
            raise TypeMismatch(f"{name} requires an order", span=node.span, expected=f"{name}(…) WITHIN GROUP (ORDER BY x)")
        return ()
    span = node.within[0].expression.span
    if within in ("nothing", "window"):
        remedy = ORDERED_LIST if name in ("COLLECT_LIST", "ARRAY_AGG") else LEAVE_OUT
        raise Unsupported(f"{name} has no WITHIN GROUP", span=span, remedy=remedy)
    if within != "rows" and node.distinct:
        raise Unsupported(
            f"DISTINCT and WITHIN GROUP together are not supported for {name}", span=span, remedy="SELECT DISTINCT in FROM first"
        )
    if within != "rows" and len(node.within) > 1:
        raise TypeMismatch(f"{name} takes one term of an order", span=node.within[1].expression.span, expected="ORDER BY x")
    terms = tuple(binder.bind(term.expression) for term in node.within)
    for term in terms:
        check_ordered("ORDER BY", term.type, term.span)
    return terms


def _aggregate(node: tree.FunctionCall, arguments: tuple[Expr, ...], order: tuple[Expr, ...]) -> AggregateCall:
    """The call without its filter."""
    name, span = node.name, node.span
    registered = aggregate_function(name)
    if registered.within != "rows":
        arguments, order = (*order, *arguments), ()
    function = registered.of(len(arguments))
    _check_count(registered, name, len(arguments), bool(node.within), span)
    if function.constants:
        arguments = tuple(agreed_values(name, arguments, span))
    signature = _signature(function, name, [argument.type for argument in arguments], span)
    cast_to = [cast(argument, type, span) for argument, type in zip(arguments, signature.arguments, strict=True)]
    for argument, type in zip(arguments, signature.arguments, strict=True):
        if argument.type.is_collated and type == argument.type.plain:
            message = f"{name.upper()} is not supported for a text with a collation"
            raise Unsupported(message, span=argument.span or span, remedy="x COLLATE UTF8_BINARY")
    for i, (expected, is_valid) in function.constants.items():
        if i < len(cast_to):
            cast_to[i] = _constant(name, cast_to[i], arguments[i].span or span, expected, is_valid)
    if node.distinct:
        if not function.distinct:
            raise Unsupported(f"{name.upper()} of distinct rows is not supported", span=span, remedy="SELECT DISTINCT in FROM first")
        if function.distinct_argument is not None:
            cast_to = _only(function.distinct_argument, cast_to, signature)
        for argument in cast_to:
            check_ordered("DISTINCT", argument.type, argument.span or span)
        _check_distinct_order(name, cast_to[0], order)
    directions = tuple((term.descending, term.nulls_first) for term in node.within)
    distinct = node.distinct and function.copies
    return AggregateCall(
        registered.name, (*cast_to, *order), signature.result, signature.nullable, distinct, span=span, directions=directions
    )


def _only(i: int, arguments: Sequence[Expr], signature: Signature) -> list[Expr]:
    """Argument i, NULL where another argument is, in place of each argument: distinct rows of these are its distinct values."""
    others = [resolve("is_not_null", [argument]) for at, argument in enumerate(arguments) if at != i]
    value = case([(conjunction(others), arguments[i])], None)
    return [cast(value, type) for type in signature.arguments]


def _signature(function: AggregateFunction, name: str, types: Sequence[Type], span: Span) -> Signature:
    """A text that the function casts to another type has no collation."""
    if any(type.is_collated for type in types):
        plain = function.rule(name, [type.plain for type in types], span)
        if not any(type.is_collated and has_text(taken) for type, taken in zip(types, plain.arguments, strict=True)):
            return plain
    return function.rule(name, types, span)


def _of_user(node: tree.FunctionCall, function: PythonAggregate, arguments: tuple[Expr, ...]) -> AggregateCall:
    """The call of a user's aggregate, without its filter."""
    if node.within:
        remedy = "leave it out: the rows of a group are sorted"
        raise Unsupported("WITHIN GROUP is not supported for a function in Python", span=node.span, remedy=remedy)
    check_arguments(function, arguments, node.span)
    for argument in arguments:
        check_ordered(function.name, argument.type, argument.span or node.span)
    called = replace(function.function, parameters=(None,) * len(arguments))
    return AggregateCall(node.name, arguments, function.type, True, node.distinct, span=node.span, user=called)


def _constant(name: str, argument: Expr, span: Span, expected: str, is_valid: Callable[[Value], bool]) -> Expr:
    """The argument as a literal. Raises TypeMismatch if it is not constant, or not a value that the function takes."""
    expected = f"a constant: {expected}"
    if not is_fixed(argument) or any(user_functions(argument)):
        raise TypeMismatch(f"an argument of {name.upper()} is not constant", span=span, expected=expected)
    value = evaluate(argument, ())
    if not is_valid(value):
        raise TypeMismatch(f"invalid argument of {name.upper()}", span=span, expected=expected)
    return Literal(value, argument.type, span)


def _check_distinct_order(name: str, argument: Expr, order: Sequence[Expr]) -> None:
    """Spark sorts distinct values by themselves alone."""
    for term in order:
        if isinstance(argument, Cast) and term == argument.argument and (term.type.is_float or term.type == TIMESTAMP):
            message = f"{name.upper()} of distinct values cannot be sorted by a {term.type.sql}: several may have one text"
            raise TypeMismatch(message, span=term.span, remedy="ORDER BY the text, CAST(x AS STRING)")
        if term != (argument.argument if isinstance(argument, Cast) and not isinstance(term, Cast) else argument):
            expected = f"{name.upper()}(DISTINCT x) WITHIN GROUP (ORDER BY x)"
            raise TypeMismatch(f"{name.upper()} of distinct values is sorted by another value", span=term.span, expected=expected)


def _check_count(function: AggregateFunction, name: str, given: int, ordered: bool, span: Span) -> None:
    """Raises TypeMismatch if the function does not take this number of arguments, of which WITHIN GROUP may give the first."""
    by_order = int(ordered and function.within != "rows")
    least, most = function.parameters
    if given < least or (most is not None and given > most):
        least, most = least - by_order, None if most is None else most - by_order
        count = str(least) if least == most else f"{least} or more" if most is None else f"{least} to {most}"
        noun = "argument" if count == "1" else "arguments"
        raise TypeMismatch(f"{name.upper()} requires {count} {noun}", span=span, expected=f"{count}, found {given - by_order}")


def onto(expr: Expr, keys: Sequence[Expr], outputs: Sequence[Expr], clause: str) -> Expr:
    """`expr` rewritten over the rows of an Aggregate: keys[i] becomes outputs[i], the j-th aggregate outputs[len(keys) + j].

    Raises QueryError if another column remains. Columns of an enclosing query, values of subqueries, window functions and aliases stay.
    """
    done: dict[int, Expr] = {}

    def over(part: Expr) -> Expr:
        if (after := done.get(id(part))) is None:
            after = done[id(part)] = _onto(part, keys, outputs, clause, over)
        return after

    return over(expr)


def _onto(expr: Expr, keys: Sequence[Expr], outputs: Sequence[Expr], clause: str, over: Callable[[Expr], Expr]) -> Expr:
    """over: rewrites the parts."""
    if (position := position_of(expr, keys)) is not None:
        return replace(outputs[position], span=expr.span)
    if isinstance(expr, Column) and expr.index < SUBQUERY:
        if expr.index >= WINDOWED or ALIASED <= expr.index < KEYED:
            return expr
        if expr.index < AGGREGATED:
            raise TypeMismatch(
                f"the column {expr.name!r} of {clause} is neither aggregated nor in GROUP BY",
                span=expr.span,
                remedy=f"GROUP BY {expr.name}, or MIN({expr.name})",
            )
        return replace(outputs[len(keys) + expr.index - AGGREGATED], span=expr.span)
    if isinstance(expr, Call) and (shorter := [(part, i) for i, part in enumerate(keys) if _is_shorter(part, expr)]):
        return _chain_onto(expr, shorter, outputs, over)
    return map_children(expr, over)


def position_of(expr: Expr, keys: Sequence[Expr]) -> int | None:
    """The position of the key that is this expression; as in Spark, the order of the arguments of +, *, AND and the like is ignored."""
    if expr in keys:
        return keys.index(expr)
    if not isinstance(expr, Call) or not any(isinstance(key, Call) and key.function == expr.function for key in keys):
        return None
    ordered = _in_order(expr)
    return next((i for i, key in enumerate(keys) if key.type == expr.type and _in_order(key) == ordered), None)


def _in_order(expr: Expr) -> Expr:
    """The expression with the arguments of commutative functions in one order."""
    ordered = map_children(expr, _in_order)
    if isinstance(ordered, Call) and ordered.function in _COMMUTATIVE:
        return replace(ordered, arguments=tuple(sorted(ordered.arguments, key=hash)))
    return ordered


def _is_shorter(part: Expr, chain: Call) -> bool:
    same = isinstance(part, Call) and part.function == chain.function and chain.function in CHAINS
    return same and len(children(part)) < len(chain.arguments)


def _chain_onto(expr: Call, shorter: Sequence[tuple[Expr, int]], outputs: Sequence[Expr], over: Callable[[Expr], Expr]) -> Expr:
    """A call of AND, OR, || or + that may start with a shorter chain among the keys, as k + 1 + 2 with k + 1; the longest is replaced."""
    arguments: list[Expr] = []
    rest = expr.arguments
    by_length = sorted(shorter, key=lambda pair: -len(children(pair[0])))
    while rest:
        match = next(((part, i) for part, i in by_length if _starts(expr, rest[: len(children(part))], part)), None)
        if match is not None and (not arguments or expr.function != "add"):
            arguments.append(outputs[match[1]])
            rest = rest[len(children(match[0])) :]
        else:
            arguments.append(over(rest[0]))
            rest = rest[1:]
    return replace(expr, arguments=tuple(arguments))


def _starts(chain: Call, arguments: tuple[Expr, ...], part: Expr) -> bool:
    """Whether the part has these first arguments of the chain, in any order if the chain's function is commutative."""
    if chain.function in _COMMUTATIVE:
        return _in_order(replace(chain, arguments=arguments)) == _in_order(replace(chain, arguments=children(part)))
    return arguments == children(part)
