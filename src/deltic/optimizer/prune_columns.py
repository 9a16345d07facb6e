"""Drops columns and aggregates that nothing reads, down to the tables.

DISTINCT, set operations and multisets need every column, and so do Python functions and operators over ticks. Top-k, and windows that
depend on the order of rows, need the columns that break ties: see `_in_order`. An aggregate needs its keys, and a recursion every column,
since its termination may depend on any. An unused expression is dropped even if it can fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import assert_never

from deltic.expr.nodes import Column, Expr
from deltic.optimizer.drop_distinct import unique_key
from deltic.plan.columns import choose_columns, columns_of_all, remap
from deltic.plan.node import once_per_node
from deltic.plan.nodes import (
    Aggregate,
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
)
from deltic.plan.streams import is_stream
from deltic.plan.walk import expressions, map_expressions, map_inputs
from deltic.schema import Schema

Pruned = tuple[Plan, tuple[int, ...]]
"""(a plan with fewer columns, the positions of its columns in the old plan, ascending)."""


def prune_columns(plan: Plan) -> Plan:
    """The same columns at the root, and below it only those that are read.

    >>> from deltic.plan.show import show
    >>> from deltic.expr.nodes import Column
    >>> from deltic.schema import BIGINT, Field, TableSchema
    >>> t, u = (Table(TableSchema(n, Schema(tuple(Field(c, BIGINT) for c in "abc")))) for n in "tu")
    >>> a, c = Column(0, BIGINT, True, "a"), Column(5, BIGINT, True, "c")
    >>> plan = Project(Join(t, u, "inner", ((a, a),)), (("c", c),))
    >>> print(show(plan))
    Project c#5
      Join inner on a#0 = a#0
        Table t (a, b, c)
        Table u (a, b, c)
    >>> print(show(prune_columns(plan)))
    Project c#2
      Join inner on a#0 = a#0
        Project a#0
          Table t (a, b, c)
        Project a#0, c#2
          Table u (a, b, c)
    """
    return _narrow(plan, tuple(range(len(plan.schema))))


@once_per_node
def _narrow(plan: Plan, columns: tuple[int, ...]) -> Plan:
    """The plan with exactly these columns (ascending)."""
    pruned, kept = _prune(plan, frozenset(columns))
    if kept == columns:
        return pruned
    return choose_columns(pruned, map(kept.index, columns))


@once_per_node
def _prune(plan: Plan, needed: frozenset[int]) -> Pruned:
    """The plan with at least the columns `needed`, and more if dropping them would require a node; the same object if no column goes."""
    pruned, kept = _pruned(plan, needed)
    return (plan if pruned == plan else pruned), kept


def _pruned(plan: Plan, needed: frozenset[int]) -> Pruned:
    read = tuple(sorted(needed))
    every = tuple(range(len(plan.schema)))
    match plan:
        case Table() | Reference():
            return plan, every
        case Recursion():
            return map_inputs(plan, prune_columns), every
        case Values():
            rows = tuple(tuple(row[i] for i in read) for row in plan.rows)
            return Values(rows, Schema(tuple(plan.schema[i] for i in read))), read
        case Project():
            return _over(replace(plan, columns=tuple(plan.columns[i] for i in read))), read
        case Filter():
            below, kept = _prune(plan.input, needed | columns_of_all(expressions(plan)))
            return Filter(below, _mover(kept, below.schema)(plan.predicate)), kept
        case Join():
            return _prune_join(plan, needed)
        case MultiwayJoin():
            return _prune_multiway_join(plan, needed)
        case DependentJoin():
            raise AssertionError("subqueries are unnested while a query is bound")
        case FlatMap():
            return _prune_flat_map(plan, needed)
        case Expand():
            return _prune_expand(plan, needed)
        case TemporalFilter() | ByWatermark():
            below, kept = _prune(plan.input, needed | columns_of_all(expressions(plan)))
            return map_expressions(replace(plan, input=below), _mover(kept, below.schema)), kept
        case Aggregate():
            return _prune_aggregate(plan, needed)
        case Window():
            return _prune_window(plan, needed)
        case TopK():
            return _over_rows(plan, _in_order(plan, needed | columns_of_all(expressions(plan))))
        case Distinct() | Multiset() | Reduce() | OverTicks() | Weighted() | Inspect() | Generate():
            return replace(plan, input=prune_columns(plan.input)), every
        case SetOperation():
            return replace(plan, left=prune_columns(plan.left), right=prune_columns(plan.right)), every
        case Union():
            return Union(tuple(_narrow(part, read) for part in plan.inputs)), read
        case _:
            assert_never(plan)


def _over(plan: Project | Aggregate) -> Plan:
    """The node over an input with only the columns that it reads."""
    below, kept = _prune(plan.input, columns_of_all(expressions(plan)))
    return map_inputs(map_expressions(plan, _mover(kept, below.schema)), lambda _: below)


def _prune_flat_map(plan: FlatMap, needed: frozenset[int]) -> Pruned:
    """The elements stay even if they are not read, since they determine the number of rows."""
    width = len(plan.input.schema)
    read = frozenset(i for i in needed if i < width) | columns_of_all(plan.arguments)
    below, kept = _prune(plan.input, read)
    pruned = map_expressions(replace(plan, input=below), _mover(kept, below.schema))
    return pruned, (*kept, *range(width, len(plan.schema)))


def _prune_expand(plan: Expand, needed: frozenset[int]) -> Pruned:
    """The keys stay: an Aggregate above reads all of them."""
    width = len(plan.input.schema)
    read = frozenset(i for i in needed if i < width) | columns_of_all(expressions(plan))
    below, kept = _prune(plan.input, read)
    pruned = map_expressions(replace(plan, input=below), _mover(kept, below.schema))
    return pruned, (*kept, *range(width, len(plan.schema)))


def _prune_aggregate(plan: Aggregate, needed: frozenset[int]) -> Pruned:
    """The keys stay, since they define the groups. A global aggregate of a relation, without used columns, is a single row."""
    keys = len(plan.keys)
    calls = [i for i in range(len(plan.aggregates)) if keys + i in needed]
    if not keys and not calls and not is_stream(plan):
        return Values(((),), Schema(())), ()
    kept = (*range(keys), *(keys + i for i in calls))
    return _over(replace(plan, aggregates=tuple(plan.aggregates[i] for i in calls))), kept


def _prune_window(plan: Window, needed: frozenset[int]) -> Pruned:
    """Calls that nothing reads go, and columns that neither a value nor the order of peers depends on."""
    width = len(plan.input.schema)
    calls = [i for i in range(len(plan.calls)) if width + i in needed]
    plan = replace(plan, calls=tuple(plan.calls[i] for i in calls))
    if not calls:
        return _prune(plan.input, needed)
    read = (needed & frozenset(range(width))) | columns_of_all(expressions(plan))
    if any(call.is_by_rows for _, call in plan.calls):
        read = _in_order(plan, read)
    pruned, kept = _over_rows(plan, read)
    return pruned, (*kept, *(width + i for i in calls))


def _over_rows(plan: TopK | Window, read: frozenset[int]) -> Pruned:
    """The node, which stores its rows, over an input with exactly these columns."""
    kept = tuple(sorted(read))
    below = _narrow(plan.input, kept)
    return map_expressions(replace(plan, input=below), _mover(kept, below.schema)), kept


def _in_order(plan: TopK | Window, read: frozenset[int]) -> frozenset[int]:
    """With these columns, those by which rows are in the same order as by all columns.

    Ties are broken by the whole row, column by column: rows that are equal as far as the last column that is read are interchangeable.
    Columns that are keys or terms break no tie; there are none where these contain a unique key.
    """
    ordered = (*plan.keys, *(term.expr for term in plan.order))
    tied = {expr.index for expr in ordered if isinstance(expr, Column) and expr.type.has_one_form}
    unique = unique_key(plan.input)
    if unique is not None and unique <= tied:
        return read
    return read | frozenset(range(max(read - tied, default=0))) - tied


def _prune_join(plan: Join, needed: frozenset[int]) -> Pruned:
    width = len(plan.left.schema)
    values = () if plan.value is None else (plan.value,)
    over_both = columns_of_all([plan.residual]) if plan.residual is not None else frozenset[int]()
    whole = needed | over_both
    left_read = columns_of_all(left for left, _ in (*plan.keys, *values)) | {i for i in whole if i < width}
    right_read = columns_of_all(right for _, right in (*plan.keys, *values)) | {i - width for i in whole if i >= width}
    left_kept, right_kept = tuple(sorted(left_read)), tuple(sorted(right_read))
    left, right = _narrow(plan.left, left_kept), _narrow(plan.right, right_kept)
    kept = (*left_kept, *(width + i for i in right_kept))
    of_left, of_right = _mover(left_kept, left.schema), _mover(right_kept, right.schema)
    pairs = [(of_left(one), of_right(other)) for one, other in (*plan.keys, *values)]
    both = Schema(left.schema.fields + right.schema.fields)
    pruned = replace(
        plan,
        left=left,
        right=right,
        keys=tuple(pairs[: len(plan.keys)]),
        residual=None if plan.residual is None else _mover(kept, both)(plan.residual),
        value=pairs[-1] if values else None,
    )
    return pruned, left_kept if plan.kind in ("semi", "anti", "not_in") else kept


def _prune_multiway_join(plan: MultiwayJoin, needed: frozenset[int]) -> Pruned:
    """The output has only the needed columns; the inputs have these, the shared ones, and those of the condition."""
    output = tuple(plan.output[i] for i in sorted(needed))
    shared = {i for i, variable in enumerate(plan.flat) if variable in plan.shared}
    read = shared | set(output) | (columns_of_all([plan.condition]) if plan.condition is not None else frozenset())
    starts = plan.starts
    kept = [[i for i in range(len(columns)) if start + i in read] for start, columns in zip(starts, plan.variables, strict=True)]
    places = {
        start + i: place
        for place, (start, i) in enumerate((start, i) for start, columns in zip(starts, kept, strict=True) for i in columns)
    }
    inputs = tuple(_narrow(part, tuple(columns)) for part, columns in zip(plan.inputs, kept, strict=True))
    variables = [[whole[i] for i in columns] for whole, columns in zip(plan.variables, kept, strict=True)]
    numbers = {old: new for new, old in enumerate(dict.fromkeys(variable for columns in variables for variable in columns))}
    schema = Schema(tuple(column for part in inputs for column in part.schema))
    pruned = MultiwayJoin(
        inputs,
        tuple(tuple(numbers[variable] for variable in columns) for columns in variables),
        tuple(places[i] for i in output),
        None if plan.condition is None else remap(plan.condition, places, schema),
    )
    return pruned, tuple(sorted(needed))


def _mover(kept: Sequence[int], schema: Schema) -> Callable[[Expr], Expr]:
    """Rewrites expressions over all columns as such over those that are kept, the columns of `schema`."""
    positions = {old: new for new, old in enumerate(kept)}
    return lambda expr: remap(expr, positions, schema)
