"""Test support: programs of aggregates alone, every function of the registry over the types that it accepts, on groups that come and go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from random import Random

from deltic.aggregates import AggregateFunction, aggregate_function
from deltic.aggregates.definition import Direction
from deltic.errors import TypeMismatch
from deltic.expr import cast, resolve
from deltic.expr.nodes import Expr, Literal
from deltic.optimizer.fold import fold
from deltic.plan.columns import reference
from deltic.plan.nodes import Aggregate, AggregateCall, Plan, Table
from deltic.schema import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TINYINT,
    VARIANT,
    Field,
    Schema,
    TableSchema,
    Type,
    decimal,
)
from deltic.types import array_type
from program_data import Content, Source, domain
from program_plans import built_in
from programs import Case

TYPES = (INT, BOOLEAN, TINYINT, BIGINT, DOUBLE, FLOAT, decimal(5, 2), STRING, DATE, SMALLINT, DOUBLE, BIGINT)
"""Of the columns; the first is what rows are grouped by. Of every other one the last half is NOT NULL."""
GROUPS = 3
CONSTANTS = (
    Literal(0.3, DOUBLE),
    Literal(1.0, DOUBLE),
    Literal((0.0, 0.5, 0.9), array_type(DOUBLE)),
    Literal(2, INT),
    Literal(", ", STRING),
    Literal(True, BOOLEAN),
)
"""For the arguments that must be constant."""


def source() -> Source:
    """A table without a key, so that rows may be there several times."""
    fields = tuple(Field(f"c{i}", type, i < len(TYPES) // 2 or i % 2 == 0) for i, type in enumerate(TYPES))
    # Not the ends of the integers: sums of them could leave their type. Of strings also those whose first bytes are equal.
    domains = (domain(INT)[:GROUPS], *(domain(type)[: 10 if type == STRING else 8] for type in TYPES[1:]))
    return Source(TableSchema("t", Schema(fields)), domains)


def calls(function: AggregateFunction, schema: Schema) -> Iterator[AggregateCall]:
    """The function over all columns that it accepts, in all combinations, with its least and greatest number of arguments."""
    least, most = function.parameters
    for count in {least or 1, most or least or 1}:
        of_count = function.of(count)
        columns = _columns(function, [reference(schema, i) for i in range(len(schema))])
        frequencies = [resolve("abs", [resolve("%", [c, Literal(3, INT)])]) for c in columns if c.type.is_integer]
        rare = {i: frequencies for i in (getattr(of_count.state, "frequency", None),) if i is not None}
        rare |= {i: constants(of_count, i) for i in of_count.constants}
        for written in product(*(rare.get(i, columns) for i in range(count))):
            for order, directions in _orders(function, columns):
                if (call := call_of(function, [*written, *order], directions=directions)) is not None:
                    yield call


def _columns(function: AggregateFunction, columns: list[Expr]) -> list[Expr]:
    """The columns, or what is made of them for a function of values that are in none."""
    match function.name:
        case "bitmap_construct_agg":
            return [resolve("bitmap_bit_position", [column]) for column in columns if column.type == BIGINT]
        case "bitmap_or_agg" | "bitmap_and_agg":
            return [cast(column, BINARY) for column in columns if column.type == STRING]
        case "schema_of_variant_agg":
            return [cast(column, VARIANT) for column in columns]
        case "vector_sum" | "vector_avg":
            return [resolve("array", [column]) for column in columns if column.type == FLOAT]
        case _:
            return columns


def _orders(function: AggregateFunction, columns: Sequence[Expr]) -> Iterator[tuple[tuple[Expr, ...], tuple[Direction, ...]]]:
    """(terms after the arguments, directions) of WITHIN GROUP, some of all."""
    yield (), ()
    if function.within in ("required", "value"):
        yield (), ((True, False),)
    elif function.within == "rows":
        yield from (((column,), ((descending, nulls_first),)) for column, descending, nulls_first in _sample(columns))


def _sample(columns: Sequence[Expr]) -> Iterator[tuple[Expr, bool, bool]]:
    for i, column in enumerate(columns):
        yield column, i % 2 == 0, i % 4 < 2


def constants(function: AggregateFunction, i: int) -> list[Expr]:
    """Constants that the function takes as argument i."""
    _, is_valid = function.constants[i]
    return [each for each in CONSTANTS if is_valid(each.value)]


def call_of(
    function: AggregateFunction,
    arguments: list[Expr],
    distinct: bool = False,
    where: Expr | None = None,
    directions: tuple[Direction, ...] = (),
) -> AggregateCall | None:
    """None where the function does not accept the arguments, or would read numbers from strings, which may fail.

    arguments: with the terms of WITHIN GROUP after them, if they are not among them.
    """
    written = len(arguments) - (len(directions) if function.within == "rows" else 0)
    types: list[Type] = [argument.type for argument in arguments[:written]]
    try:
        signature = function.of(written).rule(function.name, types, None)
    except TypeMismatch:
        return None
    if any((type == STRING) != (target == STRING) for type, target in zip(types, signature.arguments, strict=True)):
        return None
    fitted = tuple(fold(cast(argument, type)) for argument, type in zip(arguments, signature.arguments, strict=False))
    if distinct and function.within == "rows":
        directions, arguments = (), arguments[:written]
    every = (*fitted, *arguments[written:])
    copies = distinct and function.of(written).copies and function.distinct
    return AggregateCall(function.name, every, signature.result, signature.nullable, copies, where, directions=directions)


def grouped_case(seed: int) -> Case:
    """Each function once or more in a view by groups or over the whole table; ticks mostly delete once the table is full."""
    rng = Random(f"grouped {seed}")
    given = source()
    table = Table(given.table)
    chosen = [rng.choice(list(calls(function, table.schema))) for function in built_in()]
    where = resolve("greater", [reference(table.schema, 3), Literal(1, BIGINT)])
    varied: list[tuple[str, AggregateCall]] = []
    for i, call in enumerate(chosen):
        condition = where if rng.random() < 0.3 else None
        function = aggregate_function(call.function)
        varied.append((f"a{i}", call_of(function, list(call.arguments), rng.random() < 0.4, condition, call.directions) or call))
    rng.shuffle(varied)
    views: dict[str, Plan] = {}
    for i, start in enumerate(range(0, len(varied), 6)):
        keys = (("k", reference(table.schema, 0)),) if rng.random() < 0.6 else ()
        views[f"view{i}"] = Aggregate(table, keys, tuple(varied[start : start + 6]))
    content = Content(given)
    ticks = [{"t": content.load(rng, 12)}]
    for number in range(8):
        change = [each for _ in range(rng.choice((1, 1, 2, 5))) for each in _change(rng, content, emptying=number > 2)]
        ticks.append({"t": change})
    return Case(seed, {"t": given.table}, views, ticks, False)


def _change(rng: Random, content: Content, *, emptying: bool) -> list[tuple[tuple[object, ...], int]]:
    return content.delete(rng) if content.rows and emptying and rng.random() < 0.7 else content.change(rng)  # type: ignore[return-value]
