"""Accumulators in Python: a function of a key's rows in a tick, or init, step and retract; columns that are sets, maps or objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from deltic.errors import CircuitError, EvaluationError
from deltic.expr.accumulators import Collection, ElementPart, ElementSource, Result, collection
from deltic.expr.nodes import Expr, UserFunction, Value
from deltic.expr.python import row_class, value_in
from deltic.frontends.python.functions import checked_function, user_function, wrapper_of
from deltic.frontends.python.schemas import Columns, field_of, with_names
from deltic.plan.accumulators import AccumulateElements
from deltic.plan.nodes import Accumulate, Plan
from deltic.purity import name_of, shown
from deltic.schema import Field, Schema

ELEMENT, KEY, VALUE = "element", "key", "value"
UNSAFE: Final = ("pickle", "_pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib")
"""Modules whose encodings run code when they are decoded."""


@dataclass(frozen=True, slots=True)
class SetOf:
    """A column of an accumulator that is a set. Each element is a row, `elements(name)`, so that to add one costs what is added.

    element: its type, as in a schema.
    """

    element: Any


@dataclass(frozen=True, slots=True)
class MapOf:
    """A column of an accumulator that is a map. Each key is a row with its value; see SetOf. value: `type | None` if it may be NULL."""

    key: Any
    value: Any


@dataclass(frozen=True, slots=True)
class Encoded:
    """A column of an accumulator that is an object of Python, stored as a value of `type`.

    encode, decode: from the object to the value and back. An object is decoded once and encoded once for each key of a tick, at the cost of
    its size: a large set or map is better a SetOf or MapOf.
    """

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    type: Any = "BINARY"


@dataclass(frozen=True, slots=True)
class AccumulatorColumn:
    """A column of accumulators: a field, or a set or map. encoded: the functions of an object."""

    field: Field | ElementPart
    encoded: Encoded | None = None

    @property
    def name(self) -> str:
        return self.field.name

    @property
    def is_plain(self) -> bool:
        """Whether it is a value of a type."""
        return isinstance(self.field, Field) and self.encoded is None

    def initial(self, given: Any) -> Any:
        """The stored form of the column's value in `init`. Raises CircuitError."""
        if isinstance(self.field, ElementPart):
            return self._begun_part(self.field, given)
        if self.encoded is not None and given is not None:
            given = self.encoded.encode(given)
        value = None if given is None else value_in(self.field.type, given)
        if value is None and given is not None:
            expected = self.field.type.sql
            raise CircuitError(f"init has {shown(given)} for column {self.name}", expected=expected)
        return value

    def _begun_part(self, part: ElementPart, given: Any) -> Any:
        if given is None or (isinstance(given, Iterable) and isinstance(given, Mapping) is (part.value is not None)):
            return given or None
        raise CircuitError(f"init has {shown(given)} for column {self.name}", expected="a set" if part.value is None else "a dict")


@dataclass(frozen=True, slots=True)
class Calls:
    """The functions of an accumulator. function: of (accumulator, rows); or step and retract, of (accumulator, row)."""

    function: Callable[..., Any] | None
    step: Callable[..., Any] | None
    retract: Callable[..., Any] | None

    def check(self) -> None:
        """Raises CircuitError."""
        if (self.function is None) is (self.step is None) or (self.retract is not None and self.step is None):
            raise CircuitError("a stream_aggregate without one function", expected="a function of (accumulator, rows), or step=…")
        for function, rows in ((self.function, "group"), (self.step, "row"), (self.retract, "row")):
            if function is not None:
                checked_function(function, "accumulator", rows)

    @property
    def first(self) -> Callable[..., Any]:
        function = self.function or self.step
        assert function is not None
        return function


def columns_of(schema: Columns | Schema) -> tuple[AccumulatorColumn, ...]:
    """The columns of accumulators of a schema, in which SetOf, MapOf and Encoded stand beside types. Raises CircuitError."""
    if isinstance(schema, Schema):
        return tuple(map(AccumulatorColumn, schema))
    return tuple(_column(name, notation) for name, notation in with_names(schema).items())


