"""Streams: relations that are asked for, as methods with the operators' standard names. Each makes plan nodes; nothing runs here.

A function is one of rows, whose columns are attributes; or, with `on_batches`, one of Arrow record batches, which gives arrays. One that
only picks columns needs no schema. Where a text is given it is SQL over the stream's columns. Functions must be pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar, get_args

from deltic.errors import CircuitError
from deltic.expr.nodes import Column, Expr, PythonFunction
from deltic.frontends.python.functions import Picked, column_at, picked, standing_for, taking, unknown_column, user_function
from deltic.frontends.python.generated import generated
from deltic.frontends.python.linear import WEIGHT, bounded, composed, composed_batches, updated, updates, with_update
from deltic.frontends.python.schemas import Columns, schema_of
from deltic.frontends.python.ticks import OverTime
from deltic.frontends.python.trace import distinct_change, earlier, stamped, untimed
from deltic.frontends.sql import Form, bind_query
from deltic.plan.nodes import (
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
    Reference,
    TopK,
    Union,
    Weighted,
)
from deltic.plan.recursion import bound_to
from deltic.schema import BOOLEAN, TIMESTAMP, Schema

INPUT = "input"
"""The name of a stream in the SQL over it."""
ROW, BATCH = "row", "batch"
T = TypeVar("T")
CONDITION: Final = Form("one condition on a row", frozenset(("source", "where")))
ORDER: Final = Form("terms of ORDER BY, such as amount DESC, id", frozenset(("source", "order", "limit")))


@dataclass(frozen=True, slots=True)
class Stream(OverTime):
    """A relation of rows. plan: what it denotes, for the oracle and the engine alike."""

    plan: Plan

    @property
    def schema(self) -> Schema:
        return self.plan.schema

    def sql(self, query: str) -> Stream:
        """What a query makes of it; the query calls it `input`."""
        return self._queried(query)

    def map(self, function: Callable[..., Any] | Mapping[str, str], *, schema: Columns | None = None, on_batches: bool = False) -> Stream:
        """A row for each: the function's, or SQL expressions by the names of their columns."""
        if isinstance(function, Mapping):
            return self._mapped(function)
        taking(function, BATCH if on_batches else ROW)
        return Stream(_projected(self.plan, function, (self._whole(),), schema, on_batches))

    def filter(self, predicate: Callable[..., Any] | str, *, on_batches: bool = False) -> Stream:
        """The rows on which it is true."""
        if isinstance(predicate, str):
            return self._queried(f"SELECT * FROM {INPUT} WHERE {predicate}", CONDITION)
        function = user_function(taking(predicate, BATCH if on_batches else ROW), (self.schema.names,), 0, on_batches=on_batches)
        return Stream(Filter(self.plan, PythonFunction(function, _all(self.schema), 0, BOOLEAN, False)))

    def flat_map(self, function: Callable[..., Any], *, schema: Columns, on_batches: bool = False) -> Stream:
        """Every row that the function gives for each row: it is called once for a row, and gives an iterable of tuples.

        A row of one column may be a bare value. On batches it gives a record batch of the schema's columns and `_row` (integers): the
        position in its argument of the row that each of its rows comes from.
        """
        return Stream(generated(self.plan, function, schema_of(schema), on_batches=on_batches))

    def explode(self, function: Callable[..., Any], *, schema: Columns, on_batches: bool = False) -> Stream:
        """As flat_map of tuples that end with a weight; it is multiplied with the row's, and may be negative.

        On batches the weight is a column `_weight` (int64).
        """
        made = Schema((*schema_of(schema), WEIGHT))
        return Stream(generated(self.plan, function, made, weighted=True, on_batches=on_batches))

    def index_with(self, *key: str | Callable[..., Any], schema: Columns | None = None) -> IndexedStream:
        """The rows under a key: some of their columns, or what a function makes of a row."""
        if len(key) == 1 and callable(key[0]):
            return self._indexed_by(key[0], schema)
        if schema is not None:
            raise CircuitError("a key of columns with a schema", remedy="schema= is for a key that a function makes")
        return IndexedStream(self.plan, tuple(self._position(name) for name in key), tuple(range(len(self.schema))))

    def plus(self, *others: Stream) -> Stream:
        """The rows of all, weights added up."""
        plans = [self.plan, *(_like(self, other).plan for other in others)]
        return Stream(Union(tuple(plans)))

    def minus(self, other: Stream) -> Stream:
        """The rows with their weights less the other's, which may be below 0: `distinct()` keeps what is above, an output has to be."""
        return self.plus(_like(self, other).negate())

    def distinct(self) -> Stream:
        """Each row once."""
        return Stream(Distinct(self.plan))

    def top_k(self, limit: int, order: str) -> Stream:
        """The first rows by `order`, SQL's ORDER BY."""
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
            raise CircuitError(f"the first {limit!r} rows", expected="a whole number of them")
        return self._queried(f"SELECT * FROM {INPUT} ORDER BY {order}\nLIMIT {limit}", ORDER)

    def aggregate(self, **aggregates: str) -> Stream:
        """One row of SQL aggregates: `aggregate(n="count(*)", most="max(amount)")`."""
        return IndexedStream(self.plan, (), tuple(range(len(self.schema)))).by_sql(aggregates)

    def consolidate(self) -> Stream:
        """The stream itself: equal rows of it are one, their weights added, wherever they are kept."""
        return self

    def weighted(self, name: str = "weight") -> Stream:
        """Each row once, with its weight in a column behind it; so rows of negative weight may be put out."""
        if self.schema.find(name):
            raise CircuitError(f"there is a column {name} already", remedy='weighted("another name")')
        return Stream(Weighted(self.plan, name))

    def join_function(self, logic: Callable[..., Any], *, schema: Columns, on_batches: bool = False) -> Stream:
        """The most general linear operator: logic(row) gives updates (row, time, weight); it is called once for a row.

        Each row counts from its time on, as often as its own weight times the update's. A time is a datetime with its zone, an integer
        (microseconds since 1970-01-01 UTC), or None: always. A session needs a clock as soon as a time is not None. On batches the
        logic gives a record batch as in flat_map, with the columns `_time` (TIMESTAMP or int64) and `_weight` (int64).
        """
        made = with_update(schema_of(schema))
        called = logic if on_batches else updates(taking(logic, ROW))
        return Stream(updated(generated(self.plan, called, made, weighted=True, on_batches=on_batches)))

    def followed_by(self, *logics: Callable[..., Any], schema: Columns, on_batches: bool = False) -> Stream:
        """join_function of logics one after the other, in one pass; each but the first gets the rows that the one before it gives.

        On batches these are the columns of its record batch but `_row`, `_time` and `_weight`.
        """
        if not logics:
            raise CircuitError("followed_by of nothing", expected="one logic or more")
        functions = tuple(taking(logic, BATCH if on_batches else ROW) for logic in logics)
        return self.join_function(composed_batches(functions) if on_batches else composed(functions), schema=schema, on_batches=on_batches)

    def temporal_filter(self, *, lower: str | Callable[..., Any] | None = None, upper: str | Callable[..., Any] | None = None) -> Stream:
        """The rows while lower ≤ now < upper: SQL expressions, or functions of the row that give a datetime with its zone.

        One of NULL is never satisfied. Needs a session's time.
        """
        given = {side: moment for side, moment in (("lower", lower), ("upper", upper)) if moment is not None}
        if not given:
            raise CircuitError("a temporal filter without a bound", expected="lower= or upper=")
        plan, places = self.plan, dict[str, int]()
        for side, moment in given.items():
            places[side] = len(plan.schema)
            columns = [(f.name, column_at(plan.schema, i)) for i, f in enumerate(plan.schema)]
            plan = Project(plan, (*columns, (f"_{side}", self._moment(moment))))
        return Stream(bounded(plan, len(self.schema), places))

    def _moment(self, given: str | Callable[..., Any]) -> Expr:
        if not isinstance(given, str):
            function = user_function(taking(given, ROW), (self.schema.names,), 0)
            return PythonFunction(function, _all(self.schema), 0, TIMESTAMP, True)
        form = Form("one expression of the row", frozenset(("source",)), 1)
        bound = self._queried(f"SELECT CAST({given}\nAS TIMESTAMP) AS moment FROM {INPUT}", form).plan
        if not isinstance(bound, Project) or bound.input != self.plan:
            raise CircuitError(f"the bound {given} is not an expression of the row", remedy="compute it before, with map")
        return bound.columns[0][1]

    def distinct_incremental(self, trace: Stream) -> Stream:
        """The change of distinct: H(old + w) - H(old) of each row, where w is its weight here and old that in the trace.

        H(x) is 1 where x > 0, else 0. Of a delta and the delayed integral of deltas, this is the delta of distinct.
        """
        return Stream(distinct_change(self.plan, _like(self, trace).plan))

    def distinct_trace(self, trace: Trace) -> Stream:
        """distinct_incremental by what the trace has of earlier times, whether or not it has what is new now."""
        return Stream(distinct_change(self.plan, _like(self, Stream(earlier(expected(trace, Trace).plan))).plan))

    def trace_append(self, trace: Trace | None = None) -> Trace:
        """The trace with this tick's rows in it, at its time; without one, the trace of all rows since tick 0. A row is its key."""
        return IndexedStream(self.plan, tuple(range(len(self.schema))), ()).trace_append(trace)

    def untimed_trace_append(self, trace: Stream | None = None) -> Stream:
        """As trace_append, times left out: weights of equal rows add up."""
        return self.integrate() if trace is None else trace.plus(self)

    def _over(self, plan: Plan) -> Stream:
        return Stream(plan)

    def _queried(self, query: str, form: Form | None = None) -> Stream:
        if not isinstance(query, str):
            raise CircuitError(f"{query!r} is no SQL", expected="a text")
        return Stream(bound_to(bind_query(query, "<circuit>", _Only(self.schema), form, final=False), {INPUT: self.plan}))

    def _mapped(self, columns: Mapping[str, str]) -> Stream:
        found = self._selected([f"{_text(expr)}\nAS {_quoted(name)}" for name, expr in columns.items()], "")
        plan = found.plan
        while plan != self.plan and isinstance(plan, Project | FlatMap):
            plan = plan.input
        if plan != self.plan:
            raise CircuitError(
                f"map makes something of each row, and one of {', '.join(columns.values())} takes several",
                remedy='aggregate(name="sum(column)")',
            )
        return found

    def _selected(self, columns: Sequence[str], behind: str) -> Stream:
        """What SELECT makes of these columns. behind: the query behind FROM."""
        if not columns:
            raise CircuitError("no columns", expected='{"name": "SQL expression"}')
        form = Form("one expression for each column", frozenset(("source", *(("group",) if behind else ()))), len(columns))
        return self._queried(f"SELECT {', '.join(columns)} FROM {INPUT}{behind}", form)

    def _whole(self) -> Part:
        return Part(self.schema.names, tuple(range(len(self.schema))))

    def _position(self, name: str | Callable[..., Any]) -> int:
        if not isinstance(name, str):
            raise CircuitError(f"{name!r} is no column of a key", expected="names of columns, or one function, which may give a tuple")
        found = self.schema.find(name)
        if len(found) != 1:
            unknown_column(name, self.schema.names)
        return found[0]

    def _indexed_by(self, function: Callable[..., Any], schema: Columns | None) -> IndexedStream:
        keys = _made(self.plan, taking(function, ROW), (self._whole(),), schema, False)
        if all(isinstance(expr, Column) for _, expr in keys):
            return IndexedStream(self.plan, tuple(expr.index for _, expr in keys if isinstance(expr, Column)), self._whole().positions)
        if taken := [name for name, _ in keys if self.schema.find(name)]:
            raise CircuitError(f"the key and the row have a column {taken[0]} each", remedy="give the key's column another name in schema=")
        rows = [(f.name, column_at(self.schema, i)) for i, f in enumerate(self.schema)]
        wide = Project(self.plan, (*rows, *keys))
        width = len(self.schema)
        return IndexedStream(wide, tuple(range(width, width + len(keys))), tuple(range(width)))


