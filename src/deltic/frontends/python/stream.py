"""Streams: relations, with the operators as methods under their standard names. Methods only build plan nodes.

A function takes rows, whose columns are attributes; or, with `on_batches`, Arrow record batches, and returns arrays. A function that only
picks columns needs no schema. A str is SQL over the stream's columns. Functions must be pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from inspect import isclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, get_args

from deltic.errors import CircuitError
from deltic.expr.nodes import Column, Expr, PythonFunction
from deltic.frontends.python.accumulators import Calls, accumulation
from deltic.frontends.python.functions import checked_function, unknown_column, user_function
from deltic.frontends.python.generated import generated
from deltic.frontends.python.linear import WEIGHT, bounded, composed, composed_batches, updated, updates, with_update
from deltic.frontends.python.projection import Argument, computed_columns, listed, named, projected
from deltic.frontends.python.query import CONDITION, INPUT, ORDER, queried, selected, text_of
from deltic.frontends.python.scalars import UDF
from deltic.frontends.python.schemas import Columns, schema_of
from deltic.frontends.python.ticks import OverTime, batched
from deltic.frontends.python.trace import distinct_change, earlier, stamped, untimed
from deltic.frontends.sql import Form
from deltic.frontends.statements import PythonAggregate
from deltic.plan.accumulators import AccumulateElements
from deltic.plan.columns import all_columns, choose_columns, named_columns, reference
from deltic.plan.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    Filter,
    FlatMap,
    Hint,
    HintKind,
    Join,
    JoinKind,
    OverTicks,
    Plan,
    Project,
    Reduce,
    TopK,
    Union,
    Weighted,
)
from deltic.purity import name_of
from deltic.schema import BOOLEAN, TIMESTAMP, Schema
from deltic.types import backquoted


class NoKey(CircuitError, AttributeError):
    """A method of IndexedStreams that is called on a Stream, which has no such attribute."""


ROW, BATCH = "row", "batch"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stream(OverTime):
    """A relation of rows. plan: its definition, for the oracle and the engine."""

    plan: Plan

    if not TYPE_CHECKING:  # type checkers know the attributes

        def __getattr__(self, name: str) -> NoReturn:
            """Only called for attributes that a Stream does not have."""
            if name.startswith("_") or not hasattr(IndexedStream, name):
                raise AttributeError(f"a Stream has no attribute {name!r}", name=name, obj=self)
            remedy = "index each stream by the columns of the key first, such as t.index_with('id')"
            raise NoKey(f"a Stream has no key, which {name} requires", expected="an IndexedStream", remedy=remedy)

    @property
    def schema(self) -> Schema:
        """Its columns."""
        return self.plan.schema

    def sql(self, query: str) -> Stream:
        """A SQL query over the stream, which the query calls `input`."""
        return Stream(queried(self.plan, query))

    def map(self, function: Callable[..., Any] | Mapping[str, str], *, schema: Columns | None = None, on_batches: bool = False) -> Stream:
        """One row for each row: the function's result, or SQL expressions by column name."""
        if isinstance(function, Mapping):
            return self._mapped(function)
        checked_function(function, BATCH if on_batches else ROW)
        return Stream(projected(self.plan, function, (self._whole(),), schema, on_batches))

    def filter(self, predicate: Callable[..., Any] | str, *, on_batches: bool = False) -> Stream:
        """The rows for which the predicate is true."""
        if isinstance(predicate, str):
            return Stream(queried(self.plan, f"SELECT * FROM {INPUT} WHERE {predicate}", CONDITION))
        function = user_function(checked_function(predicate, BATCH if on_batches else ROW), (self.schema.names,), 0, on_batches=on_batches)
        return Stream(Filter(self.plan, PythonFunction(function, all_columns(self.schema), 0, BOOLEAN, False)))

    def flat_map(self, function: Callable[..., Any], *, schema: Columns, on_batches: bool = False) -> Stream:
        """All rows that the function returns: called once per row, it returns an iterable of tuples.

        A row of one column may be a bare value. On batches the function returns a record batch of the schema's columns and `_row`
        (integers), the position in its argument of the row from which each row was computed.
        """
        return Stream(generated(self.plan, function, schema_of(schema), on_batches=on_batches))

    def explode(self, function: Callable[..., Any], *, schema: Columns, on_batches: bool = False) -> Stream:
        """As flat_map, of tuples that end with a weight, which is multiplied with the row's weight and may be negative.

        On batches the weight is a column `_weight` (int64).
        """
        result = Schema((*schema_of(schema), WEIGHT))
        return Stream(generated(self.plan, function, result, weighted=True, on_batches=on_batches))

    def index_with(self, *key: str | Callable[..., Any], schema: Columns | None = None) -> IndexedStream:
        """The rows under a key: some of their columns, or the result of a function of a row."""
        if len(key) == 1 and callable(key[0]):
            return self._indexed_by(key[0], schema)
        if schema is not None:
            raise CircuitError("a key of columns with a schema", remedy="schema= is for a key computed by a function")
        return IndexedStream(self.plan, tuple(self._position(name) for name in key), tuple(range(len(self.schema))))

    def plus(self, *others: Stream) -> Stream:
        """The union of all rows; weights of equal rows are added."""
        plans = [self.plan, *(_like(self, other).plan for other in others)]
        return Stream(Union(tuple(plans)))

    def minus(self, other: Stream) -> Stream:
        """The difference of weights, which may be negative: `distinct()` keeps rows of positive weight; an output must not have others."""
        return self.plus(_like(self, other).negate())

    def distinct(self) -> Stream:
        """Each row once."""
        return Stream(Distinct(self.plan))

    def top_k(self, limit: int, order: str) -> Stream:
        """The first rows by `order`, a SQL ORDER BY list."""
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
            raise CircuitError(f"invalid limit {limit!r}", expected="an int, 0 or more")
        return Stream(queried(self.plan, f"SELECT * FROM {INPUT} ORDER BY {order}\nLIMIT {limit}", ORDER))

    def aggregate(self, **aggregates: str) -> Stream:
        """One row of SQL aggregates: `aggregate(n="count(*)", most="max(amount)")`."""
        return IndexedStream(self.plan, (), tuple(range(len(self.schema)))).by_sql(aggregates)

    def consolidate(self) -> Stream:
        """The stream itself: equal rows of it are one, their weights added, wherever they are kept."""
        return self

    def weighted(self, name: str = "weight") -> Stream:
        """Each row once, followed by a column with its weight; this makes rows of negative weight valid in an output."""
        if self.schema.find(name):
            raise CircuitError(f"the column {name} already exists", remedy='weighted("another name")')
        return Stream(Weighted(self.plan, name))

    def join_function(self, logic: Callable[..., Any], *, schema: Columns, on_batches: bool = False) -> Stream:
        """The most general linear operator: logic(row), called once per row, returns updates (row, time, weight).

        Each row is present from its time on, with the weight of the input row times that of the update. A time is a datetime with a zone,
        an integer (microseconds since 1970-01-01 UTC), or None: always. The session requires a clock once a time is not None. On batches
        the logic returns a record batch as in flat_map, with the columns `_time` (TIMESTAMP or int64) and `_weight` (int64).
        """
        result = with_update(schema_of(schema))
        function = logic if on_batches else updates(checked_function(logic, ROW))
        return Stream(updated(generated(self.plan, function, result, weighted=True, on_batches=on_batches)))

    def followed_by(self, *logics: Callable[..., Any], schema: Columns, on_batches: bool = False) -> Stream:
        """The composition of join_functions in one pass; each logic but the first takes the rows of the one before.

        On batches these are the columns of its record batch except `_row`, `_time` and `_weight`.
        """
        if not logics:
            raise CircuitError("followed_by without a logic", expected="one logic or more")
        functions = tuple(checked_function(logic, BATCH if on_batches else ROW) for logic in logics)
        return self.join_function(composed_batches(functions) if on_batches else composed(functions), schema=schema, on_batches=on_batches)

    def temporal_filter(self, *, lower: str | Callable[..., Any] | None = None, upper: str | Callable[..., Any] | None = None) -> Stream:
        """The rows while lower ≤ now < upper: SQL expressions, or functions of the row that return a datetime with a zone.

        A bound of NULL is never satisfied. The session requires a clock.
        """
        bounds = {side: moment for side, moment in (("lower", lower), ("upper", upper)) if moment is not None}
        if not bounds:
            raise CircuitError("a temporal filter without a bound", expected="lower= or upper=")
        plan, positions = self.plan, dict[str, int]()
        for side, moment in bounds.items():
            positions[side] = len(plan.schema)
            columns = named_columns(plan.schema)
            plan = Project(plan, (*columns, (f"_{side}", self._moment(moment))))
        return Stream(bounded(plan, len(self.schema), positions))

    def _moment(self, moment: str | Callable[..., Any]) -> Expr:
        if not isinstance(moment, str):
            function = user_function(checked_function(moment, ROW), (self.schema.names,), 0)
            return PythonFunction(function, all_columns(self.schema), 0, TIMESTAMP, True)
        form = Form("one expression of the row", frozenset(("source",)), 1)
        bound = queried(self.plan, f"SELECT CAST({moment}\nAS TIMESTAMP) AS moment FROM {INPUT}", form)
        if not isinstance(bound, Project) or bound.input != self.plan:
            raise CircuitError(f"the bound {moment} is not an expression of the row", remedy="compute it first, with map")
        return bound.columns[0][1]

    def distinct_incremental(self, trace: Stream) -> Stream:
        """The change of distinct: H(old + w) - H(old) for each row, where w is its weight in this stream and old that in the trace.

        H(x) is 1 if x > 0, else 0. For a delta and the delayed integral of the deltas, this is the delta of distinct.
        """
        return Stream(distinct_change(self.plan, _like(self, trace).plan))

    def distinct_trace(self, trace: Trace) -> Stream:
        """distinct_incremental against the trace's earlier times, whether or not the trace includes the current tick."""
        return Stream(distinct_change(self.plan, _like(self, Stream(earlier(expected(trace, Trace).plan))).plan))

    def trace_append(self, trace: Trace | None = None) -> Trace:
        """The trace with this tick's rows added at its time; without an argument, the trace of all rows since tick 0. A row is its key."""
        return IndexedStream(self.plan, tuple(range(len(self.schema))), ()).trace_append(trace)

    def untimed_trace_append(self, trace: Stream | None = None) -> Stream:
        """As trace_append, times left out: weights of equal rows add up."""
        return self.integrate() if trace is None else trace.plus(self)

    def _over(self, plan: Plan) -> Stream:
        return Stream(plan)

    def _mapped(self, columns: Mapping[str, str]) -> Stream:
        mapped = plan = selected(self.plan, [f"{text_of(expr)}\nAS {backquoted(name)}" for name, expr in columns.items()])
        while plan != self.plan and isinstance(plan, Project | FlatMap):
            plan = plan.input
        if plan != self.plan:
            raise CircuitError(
                f"map takes expressions of one row, and one of {', '.join(columns.values())} is an aggregate or a table function",
                remedy='aggregate(name="sum(column)")',
            )
        return Stream(mapped)

    def _whole(self) -> Argument:
        return Argument(self.schema.names, tuple(range(len(self.schema))))

    def _position(self, name: str | Callable[..., Any]) -> int:
        if not isinstance(name, str):
            raise CircuitError(f"invalid key column {name!r}", expected="names of columns, or one function, which may return a tuple")
        positions = self.schema.find(name)
        if len(positions) != 1:
            unknown_column(name, self.schema.names)
        return positions[0]

    def _indexed_by(self, function: Callable[..., Any], schema: Columns | None) -> IndexedStream:
        keys = computed_columns(self.plan, checked_function(function, ROW), (self._whole(),), schema, False)
        if all(isinstance(expr, Column) for _, expr in keys):
            return IndexedStream(self.plan, tuple(expr.index for _, expr in keys if isinstance(expr, Column)), self._whole().positions)
        if shared := [name for name, _ in keys if self.schema.find(name)]:
            raise CircuitError(f"the key and the row both have a column {shared[0]}", remedy="rename the key's column in schema=")
        rows = named_columns(self.schema)
        wide = Project(self.plan, (*rows, *keys))
        width = len(self.schema)
        return IndexedStream(wide, tuple(range(width, width + len(keys))), tuple(range(width)))


