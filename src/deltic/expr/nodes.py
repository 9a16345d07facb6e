"""Scalar expressions: frozen, typed, data only.

An expression is complete when it is created: every node has its type and whether it can be NULL, and function calls are resolved
(expr/registry.py) with their arguments already cast to the function's parameter types. Columns are positions in the input row.
A span is the place of the expression in the user's text; it takes no part in equality or hashing.
"""

from __future__ import annotations

import datetime
import decimal
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from operator import attrgetter
from typing import Any, Final

from deltic.errors import Span
from deltic.schema import BOOLEAN, Field, Type

Moment = datetime.date | datetime.datetime | datetime.time | datetime.timedelta
Value = bool | int | float | str | bytes | decimal.Decimal | Moment | tuple[Any, ...] | None
"""A value of a row in Python. TIMESTAMP is an aware datetime in UTC, TIMESTAMP_NTZ one without a zone, TIME a time without one; FLOAT is a
Python float that float32 can hold; a day-time INTERVAL is a timedelta, a year-month one the number of its months."""


@dataclass(frozen=True, slots=True)
class Column:
    """The value at position `index` of the input row."""

    index: int
    type: Type
    nullable: bool
    name: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)
    filled: int = field(default=0, compare=False, repr=False)
    """Of a CHAR(n) of a table, n: what it is compared with is filled with blanks as it is."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. 0.0 and -0.0, and 1 and 1.0, are different literals when their types or signs differ (see `identity`).

    derived: computed from an expression, such as a cast of a constant. Where a type depends on the digits of a literal, a written
    literal counts the digits in the text, a derived one those of its type.
    """

    value: Value
    type: Type
    span: Span | None = field(default=None, compare=False, repr=False)
    derived: bool = field(default=False, compare=False, repr=False, kw_only=True)
    identity: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "identity", repr(self.value))

    @property
    def nullable(self) -> bool:
        return self.value is None


