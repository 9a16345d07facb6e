"""Users' functions: which of them only pick columns, and what names the others in a state.

A function whose code does nothing but take columns and constants into a tuple becomes a projection, which is told by its instructions,
not by trying. Every other one is called with rows, and a state knows it by its name and the digest of its code.
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
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, Final, NoReturn

from deltic.errors import CircuitError, UnknownName
from deltic.expr.nodes import Column, Expr, Literal, UserFunction, user_functions
from deltic.frontends.python.schemas import PYTHON
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


STANDING: Final = "_deltic_standing"
OURS: Final = __name__.partition(".")[0]
"""Deltic's own package: what a release of it changes is no change of a user's function."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What a function of Deltic's own that stands around users' is known by: what it makes of them, and they."""

    role: str
    functions: tuple[Callable[..., Any], ...]


def standing_for(role: str, *functions: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator of Deltic's own functions around users': such a one has the name of the first, and the digest is of the users' alone."""

    def decorate(around: Callable[..., Any]) -> Callable[..., Any]:
        found = wraps(functions[0])(around)
        vars(found)[STANDING] = Standing(role, functions)
        return found

    return decorate


class Picked:
    """A row that gives its columns as expressions."""

    def __init__(self, schema: Schema, positions: Sequence[int]) -> None:
        self._schema, self._positions = schema, tuple(positions)

    def __getattr__(self, name: str) -> Column:
        found = [i for i in self._positions if self._schema[i].name == name]
        if not found and re.fullmatch("_[0-9]+", name):  # as in the rows of a function: what is no name in Python goes by its place
            found = [*self._positions[int(name[1:]) :][:1]]
        if len(found) != 1:
            unknown_column(name, [self._schema[i].name for i in self._positions])
        return column_at(self._schema, found[0])

    def columns(self) -> tuple[Column, ...]:
        return tuple(column_at(self._schema, i) for i in self._positions)


def unknown_column(name: str, names: Sequence[str]) -> NoReturn:
    raise UnknownName(f"there is no one column {name}", expected=f"one of {', '.join(names)}")


def column_at(schema: Schema, index: int) -> Column:
    field = schema[index]
    return Column(index, field.type, field.nullable, field.name)


def picked(function: Callable[..., Any], rows: Sequence[Picked | Expr]) -> tuple[Expr, ...] | None:
    """What the function picks of the rows, if it does nothing else."""
    code = getattr(function, "__code__", None)
    if not isinstance(function, FunctionType) or not isinstance(code, CodeType) or len(rows) != code.co_argcount:
        return None
    if any(instruction.opname not in PICKS for instruction in dis.get_instructions(code)):
        return None
    return _columns(function(*rows))


def _columns(given: Any) -> tuple[Expr, ...] | None:
    """A row stands for all its columns; None where there is something else than columns, rows and constants."""
    found: list[Expr] = []
    for part in given if isinstance(given, tuple) else (given,):
        if isinstance(part, Picked):
            found += part.columns()
        elif isinstance(part, Column):
            found.append(part)
        elif type(part) in PYTHON:
            found.append(Literal(part, PYTHON[type(part)]))
        else:
            return None
    return tuple(found)


def taking(function: object, *parameters: str) -> Callable[..., Any]:
    """The function itself. Raises CircuitError if it is none, or not one that can be called with these."""
    if not callable(function):
        raise CircuitError(f"{function!r} is no function", expected=f"a function of ({', '.join(parameters)})")
    try:
        signature(function).bind(*parameters)
    except ValueError:  # a compiled function that does not say what it takes
        pass
    except TypeError as error:
        found = f"the function {name_of(function)} cannot be called with ({', '.join(parameters)}): {error}"
        raise CircuitError(found, expected=f"a function of {len(parameters)} argument{'s' * (len(parameters) > 1)}") from error
    return function


def user_function(
    function: Callable[..., Any], parameters: Sequence[tuple[str, ...] | None], width: int, *, on_batches: bool = False
) -> UserFunction:
    """The function as expressions hold it; one that wraps another goes by the other's name."""
    named = unwrap(function)
    name = f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', type(named).__qualname__)}"
    return UserFunction(name, digest_of(function), tuple(parameters), width, on_batches, pure(function))


def check_unchanged(plans: Iterable[Plan]) -> None:
    """Raises CircuitError where what a function takes from outside is not what it was when it was given to a stream.

    So it is with one that is made in a loop and takes the loop's variable: a state would know it by what it does not do.
    """
    for function in set(user_functions(tuple(plans))):
        call = function.call
        if isinstance(call, Pure) and digest_of(call.function) != function.digest:
            raise CircuitError(
                f"what the function {call.name} takes from outside has changed since it was given to a stream",
                expected="values that stay as they are",
                remedy="a default keeps what a variable is now: lambda row, k=k: …",
            )


def inspector(callback: Callable[..., Any], names: tuple[str, ...]) -> UserFunction:
    """A function that only looks at rows of these columns. It is no part of what a state holds, so it counts by itself."""
    return UserFunction(name_of(callback), f"{id(callback):x}", (names,), 0, False, callback)


def digest_of(function: Callable[..., Any]) -> str:
    """Hexadecimal digits of what the function does: its code, its defaults, and the values and functions that it takes from outside.

    Of libraries the names alone count. Raises CircuitError for a value from outside that cannot be told from another by what it holds.
    """
    return hashlib.sha256(repr(_meaning(function, function, ())).encode()).hexdigest()


def _meaning(value: Any, function: Callable[..., Any], around: tuple[int, ...]) -> Any:
    """The value as nested data whose repr is the same in every process. function: the user's, for errors."""
    if id(value) in around:
        return "itself"

    def inner(part: Any) -> Any:
        return _meaning(part, function, (*around, id(value)))

    if isinstance(value, FunctionType) and isinstance(standing := vars(value).get(STANDING), Standing):
        return ("standing", standing.role, [inner(part) for part in standing.functions])
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
        f"the function {name_of(function)} takes {value!r} from outside, of class {type(value).__qualname__}",
        expected="numbers, texts, dates, tuples, lists, sets and dicts of these, functions, and instances of plain classes",
        remedy="a state must know the function again by what it does: give it plain values",
    )


def _is_library(value: Any) -> bool:
    """Whether it is a function or class of Python or of an installed package, or a compiled one.

    A function that its module has not by this name, such as one that was made in another, is none: its name does not say what it holds.
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
    """What the module has by a name with dots; None if there is nothing."""
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _global_names(code: CodeType) -> list[str]:
    """The globals that the code and the code in it read, sorted."""
    own = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    inside = (name for part in code.co_consts if isinstance(part, CodeType) for name in _global_names(part))
    return sorted(own.union(inside))