@dataclass(frozen=True, slots=True)
class IndexedStream(OverTime):
    """Rows under keys. keys, values: the positions in the plan's rows of the key's columns and of the row's own."""

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
        """function(key, row, other row) for every two rows of one key; without a function their columns side by side.

        The key is a value if it has one column, else a row. A NULL in a key matches nothing. hint: "multiway", to be one multiway join
        with the joins that it reads or that read it, whether they form a cycle or not; "binary", to be none.
        """
        joined = self._joined(other, "inner")
        if hint not in (None, *get_args(HintKind)):
            raise CircuitError(f"there is no hint {hint!r}", expected=" or ".join(map(repr, get_args(HintKind))))
        if hint is not None:
            joined = replace(joined, hint=Hint(hint))
        width = len(self.plan.schema)
        schema_here = self.plan.schema
        theirs = tuple(width + i for i in other.values)
        if function is None:
            columns = [*self.values, *theirs]
            return Stream(Project(joined, _named([column_at(joined.schema, i) for i in columns])))
        key = Part(tuple(schema_here[i].name for i in self.keys) if len(self.keys) != 1 else None, self.keys)
        row = Part(tuple(schema_here[i].name for i in self.values), self.values)
        match = Part(tuple(other.plan.schema[i].name for i in other.values), theirs)
        taking(function, *(("keys", "rows", "other rows") if on_batches else ("key", "row", "other row")))
        return Stream(_projected(joined, function, (key, row, match), schema, on_batches))

    def join_stream(
        self, other: IndexedStream, function: Callable[..., Any] | None = None, *, schema: Columns | None = None, on_batches: bool = False
    ) -> Stream:
        """The rows of this tick with the other's of this tick: a[t] ⋈ b[t]. Of contents that is `join`, of deltas it is not the change."""
        return self.join(other, function, schema=schema, on_batches=on_batches)

    def join_trace(
        self,
        trace: Trace | IndexedStream,
        function: Callable[..., Any] | None = None,
        *,
        schema: Columns | None = None,
        on_batches: bool = False,
    ) -> Stream:
        """The rows of this tick with all that the trace has: a[t] ⋈ Σ trace[t], each product at now ∨ its time there, which is now."""
        other = trace.consolidate() if isinstance(trace, Trace) else expected(trace, Trace, IndexedStream)
        return self.join(other, function, schema=schema, on_batches=on_batches)

    def trace_append(self, trace: Trace | None = None) -> Trace:
        """The trace with this tick's rows in it, at its time; without one, the trace of all rows since tick 0."""
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
        """The rows of all under their keys, weights added up."""
        for other in others:
            _check_alike(self, other)
        return self._over(Stream(self.plan).plus(*(Stream(other.plan) for other in others)).plan)

    def minus(self, other: IndexedStream) -> IndexedStream:
        """The rows with their weights less the other's."""
        _check_alike(self, other)
        return self.plus(other.negate())

    def top_k(self, limit: int, order: str) -> Stream:
        """The first rows of each key by `order`, SQL's ORDER BY; a tie goes by the whole row. A key of NULL is a key."""
        plan = Stream(self.plan).top_k(limit, order).plan
        assert isinstance(plan, TopK)
        keys = tuple(column_at(self.plan.schema, i) for i in self.keys)
        return replace(self, plan=TopK(self.plan, plan.order, plan.limit, keys)).rows()

    def semijoin(self, other: IndexedStream) -> Stream:
        """The rows whose key the other has."""
        return IndexedStream(self._joined(other, "semi"), self.keys, self.values).rows()

    def antijoin(self, other: IndexedStream) -> Stream:
        """The rows whose key the other has not."""
        return IndexedStream(self._joined(other, "anti"), self.keys, self.values).rows()

    def aggregate(self, function: Callable[..., Any] | None = None, *, schema: Columns | None = None, **aggregates: str) -> Stream:
        """Each key's columns, then SQL aggregates by their names: `aggregate(n="count(*)", most="max(amount)")`.

        Or what a function makes of the key's rows, a tuple of (row, how often): one row of `schema`, or a list of such rows. It is called
        again for the keys that change, with all of their rows; for a key without rows there is nothing.
        """
        if function is not None or schema is not None:
            return self._reduced(function, schema, aggregates)
        return self.by_sql(aggregates)

    def count(self, name: str = "count") -> Stream:
        """How many rows each key has."""
        return self.by_sql({name: "count(*)"})

    def sum(self, column: str, name: str = "sum") -> Stream:
        """The sum of a column for each key."""
        return self.by_sql({name: f"sum({_quoted(column)})"})

    def min(self, column: str, name: str = "min") -> Stream:
        """The least value of a column for each key."""
        return self.by_sql({name: f"min({_quoted(column)})"})

    def max(self, column: str, name: str = "max") -> Stream:
        """The greatest value of a column for each key."""
        return self.by_sql({name: f"max({_quoted(column)})"})

    def avg(self, column: str, name: str = "avg") -> Stream:
        """The average of a column for each key."""
        return self.by_sql({name: f"avg({_quoted(column)})"})

    def by_sql(self, aggregates: Mapping[str, str]) -> Stream:
        """A row for each key, of SQL aggregates by their names."""
        names = [_quoted(self.plan.schema[i].name) for i in self.keys]
        calls = [f"{_text(call)}\nAS {_quoted(name)}" for name, call in aggregates.items()]
        return Stream(self.plan)._selected([*names, *calls], f" GROUP BY {', '.join(names)}" if names else "")

    def _reduced(self, function: Callable[..., Any] | None, schema: Columns | None, aggregates: Mapping[str, str]) -> Stream:
        if function is None or schema is None or aggregates:
            raise CircuitError(
                "an aggregate by a function and by SQL in one, or a function without a schema",
                expected='aggregate(function, schema={"column": type, …}) or aggregate(name="SQL", …)',
            )
        made = schema_of(schema)
        names = tuple(self.plan.schema[i].name for i in self.values)
        called = user_function(_at_once(taking(function, "group")), (names,), 0 if len(made) == 1 else len(made))
        keys = tuple((self.plan.schema[i].name, column_at(self.plan.schema, i)) for i in self.keys)
        return Stream(Reduce(self.plan, keys, self.values, called, made))

    def _over(self, plan: Plan) -> IndexedStream:
        return replace(self, plan=plan)

    def _joined(self, other: IndexedStream, kind: JoinKind) -> Join:
        expected(other, IndexedStream)
        ours = [column_at(self.plan.schema, i) for i in self.keys]
        theirs = [column_at(other.plan.schema, i) for i in other.keys]
        if [key.type for key in ours] != [key.type for key in theirs]:
            found = " and ".join(f"({', '.join(f'{key.name} {key.type}' for key in keys)})" for keys in (ours, theirs))
            raise CircuitError(f"the keys {found} differ", expected="keys of the same types")
        return Join(self.plan, other.plan, kind, tuple(zip(ours, theirs, strict=True)))

    def _projection(self) -> Plan:
        if self.values == tuple(range(len(self.plan.schema))):
            return self.plan
        return Project(self.plan, tuple((self.plan.schema[i].name, column_at(self.plan.schema, i)) for i in self.values))


