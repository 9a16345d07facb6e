"""Random plans, built as nodes, typed, and biased so that joins match and outputs are not empty.

No expression of these plans can fail on the data of program_data.py: every exact number carries a bound on its size, and arithmetic
and sums are made only where the result's type holds the bound. `Programs.failing` makes expressions that fail on some rows, and puts
them where no optimizer may drop them: at the top. Daring programs have such expressions anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import get_args

from deltic.aggregates import AggregateFunction, aggregate_function, aggregate_functions
from deltic.errors import TypeMismatch
from deltic.expr.functions import resolve
from deltic.expr.nodes import Column, Expr, Literal, Value
from deltic.expr.typing import case, cast, cast_can_fail
from deltic.plan.columns import reference
from deltic.plan.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Order,
    Plan,
    Project,
    SetKind,
    SetOperation,
    Table,
    TopK,
    Union,
    Values,
)
from deltic.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTEGER_BITS,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Field,
    Schema,
    Type,
    time_type,
)
from program_data import Source, domain
from program_grouping import grouping_sets_of
from program_windows import window_of

MANY = 10**6  # more rows than any group of these programs has
CROWD = 250  # where a join may have about this many rows, something else is made instead

Bound = int | None
Scalar = tuple[Expr, Bound]


@dataclass(frozen=True, slots=True)
class Sized:
    """A plan, the bounds of its columns' exact numbers (None for other types), and about how many rows it has."""

    plan: Plan
    bounds: tuple[Bound, ...]
    rows: float

    @property
    def schema(self) -> Schema:
        return self.plan.schema

    def column(self, index: int) -> Scalar:
        return reference(self.schema, index), self.bounds[index]


def beside(left: Sized, right: Sized) -> Sized:
    """Both laid side by side, as a join's residual sees them."""
    return Sized(Join(left.plan, right.plan, "inner"), left.bounds + right.bounds, left.rows * right.rows)


def holds(type: Type, size: int) -> bool:
    """Whether every number of at most that size is in the type."""
    if type.is_integer:
        return size < 1 << (INTEGER_BITS[type.name] - 1)
    return not type.is_decimal or size < 10 ** (type.precision - type.scale)


