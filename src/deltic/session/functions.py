"""Functions that a state names and a program supplies: a state has their names and digests, never their code.

A lambda has no name of its own, so a changed lambda is a changed view and not an error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from deltic.circuit.functions import functions_of
from deltic.circuit.nodes import Dataflow
from deltic.errors import StateError

REMEDY = (
    "session.install(circuit, replace=True) drops views whose functions are missing, and fills views again whose functions have changed"
)


def check_functions(known: Mapping[str, Collection[str]], circuit: Dataflow) -> None:
    """Raises StateError for a function of the state that is missing in the circuit, or has changed. known: its digests by name."""
    supplied = functions_of(circuit)
    for name, digests in known.items():
        if "<lambda>" in name:
            continue
        if name not in supplied:
            raise StateError(
                f"the state has views that use the function {name}, which the program lacks",
                expected="first of all a circuit with that function",
                remedy=REMEDY,
            )
        if not set(digests) <= set(supplied[name]):
            raise StateError(
                f"the function {name} has changed since the state computed its views with it",
                expected="the same code, with the same values from outside",
                remedy=f"give it another name; {REMEDY}",
            )
