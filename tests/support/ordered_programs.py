"""Random programs whose views read rows in an order: windows of every kind, and joins on inequalities, ASOF joins among them.

    program = range_case(seed)  # or window_case(seed)

As the programs of programs.py, which have few of these. `drawn` says what a view has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Final

from deltic.expr.functions import resolve
from deltic.expr.nodes import Expr, Literal
from deltic.plan.aggregate_nodes import AggregateCall
from deltic.plan.asof import Nearest, asof_join
from deltic.plan.columns import conjunction, reference
from deltic.plan.nodes import Aggregate, Distinct, Filter, Join, JoinKind, Order, Plan, TopK
from deltic.plan.ranges import range_of
from deltic.plan.walk import nodes
from deltic.plan.window_nodes import WHOLE, Window, WindowCall
from deltic.schema import (
    BIGINT,
    DATE,
    DAY_TO_SECOND,
    DOUBLE,
    INT,
    SMALLINT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Field,
    Schema,
    TableSchema,
    Type,
    decimal,
)
from program_data import KEY_TYPES, Source, domain, random_source
from program_plans import ANY, Programs, Sized
from program_windows import LISTS, OF_PEERS, window_of
from programs import Case, applied, empty, explodes, ticks_of

ORDERED: Final = (
    BIGINT,
    BIGINT,
    INT,
    SMALLINT,
    DATE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DOUBLE,
    DAY_TO_SECOND,
    TIME,
    decimal(5, 2),
    decimal(30, 10),
)
"""Types whose values are looked up by ranges; those of the last are two words."""
COMPARISONS: Final = ("less", "less_equal", "greater", "greater_equal")
KINDS: Final[tuple[JoinKind, ...]] = ("inner", "inner", "left", "right", "full", "semi", "anti")
NEAREST: Final[tuple[JoinKind, ...]] = ("inner", "left", "right", "full")
PICKS: Final = ("first_value", "last_value", "nth_value")


def range_case(seed: int) -> Case:
    """Joins on inequalities of tables (key, value, value[, number])."""
    return _small(seed, _ranges)


def window_case(seed: int) -> Case:
    """Windows: one view of sessions, one of picks from frames, one of any calls, one of lists in the order of the window."""
    return _small(seed, _windows)


def _small(seed: int, made: Callable[[int, Random], Case]) -> Case:
    for attempt in range(100):
        program = made(seed, Random(f"{made.__name__} {seed}.{attempt}"))
        if not explodes(list(program.views.values()), applied(empty(program.tables), program.ticks[0])):
            return program
    raise AssertionError(f"no small program for seed {seed}")


def _ranges(seed: int, rng: Random) -> Case:
    key, value = rng.choice((INT, BIGINT, STRING)), rng.choice(ORDERED)
    sources = [_ordered_source(rng, name, key, value) for name in "ab"]
    size = rng.randint(5, 10)
    programs = Programs(rng, sources, size)
    views = {f"view{i}": _ranged(programs) for i in range(3)}
    tables = {source.table.name: source.table for source in sources}
    return Case(seed, tables, views, ticks_of(rng, sources, size), False)


def _ordered_source(rng: Random, name: str, key: Type, value: Type) -> Source:
    types = [key, value, value, *([BIGINT] if rng.random() < 0.4 else [])]
    fields = tuple(Field(f"{name}{i}", type, rng.random() < 0.6) for i, type in enumerate(types))
    domains = (domain(key)[: rng.choice((2, 3))], domain(value)[:10], domain(value)[:10], domain(BIGINT)[:4])
    return Source(TableSchema(name, Schema(fields)), domains[: len(types)])


def _ranged(programs: Programs) -> Plan:
    """A join, or something over it."""
    rng = programs.rng
    left, right = _side(programs, 0), _side(programs, rng.random() > 0.1)
    plan = _nearest(programs, left, right) if rng.random() < 0.35 else _joined(programs, left, right)
    match rng.choice(("", "", "", "count", "distinct", "first")):
        case "count":
            return Aggregate(plan, (("k", reference(plan.schema, 0)),), (("n", AggregateCall("count", (), BIGINT, False)),))
        case "distinct":
            return Distinct(plan)
        case "first":
            return TopK(plan, (Order(reference(plan.schema, 1), rng.random() < 0.5, rng.random() < 0.5),), 4)
    return plan


def _side(programs: Programs, table: int) -> Sized:
    """A table, some of its rows, or one row of its greatest values."""
    rng, source = programs.rng, programs.tables[table]
    match rng.choice(("", "", "", "", "", "some", "some", "one")):
        case "some":
            return Sized(Filter(source.plan, programs.scalars.predicate(source)), source.bounds, source.rows)
        case "one":
            function = rng.choice(("min", "max"))
            calls = (AggregateCall(function, (reference(source.schema, i),), f.type, True) for i, f in enumerate(source.schema))
            return Sized(Aggregate(source.plan, (), tuple((f"a{i}", call) for i, call in enumerate(calls))), source.bounds, 1)
    return source


def _joined(programs: Programs, left: Sized, right: Sized) -> Plan:
    rng, width = programs.rng, len(left.schema)
    both = Join(left.plan, right.plan, "inner").schema
    x, w = (_value(rng, reference(both, i)) for i in rng.sample((1, 2), 2))
    y, z = (_value(rng, reference(both, width + i)) for i in rng.sample((1, 2), 2))
    match rng.choice(("one", "inside", "inside", "outside", "open", "overlap", "two")):
        case "one":
            parts = [_compared(rng, x, y)]
        case "inside":
            parts = [_less(rng, y, x), _less(rng, x, z)]
        case "outside":
            parts = [_less(rng, x, y), _less(rng, y, w)]
        case "open":
            parts = [_less(rng, y, x), resolve("or", [resolve("is_null", [z]), _less(rng, x, z)])]
        case "overlap":
            parts = [_less(rng, x, z), _less(rng, y, w)]
        case _:
            parts = [_compared(rng, x, y), _compared(rng, w, z)]
    if rng.random() < 0.25:
        parts.append(programs.scalars.predicate(Sized(Join(left.plan, right.plan, "inner"), (None,) * len(both), 1)))
    rng.shuffle(parts)
    return Join(left.plan, right.plan, rng.choice(KINDS), _keys(rng, left, right), conjunction(parts))


def _nearest(programs: Programs, left: Sized, right: Sized) -> Plan:
    rng = programs.rng
    times = [_value(rng, reference(side.schema, rng.choice((1, 2)))) for side in (left, right)]
    nearest = Nearest(times[0], rng.choice(COMPARISONS), times[1], _keys(rng, left, right))
    return asof_join(left.plan, right.plan, rng.choice(NEAREST), nearest)


def _keys(rng: Random, left: Sized, right: Sized) -> tuple[tuple[Expr, Expr], ...]:
    pairs = [(0, 0), *([(2, 1)] if rng.random() < 0.2 else [])] if rng.random() < 0.55 else []
    return tuple((reference(left.schema, i), reference(right.schema, j)) for i, j in pairs)


def _value(rng: Random, column: Expr) -> Expr:
    """The column, or an expression that could fail, or is never NULL."""
    roll = rng.random()
    if roll < 0.15 and column.type.is_integer:
        return resolve("add", [column, Literal(rng.choice((1, 2)), column.type)])
    if roll < 0.25:
        return resolve("coalesce", [column, Literal(domain(column.type)[0], column.type)])
    return column


def _less(rng: Random, lesser: Expr, greater: Expr) -> Expr:
    function = rng.choice(("less", "less_equal"))
    return resolve(function, [lesser, greater]) if rng.random() < 0.5 else resolve(function.replace("less", "greater"), [greater, lesser])


def _compared(rng: Random, one: Expr, other: Expr) -> Expr:
    return resolve(rng.choice(COMPARISONS), [one, other])


def _windows(seed: int, rng: Random) -> Case:
    theme = rng.choice(KEY_TYPES)
    sources = [random_source(rng, name, theme) for name in "tu"]
    size = rng.randint(6, 12)
    programs = Programs(rng, sources, size, functions=ANY)
    views = {}
    for i, wanted in enumerate((_is_session, _is_pick, lambda call: True)):
        plan = programs.window(0).plan
        while not (isinstance(plan, Window) and any(wanted(call) for _, call in plan.calls)):
            plan = programs.window(int(rng.random() < 0.3)).plan
        calls = tuple((name, _framed(rng, call) if _is_pick(call) else call) for name, call in plan.calls)
        views[f"view{i}"] = replace(plan, calls=calls)
    views["lists"] = window_of(programs, programs.relation(int(rng.random() < 0.3)), lists=True)[0]
    tables = {source.table.name: source.table for source in sources}
    return Case(seed, tables, views, ticks_of(rng, sources, size), False)


def _framed(rng: Random, call: WindowCall) -> WindowCall:
    """The call, now and then over a frame that program_windows.py does not draw for picks."""
    return replace(call, frame=rng.choice((WHOLE, OF_PEERS))) if rng.random() < 0.2 else call


def _is_session(call: WindowCall) -> bool:
    return call.function == "session_start"


def _is_pick(call: WindowCall) -> bool:
    return call.function in PICKS


def drawn(plan: Plan) -> set[str]:
    """What the view has: kinds of range joins with and without keys, calls of windows by function, frame and IGNORE NULLS,
    lists by function and frame.
    """
    found = set[str]()
    for node in nodes(plan):
        if isinstance(node, Join) and range_of(node) is not None:
            found.add(f"{node.kind} {'keyed' if node.keys else 'keyless'}")
        if isinstance(node, Window):
            for _, call in node.calls:
                found.add(call.function)
                if call.ignore_nulls:
                    found.add(f"{call.function} ignore nulls")
                if _is_pick(call):
                    found.add(f"pick {call.frame.start.kind} to {call.frame.end.kind}")
                if call.aggregate is not None and call.aggregate.function in LISTS:
                    found.add(call.aggregate.function)
                    if call.aggregate.is_listing:
                        found.add(f"list {call.frame.start.kind} to {call.frame.end.kind}")
    return found
