"""Users' functions: those that only pick columns become projections; the others are identified by their name and digest.

A function whose code only puts columns and constants into a tuple becomes a projection; this is decided by its instructions, not by a
trial call. Every other function is called with rows, and a state identifies it by its name and the digest of its code.
"""

from __future__ import annotations

import datetime
import decimal
import dis
import hashlib
import operator
import re
import sys
import sysconfig
import zoneinfo
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from inspect import signature, unwrap
from pathlib import Path
from types import CodeType, FunctionType, MappingProxyType, MethodDescriptorType, MethodType, ModuleType
from typing import Any, Final, NoReturn

from deltic.errors import CircuitError, UnknownName
from deltic.expr.nodes import Column, Expr, Literal, UserFunction, user_functions
from deltic.frontends.python.schemas import PYTHON
from deltic.plan.columns import reference
from deltic.plan.nodes import Plan
from deltic.purity import Pure, name_of, pure
from deltic.schema import Schema

PICKS: Final = frozenset(
    (
        "RESUME",
        "LOAD_FAST",
        "LOAD_FAST_BORROW",
        "LOAD_FAST_LOAD_FAST",
        "LOAD_FAST_BORROW_LOAD_FAST_BORROW",
        "LOAD_ATTR",
        "LOAD_CONST",
        "LOAD_SMALL_INT",
        "BUILD_TUPLE",
        "RETURN_VALUE",
        "RETURN_CONST",
    )
)
"""Instructions that cannot branch, call or compute."""


WRAPPER: Final = "_deltic_wrapper"
OURS: Final = __name__.partition(".")[0]
"""Deltic's own package, whose functions count by name alone: a new release does not change users' functions."""


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The identity of one of Deltic's functions that wraps users' functions: its role, and these functions."""

    role: str
    functions: tuple[Callable[..., Any], ...]


def wrapper_of(role: str, *functions: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a wrapper of users' functions: it takes the first one's name, and its digest covers its role and these functions alone."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        wrapper = wraps(functions[0])(function)
        vars(wrapper)[WRAPPER] = Wrapper(role, functions)
        return wrapper

    return decorate


class Picked:
    """A row whose attributes are its columns, as expressions."""

    def __init__(self, schema: Schema, positions: Sequence[int]) -> None:
        self._schema, self._positions = schema, tuple(positions)

    def __getattr__(self, name: str) -> Column:
        matches = [i for i in self._positions if self._schema[i].name == name]
        if not matches and re.fullmatch("_[0-9]+", name):  # as in row_class: a name that Python does not accept
            matches = [*self._positions[int(name[1:]) :][:1]]
        if len(matches) != 1:
            unknown_column(name, [self._schema[i].name for i in self._positions])
        return reference(self._schema, matches[0])

    def columns(self) -> tuple[Column, ...]:
        return tuple(reference(self._schema, i) for i in self._positions)


def unknown_column(name: str, names: Sequence[str]) -> NoReturn:
    raise UnknownName(f"unknown or ambiguous column {name}", expected=f"one of {', '.join(names)}")


def picked(function: Callable[..., Any], rows: Sequence[Picked | Expr]) -> tuple[Expr, ...] | None:
    """The columns that the function picks from the rows; None if it does anything else."""
    code = getattr(function, "__code__", None)
    if not isinstance(function, FunctionType) or not isinstance(code, CodeType) or len(rows) != code.co_argcount:
        return None
    if any(instruction.opname not in PICKS for instruction in dis.get_instructions(code)):
        return None
    return _columns(function(*rows))


def _columns(result: Any) -> tuple[Expr, ...] | None:
    """The columns of a result of columns, rows and constants, a row being all its columns; None for other results."""
    columns: list[Expr] = []
    for part in result if isinstance(result, tuple) else (result,):
        if isinstance(part, Picked):
            columns += part.columns()
        elif isinstance(part, Column):
            columns.append(part)
        elif type(part) in PYTHON:
            columns.append(Literal(part, PYTHON[type(part)]))
        else:
            return None
    return tuple(columns)


def checked_function(function: object, *parameters: str) -> Callable[..., Any]:
    """The function. Raises CircuitError if it is not callable with these parameters."""
    if not callable(function):
        raise CircuitError(f"{function!r} is not a function", expected=f"a function of ({', '.join(parameters)})")
    try:
        signature(function).bind(*parameters)
    except ValueError:  # a compiled function without a signature
        pass
    except TypeError as error:
        message = f"the function {name_of(function)} cannot be called with ({', '.join(parameters)}): {error}"
        raise CircuitError(message, expected=f"a function of {len(parameters)} argument{'s' * (len(parameters) > 1)}") from error
    return function


def user_function(
    function: Callable[..., Any], parameters: Sequence[tuple[str, ...] | None], width: int, *, on_batches: bool = False
) -> UserFunction:
    """The function as a node of expressions; a function that wraps another has the other's name."""
    named = unwrap(function)
    name = f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', type(named).__qualname__)}"
    return UserFunction(name, digest_of(function), tuple(parameters), width, on_batches, pure(function))


