"""Functions in Python that SQL can call: plain ones, ones on Arrow arrays, and those of PySpark's udf, pandas_udf and arrow_udf."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from inspect import Parameter, Signature, isclass, signature
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

import pyarrow as pa

from deltic.errors import CircuitError
from deltic.expr.nodes import GroupChange, GroupMerge
from deltic.frontends.python.functions import user_function, wrapper_of
from deltic.frontends.python.schemas import type_of
from deltic.frontends.python.series import array_of, series_of
from deltic.frontends.python.spark_values import spark_value
from deltic.frontends.python.tables import columns_of, handler_of, is_handler, rows_function
from deltic.frontends.statements import PythonAggregate, PythonScalar, PythonTable
from deltic.purity import name_of
from deltic.schema import Schema, Type
from deltic.types import frozen_list, struct

_BY_ROW: Final = (100, 101)
_PANDAS, _ARROW = 200, 250
_ITERATED_PANDAS, _ITERATED_ARROW = 204, 251
_GROUPED_PANDAS, _GROUPED_ARROW = 202, 252
"""PySpark's evaluation types of scalar functions: PythonEvalType in pyspark.util."""
_POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class UDF:
    """A function in Python that SQL calls by `name`; part of a Program, or given to `Session.register`.

    function: of as many values as the call has arguments, None for NULL; it must be pure. A function that PySpark's udf, pandas_udf or
    arrow_udf returned is taken with its return type; one of iterators gets all rows of a change as one batch. returns: a Python type, one
    of PySpark or Arrow, or a type's SQL name, such as "DECIMAL(10,2)"; the result may be None. on_batches: the function takes Arrow arrays
    and returns one of the same length, and is called once for each change.
    aggregate: the function takes the rows of a group, an Arrow array for each argument, sorted by all of them, with NULLs, and returns the
    value of the group; what pandas_udf and arrow_udf returned for such a function is one without this. A class with `step`, which gets the
    values of one row, and `finish`, which returns the value, is an aggregate too. One with `state`, the names and types of its attributes,
    and `retract`, which takes a row back, follows the rows that change; with `merge`, which takes an instance for rows that come after its
    own, the rows of a group are kept sorted, in a tree of partial results. A class with `eval`, or what udtf returned for one, is a table
    function; `returns` is its columns, such as "word STRING, n INT". A new instance serves each call, so that it is pure.

    Cost: a Python call for each row, for each change on batches, or for each group that changed, with all of its rows. Raises CircuitError.
    """

    __slots__ = ("defined",)

    defined: PythonScalar | PythonAggregate | PythonTable

    def __init__(
        self, name: str, function: Callable[..., Any], returns: Any = None, *, on_batches: bool = False, aggregate: bool = False
    ) -> None:
        if not isinstance(name, str) or not name:
            raise CircuitError(f"invalid name of a function {name!r}", expected="a text of at least one character")
        if is_handler(function):
            self.defined = _table(name, function, returns)
            return
        by_spark_row = getattr(function, "evalType", None) in _BY_ROW
        if hasattr(function, "evalType"):
            aggregate = function.evalType in (_GROUPED_PANDAS, _GROUPED_ARROW)
            function, returns, on_batches = _of_spark(function, returns)
        if not callable(function):
            raise CircuitError(f"{name}: {function!r} cannot be called", expected="a function")
        type = type_of(_without_none(returns))
        step: Any = getattr(function, "step", None)
        accumulates = isclass(function) and step is not None and hasattr(function, "finish")
        if isclass(function) and type is None and not accumulates:
            expected = "a class with eval(…) for a table function, or with step(…) and finish() for an aggregate"
            raise CircuitError(f"{name}: the class {name_of(function)} has no eval", expected=expected)
        if type is None:
            expected = 'bool, int, float, str, a class of datetime, a type of PySpark or Arrow, or its SQL name, such as "DECIMAL(10,2)"'
            if returns is None:
                raise CircuitError(f"{name}: the type of the result is missing", expected=expected, remedy="returns=int, for example")
            raise CircuitError(f"{name}: invalid type {returns!r} of the result", expected=expected)
        if isclass(function) and aggregate and not accumulates:
            expected = "a class with step(…) and finish(), or a function of arrays"
            raise CircuitError(f"{name}: the class {name_of(function)} is not an aggregate", expected=expected)
        least, most = _counts(name, step if accumulates else function)
        names = _names(step if accumulates else function)
        if accumulates:
            state = _state_of(name, function)
            call = user_function(_of_accumulator(function, state), (), 0)
            if state is not None and hasattr(function, "retract"):
                call = replace(call, change=GroupChange(user_function(_change_of(function, state), (), 1 + len(state)), state.fields))
            elif state is not None:
                call = replace(call, merge=_merge_of(function, state))
            self.defined = PythonAggregate(name, call, type, max(least - 1, 1), None if most is None else most - 1, names[1:])
        elif aggregate:
            self.defined = PythonAggregate(name, user_function(function, (), 0), type, max(least, 1), most, names)
        else:
            called = user_function(function, (), 0, on_batches=on_batches)
            called = replace(called, converts=spark_value) if by_spark_row else called
            self.defined = PythonScalar(name, called, type, least, most, names)

    @property
    def name(self) -> str:
        """The name by which SQL calls it."""
        return self.defined.name

    @property
    def type(self) -> Type:
        """Of what it returns; of a table function, of a row."""
        return struct(self.defined.returned.fields) if isinstance(self.defined, PythonTable) else self.defined.type

    def __eq__(self, other: object) -> bool:
        return self.defined == other.defined if isinstance(other, UDF) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.defined)

    def __repr__(self) -> str:
        return f"UDF({self.name!r}, {name_of(self.defined.function.call)}, {self.type.sql!r})"


