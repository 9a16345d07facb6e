"""Plans as text: one line for each node, inputs indented below it. Used by `explain`, by goldens and by the examples of rules.

Columns are written name#position, so that the text identifies a plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, assert_never

from deltic.expr.nodes import (
    CHAIN,
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
    Value,
)
from deltic.plan.accumulators import AccumulateElements
from deltic.plan.nodes import (
    ITERATION_LIMIT,
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
    TickRecursion,
    TopK,
    Union,
    Values,
    Weighted,
    Window,
    inputs,
    references,
)
from deltic.plan.sort_terms import Order
from deltic.plan.window_nodes import Edge, WindowCall, WindowFrame
from deltic.schema import TIMESTAMP, StreamSchema, Type

Occurrence = tuple[Plan, tuple[Recursion, ...]]
"""(a node, the recursions around it, if it reads one of their relations): equal occurrences are one relation."""

SHOWN_CONSTANTS: Final = 20

INFIX: Final = {
    "equal": "=",
    "not_equal": "<>",
    "same": "<=>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "and": "and",
    "or": "or",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "remainder": "%",
}


def show(plan: Plan) -> str:
    """The whole plan, a line for each node, without a newline at the end. O(nodes).

    A node with inputs that is read several times is shown once, labelled [1], [2], …; after that it is `Reused [1]`.

    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> orders = Table(TableSchema("orders", Schema((Field("region", BIGINT), Field("amount", BIGINT)))))
    >>> region, amount = (Column(i, BIGINT, True, name) for i, name in enumerate(orders.schema.names))
    >>> print(show(Aggregate(orders, (("region", region),), (("total", AggregateCall("sum", (amount,), BIGINT, True)),))))
    Aggregate by region#0: total := sum(amount#1)
      Table orders (region, amount)
    >>> print(show(Union((Distinct(orders), Distinct(orders)))))
    Union
      [1] Distinct
        Table orders (region, amount)
      Reused [1]
    """
    return "\n".join("  " * depth + line for depth, line in _lines(plan, _labels(plan)))


def _labels(plan: Plan) -> dict[Occurrence, int]:
    """The occurrences with inputs that are read several times, numbered in the order in which they are shown."""
    readers: Counter[Occurrence] = Counter()
    waiting: list[tuple[Plan, tuple[Recursion, ...]]] = [(plan, ())]
    while waiting:
        node, around = waiting.pop()
        occurrence = _occurrence(node, around)
        readers[occurrence] += 1
        if readers[occurrence] == 1:
            inner = (*around, node) if isinstance(node, Recursion) else around
            waiting += [(below, inner) for below in reversed(inputs(node))]
    shared = [occurrence for occurrence, count in readers.items() if count > 1 and inputs(occurrence[0])]
    return {occurrence: number for number, occurrence in enumerate(shared, 1)}


def _occurrence(node: Plan, around: tuple[Recursion, ...]) -> Occurrence:
    return node, around if references(node) else ()


def _lines(plan: Plan, labels: dict[Occurrence, int]) -> Iterator[tuple[int, str]]:
    """(indentation, text) of each line."""
    shown: set[int] = set()
    waiting: list[tuple[int, Plan | str, tuple[Recursion, ...]]] = [(0, plan, ())]
    while waiting:
        depth, node, around = waiting.pop()
        if isinstance(node, str):
            yield depth, node
            continue
        label = labels.get(_occurrence(node, around))
        if label in shown:
            yield depth, f"Reused [{label}]"
            continue
        if label is not None:
            shown.add(label)
        yield depth, show_node(node) if label is None else f"[{label}] {show_node(node)}"
        if isinstance(node, Recursion):
            for name, body in reversed(node.relations):
                waiting += [(depth + 2, body, (*around, node)), (depth + 1, f"{name} :=", ())]
        else:
            waiting += [(depth + 1, below, around) for below in reversed(inputs(node))]


def show_node(plan: Plan) -> str:
    """The node without its inputs, in one line."""
    match plan:
        case Table():
            kind = "Stream" if isinstance(plan.table, StreamSchema) else "Table"
            return f"{kind} {plan.table.name} ({', '.join(plan.schema.names)})"
        case Values():
            return f"Values ({', '.join(plan.schema.names)}): {len(plan.rows)} rows"
        case Project():
            return f"Project {_columns(plan.columns)}"
        case Filter():
            return f"Filter {show_expr(plan.predicate)}"
        case Join():
            return _join(plan)
        case MultiwayJoin():
            return _multiway_join(plan)
        case DependentJoin():
            given = ", ".join(show_expr(expr) for _, expr in plan.outer)
            condition = "" if plan.condition is None else f" if {show_expr(plan.condition)}"
            return f"DependentJoin {plan.kind}{' for ' if given else ''}{given}{condition}"
        case Aggregate():
            keys = f" by {_columns(plan.keys)}" if plan.keys else ""
            calls = ", ".join(f"{name} := {show_aggregate(call)}" for name, call in plan.aggregates)
            return f"{type(plan).__name__}{keys}{': ' if calls else ''}{calls}"
        case Distinct():
            return "Distinct"
        case Union():
            return "Union"
        case SetOperation():
            return plan.kind.replace("_", " ").capitalize()
        case TopK():
            groups = f" of each {', '.join(map(show_expr, plan.keys))}" if plan.keys else ""
            after = f" after {plan.offset}" if plan.offset else ""
            limit = "all" if plan.limit is None else plan.limit
            return f"{type(plan).__name__} {limit}{after}{groups} by {show_terms(plan.order) or 'the row'}"
        case Window():
            groups = f" of each {', '.join(map(show_expr, plan.keys))}" if plan.keys else ""
            by = f" by {show_terms(plan.order)}" if plan.order else ""
            return f"Window{groups}{by}: {', '.join(f'{name} := {show_window_call(call)}' for name, call in plan.calls)}"
        case AccumulateElements():
            by, names = f" by {_columns(plan.keys)}" if plan.keys else "", [*plan.returned.names, *(part.name for part in plan.parts)]
            of = "" if plan.part is None else f", the elements of {plan.parts[plan.part].name}"
            return f"Accumulate{by}: {', '.join(names)} := {plan.function.name}{of}"
        case Reduce():
            by = f" by {_columns(plan.keys)}" if plan.keys else ""
            return f"{type(plan).__name__}{by}: {', '.join(plan.returned.names)} := {plan.function.name}"
        case OverTicks():
            size = f" by {plan.size}" if plan.size else ""
            return f"{plan.function.capitalize()}{size}{f' as {plan.name}' if plan.name else ''}"
        case Weighted():
            return f"Weighted {plan.name}"
        case Inspect():
            return f"Inspect by {plan.function.name}"
        case Expand():
            return f"Expand {_columns(plan.keys)} by {len(plan.sets)} grouping sets as {plan.name}"
        case FlatMap():
            call = f"{'outer ' if plan.outer else ''}{plan.function}({', '.join(map(show_expr, plan.arguments))})"
            return f"FlatMap {', '.join(plan.names)}{' := ' if plan.names else ''}{call}"
        case Generate():
            weights = " with weights" if plan.weighted else ""
            return f"Generate {', '.join(plan.schema.names)}{weights} := {plan.function.name}"
        case Multiset():
            return "Multiset"
        case TemporalFilter():
            conditions = [f"{_bound(bound)} <= now" for bound in plan.lower] + [f"now < {_bound(bound)}" for bound in plan.upper]
            return f"TemporalFilter {' and '.join(conditions)}"
        case ByWatermark():
            if plan.phase == "joinable":
                return f"Joinable until the watermark of {plan.table.name} reaches {_bound(plan.end)}"
            return f"Windows {plan.phase} at the watermark of {plan.table.name}: {_bound(plan.end)}"
        case Reference():
            return f"Reference {plan.name} ({', '.join(plan.schema.names)})"
        case TickRecursion():
            return f"Feedback {plan.result}"
        case Recursion():
            return f"Recursion {plan.result}" + (f" at most {plan.limit} iterations" if plan.limit != ITERATION_LIMIT else "")
        case _:
            assert_never(plan)


def show_terms(order: tuple[Order, ...]) -> str:
    return ", ".join(_order(show_expr(t.expr), t.descending, t.nulls_first) for t in order)


def show_window_call(call: WindowCall) -> str:
    """The call with its frame; a frame that is the whole partition is not shown."""
    if call.aggregate is not None:
        text = show_aggregate(call.aggregate)
    else:
        first, *default = [*map(show_expr, call.arguments), ""]
        numbers = [str(call.number)] if call.function in ("ntile", "lag", "lead", "nth_value") else []
        text = f"{call.function}({', '.join(part for part in (first, *numbers, *default) if part)})"
    return f"{text}{' ignore nulls' if call.ignore_nulls else ''}{show_frame(call.frame)}"


def show_frame(frame: WindowFrame) -> str:
    """Its edges; nothing if it is the whole partition."""
    return "" if frame.is_whole else f" from {_edge(frame.start, 'start')} to {_edge(frame.end, 'end')}"


def _edge(edge: Edge, unbounded: str) -> str:
    match edge.kind:
        case "unbounded":
            return unbounded
        case "peers":
            return "peers"
        case "rows":
            return f"row {edge.rows:+}" if edge.rows else "row"
        case "range":
            assert edge.limit is not None
            return show_expr(edge.limit)
        case _:
            assert_never(edge.kind)


def _columns(columns: tuple[tuple[str, Expr], ...]) -> str:
    """`name := expression`, or the expression alone if it is a column of that name."""
    return ", ".join(
        show_expr(expr) if isinstance(expr, Column) and expr.name == name else f"{name} := {show_expr(expr)}" for name, expr in columns
    )


def _join(plan: Join) -> str:
    parts = [f"{show_expr(left)} = {show_expr(right)}" for left, right in plan.keys]
    text = f"Join {plan.kind.replace('_', ' ')}{' on ' if parts else ''}{', '.join(parts)}"
    if plan.hint is not None:
        text += f" hinted {plan.hint.kind}"
    if plan.value is not None:
        text += f" value {show_expr(plan.value[0])}, {show_expr(plan.value[1])}"
    return text if plan.residual is None else f"{text} where {show_expr(plan.residual)}"


def _multiway_join(plan: MultiwayJoin) -> str:
    """The columns of each shared variable, the condition, and the columns of the result."""
    columns = [show_expr(Column(i, field.type, field.nullable, field.name)) for i, field in enumerate(plan.columns)]
    equal = [" = ".join(column for column, own in zip(columns, plan.flat, strict=True) if own == shared) for shared in plan.shared]
    where = "" if plan.condition is None else f" where {show_expr(plan.condition)}"
    return f"MultiwayJoin on {', '.join(equal)}{where}: {', '.join(columns[i] for i in plan.output)}".rstrip()


def _bound(bound: Bound) -> str:
    unit = " µs" if bound.moment.type == TIMESTAMP else ""
    return show_expr(bound.moment) + (f" {'+-'[bound.offset < 0]} {abs(bound.offset):,}{unit}" if bound.offset else "")


def _order(text: str, descending: bool, nulls_first: bool) -> str:
    """The term with its direction. Spark's defaults, NULLs first for ASC and last for DESC, are not shown."""
    direction = " desc" if descending else ""
    return text + direction + ("" if nulls_first != descending else " nulls first" if nulls_first else " nulls last")