class Scalars:
    """Random expressions over the columns of a plan; a share of them, `daring`, may fail."""

    def __init__(self, rng: Random, daring: float = 0.0) -> None:
        self.rng, self.daring = rng, daring

    def literal(self, type: Type) -> Scalar:
        value: Value = None if self.rng.random() < 0.05 else self.rng.choice(domain(type)[:5])
        return Literal(value, type), 12 if type.is_integer or type.is_decimal else None

    def column(self, source: Sized, fits: Callable[[Type], bool] = lambda _: True, *, but: int = -1) -> Scalar | None:
        """One of the columns whose type fits, if there is one."""
        places = [i for i, field in enumerate(source.schema) if i != but and fits(field.type)]
        return source.column(self.rng.choice(places)) if places else None

    def any(self, source: Sized, depth: int = 2) -> Scalar:
        """An expression of any type."""
        if self._dares():
            return self.failing(source), None
        if depth == 0 or self.rng.random() < 0.4:
            return self.column(source) or self.literal(INT)
        makers = (self._arithmetic, self._calendar, self._text, self._widened, self._coalesced, self._chosen, self._truth)
        return self.rng.choice(makers)(source, depth - 1) or self.column(source) or self.literal(BIGINT)

    def _arithmetic(self, source: Sized, depth: int) -> Scalar | None:
        left = self.column(source, lambda type: type.is_numeric)
        if left is None:
            return None
        right = self.rng.choice([self.column(source, lambda type: type.is_numeric), self.literal(left[0].type)])
        assert right is not None
        function = self.rng.choice(["add", "subtract", "multiply"])
        made = resolve(function, [left[0], right[0]])
        if made.type.is_float:
            return made, None
        if left[1] is None or right[1] is None:
            return None
        size = left[1] * right[1] if function == "multiply" else left[1] + right[1]
        return (made, size + 1) if holds(made.type, size + 1) else None

    def _calendar(self, source: Sized, depth: int) -> Scalar | None:
        """Dates, times and intervals added up; within the calendar, and within the intervals' range."""
        left = self.column(source, lambda type: type.is_interval or type.is_time or type in (DATE, TIMESTAMP, TIMESTAMP_NTZ))
        if left is None:
            return None
        if left[0].type.is_time:
            return self._of_time(source, left[0]), None
        if left[0].type.is_interval:
            function = self.rng.choice(["negate", "abs", "sign", "string"])
            return resolve(function, [left[0]]), None
        right = self.column(source, lambda type: type in (DATE, TIMESTAMP, TIMESTAMP_NTZ))
        assert right is not None
        return resolve("-", [left[0], right[0]]), None

    def _of_time(self, source: Sized, time: Expr) -> Expr:
        """Of a TIME, what is never outside the day."""
        match self.rng.choice(["-", "time_trunc", "time_to_micros", "second_fraction", "cast"]):
            case "-":
                other = self.column(source, lambda type: type.is_time)
                assert other is not None
                return resolve("-", [time, other[0]])
            case "time_trunc":
                return resolve("time_trunc", [Literal(self.rng.choice(["HOUR", "minute", "MILLISECOND"]), STRING), time])
            case "cast":
                return cast(time, self.rng.choice([time_type(0), time_type(3), TIME, INT, STRING]))
            case name:
                return resolve(name, [time])

    def _text(self, source: Sized, depth: int) -> Scalar | None:
        operand = self.column(source, lambda type: type == STRING)
        if operand is None:
            return None
        match self.rng.choice(["upper", "lower", "concat", "length", "substring"]):
            case "concat":
                return resolve("concat", [operand[0], self.literal(STRING)[0]]), None
            case "length":
                return resolve("length", [operand[0]]), 10_000
            case "substring":
                return resolve("substring", [operand[0], Literal(1, INT), Literal(self.rng.randint(0, 3), INT)]), None
            case name:
                return resolve(name, [operand[0]]), None

    def _widened(self, source: Sized, depth: int) -> Scalar | None:
        operand = self.column(source, lambda type: type.is_integer)
        if operand is None:
            return None
        type = self.rng.choice([BIGINT, DOUBLE, STRING])
        return cast(operand[0], type), operand[1] if type == BIGINT else None

    def _coalesced(self, source: Sized, depth: int) -> Scalar:
        operand = self.column(source) or self.literal(INT)
        other, size = self.literal(operand[0].type)
        return resolve("coalesce", [operand[0], other]), None if operand[1] is None or size is None else max(operand[1], size)

    def _chosen(self, source: Sized, depth: int) -> Scalar:
        operand = self.column(source) or self.literal(INT)
        other, size = self.literal(operand[0].type)
        chosen = case([(self.predicate(source, depth), operand[0])], self.rng.choice([None, other]))
        return chosen, None if operand[1] is None or size is None else max(operand[1], size)

    def _truth(self, source: Sized, depth: int) -> Scalar:
        return self.predicate(source, depth), None

    def predicate(self, source: Sized, depth: int = 2) -> Expr:
        """A condition that many rows satisfy."""
        if self._dares():
            return resolve("is_not_null", [self.failing(source)])
        roll = self.rng.random()
        if depth and roll < 0.3:
            function = self.rng.choice(["and", "or", "or"])
            return resolve(function, [self.predicate(source, depth - 1), self.predicate(source, depth - 1)])
        if depth and roll < 0.35:
            return resolve("not", [self.selective(source)])
        operand = self.column(source)
        if operand is None:
            return Literal(True, BOOLEAN)
        expr, _ = operand
        assert isinstance(expr, Column)
        if expr.type == BOOLEAN and roll < 0.7:
            return expr
        if roll < 0.5:
            return resolve("is_not_null", [expr])
        other = self.column(source, lambda type: type == expr.type, but=expr.index) if roll < 0.65 else None
        function = self.rng.choice(["less_equal", "greater_equal", "not_equal", "less_equal", "greater_equal", "less", "greater", "equal"])
        return resolve(function, [expr, (other or self.literal(expr.type))[0]])

    def selective(self, source: Sized) -> Expr:
        """A condition that few rows satisfy."""
        expr, _ = self.column(source) or self.literal(BOOLEAN)
        if self.rng.random() < 0.2:
            return resolve("is_null", [expr])
        if self.rng.random() < 0.3:
            return resolve("in", [expr, self.literal(expr.type)[0], self.literal(expr.type)[0]])
        return resolve("equal", [expr, self.literal(expr.type)[0]])

    def failing(self, source: Sized) -> Expr:
        """An expression that fails on some rows, in one way alone; or one that would, were it not guarded."""
        text = self.column(source, lambda type: type == STRING)
        number = self.column(source, lambda type: type.is_integer)
        if text is not None and (number is None or self.rng.random() < 0.5):
            return cast(text[0], INT)
        if number is None:
            return resolve("add", [cast(self.literal(INT)[0], INT), Literal(2**31 - 1, INT)])
        divided = resolve("divide", [Literal(1, INT), number[0]])
        if self.rng.random() < 0.3:
            # Guarded: this one never fails, and no rewrite may make it.
            return case([(resolve("not_equal", [number[0], Literal(0, number[0].type)]), divided)], None)
        return divided

    def _dares(self) -> bool:
        return self.daring > 0 and self.rng.random() < self.daring