def check_unchanged(plans: Iterable[Plan]) -> None:
    """Raises CircuitError if a captured value of a function has changed since the function was passed to a stream.

    For example a lambda in a loop that captures the loop's variable: its digest would not match its behaviour.
    """
    for function in set(user_functions(tuple(plans))):
        call = function.call
        if isinstance(call, Pure) and digest_of(call.function) != function.digest:
            raise CircuitError(
                f"a value that the function {call.name} captures has changed since the function was passed to a stream",
                expected="captured values that do not change",
                remedy="a default captures the current value of a variable: lambda row, k=k: …",
            )


def inspector(callback: Callable[..., Any], names: tuple[str, ...]) -> UserFunction:
    """A callback that inspects rows of these columns. No state depends on it, so it is identified by the object."""
    return UserFunction(name_of(callback), f"{id(callback):x}", (names,), 0, False, callback)


def digest_of(function: Callable[..., Any]) -> str:
    """The digest of a function, in hexadecimal: of its code, its defaults, and the values and functions that it captures.

    Library functions count by name alone. Raises CircuitError for a captured value whose content cannot be hashed.
    """
    return hashlib.sha256(repr(_meaning(function, function, ())).encode()).hexdigest()


def _meaning(value: Any, function: Callable[..., Any], around: tuple[int, ...]) -> Any:
    """The value as nested data whose repr is the same in every process. function: the user's function, for errors."""
    if id(value) in around:
        return "itself"

    def inner(part: Any) -> Any:
        return _meaning(part, function, (*around, id(value)))

    if isinstance(value, FunctionType) and isinstance(wrapper := vars(value).get(WRAPPER), Wrapper):
        return ("standing", wrapper.role, [inner(part) for part in wrapper.functions])
    match value:
        case None | bool() | int() | float() | str() | bytes() | decimal.Decimal() | re.Pattern():
            return repr(value)
        case datetime.date() | datetime.time() | datetime.timedelta() | datetime.timezone() | zoneinfo.ZoneInfo():
            return repr(value)
        case tuple() | list():
            return (type(value).__name__, [inner(part) for part in value])
        case frozenset() | set():
            return (type(value).__name__, sorted(repr(inner(part)) for part in value))
        case dict() | MappingProxyType():
            return ("dict", [(inner(key), inner(part)) for key, part in value.items()])
        case ModuleType():
            return ("module", value.__name__)
        case CodeType():
            return (value.co_code.hex(), value.co_names, value.co_varnames, [inner(part) for part in value.co_consts])
        case partial():
            return ("partial", inner(value.func), inner(value.args), inner(value.keywords))
        case MethodType():
            return ("method", inner(value.__func__), inner(value.__self__))
        case operator.itemgetter() | operator.attrgetter() | operator.methodcaller():
            return inner(value.__reduce__())
        case MethodDescriptorType():  # str.upper
            return ("method", value.__objclass__.__qualname__, value.__name__)
        case Pure():
            return inner(value.function)
    if _is_library(value):
        return ("library", value.__module__, value.__qualname__)
    if isinstance(value, FunctionType):
        cells = [inner(cell.cell_contents) for cell in value.__closure__ or ()]
        outside = [(name, inner(value.__globals__[name])) for name in _global_names(value.__code__) if name in value.__globals__]
        return (inner(value.__code__), inner(value.__defaults__), inner(value.__kwdefaults__), cells, outside)
    if isinstance(value, type):
        members = [(name, inner(part)) for name, part in vars(value).items() if isinstance(part, FunctionType)]
        return ("class", value.__module__, value.__qualname__, members)
    if hasattr(value, "__dict__") and not any(vars(kind).get("__slots__") for kind in type(value).__mro__):
        return ("instance", inner(type(value)), inner(vars(value)))
    raise CircuitError(
        f"the function {name_of(function)} captures {value!r}, of class {type(value).__qualname__}",
        expected="numbers, strings, dates, tuples, lists, sets and dicts of these, functions, and instances of plain classes",
        remedy="a state identifies a function by its code and captured values: capture plain values",
    )


def _is_library(value: Any) -> bool:
    """Whether the value is a function or class of Python or of an installed package, or a compiled one.

    A function that its module does not contain under its name, such as a closure, is not: its name does not identify it.
    """
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    if module is None or not hasattr(value, "__qualname__"):
        return False
    if isinstance(value, FunctionType) and _named(module, value.__qualname__) is not value:
        return False
    if module.__name__.partition(".")[0] == OURS:
        return True
    file = getattr(module, "__file__", None)
    installed = file is None or Path(file).is_relative_to(sysconfig.get_path("stdlib")) or "site-packages" in Path(file).parts
    return module.__name__ != "__main__" and installed


def _named(module: ModuleType, name: str) -> object:
    """The object with a dotted name in the module; None if there is none."""
    value: object = module
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _global_names(code: CodeType) -> list[str]:
    """The globals that the code and the code in it read, sorted."""
    own = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    inside = (name for part in code.co_consts if isinstance(part, CodeType) for name in _global_names(part))
    return sorted(own.union(inside))
