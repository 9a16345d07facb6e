"""Functions that a state names and a program supplies: a state has their names and digests, never their code.

A lambda has no name: one that is another makes other views, and that is all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from deltic.circuit.functions import functions_of
from deltic.circuit.nodes import Dataflow
from deltic.errors import StateError

REMEDY = "session.install(circuit, replace=True) gives up what the state has by functions that are not there, and fills views anew"


def check_functions(known: Mapping[str, Collection[str]], circuit: Dataflow) -> None:
    """known: by name the digests of the state's functions. Raises StateError for one that the circuit has not, or has otherwise."""
    mine = functions_of(circuit)
    for name, digests in known.items():
        if "<lambda>" in name:
            continue
        if name not in mine:
            raise StateError(
                f"the state has views by the function {name}, which the program has not",
                expected="a program with every function that the state names: install the circuit that has it first",
                remedy=REMEDY,
            )
        if not set(digests) <= set(mine[name]):
            raise StateError(
                f"the function {name} is not the one by which the state has its views",
                expected="the same code, and the same values that it takes from outside",
                remedy=f"give it another name; {REMEDY}",
            )