def show_aggregate(call: AggregateCall) -> str:
    """The call in SQL: `count(*)`, `sum(distinct a#0) filter (where …)`."""
    shown = [show_expr(argument) for argument in call.arguments]
    first = call.written if call.definition.within == "rows" else 0
    order = [_order(text, *each) for text, each in zip(shown[first:], call.directions, strict=False)]
    listed = shown[len(order) :] if order and not first else shown[: call.written]
    text = f"{call.function}({'distinct ' if call.distinct else ''}{', '.join(listed) or ('' if order else '*')})"
    text += f" within group (order by {', '.join(order)})" if order else ""
    return text if call.filter is None else f"{text} filter (where {show_expr(call.filter)})"


def show_expr(expr: Expr) -> str:
    """One line; operators infix in parentheses, functions as calls, columns as name#position."""
    match expr:
        case Column():
            return f"{expr.name}#{expr.index}"
        case Literal():
            return _literal(expr.value, expr.type)
        case Constants():
            return _constants(expr)
        case OuterColumn():
            return f"outer {expr.name}"
        case LambdaVariable():
            return f"{expr.name}@{expr.level}"
        case Lambda():
            return f"({', '.join(map(show_expr, expr.parameters))}) -> {show_expr(expr.body)}"
        case Call(arguments=(Literal(value=str(operators)), first, *rest)) if expr.function == CHAIN:
            steps = (f"{operator} {show_expr(operand)}" for operator, operand in zip(operators, rest, strict=True))
            return f"({' '.join((show_expr(first), *steps))})"
        case Call():
            parts = [show_expr(part) for part in expr.arguments]
            if expr.function in INFIX and len(parts) > 1:
                return f"({f' {INFIX[expr.function]} '.join(parts)})"
            return f"{expr.function}({', '.join(parts)})"
        case PythonFunction():
            part = f"[{expr.part}]" if expr.function.width else ""
            return f"{expr.function.name}({', '.join(show_expr(argument) for argument in expr.arguments)}){part}"
        case Cast():
            return f"{'try_cast' if expr.lenient else 'cast'}({show_expr(expr.argument)} as {expr.type.sql})"
        case Case():
            branches = " ".join(f"when {show_expr(condition)} then {show_expr(value)}" for condition, value in expr.branches)
            return f"case {branches} else {show_expr(expr.otherwise)} end"
        case _:
            assert_never(expr)


def _literal(value: Value, type: Type) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    return str(value) if type.is_numeric else f"{type.sql} '{value}'"


def _constants(expr: Constants) -> str:
    shown = [_literal(value, expr.type) for value in expr.values[:SHOWN_CONSTANTS]]
    more = len(expr.values) - len(shown)
    return ", ".join([*shown, f"… {more:,} more"] if more else shown)