def _column(name: str, notation: Any) -> AccumulatorColumn:
    match notation:
        case SetOf():
            return AccumulatorColumn(ElementPart(name, _element(name, ELEMENT, notation.element)))
        case MapOf():
            return AccumulatorColumn(
                ElementPart(name, _element(name, KEY, notation.key), replace(field_of(name, notation.value), name=VALUE))
            )
        case Encoded():
            for function in (notation.encode, notation.decode):
                checked_function(function, "value")
                if str(getattr(function, "__module__", "")).partition(".")[0] in UNSAFE:
                    remedy = "state is read as data: write the object's values, as JSON for example"
                    raise CircuitError(f"column {name}: {name_of(function)} could run code from the state", remedy=remedy)
            return AccumulatorColumn(field_of(name, notation.type), notation)
        case _:
            return AccumulatorColumn(field_of(name, notation))


def _element(name: str, role: str, notation: Any) -> Field:
    field = replace(field_of(name, notation), name=role)
    if field.nullable or not field.type.is_ordered or field.type.is_collated:
        what = "NULL" if field.nullable else field.type.sql
        raise CircuitError(f"column {name}: {what} as {role} of a set or map", expected="a type NOT NULL whose values can be compared")
    return field


def accumulation(
    plan: Plan, keys: tuple[tuple[str, Expr], ...], values: tuple[int, ...], calls: Calls, schema: Columns | Schema, init: Any
) -> Plan:
    """The plan of the keys and the columns that are not sets or maps. values: what functions see of the plan's rows."""
    calls.check()
    columns = columns_of(schema)
    plain = Schema(tuple(column.field for column in columns if isinstance(column.field, Field)))
    parts = tuple(column.field for column in columns if isinstance(column.field, ElementPart))
    rows = tuple(plan.schema[i].name for i in values)
    if calls.function is not None and all(column.is_plain for column in columns):
        one = len(plain) == 1
        whole = user_function(folded(calls.function, init), (None if one else plain.names, rows), 0 if one else len(plain))
        return Accumulate(plan, keys, values, whole, plain)
    folding = _folding(calls, columns, init)
    if parts:
        return AccumulateElements(plan, keys, values, user_function(folding, (None, None, rows), 0), plain, parts, None)
    return Accumulate(plan, keys, values, _without_parts(folding, plain, rows), plain)


def folded(function: Callable[..., Any], init: Any) -> Callable[..., Any]:
    """The function of a stream aggregate; `init` is the accumulator of a new key."""

    @wrapper_of(f"from {init!r}", function)
    def fold(accumulator: Any, group: Any) -> Any:
        return function(init if accumulator is None else accumulator, group)

    return fold


def _without_parts(folding: Callable[..., Any], plain: Schema, rows: tuple[str, ...]) -> UserFunction:
    one = len(plain) == 1

    @wrapper_of("without sets and maps", folding)
    def fold(before: Any, group: Any) -> Any:
        result = folding(None if before is None else (before,) if one else before, (), group)
        return None if result is None else result[0][0] if one else result[0]

    return user_function(fold, (None if one else plain.names, rows), 0 if one else len(plain))


def _folding(calls: Calls, columns: tuple[AccumulatorColumn, ...], init: Any) -> Callable[..., Result | None]:
    """The function of (plain values before, sources of sets and maps, rows of the tick) that deltic.expr.accumulators calls."""
    begin = _initial(columns, init)
    fold = Folding(columns, begin, calls)
    role = repr([(column.name, isinstance(column.field, Field), column.encoded is not None) for column in columns])
    encodings = [function for column in columns if column.encoded for function in (column.encoded.encode, column.encoded.decode)]
    functions = [function for function in (calls.function, calls.step, calls.retract) if function is not None]
    kinds = [name for name in ("function", "step", "retract") if getattr(calls, name) is not None]

    @wrapper_of(f"accumulator of {kinds} with {role}", *functions, *encodings, partial(_first, begin))
    def folding(before: tuple[Value, ...] | None, sources: Sequence[ElementSource], group: Sequence[tuple[Any, int]]) -> Result | None:
        return fold(before, sources, group)

    return folding


