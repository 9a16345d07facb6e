"""The scalar functions, one record each, by name: the signature, the row and array forms, and whether a call can fail.

Invariant: a registered function is complete, and no two share a name. The evaluators, the typing of calls and the
optimizer's rules know functions only through their records, which are in deltic.expr.functions, by topic.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from deltic.errors import Span, UnknownName
from deltic.expr.collating import unless_text
from deltic.expr.nodes import Call, Column, Expr
from deltic.schema import Field, Type


class Typed(NamedTuple):
    """The arguments of a call, cast to the parameter types, and the type of the result."""

    arguments: tuple[Expr, ...]
    type: Type
    nullable: bool

    def call(self, function: str, span: Span | None) -> Call:
        return Call(function, self.arguments, self.type, self.nullable, span)


Builder = Callable[[str, Sequence[Expr], Span | None], Expr]
"""(the name as written, the arguments, the call's place) -> the resolved expression."""
Signature = Callable[[str, Sequence[Expr], Span | None], Typed | Expr]
"""As Builder; Typed becomes a call of the function."""


class LambdaForm(NamedTuple):
    """What a lambda is as an argument: its parameters, with their types and whether they can be NULL, and the fewest that it may name."""

    parameters: tuple[Field, ...]
    fewest: int


LambdaRule = Callable[[str, Sequence[Expr], Span | None], LambdaForm | None]
"""(the name as written, the arguments before it, the call's place) -> the form of the next argument; None if it is a value."""


class Nulls(enum.Enum):
    """How a call treats NULL arguments."""

    STRICT = "it is NULL; arguments after the first NULL are not evaluated"
    STRICT_BACKWARDS = "it is NULL; arguments are evaluated from the right, and none before the first NULL"
    FOLDED = "as STRICT of the first two arguments; then of that result and the third argument, and so on"
    SEEN = "the function gets the NULL; every argument is evaluated"
    LAZY = "the function evaluates its arguments itself"


Collated = Callable[["Function", str, Sequence[Expr], Span | None], Expr]
"""(the function, the name as written, the arguments, the call's place) -> the call, where texts in the arguments have collations."""

_MISSING: Final[Any] = object()
_FORMS: Final = {"signature": "a signature", "rows": "a row form", "arrays": "an array form", "can_fail": "can_fail"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """The record of a scalar function.

    name: the name of its calls in plans; also a SQL name if `named`. aliases: other names in SQL. symbols: operators.
    signature: checks and casts the arguments; raises TypeMismatch.
    rows: (call, value, …) -> value on one row; (call, row) -> value if it is LAZY. Raises EvaluationError.
    arrays: (call, length, datum, …) -> datum on columns; (call, frame) -> datum if it is LAZY. `per_distinct` is the row form once per
    distinct combination of arguments. can_fail: whether a call whose arguments have values can raise on some row; False is certain.
    ignores_sign_of_zero: the value is the same for arguments 0.0 and -0.0.
    catches: a failure of an argument is a value of the call, which never fails.
    lambdas: of a higher-order function, which is LAZY: which of its arguments are lambdas, and over what.
    collated: how a call with collated texts is built (expr/collating.py has the ways); None refuses them, unless they are
    cast to other types.

    Raises TypeError with the function's name if a part is missing.
    """

    name: str
    signature: Signature = _MISSING
    rows: Callable[..., Any] = _MISSING
    arrays: Callable[..., Any] = _MISSING
    can_fail: bool | Callable[[Call], bool] = _MISSING
    nulls: Nulls = Nulls.STRICT
    aliases: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    named: bool = True
    ignores_sign_of_zero: bool = False
    catches: bool = False
    lambdas: LambdaRule | None = None
    collated: Collated | None = None

    def __post_init__(self) -> None:
        missing = [words for form, words in _FORMS.items() if getattr(self, form) is _MISSING]
        if missing:
            raise TypeError(f"the function {self.name} lacks {' and '.join(missing)}")

    def build(self, name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        if not any(argument.type.is_collated for argument in arguments):
            return self.built(name, arguments, span)
        return (self.collated or unless_text)(self, name, arguments, span)

    def built(self, name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        """The call by the signature alone."""
        typed = self.signature(name, arguments, span)
        return typed.call(self.name, span) if isinstance(typed, Typed) else typed

    def call_can_fail(self, call: Call) -> bool:
        return self.can_fail if isinstance(self.can_fail, bool) else self.can_fail(call)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """A SQL function that is rewritten to other expressions; plans have no call of it."""

    name: str
    build: Builder
    aliases: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    named: bool = True


_FUNCTIONS: Final[dict[str, Function]] = {}
_BY_WORD: Final[dict[str, Function | Rewrite]] = {}
_KNOWN: Final[set[str]] = set()

FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(_FUNCTIONS)
"""All functions that a Call can be of, by its `function`."""


def register(*records: Function | Rewrite) -> None:
    """Registers functions in this process, all or none. Raises ValueError for a name that is already registered."""
    words = [(word, record) for record in records for word in (record.name, *record.aliases, *record.symbols)]
    seen = set(_BY_WORD)
    for word, record in words:
        if word in seen:
            raise ValueError(f"the function {record.name} cannot be registered: the name {word} is already registered")
        seen.add(word)
    _BY_WORD.update(words)
    for record in records:
        _KNOWN.update(record.aliases, (record.name,) if record.named else ())
        if isinstance(record, Function):
            _FUNCTIONS[record.name] = record


def function_of(call: Call) -> Function:
    """The function of a call. Raises UnknownName if it is not registered in this process."""
    try:
        return _FUNCTIONS[call.function]
    except KeyError:
        remedy = "import the module that registers it, in every process that runs the program"
        raise UnknownName(f"the function {call.function} is not registered", span=call.span, remedy=remedy) from None


def row_form(call: Call) -> Callable[..., Any]:
    """The call's row form, as a function of its arguments' values."""
    return partial(function_of(call).rows, call)


def step_of(call: Call, i: int) -> Call:
    """The binary call of a folded call whose operands are the result of arguments 0 to i - 1, and argument i."""
    arguments = call.arguments
    if len(arguments) == 2:
        return call
    left = arguments[0] if i == 1 else Column(0, call.type, True)
    first, last = arguments[0].span, arguments[i].span
    span = Span(first.text, first.start, last.end, first.name) if first and last and i + 1 < len(arguments) else call.span
    return Call(call.function, (left, arguments[i]), call.type, True, span)


def lambda_rule(name: str) -> LambdaRule | None:
    """Of a SQL function: which of its arguments are lambdas; None if it has none."""
    record = _BY_WORD.get(name.lower())
    return record.lambdas if isinstance(record, Function) else None


def known_functions() -> tuple[str, ...]:
    """The names of the SQL functions, sorted."""
    return tuple(sorted(_KNOWN))


def resolve(name: str, arguments: Sequence[Expr], span: Span | None = None, *, written: str | None = None) -> Expr:
    """The expression for SQL's `name(arguments)`; names are case-insensitive.

    written: the name in errors, if another one stands in the text.
    Raises UnknownName with the nearest names, or TypeMismatch with the function, the argument, its type and the expected types.
    """
    record = _BY_WORD.get(name.lower())
    if record is None:
        near = difflib.get_close_matches(name.lower(), known_functions(), 3)
        remedy = f"did you mean {' or '.join(near)}?" if near else "`deltic.expr.known_functions()` lists what there is"
        raise UnknownName(f"there is no function {name}", span=span, remedy=remedy)
    return record.build(written or name, tuple(arguments), span)