@dataclass(frozen=True, slots=True)
class Constants:
    """Distinct constants of one type, without NULL, for hash lookups. Used only as an argument of calls; it has no value of its own.

    positions: the position of each value, by `lookup_key`. identity: a digest of the values in order; equality and hashing use it.
    Cost: a list of 100,000 values is one node.
    """

    values: tuple[Value, ...] = field(compare=False)
    type: Type
    nullable: bool = field(init=False, default=False, compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)
    identity: str = field(init=False, repr=False)
    positions: Mapping[Value, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        positions: dict[Value, int] = {lookup_key(value): i for i, value in enumerate(self.values)}
        assert len(positions) == len(self.values) and None not in positions
        object.__setattr__(self, "positions", positions)
        object.__setattr__(self, "identity", hashlib.blake2b(repr(self.values).encode(errors="surrogatepass"), digest_size=16).hexdigest())

    @staticmethod
    def of(values: Iterable[Value], type: Type, span: Span | None = None) -> Constants:
        """The distinct values without NULL; of equal values the first is kept."""
        distinct: dict[Value, Value] = {}
        for value in values:
            distinct.setdefault(lookup_key(value), value)
        distinct.pop(None, None)
        return Constants(tuple(distinct.values()), type, span)


def lookup_key(value: Value) -> Value:
    """A dictionary key that is the same for values that are equal in SQL: all NaNs have one key, and so do 0.0 and -0.0."""
    if isinstance(value, tuple):
        return tuple(map(lookup_key, value))
    return value if value == value else "NaN"


class _Composite:
    """Base of the expressions with parts, which are often shared: equality takes each pair of parts once, and a hash is computed once.

    Neither is recursive: a level of nested tuples would take up to five frames of Python's stack.
    """

    __slots__ = ("_columns", "_hash", "_outer", "_size", "_variables")
    _columns: frozenset[int]
    _hash: int
    _outer: frozenset[OuterColumn]
    _size: int
    _variables: frozenset[VariableKey]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        waiting: list[tuple[Any, Any]] = [(self, other)]
        compared: set[tuple[int, int]] = set()
        while waiting:
            one, two = waiting.pop()
            if one is two:
                continue
            kind = type(one)
            if kind is not type(two):
                return False
            own = _OWN.get(kind)
            if own is None:
                if one != two:
                    return False
                continue
            if (place := (id(one), id(two))) in compared:
                continue
            compared.add(place)
            parts, others = children(one), children(two)
            if len(parts) != len(others) or own(one) != own(two):
                return False
            waiting += zip(parts, others, strict=True)
        return True

    def __hash__(self) -> int:
        waiting: list[Any] = [] if hasattr(self, "_hash") else [self]
        while waiting:
            one = waiting[-1]
            parts = children(one)
            if inner := [part for part in parts if isinstance(part, _Composite) and not hasattr(part, "_hash")]:
                waiting += inner
                continue
            object.__setattr__(waiting.pop(), "_hash", hash((_OWN[type(one)](one), parts)))
        return self._hash


@dataclass(frozen=True, slots=True, eq=False)
class Call(_Composite):
    """A call of a function or operator, by the name of its record (expr/registry.py): 'add', 'and', 'upper', …

    `and`, `or`, `concat` and `add` have two arguments or more: a chain of ten thousand is one call.
    """

    function: str
    arguments: tuple[Expr, ...]
    type: Type
    nullable: bool
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Cast(_Composite):
    """CAST (ANSI), or TRY_CAST when `lenient`: a value that cannot be cast becomes NULL."""

    argument: Expr
    type: Type
    nullable: bool
    lenient: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Case(_Composite):
    """CASE WHEN c THEN v … ELSE otherwise END; branches are evaluated only on the rows that reach them."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr
    type: Type
    nullable: bool
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A pure function of the running program, identified by its name and the digest of its code. The code is never stored.

    parameters: one entry per parameter: the column names if it takes a row, None if it takes a value. width: the length of the tuple
    that it returns; 0 if it returns a single value. on_batches: it takes an Arrow record batch for a row and an array for a value,
    and returns arrays. change: of an aggregate whose value follows the change of a group. merge: of one whose value follows from those of
    parts of a group. converts: makes the argument that the function
    takes of a value, by its type; None if it takes values as they are.
    """

    name: str
    digest: str
    parameters: tuple[tuple[str, ...] | None, ...]
    width: int
    on_batches: bool
    call: Callable[..., Any] = field(compare=False, repr=False)
    change: GroupChange | None = field(default=None, compare=False, repr=False)
    merge: GroupMerge | None = field(default=None, compare=False, repr=False)
    converts: Callable[[Type, Value], Any] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GroupChange:
    """How the value of a group follows from a change of its rows.

    function: (the values of `state`, or None for a group that had no rows; the argument lists of the rows that are added; of those that are
    removed) → (the value, the new values of `state`, …).
    """

    function: UserFunction
    state: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class GroupMerge:
    """How the value of a group follows from its rows in order.

    lift: (the arguments of a row) → the values of `state` of that row alone. merge: (such values of neighbouring parts of the group, in
    order) → those of the whole; associative. finish: (the values of `state` of the group) → the value.
    """

    lift: UserFunction
    merge: UserFunction
    finish: UserFunction
    state: tuple[Field, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PythonFunction(_Composite):
    """Element `part` of the result of a user's function for `arguments`, the values of its parameters in order."""

    function: UserFunction
    arguments: tuple[Expr, ...]
    part: int
    type: Type
    nullable: bool
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LambdaVariable:
    """A parameter of the lambda around it that is at `level`, counted from the outermost, 0; `place`: which parameter.

    Of two lambdas of one level, the inner one is meant. So lambdas that differ only in the names of their parameters are equal.
    """

    level: int
    place: int
    type: Type
    nullable: bool
    name: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def key(self) -> VariableKey:
        return self.level, self.place


VariableKey = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Lambda(_Composite):
    """(parameters) -> body: a function from elements to a value. Used only as an argument of calls; it has no value of its own."""

    parameters: tuple[LambdaVariable, ...]
    body: Expr
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def type(self) -> Type:
        return self.body.type

    @property
    def nullable(self) -> bool:
        return self.body.nullable


@dataclass(frozen=True, slots=True)
class OuterColumn:
    """A column of the row for which a correlated subquery is evaluated: a value that a DependentJoin around it gives.

    number: different from those of all other queries in the process. It occurs only while a query is bound: unnesting replaces it.
    """

    number: int
    type: Type
    nullable: bool
    name: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)
    filled: int = field(default=0, compare=False, repr=False)
    """As of Column."""


Expr = Column | OuterColumn | Literal | Constants | LambdaVariable | Lambda | Call | Cast | Case | PythonFunction

TRUE = Literal(True, BOOLEAN)

CHAIN: Final = "chain"
"""The function of a long chain of operators (expr/functions/chains.py)."""
WIDENED: Final = "widened"
"""The function whose value is its argument, and may be NULL by its type: rewrites keep a schema with it."""
CHAINS: Final = frozenset(("and", "or", "concat", "add"))
"""Functions of two or more arguments: a call of the same function as the leftmost argument is replaced by its arguments."""


_LEAVES: Final = frozenset((str, int, bool, float, type(None), Type, Span))
"""Classes without a user function in them; most fields of expressions are of these."""


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct subexpressions, in order of evaluation."""
    match expr:
        case Column() | OuterColumn() | Literal() | Constants() | LambdaVariable():
            return ()
        case Lambda():
            return (expr.body,)
        case Call() | PythonFunction():
            return expr.arguments
        case Cast():
            return (expr.argument,)
        case Case():
            return (*(part for branch in expr.branches for part in branch), expr.otherwise)


_OWN: Final[Mapping[type, Callable[[Any], Any]]] = {
    Call: attrgetter("function", "type", "nullable"),
    Cast: attrgetter("type", "nullable", "lenient"),
    Case: attrgetter("type", "nullable"),
    PythonFunction: attrgetter("function", "part", "type", "nullable"),
    Lambda: attrgetter("parameters"),
}
"""What is compared of expressions with parts, beside these."""


def unwidened(expr: Expr) -> Expr:
    """The expression without WIDENED around it."""
    return expr.arguments[0] if isinstance(expr, Call) and expr.function == WIDENED else expr


def columns_of(expr: Expr) -> frozenset[int]:
    """Positions of the input row that the expression reads."""
    if isinstance(expr, Column):
        return frozenset((expr.index,))
    if not isinstance(expr, _Composite):
        return frozenset()
    try:
        return expr._columns
    except AttributeError:
        columns = frozenset[int]().union(*map(columns_of, children(expr)))
        object.__setattr__(expr, "_columns", columns)
        return columns


def size_of(expr: Expr) -> int:
    """The nodes of the expression as a tree, however much of it is shared."""
    if not isinstance(expr, _Composite):
        return 1
    try:
        return expr._size
    except AttributeError:
        size = 1 + sum(map(size_of, children(expr)))
        object.__setattr__(expr, "_size", size)
        return size


def distinct_parts(exprs: Iterable[Expr]) -> Iterator[Expr]:
    """The expressions and all that they consist of, each once, in the order of their text."""
    waiting, seen = [*exprs][::-1], set[Expr]()
    while waiting:
        expr = waiting.pop()
        if expr not in seen:
            seen.add(expr)
            waiting += children(expr)[::-1]
            yield expr


def calls_python(expr: Expr) -> bool:
    """Whether the expression calls a function in Python."""
    return any(isinstance(part, PythonFunction) for part in distinct_parts([expr]))


FieldPath = tuple[int, tuple[int, ...]]
"""A column of STRUCTs, and the position of a field in it, of a field in that, and so on."""


def field_path(expr: Expr) -> FieldPath | None:
    """The field of a column that the expression is; a column itself is no field. None for any other expression."""
    path: list[int] = []
    while True:
        match expr:
            case Column() if path:
                return expr.index, tuple(reversed(path))
            case Call(function="field", arguments=(value, Literal(value=int(position)))) if value.type.name == "STRUCT":
                path.append(position)
                expr = value
            case _:
                return None


def free_variables(expr: Expr) -> frozenset[VariableKey]:
    """The parameters of lambdas around the expression that it reads."""
    if isinstance(expr, LambdaVariable):
        return frozenset((expr.key,))
    if not isinstance(expr, _Composite):
        return frozenset()
    try:
        return expr._variables
    except AttributeError:
        variables = frozenset[VariableKey]().union(*map(free_variables, children(expr)))
        variables = variables - {parameter.key for parameter in expr.parameters} if isinstance(expr, Lambda) else variables
        object.__setattr__(expr, "_variables", variables)
        return variables


def outer_columns(expr: Expr) -> frozenset[OuterColumn]:
    """The columns of enclosing queries that the expression reads."""
    if isinstance(expr, OuterColumn):
        return frozenset((expr,))
    if not isinstance(expr, _Composite):
        return frozenset()
    try:
        return expr._outer
    except AttributeError:
        columns = frozenset[OuterColumn]().union(*map(outer_columns, children(expr)))
        object.__setattr__(expr, "_outer", columns)
        return columns


def is_fixed(expr: Expr) -> bool:
    """Whether it has one value: it reads no column and no parameter of a lambda around it."""
    return not columns_of(expr) and not free_variables(expr) and not outer_columns(expr)


def user_functions(value: object, outside: tuple[type, ...] = ()) -> Iterator[UserFunction]:
    """The users' functions in nested frozen data, visiting each part once; parts of a type in `outside` are skipped."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if id(part) in seen or isinstance(part, outside):
            continue
        seen.add(id(part))
        if isinstance(part, UserFunction):
            yield part
        elif isinstance(part, tuple):
            waiting += part
        else:
            kind: Any = type(part)
            waiting += [inner for name in _field_names(kind) if type(inner := getattr(part, name)) not in _LEAVES]


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    """The field names of a dataclass; empty for other classes."""
    return tuple(one.name for one in fields(kind)) if is_dataclass(kind) else ()