def built_in() -> list[AggregateFunction]:
    """The aggregates of Deltic's own: what the guides register in this process is left out."""
    return [function for function in aggregate_functions() if function.reference.__module__.startswith("deltic.")]


FIVE = ("count", "count", "sum", "sum", "avg", "min", "max")
ANY = (*FIVE, "any", "any", "any", "any")
"""Which aggregates are drawn: the oldest five, or any of all that there are."""
FAILING = ("bitmap_", "vector_")
"""Prefixes of aggregates that are errors for some values of their arguments' types."""


class Programs:
    """Random plans over the tables given; later plans share parts of earlier ones."""

    def __init__(self, rng: Random, sources: Sequence[Source], rows: int, daring: float = 0.0, *, functions: Sequence[str] = FIVE) -> None:
        self.rng, self.functions = rng, functions
        self.scalars = Scalars(rng, daring)
        self.tables = [Sized(Table(source.table), source.bounds, rows) for source in sources]
        self.made: list[Sized] = []

    def view(self) -> Sized:
        """A plan of 1 to 5 operators in depth."""
        return self.relation(self.rng.choice([1, 2, 3, 3, 4, 4, 5]), sharing=True)

    def relation(self, depth: int, *, sharing: bool = False) -> Sized:
        if depth <= 0:
            return self.leaf(sharing)
        maker = self.rng.choices([maker for maker, _ in MAKERS], [weight for _, weight in MAKERS])[0]
        made = maker(self, depth - 1)
        self.made.append(made)
        return made

    def leaf(self, sharing: bool) -> Sized:
        if sharing and self.made and self.rng.random() < 0.4:
            return self.rng.choice(self.made)
        return self.constants() if self.rng.random() < 0.04 else self.rng.choice(self.tables)

    def constants(self) -> Sized:
        """A few rows that look like those of a table."""
        fields = self.rng.choice(self.tables).schema.fields
        rows = [tuple(self.rng.choice(domain(field.type)[:4]) for field in fields) for _ in range(3)]
        schema = Schema(tuple(Field(field.name, field.type, False) for field in fields))
        sizes = tuple(10**12 if field.type.is_integer or field.type.is_decimal else None for field in fields)
        return Sized(Values(tuple(rows), schema), sizes, 3)

    def other(self, depth: int) -> Sized:
        """The second input of a node: not as deep as the first."""
        return self.relation(self.rng.randint(0, min(2, depth)), sharing=True)

    def project(self, depth: int) -> Sized:
        source = self.relation(depth)
        kept = [source.column(i) for i in range(len(source.schema)) if self.rng.random() < 0.6]
        scalars = kept + [self.scalars.any(source) for _ in range(self.rng.randint(0 if kept else 1, 2))]
        self.rng.shuffle(scalars)
        return self._projected(source, scalars)

    def _projected(self, source: Sized, scalars: Sequence[Scalar]) -> Sized:
        columns = tuple((f"p{i}", expr) for i, (expr, _) in enumerate(scalars))
        return Sized(Project(source.plan, columns), tuple(size for _, size in scalars), source.rows)

    def filter(self, depth: int) -> Sized:
        source = self.relation(depth)
        if isinstance(source.plan, Join) and self.rng.random() < 0.5:
            return self._equated(source, source.plan)
        return Sized(Filter(source.plan, self.scalars.predicate(source)), source.bounds, source.rows * 0.6)

    def _equated(self, source: Sized, join: Join) -> Sized:
        """The rows of a join in which a column of one side equals one of the other, where types meet and the join has both."""
        width = len(join.left.schema)
        right = range(width, len(source.schema))
        pairs = [(i, j) for i in range(width) for j in right if source.schema[i].type == source.schema[j].type]
        if not pairs:
            return Sized(Filter(source.plan, self.scalars.predicate(source)), source.bounds, source.rows * 0.6)
        i, j = self.rng.choice(pairs)
        equal = resolve("equal", [source.column(i)[0], source.column(j)[0]])
        return Sized(Filter(source.plan, equal), source.bounds, source.rows * 0.4)

    def thinned(self, source: Sized) -> Sized:
        """A small part of it."""
        return Sized(Filter(source.plan, self.scalars.selective(source)), source.bounds, source.rows * 0.3)

    def join(self, depth: int) -> Sized:
        kind = self.rng.choice(get_args(JoinKind))
        left, right = self.relation(depth), self.other(depth)
        if kind in ("anti", "not_in") and self.rng.random() < 0.7:
            right = self.thinned(right)
        keys = self._keys(left, right)
        rows = left.rows * right.rows * 0.3 ** len(keys)
        if rows > CROWD and kind not in ("semi", "anti", "not_in"):
            kind = self.rng.choice(["semi", "anti"])  # type: ignore[list-item]
        value = None
        if kind == "not_in":
            pairs = keys or self._keys(left, right)
            if not pairs:
                kind = "anti"
            else:
                value, keys = pairs[0], pairs[1:]
        residual = self.scalars.predicate(beside(left, right), 1) if self.rng.random() < 0.3 else None
        plan = Join(left.plan, right.plan, kind, tuple(keys), residual, value)
        if kind in ("semi", "anti", "not_in"):
            return Sized(plan, left.bounds, left.rows * 0.7)
        return Sized(plan, left.bounds + right.bounds, rows + left.rows + right.rows)

    def _keys(self, left: Sized, right: Sized) -> list[tuple[Expr, Expr]]:
        """One or two pairs of columns of one type, sometimes under a function; none where no types meet, and now and then."""
        if self.rng.random() < 0.06:
            return []
        pairs = [(i, j) for i, f in enumerate(left.schema) for j, g in enumerate(right.schema) if f.type == g.type]
        pairs.sort(key=lambda pair: (left.schema[pair[0]].type == BOOLEAN, self.rng.random()))
        chosen = pairs[: 2 if self.rng.random() < 0.2 else 1]
        keys: list[tuple[Expr, Expr]] = []
        for i, j in chosen:
            ours, theirs = left.column(i)[0], right.column(j)[0]
            if self.rng.random() < 0.1:
                default, _ = self.scalars.literal(ours.type)
                ours, theirs = resolve("coalesce", [ours, default]), resolve("coalesce", [theirs, default])
            keys.append((ours, theirs))
        return keys

    def aggregate(self, depth: int) -> Sized:
        source = self.relation(depth)
        keys = [self.scalars.any(source, 1) for _ in range(self.rng.choice([0, 1, 1, 1, 2]))]
        calls = [self.call(source) for _ in range(self.rng.randint(0 if keys else 1, 3))]
        plan = Aggregate(
            source.plan,
            tuple((f"k{i}", expr) for i, (expr, _) in enumerate(keys)),
            tuple((f"a{i}", call) for i, (call, _) in enumerate(calls)),
        )
        return Sized(plan, tuple(size for _, size in (*keys, *calls)), max(1.0, source.rows * 0.4))

    def grouping_sets(self, depth: int) -> Sized:
        source = self.relation(depth)
        plan, bounds = grouping_sets_of(self, source)
        return Sized(plan, bounds, max(1.0, source.rows * 0.4 * len(bounds)))

    def call(self, source: Sized) -> tuple[AggregateCall, Bound]:
        where = self.scalars.predicate(source, 1) if self.rng.random() < 0.25 else None
        distinct = self.rng.random() < 0.2
        match self.rng.choice(self.functions):
            case "any":
                return self._any_aggregate(source, distinct, where) or self._count(source, distinct, where)
            case "sum" | "avg" as function:
                return self._total(source, function, distinct, where) or self._count(source, distinct, where)
            case "min" | "max" as function:
                expr, size = self.scalars.any(source, 1)
                return AggregateCall(function, (expr,), expr.type, True, False, where), size
            case _:
                return self._count(source, distinct, where)

    def _count(self, source: Sized, distinct: bool, where: Expr | None) -> tuple[AggregateCall, Bound]:
        arguments = tuple(self.scalars.any(source, 1)[0] for _ in range(self.rng.choice([1, 1, 2])))
        if not distinct and self.rng.random() < 0.5:
            arguments = ()
        return AggregateCall("count", arguments, BIGINT, False, distinct, where), MANY * 1000

    def _total(self, source: Sized, function: str, distinct: bool, where: Expr | None) -> tuple[AggregateCall, Bound] | None:
        """SUM or AVG of a number or INTERVAL, where the type of the sum holds many of them."""
        operand = self.scalars.column(source, lambda type: type.is_numeric or type.is_interval)
        if operand is None:
            return None
        expr, size = operand
        type, summed = (aggregate_function(name).rule(name, [expr.type], None).result for name in (function, "sum"))
        if size is not None and not (holds(summed, size * MANY) and holds(type, size)):
            return None
        exact = size if type.is_decimal or type.is_integer else None
        call = AggregateCall(function, (expr,), type, True, distinct, where)
        return call, exact * MANY if exact is not None and function == "sum" else exact

    def _any_aggregate(self, source: Sized, distinct: bool, where: Expr | None) -> tuple[AggregateCall, Bound] | None:
        """One of all aggregates but those whose sums could leave their type, over arguments that it accepts; None if none were found."""
        function = self.rng.choice([f for f in built_in() if f.name not in ("count", "sum", "avg") and not f.name.startswith(FAILING)])
        for _ in range(8):
            operands = [self._argument(source, function, i) for i in range(function.parameters[0])]
            types = [expr.type for expr, _ in operands]
            try:
                signature = function.rule(function.name, types, None)
            except TypeMismatch:
                continue
            if any(type != target and cast_can_fail(type, target) for type, target in zip(types, signature.arguments, strict=True)):
                continue  # text that is no number, say
            arguments = tuple(cast(expr, type) for (expr, _), type in zip(operands, signature.arguments, strict=True))
            size = operands[0][1]
            if signature.result.is_nested:
                return None  # the programs have no values of these types
            if signature.result == BIGINT and not signature.nullable:
                size = MANY * 1000
            elif function.name == "try_sum" and size is not None:
                size = size * MANY
            elif function.name.startswith("bit_") and size is not None:
                size = 2 * size + 2
            copies = distinct and function.copies and function.distinct
            return AggregateCall(function.name, arguments, signature.result, signature.nullable, copies, where), size
        return None

    def _argument(self, source: Sized, function: AggregateFunction, i: int) -> Scalar:
        if i not in function.constants:
            return self.scalars.any(source, 1)
        return Literal(self.rng.choice((0.0, 0.1, 0.5, 0.75, 1.0)), DOUBLE), None

    def distinct(self, depth: int) -> Sized:
        source = self.relation(depth)
        if len(source.schema) > 2 and self.rng.random() < 0.5:
            source = self._projected(source, [source.column(i) for i in self.rng.sample(range(len(source.schema)), 2)])
        return Sized(Distinct(source.plan), source.bounds, source.rows * 0.7)

    def union(self, depth: int) -> Sized:
        left, right = self._aligned(self.relation(depth), self.other(depth))
        parts = [left, right, left] if self.rng.random() < 0.2 else [left, right]
        return Sized(Union(tuple(part.plan for part in parts)), _widest(left, right), left.rows + right.rows)

    def set_operation(self, depth: int) -> Sized:
        kind = self.rng.choice(get_args(SetKind))
        left, right = self._aligned(self.relation(depth), self.other(depth))
        if kind.startswith("except") and self.rng.random() < 0.6:
            right = self.thinned(right)
        return Sized(SetOperation(left.plan, right.plan, kind), _widest(left, right), left.rows * 0.6)

    def _aligned(self, left: Sized, right: Sized) -> tuple[Sized, Sized]:
        """Both with the same types: one or two columns that they share, or else two parts of the left one."""
        if [f.type for f in left.schema] == [f.type for f in right.schema] and self.rng.random() < 0.5:
            return left, right
        pairs = [(i, j) for i, f in enumerate(left.schema) for j, g in enumerate(right.schema) if f.type == g.type]
        if not pairs:
            return left, Sized(Filter(left.plan, self.scalars.predicate(left)), left.bounds, left.rows * 0.6)
        chosen = self.rng.sample(pairs, min(len(pairs), self.rng.randint(1, 2)))
        return (
            self._projected(left, [left.column(i) for i, _ in chosen]),
            self._projected(right, [right.column(j) for _, j in chosen]),
        )

    def top_k(self, depth: int) -> Sized:
        source = self.relation(depth)
        limit = self.rng.choice([1, 2, 3, 5])
        order = []
        for _ in range(self.rng.randint(1, 2)):
            descending = self.rng.random() < 0.5
            order.append(Order(self.scalars.any(source, 1)[0], descending, (not descending) if self.rng.random() < 0.75 else descending))
        offset = self.rng.choice((1, 2)) if self.rng.random() < 0.2 else 0
        return Sized(TopK(source.plan, tuple(order), limit, offset=offset), source.bounds, limit)

    def window(self, depth: int) -> Sized:
        source = self.relation(depth)
        plan, bounds = window_of(self, source)
        return Sized(plan, (*source.bounds, *bounds), source.rows)

    def failing(self, depth: int) -> Sized:
        """A view whose topmost expression fails on some rows that it may meet, each on its own account and in one way alone."""
        source = self.relation(depth)
        expr = self.scalars.failing(source)
        if self.rng.random() < 0.3:
            return Sized(Filter(source.plan, resolve("is_not_null", [expr])), source.bounds, source.rows)
        return self._projected(source, [*(source.column(i) for i in range(len(source.schema))), (expr, None)])


def _widest(left: Sized, right: Sized) -> tuple[Bound, ...]:
    return tuple(None if a is None or b is None else max(a, b) for a, b in zip(left.bounds, right.bounds, strict=True))


MAKERS: list[tuple[Callable[[Programs, int], Sized], int]] = [
    (Programs.project, 12),
    (Programs.filter, 14),
    (Programs.join, 34),
    (Programs.aggregate, 16),
    (Programs.grouping_sets, 4),
    (Programs.distinct, 7),
    (Programs.union, 9),
    (Programs.set_operation, 22),
    (Programs.top_k, 8),
    (Programs.window, 8),
]
