"""Which users' functions a circuit computes with. Those that only look at what flows by are none of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from deltic.circuit.nodes import Circuit
from deltic.circuit.operators.inspect import Inspect
from deltic.expr.nodes import UserFunction


def functions_of(circuit: Circuit) -> Mapping[str, list[str]]:
    """By name the digests of the functions that it has of this name, sorted."""
    found: dict[str, set[str]] = {}
    for node in circuit.nodes:
        for function in _functions(node.operator):
            found.setdefault(function.name, set()).add(function.digest)
    return {name: sorted(digests) for name, digests in sorted(found.items())}


def _functions(value: object) -> Iterator[UserFunction]:
    """Those in frozen data."""
    if isinstance(value, UserFunction):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _functions(part)
    elif dataclasses.is_dataclass(value) and not isinstance(value, Inspect | type):
        for field in dataclasses.fields(value):
            yield from _functions(getattr(value, field.name))
