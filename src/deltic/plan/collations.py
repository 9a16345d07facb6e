"""Collations in plans: operators compare rows by the keys of their texts, which are of UTF8_BINARY.

Texts that are equal in a collation can differ. Of a group of them the greatest by its bytes stands for all, where Spark takes any. What
always holds after `by_keys`: no operator compares, sorts or groups by a text with a collation, so none needs to have one of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from deltic.errors import Unsupported
from deltic.expr.collating import key_of, retyped, stripped
from deltic.expr.functions import resolve
from deltic.expr.nodes import Expr, Literal
from deltic.plan.aggregate_nodes import Aggregate, AggregateCall
from deltic.plan.columns import reference
from deltic.plan.nodes import Distinct, Join, Plan, Project, Recursion, Reduce, SetOperation, TopK, Window, WindowCall
from deltic.plan.walk import expressions, transform
from deltic.schema import STRING

_BY: Final = {"min": "min_by", "max": "max_by"}
_REMEDY: Final = "x COLLATE UTF8_BINARY, or lower(x)"


def by_keys(plan: Plan) -> Plan:
    """The same relation, compared by keys. Raises Unsupported."""
    return transform(plan, _by_keys)


def _by_keys(plan: Plan) -> Plan:
    if not any(expr.type.is_collated for expr in expressions(plan)) and not _collated(plan):
        return plan
    match plan:
        case Distinct() if _collated(plan):
            columns = tuple((field.name, reference(plan.schema, i)) for i, field in enumerate(plan.schema))
            return _grouped(Aggregate(plan.input, columns, ()))
        case Aggregate() if any(key.type.is_collated for _, key in plan.keys):
            return _grouped(plan)
        case Aggregate():
            return replace(plan, aggregates=tuple((name, _call(call)) for name, call in plan.aggregates))
        case TopK():
            order = tuple(replace(term, expr=key_of(term.expr)) for term in plan.order)
            return replace(plan, order=order, keys=tuple(map(key_of, plan.keys)))
        case Window():
            return _window(plan)
        case Join():
            value = None if plan.value is None else (key_of(plan.value[0]), key_of(plan.value[1]))
            return replace(plan, keys=tuple((key_of(left), key_of(right)) for left, right in plan.keys), value=value)
        case SetOperation() if _collated(plan):
            return _set_operation(plan)
        case Recursion() if any(field.type.is_collated for _, body in plan.relations for field in body.schema):
            raise Unsupported("columns with collations are not supported in recursive queries", remedy=_REMEDY)
        case Reduce() if any(key.type.is_collated for _, key in plan.keys):
            raise Unsupported("a function of groups is not supported for keys with collations", remedy=_REMEDY)
        case _:
            return plan


def _window(plan: Window) -> Plan:
    """Partitions and peers by keys. The values of lag and its like are texts of a row, as they are."""

    def over(call: WindowCall) -> WindowCall:
        return call if call.aggregate is None else replace(call, aggregate=_call(call.aggregate))

    order = tuple(replace(term, expr=key_of(term.expr)) for term in plan.order)
    return replace(plan, keys=tuple(map(key_of, plan.keys)), order=order, calls=tuple((name, over(call)) for name, call in plan.calls))


def _collated(plan: Plan) -> bool:
    return any(field.type.is_collated for field in plan.schema)


def _grouped(plan: Aggregate) -> Plan:
    """Groups by the keys of collations; of the texts of a group those of one row are kept: the greatest."""
    texts = [key for _, key in plan.keys if key.type.is_collated]
    kept = stripped(texts[0]) if len(texts) == 1 else _row(list(map(stripped, texts)))
    greatest = AggregateCall("max", (kept,), kept.type, kept.nullable)
    calls = tuple((name, _call(call)) for name, call in plan.aggregates)
    grouped = Aggregate(plan.input, tuple((name, key_of(key)) for name, key in plan.keys), (*calls, ("kept", greatest)))
    row = reference(grouped.schema, len(grouped.schema) - 1)
    columns, position = [], 0
    for i, field in enumerate(plan.schema):
        value: Expr = reference(grouped.schema, i)
        if i < len(plan.keys) and field.type.is_collated:
            value = retyped(row if len(texts) == 1 else resolve("field", [row, Literal(f"c{position}", STRING)]), field.type)
            position += 1
        columns.append((field.name, value))
    return Project(grouped, tuple(columns))


def _row(values: Sequence[Expr]) -> Expr:
    """A STRUCT, which is equal to another also where both have NULL."""
    return resolve("named_struct", [part for i, value in enumerate(values) for part in (Literal(f"c{i}", STRING), value)])


def _set_operation(plan: SetOperation) -> Plan:
    if plan.kind not in ("except", "intersect"):
        word = plan.kind.replace("_", " ").upper()
        raise Unsupported(f"{word} is not supported for columns with collations", remedy=_REMEDY)
    left = _by_keys(Distinct(plan.left))
    pairs = [[key_of(reference(side.schema, i)) for i in range(len(side.schema))] for side in (left, plan.right)]
    return Join(left, plan.right, "anti" if plan.kind == "except" else "semi", ((_row(pairs[0]), _row(pairs[1])),))


def _call(call: AggregateCall) -> AggregateCall:
    """The aggregate, which compares keys."""
    if not any(argument.type.is_collated for argument in call.arguments):
        return call
    name, arguments = call.function, call.arguments
    if call.user is None and not call.directions:
        if name in _BY:
            return replace(call, function=_BY[name], arguments=(arguments[0], key_of(arguments[0])), distinct=False)
        if name in ("min_by", "max_by"):
            return replace(call, arguments=(arguments[0], key_of(arguments[1]), *arguments[2:]))
        if name in ("count", "approx_count_distinct"):
            return replace(call, arguments=tuple(map(key_of, arguments)))
        if name in ("any_value", "first", "last", "collect_list") and not call.distinct:
            return call
    raise Unsupported(f"{name.upper()} is not supported for a text with a collation", span=call.span, remedy=_REMEDY)
