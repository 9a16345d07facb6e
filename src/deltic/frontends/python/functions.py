"""Users' functions: which of them only pick columns, and what names the others in a state.

A function whose code does nothing but take columns and constants into a tuple becomes a projection, which is told by its instructions,
not by trying. Every other one is called with rows, and a state knows it by its name and the digest of its code.
"""

from __future__ import annotations

import dis
import hashlib
import inspect
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, Final, NoReturn

from deltic.errors import UnknownName
from deltic.expr.nodes import Column, Expr, Literal, UserFunction
from deltic.frontends.python.schemas import PYTHON
from deltic.purity import name_of, pure
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


class Picked:
    """A row that gives its columns as expressions. names: those that may stand behind the dot."""

    def __init__(self, schema: Schema, positions: Sequence[int]) -> None:
        self._schema, self._positions = schema, tuple(positions)

    def __getattr__(self, name: str) -> Column:
        found = [i for i in self._positions if self._schema[i].name == name]
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


def user_function(
    function: Callable[..., Any], parameters: Sequence[tuple[str, ...] | None], width: int, *, on_batches: bool = False, role: str = ""
) -> UserFunction:
    """The function as expressions hold it. role: what of it the name stands for, where one function has several."""
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__qualname__)}{role}"
    return UserFunction(name, digest_of(function), tuple(parameters), width, on_batches, pure(function))


def digest_of(function: Callable[..., Any]) -> str:
    """Hexadecimal digits of what the function does: its code, its defaults, and the values and functions that it takes from outside.

    Of other things from outside, such as modules and instances, the name of their class alone counts.
    """
    return hashlib.sha256(repr(_meaning(inspect.unwrap(function), ())).encode()).hexdigest()


def _meaning(value: Any, around: tuple[int, ...]) -> Any:
    if id(value) in around:
        return "itself"
    inside = (*around, id(value))
    match value:
        case None | bool() | int() | float() | str() | bytes():
            return repr(value)
        case tuple() | list():
            return (type(value).__name__, [_meaning(part, inside) for part in value])
        case frozenset() | set():
            return (type(value).__name__, sorted(repr(_meaning(part, inside)) for part in value))
        case dict():
            return ("dict", [(_meaning(key, inside), _meaning(part, inside)) for key, part in value.items()])
        case CodeType():
            return (value.co_code.hex(), value.co_names, value.co_varnames, [_meaning(part, inside) for part in value.co_consts])
        case FunctionType():
            known = inspect.getclosurevars(value)
            outside = sorted((name, repr(_meaning(part, inside))) for name, part in {**known.nonlocals, **known.globals}.items())
            return (_meaning(value.__code__, inside), _meaning(value.__defaults__, inside), outside)
        case _:
            return name_of(value) if isinstance(value, type) else type(value).__qualname__
