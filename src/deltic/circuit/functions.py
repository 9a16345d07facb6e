"""The user functions that a dataflow computes with; functions that only inspect streams do not count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltic.circuit.nodes import Dataflow, Node, remembered
from deltic.circuit.operators.inspect import InspectOperator
from deltic.expr.nodes import UserFunction, user_functions
from deltic.schema import Schema
from deltic.trace.encoding import Layout

WITHOUT: Final = (InspectOperator, Schema, Layout)
"""Classes whose fields contain no function that a view is computed with."""


def fills_by_functions(circuit: Dataflow, fresh: frozenset[str]) -> bool:
    """Whether a backfill of the arrangements `fresh` needs a node with such a function."""
    needed = circuit.upstream(fresh)
    return any(node.id in needed and functions_in(node) for node in circuit.nodes)


def functions_in(node: Node) -> tuple[UserFunction, ...]:
    """Those that the node's operator computes with."""
    return remembered(node, "_functions", lambda: tuple(user_functions(node.operator, WITHOUT)))


def functions_of(circuit: Dataflow) -> Mapping[str, list[str]]:
    """Name → the sorted digests of the functions of this name."""
    digests_of: dict[str, set[str]] = {}
    for node in circuit.nodes:
        for function in functions_in(node):
            digests_of.setdefault(function.name, set()).add(function.digest)
    return {name: sorted(digests) for name, digests in sorted(digests_of.items())}
