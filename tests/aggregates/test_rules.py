"""Type rules of the aggregates, and the registry."""

from __future__ import annotations

import pytest

from deltic.aggregates import AggregateFunction, aggregate_function, aggregate_functions, is_aggregate, register
from deltic.aggregates.definition import First, Linear, Rows, Signature
from deltic.aggregates.rules import same
from deltic.errors import TypeMismatch
from deltic.expr.nodes import Value
from deltic.schema import BIGINT, BOOLEAN, DATE, DOUBLE, FLOAT, INT, NULL, STRING, TIMESTAMP, TINYINT, Type, decimal

RESULTS = [
    ("count", (), BIGINT, False), ("count", (STRING,), BIGINT, False), ("sum", (TINYINT,), BIGINT, True), ("sum", (FLOAT,), DOUBLE, True),
    ("sum", (decimal(10, 2),), decimal(20, 2), True), ("sum", (decimal(38, 10),), decimal(38, 10), True), ("avg", (INT,), DOUBLE, True),
    ("avg", (decimal(10, 2),), decimal(14, 6), True), ("avg", (decimal(38, 38),), decimal(38, 38), True), ("sum", (STRING,), DOUBLE, True),
    ("sum", (NULL,), DOUBLE, True), ("min", (DATE,), DATE, True), ("max", (STRING,), STRING, True), ("mean", (INT,), DOUBLE, True),
]  # fmt: skip


@pytest.mark.parametrize(("function", "arguments", "type", "nullable"), RESULTS)
def test_result_types(function: str, arguments: tuple[Type, ...], type: Type, nullable: bool) -> None:
    signature = aggregate_function(function).rule(function, arguments, None)
    assert (signature.result, signature.nullable) == (type, nullable)


@pytest.mark.parametrize("function", ["sum", "avg"])
@pytest.mark.parametrize("argument", [BOOLEAN, DATE, TIMESTAMP], ids=str)
def test_arguments_that_are_not_numbers_are_rejected(function: str, argument: Type) -> None:
    with pytest.raises(TypeMismatch, match=f"{function.upper()} does not accept {argument.sql}"):
        aggregate_function(function).rule(function, [argument], None)


def test_strings_are_added_as_doubles() -> None:
    assert aggregate_function("avg").rule("avg", [STRING], None).arguments == (DOUBLE,)


def _least(rows: Rows, signature: Signature) -> Value:
    raise AssertionError


def test_a_name_belongs_to_one_function() -> None:
    count = aggregate_function("count")
    register(count)
    with pytest.raises(ValueError, match="there is already an aggregate mean"):
        register(AggregateFunction("midpoint", same, First((0,), descending=False), _least, aliases=("mean",), copies=False))
    assert not is_aggregate("midpoint")
    assert aggregate_function("count") is count
    assert len({name for function in aggregate_functions() for name in (function.name, *function.aliases)}) >= 6


def test_a_contradictory_definition_is_rejected() -> None:
    with pytest.raises(AssertionError, match="copies"):
        AggregateFunction("f", same, First((0,), descending=False), _least)
    with pytest.raises(AssertionError):
        AggregateFunction("No Name", same, Linear(lambda arguments: (), "count"), _least)
    with pytest.raises(AssertionError):
        First((1,), descending=False)