@dataclass(frozen=True, slots=True)
class IndexedStream(OverTime):
    """Rows under keys. keys, values: the positions in the plan's rows of the key's columns and of the row's columns."""

    plan: Plan
    keys: tuple[int, ...]
    values: tuple[int, ...]

    def rows(self) -> Stream:
        """The rows without their key."""
        return Stream(self._projection())

    def join(
        self,
        other: IndexedStream,
        function: Callable[..., Any] | None = None,
        *,
        schema: Columns | None = None,
        on_batches: bool = False,
        hint: HintKind | None = None,
    ) -> Stream:
        """function(key, row, other row) for every two rows with equal keys; without a function, the columns of both.

        The key is a value if it has one column, else a row. A NULL in a key matches nothing. hint: "multiway", to form one multiway join
        with adjacent joins even if they are acyclic; "binary", to stay a binary join.
        """
        joined = self._joined(other, "inner")
        if hint not in (None, *get_args(HintKind)):
            raise CircuitError(f"unknown hint {hint!r}", expected=" or ".join(map(repr, get_args(HintKind))))
        if hint is not None:
            joined = replace(joined, hint=Hint(hint))
        left, right = self.plan.schema, other.plan.schema
        other_values = tuple(len(left) + i for i in other.values)
        if function is None:
            columns = [*self.values, *other_values]
            return Stream(Project(joined, named([reference(joined.schema, i) for i in columns])))
        key = Argument(tuple(left[i].name for i in self.keys) if len(self.keys) != 1 else None, self.keys)
        row = Argument(tuple(left[i].name for i in self.values), self.values)
        match = Argument(tuple(right[i].name for i in other.values), other_values)
        checked_function(function, *(("keys", "rows", "other rows") if on_batches else ("key", "row", "other row")))
        return Stream(projected(joined, function, (key, row, match), schema, on_batches))

    def join_stream(
        self, other: IndexedStream, function: Callable[..., Any] | None = None, *, schema: Columns | None = None, on_batches: bool = False
    ) -> Stream:
        """Joins this tick's rows of both: a[t] ⋈ b[t]. For contents this is `join`; for deltas it is not the delta of the join."""
        return self.join(other, function, schema=schema, on_batches=on_batches)

    def join_trace(
        self,
        trace: Trace | IndexedStream,
        function: Callable[..., Any] | None = None,
        *,
        schema: Columns | None = None,
        on_batches: bool = False,
    ) -> Stream:
        """Joins this tick's rows with all of the trace: a[t] ⋈ Σ trace[t], each product at the time now ∨ its time in the trace = now."""
        other = trace.consolidate() if isinstance(trace, Trace) else expected(trace, Trace, IndexedStream)
        return self.join(other, function, schema=schema, on_batches=on_batches)

    def trace_append(self, trace: Trace | None = None) -> Trace:
        """The trace with this tick's rows added at its time; without an argument, the trace of all rows since tick 0."""
        plan = stamped(self.plan)
        if trace is None:
            return Trace(Stream(plan).integrate().plan, self.keys, self.values)
        _check_alike(self, expected(trace, Trace))
        return replace(trace, plan=Stream(trace.plan).plus(Stream(plan)).plan)

    def untimed_trace_append(self, trace: IndexedStream | None = None) -> IndexedStream:
        """As trace_append, times left out: weights of equal rows add up."""
        return self.integrate() if trace is None else trace.plus(self)

    def consolidate(self) -> IndexedStream:
        """The stream itself: equal rows of it are one, their weights added, wherever they are kept."""
        return self

    def plus(self, *others: IndexedStream) -> IndexedStream:
        """The union of all rows under their keys; weights of equal rows are added."""
        for other in others:
            _check_alike(self, other)
        return self._over(Stream(self.plan).plus(*(Stream(other.plan) for other in others)).plan)

    def minus(self, other: IndexedStream) -> IndexedStream:
        """The difference of weights."""
        _check_alike(self, other)
        return self.plus(other.negate())

    def top_k(self, limit: int, order: str) -> Stream:
        """The first rows of each key by `order`, a SQL ORDER BY list; ties are ordered by the whole row. NULL is a key."""
        plan = Stream(self.plan).top_k(limit, order).plan
        assert isinstance(plan, TopK)
        keys = tuple(reference(self.plan.schema, i) for i in self.keys)
        return replace(self, plan=TopK(self.plan, plan.order, plan.limit, keys)).rows()

    def semijoin(self, other: IndexedStream) -> Stream:
        """The rows whose key occurs in the other stream."""
        return IndexedStream(self._joined(other, "semi"), self.keys, self.values).rows()

    def antijoin(self, other: IndexedStream) -> Stream:
        """The rows whose key does not occur in the other stream."""
        return IndexedStream(self._joined(other, "anti"), self.keys, self.values).rows()

    def aggregate(self, function: Callable[..., Any] | None = None, *, schema: Columns | None = None, **aggregates: str) -> Stream:
        """The key's columns and SQL aggregates by name, for each key: `aggregate(n="count(*)", most="max(amount)")`.

        Or the result of a function of a key's rows, a tuple of (row, weight): one row of `schema`, or a list of rows. The function is
        called again with all rows of each key that changes, and never for a key without rows. A class with `step` and `finish`, as UDF
        takes it, is an aggregate of all other columns than the key's, with a schema of one column: with `retract` or `merge` only rows that
        change are passed to it.
        """
        if function is not None or schema is not None:
            return self._reduced(function, schema, aggregates)
        return self.by_sql(aggregates)

    def stream_aggregate(
        self,
        function: Callable[..., Any] | None = None,
        *,
        schema: Columns,
        init: Any = None,
        step: Callable[..., Any] | None = None,
        retract: Callable[..., Any] | None = None,
        every: int | None = None,
    ) -> Accumulators:
        """The key's columns and an accumulator of `schema` for each key of a stream, folded over its ticks: a relation.

        In each tick the function is called for the keys of the tick's rows, with the key's accumulator and a tuple of (row, weight). Or
        `step` is called with the accumulator and a row, for each copy of it, and `retract` for each copy of a row of negative weight. They
        return the next accumulator, or None, which drops the key. An accumulator is a tuple, or a value if `schema` has one column;
        `init` is that of a new key. Costs O(rows of the tick); no rows are kept.

        A column may be a SetOf, a MapOf or Encoded. The relation has the other columns, and `elements(name)` the rows of a set or map,
        which the functions change in place and return. every: only the ticks whose epoch is a multiple of it call the functions, with the
        rows that wait; see `batched`.
        """
        keys = named_columns(self.plan.schema, self.keys)
        plan = self.plan if every is None else batched(self.plan, every)
        return Accumulators(accumulation(plan, keys, self.values, Calls(function, step, retract), schema, init))

    def count(self, name: str = "count") -> Stream:
        """The number of rows of each key."""
        return self.by_sql({name: "count(*)"})

    def sum(self, column: str, name: str = "sum") -> Stream:
        """The sum of a column for each key."""
        return self.by_sql({name: f"sum({backquoted(column)})"})

    def min(self, column: str, name: str = "min") -> Stream:
        """The least value of a column for each key."""
        return self.by_sql({name: f"min({backquoted(column)})"})

    def max(self, column: str, name: str = "max") -> Stream:
        """The greatest value of a column for each key."""
        return self.by_sql({name: f"max({backquoted(column)})"})

    def avg(self, column: str, name: str = "avg") -> Stream:
        """The average of a column for each key."""
        return self.by_sql({name: f"avg({backquoted(column)})"})

    def by_sql(self, aggregates: Mapping[str, str]) -> Stream:
        """One row per key, of SQL aggregates by name."""
        names = [backquoted(self.plan.schema[i].name) for i in self.keys]
        calls = [f"{text_of(call)}\nAS {backquoted(name)}" for name, call in aggregates.items()]
        return Stream(selected(self.plan, [*names, *calls], f" GROUP BY {', '.join(names)}" if names else ""))

    def _reduced(self, function: Callable[..., Any] | None, schema: Columns | None, aggregates: Mapping[str, str]) -> Stream:
        if function is None or schema is None or aggregates:
            raise CircuitError(
                "aggregate with a function and SQL, or with a function without a schema",
                expected='aggregate(function, schema={"column": type, …}) or aggregate(name="SQL", …)',
            )
        result = schema_of(schema)
        if isclass(function) and hasattr(function, "step"):
            return self._accumulated(function, result)
        names = tuple(self.plan.schema[i].name for i in self.values)
        reducing = user_function(listed(checked_function(function, "group")), (names,), 0 if len(result) == 1 else len(result))
        keys = named_columns(self.plan.schema, self.keys)
        return Stream(Reduce(self.plan, keys, self.values, reducing, result))

    def _accumulated(self, accumulator: type, result: Schema) -> Stream:
        """The value of an aggregate that is a class, for each key."""
        if len(result) != 1:
            expected = 'schema={"name": type}'
            raise CircuitError(f"the aggregate {name_of(accumulator)} has {len(result)} columns", expected=expected)
        (column,) = result
        defined = UDF(column.name, accumulator, column.type.sql).defined
        assert isinstance(defined, PythonAggregate)
        arguments = tuple(reference(self.plan.schema, i) for i in self.values if i not in self.keys)
        given, (least, most) = len(arguments), (defined.least, defined.most)
        if given < least or (most is not None and given > most):
            raise CircuitError(
                f"{name_of(accumulator)}.step does not take {given} values", expected="an argument for each column that is not in the key"
            )
        user = replace(defined.function, parameters=(None,) * given)
        call = AggregateCall(column.name, arguments, defined.type, True, user=user)
        keys = named_columns(self.plan.schema, self.keys)
        return Stream(Aggregate(self.plan, keys, ((column.name, call),)))

    def _over(self, plan: Plan) -> IndexedStream:
        return replace(self, plan=plan)

    def _joined(self, other: IndexedStream, kind: JoinKind) -> Join:
        expected(other, IndexedStream)
        left = [reference(self.plan.schema, i) for i in self.keys]
        right = [reference(other.plan.schema, i) for i in other.keys]
        if [key.type for key in left] != [key.type for key in right]:
            both = " and ".join(f"({', '.join(f'{key.name} {key.type}' for key in keys)})" for keys in (left, right))
            raise CircuitError(f"the keys {both} differ", expected="keys of the same types")
        return Join(self.plan, other.plan, kind, tuple(zip(left, right, strict=True)))

    def _projection(self) -> Plan:
        if self.values == tuple(range(len(self.plan.schema))):
            return self.plan
        return choose_columns(self.plan, self.values)


