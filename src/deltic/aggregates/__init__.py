"""The aggregate functions, one file each, and their registry by name.

Importing the package imports and checks all of its files: their types ensure that each function has a type rule, state, finish and
reference, and no two share a name. To add a function to Deltic, add a file with `AGGREGATES`; a program adds its own with `register`.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from deltic.aggregates.definition import AggregateFunction, Signature

_KNOWN: Final[dict[str, AggregateFunction]] = {}
_SHARED: Final = ("definition", "exact", "ordered", "rules")
"""Modules of the package that do not define a function."""


def register(function: AggregateFunction) -> None:
    """Registers the function under its name and aliases. Raises ValueError if another function has one of them.

    On Spark the workers must register it too: put the call in a module that they import.
    """
    for name in (function.name, *function.aliases):
        if _KNOWN.get(name, function) != function:
            raise ValueError(f"there is already an aggregate {name}")
    _KNOWN.update(dict.fromkeys((function.name, *function.aliases), function))


def aggregate_function(name: str) -> AggregateFunction:
    """The function of that name or alias, in lower case. Raises KeyError."""
    return _KNOWN[name]


def is_aggregate(name: str) -> bool:
    """Whether `name`, in lower case, is a function's name or alias."""
    return name in _KNOWN


def aggregate_functions() -> tuple[AggregateFunction, ...]:
    """Every function once."""
    return tuple(dict.fromkeys(_KNOWN.values()))


def known_aggregates() -> tuple[str, ...]:
    """Their names and aliases, sorted."""
    return tuple(sorted(_KNOWN))


def _register_all() -> None:
    for module in iter_modules(__path__):
        if module.name not in _SHARED:
            for function in import_module(f"{__name__}.{module.name}").AGGREGATES:
                register(function)


_register_all()

__all__ = ["AggregateFunction", "Signature", "aggregate_function", "aggregate_functions", "is_aggregate", "known_aggregates", "register"]
