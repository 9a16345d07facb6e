"""Aggregates of group_by: DDlog's names, as aggregates of plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deltic.aggregates import aggregate_function
from deltic.errors import Span, TypeMismatch
from deltic.expr import cast
from deltic.expr.nodes import Expr, UserFunction
from deltic.expr.rows.ordering import order_key, total_key
from deltic.frontends.datalog.declarations import BoundTerm, check_comparable
from deltic.frontends.datalog.kinds import DOUBLE_KIND, FLOAT_KIND, USIZE, Kind, MapKind, TupleKind, VectorKind, is_number, stored
from deltic.frontends.datalog.tree import ClosureTerm, Term
from deltic.frontends.datalog.values import checked
from deltic.plan.nodes import AggregateCall
from deltic.schema import BIGINT, DOUBLE

COLLECTIONS: Final = ("to_vec", "to_set", "to_map")
"""Aggregates that collect a group."""
EXTREMES: Final = {"min": "min", "max": "max", "first": "min", "arg_min": "min_by", "arg_max": "max_by"}
AGGREGATES: Final = ("count", "count_distinct", "sum", "avg", *EXTREMES, *COLLECTIONS)


def aggregate_name(name: str) -> str:
    """DDlog's name without the prefix that its functions of groups have."""
    bare = name.removeprefix("group_")
    return {"sum_u": "sum", "sum_i": "sum"}.get(bare, bare)


def is_collected(name: str) -> bool:
    """Whether a function of a group takes it as one value: a collection, or a function of the program."""
    bare = aggregate_name(name)
    return bare in COLLECTIONS or bare not in AGGREGATES


@dataclass(frozen=True, slots=True)
class GroupCall:
    """An aggregate, and what makes its result a value of Datalog."""

    call: AggregateCall
    finish: Callable[[Expr], BoundTerm]


BindClosure = Callable[[ClosureTerm, BoundTerm], BoundTerm]


def group_call(name: str, value: BoundTerm, arguments: Sequence[Term], bind_closure: BindClosure, span: Span) -> GroupCall:
    """The aggregate `name` of AGGREGATES over a group of values. Raises TypeMismatch."""
    if name in ("arg_min", "arg_max"):
        if len(arguments) != 1 or not isinstance(arguments[0], ClosureTerm):
            raise TypeMismatch(f"{name} takes a closure, or the name of a function", span=span, expected=f"{name}(|x| …)")
        key = bind_closure(arguments[0], value)
        check_comparable(key.kind, f"the value of the closure of {name}", span)
        return _call(EXTREMES[name], (value, key), value.kind, span)
    if arguments:
        raise TypeMismatch(f"{name} takes no arguments here", span=span, expected=f"e.group_by(k).{name}()")
    match name:
        case "count":
            return GroupCall(AggregateCall("count", (), BIGINT, False, span=span), lambda expr: BoundTerm(expr, USIZE))
        case "count_distinct":
            check_comparable(value.kind, f"a value of {name}", span)
            call = AggregateCall("count", (value.expr,), BIGINT, False, distinct=True, span=span)
            return GroupCall(call, lambda expr: BoundTerm(expr, USIZE))
        case "sum" | "avg":
            if not is_number(value.kind):
                raise TypeMismatch(f"{name} does not accept {value.kind}", span=span, expected="numbers")
            return _call(name, (value,), value.kind if name == "sum" else DOUBLE_KIND, span)
        case _:
            check_comparable(value.kind, f"a value of {name}", span)
            return _call(EXTREMES[name], (value,), value.kind, span)


def _call(function: str, values: Sequence[BoundTerm], kind: Kind, span: Span) -> GroupCall:
    signature = aggregate_function(function).rule(function, [value.expr.type for value in values], span)
    arguments = tuple(cast(value.expr, type, span) for value, type in zip(values, signature.arguments, strict=True))
    call = AggregateCall(function, arguments, signature.result, signature.nullable, span=span)
    if function == "sum" and kind != FLOAT_KIND:
        return GroupCall(call, lambda expr: checked(expr, kind, span))
    if function == "avg":
        return GroupCall(call, lambda expr: BoundTerm(cast(expr, DOUBLE, span), DOUBLE_KIND))
    return GroupCall(call, lambda expr: BoundTerm(cast(expr, stored(kind), span), kind))


def to_vec(rows: Iterable[tuple[Any, int]]) -> tuple[list[Any]]:
    """The values of a group, each as often as its weight, in order."""
    return ([value for (value,), weight in rows for _ in range(weight)],)


def to_set(rows: Iterable[tuple[Any, int]]) -> tuple[list[Any]]:
    """The different values of a group, in order."""
    return (sorted({value: None for (value,), _ in rows}, key=total_key),)


def to_map(rows: Iterable[tuple[Any, int]]) -> tuple[tuple[tuple[Any, Any], ...]]:
    """The entries of a group in the order of their keys; of a key's values the greatest."""
    entries: dict[Any, tuple[Any, Any]] = {}
    for key, value in sorted({entry: None for (entry,), _ in rows}, key=total_key):
        entries[order_key(key)] = (key, value)
    return (tuple(entries.values()),)


def collection(name: str, item: Kind, column: str, span: Span) -> tuple[UserFunction, Kind]:
    """The function of a group that collects it, and the kind of its result. Raises TypeMismatch."""
    check_comparable(item, f"a value of {name}", span)
    match name:
        case "to_map":
            if not isinstance(item, TupleKind) or len(item.items) != 2:
                raise TypeMismatch(f"to_map does not accept {item}", span=span, expected="tuples of a key and a value: (k, v).group_by(…)")
            function: Callable[[Any], Any] = to_map
            kind: Kind = MapKind(*item.items)
        case "to_set":
            function, kind = to_set, VectorKind(item, "Set")
        case _:
            function, kind = to_vec, VectorKind(item)
    return UserFunction(name, f"deltic.datalog.{name}.1", ((column,),), 1, False, function), kind