@dataclass(frozen=True, slots=True)
class Trace:
    """All changes of an indexed stream so far, each with its time. plan: rows, then their time in `_time`. keys, values: the stream's."""

    plan: Plan
    keys: tuple[int, ...]
    values: tuple[int, ...]

    def delay_trace(self) -> Trace:
        """The trace as it was one tick ago."""
        return replace(self, plan=OverTicks(self.plan, "delay"))

    def consolidate(self) -> IndexedStream:
        """The rows under their keys without their times: the weights of equal rows are added up."""
        return IndexedStream(untimed(self.plan), self.keys, self.values)


@dataclass(frozen=True, slots=True)
class Part:
    """What one parameter of a function gets of a wider row: names of a row, None for a value; positions of its columns."""

    names: tuple[str, ...] | None
    positions: tuple[int, ...]

    def symbol(self, schema: Schema) -> Picked | Expr:
        return column_at(schema, self.positions[0]) if self.names is None else Picked(schema, self.positions)


class _Only:
    """A catalog of one relation, to be put in the place of its name."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def relation(self, name: str) -> Plan | None:
        return Reference(INPUT, self.schema) if name.lower() == INPUT else None

    def names(self) -> tuple[str, ...]:
        return (INPUT,)


def _projected(plan: Plan, function: Callable[..., Any], parts: Sequence[Part], schema: Columns | None, on_batches: bool) -> Plan:
    return Project(plan, _made(plan, function, parts, schema, on_batches))


def _made(
    plan: Plan, function: Callable[..., Any], parts: Sequence[Part], schema: Columns | None, on_batches: bool
) -> tuple[tuple[str, Expr], ...]:
    """The columns that the function gives for rows of the plan, by name."""
    columns = None if on_batches else picked(function, [part.symbol(plan.schema) for part in parts])
    if columns is not None and schema is None:
        return _named(columns)
    if schema is None:
        raise CircuitError(
            f"the function {getattr(function, '__qualname__', function)} does more than pick columns",
            remedy='say what it gives: schema={"column": type, …}',
        )
    made = schema_of(schema)
    width = 0 if len(made) == 1 else len(made)
    called = user_function(function, [part.names for part in parts], width, on_batches=on_batches)
    arguments = tuple(column_at(plan.schema, i) for part in parts for i in part.positions)
    return tuple((f.name, PythonFunction(called, arguments, i, f.type, f.nullable)) for i, f in enumerate(made))


def _at_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with all that it goes through as a list, so that two answers can be compared."""

    @standing_for("all of a group", function)
    def whole(group: Any) -> Any:
        given = function(group)
        return list(given) if isinstance(given, Iterator) else given

    return whole


