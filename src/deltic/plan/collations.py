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
from deltic.expr.typing import case
from deltic.plan.aggregate_nodes import Aggregate, AggregateCall
from deltic.plan.columns import all_columns, named_columns, reference
from deltic.plan.nodes import Distinct, Join, Plan, Project, Recursion, Reduce, SetOperation, TopK, Window, WindowCall
from deltic.plan.walk import expressions, transform
from deltic.schema import BIGINT, STRING

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
            columns = named_columns(plan.schema)
            return _grouped(Aggregate(plan.input, columns, ()))
        case Aggregate():
            return _aggregate(plan)
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
        if call.aggregate is None:
            return call
        aggregate = _call(call.aggregate)
        if aggregate.type != call.aggregate.type:
            raise _refused(call.aggregate)
        return replace(call, aggregate=aggregate)

    order = tuple(replace(term, expr=key_of(term.expr)) for term in plan.order)
    return replace(plan, keys=tuple(map(key_of, plan.keys)), order=order, calls=tuple((name, over(call)) for name, call in plan.calls))


def _collated(plan: Plan) -> bool:
    return any(field.type.is_collated for field in plan.schema)


def _aggregate(plan: Aggregate) -> Plan:
    """Aggregates that return values of which only equal ones are counted, as MODE does, are computed apart, and joined."""
    apart = [i for i, (_, call) in enumerate(plan.aggregates) if _counts_equal(call)]
    if apart:
        return _joined(plan, apart)
    if any(key.type.is_collated for _, key in plan.keys):
        return _grouped(plan)
    changed = replace(plan, aggregates=tuple((name, _call(call)) for name, call in plan.aggregates))
    columns = tuple((f.name, retyped(reference(changed.schema, i), f.type)) for i, f in enumerate(plan.schema))
    return changed if changed.schema == plan.schema else Project(changed, columns)


def _counts_equal(call: AggregateCall) -> bool:
    if call.user is not None or not call.arguments or not call.arguments[0].type.is_collated:
        return False
    return call.function == "mode" or (call.distinct and call.function in ("collect_list", "listagg"))


def _joined(plan: Aggregate, apart: Sequence[int]) -> Plan:
    """The aggregate, its calls `apart` from relations of their own that have a row for each group."""
    rest = tuple(named for i, named in enumerate(plan.aggregates) if i not in apart)
    whole = _aggregate(replace(plan, aggregates=rest))
    keys = len(plan.keys)
    for i in apart:
        side = _of_distinct(plan, plan.aggregates[i][1])
        pair = [_row([key_of(reference(part.schema, k)) for k in range(keys)]) for part in (whole, side)] if keys else []
        joined = Join(whole, side, "inner", ((pair[0], pair[1]),) if pair else ())
        places = [*range(len(whole.schema)), len(joined.schema) - 1]
        whole = Project(joined, tuple((f"c{n}", reference(joined.schema, place)) for n, place in enumerate(places)))
    order = [*range(keys), *(keys + _place(i, apart, len(rest)) for i in range(len(plan.aggregates)))]
    return Project(whole, tuple((f.name, retyped(reference(whole.schema, k), f.type)) for k, f in zip(order, plan.schema, strict=True)))


def _place(i: int, apart: Sequence[int], rest: int) -> int:
    """Where call i stands: those that are not apart come first."""
    return rest + apart.index(i) if i in apart else i - sum(1 for other in apart if other < i)


def _of_distinct(plan: Aggregate, call: AggregateCall) -> Plan:
    """The keys of the groups, and the call's value over one text of those that are equal, which is of UTF8_BINARY.

    A row that the filter excludes counts as NULL, so that each group has a row.
    """
    value = call.arguments[0] if call.filter is None else case([(call.filter, call.arguments[0])], None, call.span)
    keys = (*((f"k{i}", key_of(key)) for i, (_, key) in enumerate(plan.keys)), ("compared", key_of(value)))
    kept = AggregateCall("max", (stripped(value),), value.type.plain, True)
    equal = Aggregate(plan.input, keys, (("kept", kept), ("copies", AggregateCall("count", (), BIGINT, False))))
    compared, text, copies = (reference(equal.schema, len(plan.keys) + i) for i in range(3))
    if call.function == "mode":
        greatest = bool(call.directions) and call.directions[0][0]
        order = _row([copies if greatest else resolve("~", [copies]), compared])
        present = resolve("is_not_null", [text])
        changed = AggregateCall("max_by" if greatest else "min_by", (text, order), text.type, True, filter=present, span=call.span)
    else:
        others = [*map(stripped, call.arguments[1 : call.written]), *(compared for _ in call.directions)]
        changed = replace(call, arguments=(text, *others), type=call.type.plain, distinct=False, filter=None)
    groups = tuple((f"k{i}", reference(equal.schema, i)) for i in range(len(plan.keys)))
    return Aggregate(equal, groups, (("value", changed),))


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
        columns.append((field.name, retyped(value, field.type)))
    return Project(grouped, tuple(columns))


def _row(values: Sequence[Expr]) -> Expr:
    """A STRUCT, which is equal to another also where both have NULL."""
    return resolve("named_struct", [part for i, value in enumerate(values) for part in (Literal(f"c{i}", STRING), value)])


def _set_operation(plan: SetOperation) -> Plan:
    left = _by_keys(Distinct(plan.left))
    if plan.kind in ("except_all", "intersect_all"):
        keyed = SetOperation(_keys(plan.left), _keys(plan.right), plan.kind)
        joined = Join(keyed, left, "inner", ((_row(_key_columns(keyed)), _row(_key_columns(left))),))
        width = len(plan.schema)
        return Project(joined, tuple((f.name, reference(joined.schema, width + i)) for i, f in enumerate(plan.schema)))
    return Join(
        left, plan.right, "anti" if plan.kind == "except" else "semi", ((_row(_key_columns(left)), _row(_key_columns(plan.right))),)
    )


def _keys(plan: Plan) -> Plan:
    return Project(plan, tuple((f.name, key) for f, key in zip(plan.schema, _key_columns(plan), strict=True)))


def _key_columns(plan: Plan) -> list[Expr]:
    return [*map(key_of, all_columns(plan.schema))]


def _call(call: AggregateCall) -> AggregateCall:
    """The aggregate, which compares keys."""
    if not any(argument.type.is_collated for argument in call.arguments):
        return call
    name, arguments = call.function, call.arguments
    if call.user is None and (not call.directions or call.is_listing):
        if name in _BY:
            return replace(call, function=_BY[name], arguments=(arguments[0], key_of(arguments[0])), distinct=False)
        if name in ("min_by", "max_by"):
            return replace(call, arguments=(arguments[0], key_of(arguments[1]), *arguments[2:]))
        if name in ("count", "approx_count_distinct"):
            return replace(call, arguments=tuple(map(key_of, arguments)))
        if name in ("any_value", "first", "last") and not call.distinct:
            return call
        if name == "collect_list" and not call.distinct:
            return replace(call, arguments=(*arguments[:1], *map(key_of, arguments[1:])))
        if name == "listagg" and not call.distinct:
            terms = call.written
            return replace(call, arguments=(*map(stripped, arguments[:terms]), *map(key_of, arguments[terms:])), type=call.type.plain)
    raise _refused(call)


def _refused(call: AggregateCall) -> Unsupported:
    message = f"{call.function.upper()} is not supported for a text with a collation"
    return Unsupported(message, span=call.span, remedy="collect_set(lower(x))" if call.function == "collect_set" else _REMEDY)
