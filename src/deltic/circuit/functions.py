"""Which users' functions a circuit computes with. Those that only look at what flows by are none of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltic.circuit.nodes import Dataflow
from deltic.circuit.operators.inspect import InspectOperator
from deltic.expr.nodes import user_functions
from deltic.schema import Schema
from deltic.trace.encoding import Layout

WITHOUT: Final = (InspectOperator, Schema, Layout)
"""What has no function that a view is computed with."""


def functions_of(circuit: Dataflow) -> Mapping[str, list[str]]:
    """By name the digests of the functions that it has of this name, sorted."""
    found: dict[str, set[str]] = {}
    for node in circuit.nodes:
        for function in user_functions(node.operator, WITHOUT):
            found.setdefault(function.name, set()).add(function.digest)
    return {name: sorted(digests) for name, digests in sorted(found.items())}