def expected(given: T, *kinds: type) -> T:
    """What was given, which is of one of these kinds. Raises CircuitError if it is not."""
    if isinstance(given, kinds):
        return given
    known = isinstance(given, Stream | IndexedStream | Trace)
    makes = {
        Stream: "rows() of an IndexedStream makes one",
        IndexedStream: "index_with() of a Stream makes one",
        Trace: "trace_append() makes one",
    }
    raise CircuitError(
        f"{'this ' * known}{type(given).__name__ if known else repr(given)} stands where another kind of stream belongs",
        expected=" or ".join(kind.__name__ for kind in kinds),
        remedy=makes[kinds[0]],
    )


def _check_alike(stream: IndexedStream, other: IndexedStream | Trace) -> None:
    expected(other, IndexedStream, Trace)
    if (stream.keys, stream.values) != (other.keys, other.values):
        raise CircuitError("two indexed streams have other keys", expected="the same columns as keys, in the same order")


def _all(schema: Schema) -> tuple[Expr, ...]:
    return tuple(column_at(schema, i) for i in range(len(schema)))


def _named(columns: Sequence[Expr]) -> tuple[tuple[str, Expr], ...]:
    """Columns by their own names; what has none, or one that is taken, by its place."""
    taken: dict[str, Expr] = {}
    for place, expr in enumerate(columns, 1):
        name = getattr(expr, "name", "") or f"c{place}"
        while name.lower() in (other.lower() for other in taken):
            name = f"{name}_{place}"
        taken[name] = expr
    return tuple(taken.items())


def _like(stream: Stream, other: Stream) -> Stream:
    ours, theirs = ([field.type for field in one.schema] for one in (stream, expected(other, Stream)))
    if ours != theirs:
        found = " and ".join(f"({', '.join(f'{f.name} {f.type}' for f in one.schema)})" for one in (stream, other))
        raise CircuitError(f"the streams {found} have different columns", expected="the same types in the same order")
    return other


def _text(expr: object) -> str:
    if not isinstance(expr, str):
        raise CircuitError(f"{expr!r} is no SQL", expected="the text of an expression")
    return expr


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