def _first(begin: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    """What a new key begins with, as a part of the function's identity."""
    return begin


def _initial(columns: tuple[AccumulatorColumn, ...], init: Any) -> tuple[Any, ...] | None:
    """The stored form of each column of `init`. Without `init`, columns are None, and sets and maps empty."""
    if init is None:
        return None
    given = (init,) if len(columns) == 1 else init
    if not isinstance(given, tuple) or len(given) != len(columns):
        raise CircuitError(f"init is {shown(init)}", expected=f"a tuple of {len(columns)} values, one for each column")
    return tuple(column.initial(value) for column, value in zip(columns, given, strict=True))


@dataclass(frozen=True, slots=True)
class Folding:
    """Folds the rows of a key in one tick. begin: the stored form of a new key's accumulator."""

    columns: tuple[AccumulatorColumn, ...]
    begin: tuple[Any, ...] | None
    calls: Calls

    def __call__(
        self, before: tuple[Value, ...] | None, sources: Sequence[ElementSource], group: Sequence[tuple[Any, int]]
    ) -> Result | None:
        parts = [column.field for column in self.columns if isinstance(column.field, ElementPart)]
        user = name_of(self.calls.first)
        sets = [collection(part, source, user) for part, source in zip(parts, sources, strict=True)]
        held = None if before is None else self._stored(before, sets)
        result = self._steps(held, sets, group) if self.calls.function is None else self._called(held, sets, group)
        if result is None:
            return None
        plain = [
            value if column.encoded is None or value is None else column.encoded.encode(value)
            for column, value in zip(self.columns, result, strict=True)
            if isinstance(column.field, Field)
        ]
        return tuple(plain), tuple(one.changes() for one in sets)

    def _called(self, held: tuple[Any, ...] | None, sets: Sequence[Collection], group: Sequence[tuple[Any, int]]) -> tuple[Any, ...] | None:
        function = self.calls.function
        assert function is not None
        return self._returned(function(self._given(self._initial(sets) if held is None else held), group), sets)

    def _steps(self, held: tuple[Any, ...] | None, sets: Sequence[Collection], group: Sequence[tuple[Any, int]]) -> tuple[Any, ...] | None:
        for row, weight in group:
            function = self.calls.step if weight > 0 else self.calls.retract
            if function is None:
                raise EvaluationError(
                    f"the accumulator by {name_of(self.calls.first)} reads {shown(row)} with weight {weight}",
                    expected="rows that are added",
                    remedy="retract=…, a function of (accumulator, row)",
                )
            for _ in range(abs(weight)):
                initial = self._initial(sets) if held is None else held
                held = self._returned(function(self._given(initial), row), sets)
                if held is None:
                    for one in sets:
                        one.clear()
        return held

    def _stored(self, values: Iterable[Any], sets: Iterable[Collection]) -> tuple[Any, ...]:
        """The accumulator of stored values, its objects decoded."""
        plain, collections = iter(values), iter(sets)
        return tuple(
            next(collections) if isinstance(column.field, ElementPart) else _decoded(column, next(plain)) for column in self.columns
        )

    def _initial(self, sets: Sequence[Collection]) -> tuple[Any, ...] | None:
        """A new key's accumulator."""
        if self.begin is None:
            return self._stored((None,) * len(self.columns), sets) if sets else None
        pairs = list(zip(self.columns, self.begin, strict=True))
        elements = [value for column, value in pairs if isinstance(column.field, ElementPart)]
        for one, first in zip(sets, elements, strict=True):
            one.update(first or ())
        return self._stored([value for column, value in pairs if isinstance(column.field, Field)], sets)

    def _given(self, values: tuple[Any, ...] | None) -> Any:
        """The accumulator as functions take it."""
        if values is None or len(self.columns) == 1:
            return None if values is None else values[0]
        return row_class(tuple(column.name for column in self.columns))(*values)

    def _returned(self, result: Any, sets: Sequence[Collection]) -> tuple[Any, ...] | None:
        """The accumulator that a function returned; None if it drops the key."""
        if result is None:
            return None
        values = (result,) if len(self.columns) == 1 and not _is_one(result) else result
        if not isinstance(values, tuple) or len(values) != len(self.columns):
            expected = "a tuple of 1 value" if len(self.columns) == 1 else f"a tuple of {len(self.columns)} values, one for each column"
            raise EvaluationError(f"the function {name_of(self.calls.first)} returned {shown(result)}", expected=expected)
        collections = iter(sets)
        for column, value in zip(self.columns, values, strict=True):
            if isinstance(column.field, ElementPart) and value is not next(collections):
                what = "set" if column.field.value is None else "map"
                raise EvaluationError(
                    f"the function {name_of(self.calls.first)} returned {shown(value)} for {column.name}",
                    expected=f"the accumulator's {what}, changed in place",
                )
        return values


def _decoded(column: AccumulatorColumn, value: Any) -> Any:
    return value if column.encoded is None or value is None else column.encoded.decode(value)


def _is_one(result: Any) -> bool:
    """Whether it is a value in a tuple of one."""
    return isinstance(result, tuple) and len(result) == 1