class Accumulators(Stream):
    """The relation of accumulators: the keys and the columns that are not sets or maps."""

    __slots__ = ()

    def elements(self, name: str) -> Stream:
        """The relation of the keys and the elements of a set, `element`, or of the entries of a map, `key` and `value`."""
        names = [part.name for part in self.plan.parts] if isinstance(self.plan, AccumulateElements) else []
        if name not in names:
            listed = ", ".join(names) or "a column that is a SetOf or MapOf"
            raise CircuitError(f"the accumulators have no set or map {name}", expected=listed)
        assert isinstance(self.plan, AccumulateElements)
        return Stream(replace(self.plan, part=names.index(name)))


@dataclass(frozen=True, slots=True)
class Trace:
    """All changes of an indexed stream so far, with their times. plan: rows, with their time in the last column, `_time`."""

    plan: Plan
    keys: tuple[int, ...]
    values: tuple[int, ...]

    def delay_trace(self) -> Trace:
        """The trace at the end of the previous tick."""
        return replace(self, plan=OverTicks(self.plan, "delay"))

    def consolidate(self) -> IndexedStream:
        """The rows under their keys without their times: the weights of equal rows are added."""
        return IndexedStream(untimed(self.plan), self.keys, self.values)


def expected(value: T, *kinds: type) -> T:
    """The value. Raises CircuitError unless it is of one of these kinds."""
    if isinstance(value, kinds):
        return value
    own = isinstance(value, Stream | IndexedStream | Trace)
    remedies = {
        Stream: "rows() of an IndexedStream returns one",
        IndexedStream: "index_with() of a Stream returns one",
        Trace: "trace_append() returns one",
    }
    raise CircuitError(
        f"invalid argument {f'of class {type(value).__name__}' if own else repr(value)}",
        expected=" or ".join(kind.__name__ for kind in kinds),
        remedy=remedies[kinds[0]],
    )


def _check_alike(stream: IndexedStream, other: IndexedStream | Trace) -> None:
    expected(other, IndexedStream, Trace)
    if (stream.keys, stream.values) != (other.keys, other.values):
        raise CircuitError("the indexed streams have different keys", expected="the same columns as keys, in the same order")


def _like(stream: Stream, other: Stream) -> Stream:
    left, right = ([field.type for field in each.schema] for each in (stream, expected(other, Stream)))
    if left != right:
        both = " and ".join(f"({', '.join(f'{f.name} {f.type}' for f in each.schema)})" for each in (stream, other))
        raise CircuitError(f"the streams {both} have different columns", expected="the same types in the same order")
    return other