def _table(name: str, function: Any, returns: Any) -> PythonTable:
    handler = handler_of(function)
    returned = columns_of(name, function, returns)
    least, most = _counts(name, handler.eval)
    rows = user_function(rows_function(handler), (), len(returned))
    if handler is not function:
        rows = replace(rows, converts=spark_value)
    names = _names(handler.eval)[1:]
    return PythonTable(name, rows, returned, least - 1, None if most is None else most - 1, hasattr(handler, "terminate"), names)


def _without_none(returns: Any) -> Any:
    """T of `T | None`; anything else as it is."""
    kinds = [kind for kind in get_args(returns) if kind is not type(None)]
    return kinds[0] if get_origin(returns) in (Union, UnionType) and len(kinds) == 1 else returns


def _counts(name: str, function: Callable[..., Any]) -> tuple[int, int | None]:
    """How many arguments it takes."""
    try:
        parameters = signature(function).parameters.values()
    except ValueError:  # a compiled function without a signature
        return 0, None
    required = [one.name for one in parameters if one.kind is Parameter.KEYWORD_ONLY and one.default is Parameter.empty]
    if required:
        expected = "a function of positional arguments"
        raise CircuitError(f"{name}: the function {name_of(function)} requires {required[0]} by keyword", expected=expected)
    places = [one for one in parameters if one.kind in _POSITIONAL]
    least = sum(one.default is Parameter.empty for one in places)
    return least, None if any(one.kind is Parameter.VAR_POSITIONAL for one in parameters) else len(places)


def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the arguments, in order."""
    try:
        return tuple(one.name for one in signature(function).parameters.values() if one.kind in _POSITIONAL)
    except ValueError:
        return ()


def _of_spark(function: Any, returns: Any) -> tuple[Callable[..., Any], Any, bool]:
    """(the user's function, its return type, whether it is on batches) of what PySpark's udf and its relatives return."""
    if not getattr(function, "deterministic", True):
        remedy = "a pure function: pass time and randomness as columns"
        raise CircuitError(f"the function {name_of(function.func)} is declared nondeterministic", expected=remedy)
    type = function.returnType if returns is None else returns
    kind, called = function.evalType, function.func
    if kind in _BY_ROW:
        return called, type, False
    if kind == _ARROW:
        return called, type, True
    if kind == _PANDAS:
        return _on_series(called, type_of(type)), type, True
    if kind in (_ITERATED_PANDAS, _ITERATED_ARROW):
        return _on_iterators(called, type_of(type) if kind == _ITERATED_PANDAS else None), type, True
    if kind == _GROUPED_ARROW:
        return called, type, False
    if kind == _GROUPED_PANDAS:
        return _of_series(called), type, False
    expected = "udf, udtf, or pandas_udf and arrow_udf of series or arrays, or of iterators of them"
    raise CircuitError(f"the function {name_of(called)} is not supported (PySpark's evalType {kind})", expected=expected)


def _of_series(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a group as pandas series as one of Arrow arrays."""

    @wrapper_of("group of series", function)
    def of_arrays(*arrays: pa.Array) -> Any:
        return function(*(series_of(array, frames=False) for array in arrays))

    return of_arrays


def _state_of(name: str, accumulator: Any) -> Schema | None:
    """The attributes that are the state of an aggregate with `retract` or `merge`; None for one without both."""
    state = getattr(accumulator, "state", None)
    methods = [method for method in ("retract", "merge") if hasattr(accumulator, method)]
    if bool(methods) != isinstance(state, str):
        expected = 'both, or neither: retract(…) or merge(other), and its attributes with their types, state = "n BIGINT, total DOUBLE"'
        method = methods[0] if methods else "retract or merge"
        raise CircuitError(f"{name}: the class {name_of(accumulator)} has only one of {method} and state", expected=expected)
    return None if state is None else columns_of(name, accumulator, state)


def _role(accumulator: Any, state: Schema | None) -> str:
    if state is None:
        return "accumulator"
    kind = "accumulator" if hasattr(accumulator, "retract") else "merging accumulator"
    return f"{kind} of {struct(state.fields).sql}"


def _change_of(accumulator: Any, state: Schema) -> Callable[..., Any]:
    """The class as the function of a GroupChange: an instance with the attributes of the state, `step`, `retract`, and `finish`."""

    @wrapper_of(f"change of an {_role(accumulator, state)}", accumulator)
    def changed(stored: tuple[Any, ...] | None, added: Sequence[tuple[Any, ...]], removed: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
        group = accumulator()
        if stored is not None:
            for attribute, value in zip(state.names, stored, strict=True):
                setattr(group, attribute, value)
        for values in added:
            group.step(*values)
        for values in removed:
            group.retract(*values)
        return (group.finish(), *(getattr(group, attribute) for attribute in state.names))

    return changed


def _of_accumulator(accumulator: Any, state: Schema | None) -> Callable[..., Any]:
    """The class as a function of the rows of a group: `step` of each row of a new instance, then `finish`.

    If it merges, each row has an instance, and they are merged one after the other.
    """
    merges = state is not None and not hasattr(accumulator, "retract")

    @wrapper_of(_role(accumulator, state), accumulator)
    def of_arrays(*arrays: pa.Array) -> Any:
        group: Any = None
        for values in zip(*map(frozen_list, arrays), strict=True):
            row = accumulator() if group is None or merges else group
            row.step(*values)
            group = _merged(group, row) if group is not None and merges else row
        return group.finish()

    return of_arrays


def _merged(group: Any, other: Any) -> Any:
    """The instance for the rows of both: what `merge` returns, or the first one, if it returns nothing."""
    whole = group.merge(other)
    return group if whole is None else whole


def _merge_of(accumulator: Any, state: Schema) -> GroupMerge:
    """The class as the functions of a GroupMerge: instances with the attributes of the state."""
    names = state.names

    def instance(values: Sequence[Any]) -> Any:
        part = accumulator()
        for attribute, value in zip(names, values, strict=True):
            setattr(part, attribute, value)
        return part

    def state_of(part: Any) -> tuple[Any, ...]:
        return tuple(getattr(part, attribute) for attribute in names)

    role = _role(accumulator, state)

    @wrapper_of(f"row of a {role}", accumulator)
    def lifted(values: Sequence[Any]) -> tuple[Any, ...]:
        row = accumulator()
        row.step(*values)
        return state_of(row)

    @wrapper_of(f"parts of a {role}", accumulator)
    def merged(parts: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
        return state_of(reduce(_merged, map(instance, parts)))

    @wrapper_of(f"value of a {role}", accumulator)
    def finished(values: Sequence[Any]) -> Any:
        return instance(values).finish()

    width = len(state)
    return GroupMerge(user_function(lifted, (), width), user_function(merged, (), width), user_function(finished, (), 0), state.fields)


def _on_series(function: Callable[..., Any], type: Type | None) -> Callable[..., Any]:
    """The function on pandas series as one on Arrow arrays; its result's index does not count."""

    @wrapper_of("series", function)
    def on_arrays(*arrays: pa.Array) -> pa.Array:
        result = function(*map(series_of, arrays))
        return pa.Array.from_pandas(result) if type is None else array_of(result, type)

    return on_arrays


def _on_iterators(function: Callable[..., Any], series: Type | None) -> Callable[..., Any]:
    """The function of an iterator over batches, each a column or a tuple of columns, as one on Arrow arrays: all rows are one batch.

    series: the type of the result of a function of pandas series; None for one of Arrow arrays.
    """

    @wrapper_of("iterators", function)
    def on_arrays(first: pa.Array, *others: pa.Array) -> pa.Array:
        columns = (first, *others) if series is None else tuple(map(series_of, (first, *others)))
        batches = function(iter([columns if others else columns[0]]))
        parts = [batch if series is None else array_of(batch, series) for batch in batches]
        return pa.concat_arrays([chunk for part in parts for chunk in (part.chunks if isinstance(part, pa.ChunkedArray) else [part])])

    vars(on_arrays)["__signature__"] = Signature([Parameter("first", _POSITIONAL[0]), Parameter("others", Parameter.VAR_POSITIONAL)])
    return on_arrays
