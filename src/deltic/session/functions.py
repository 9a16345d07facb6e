"""Functions that a state names and a program supplies: a state has their names in Python and digests, never their code.

A lambda has no name of its own, so a changed lambda is a changed view and not an error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from deltic.circuit.functions import functions_of
from deltic.circuit.nodes import Dataflow
from deltic.errors import StateError
from deltic.expr.nodes import UserFunction

REMEDY: Final = (
    "session.install(circuit, replace=True) drops views whose functions are missing, and fills views again whose functions have changed"
)
REGISTERED: Final = (
    "register it as it was; or session.program(deltic.Program(deltic.UDF(name, function, type), script)), which fills such views again"
)
"""What to do about a function that SQL calls."""


TOGETHER: Final = (
    "make all definitions at once: session.program(deltic.Program(deltic.UDF(name, function, type), script, …)), "
    "of SQL, Datalog and circuits, drops views that it lacks"
)
"""What to do about a function whose views come later, or never."""


def check_functions(recorded: Mapping[str, Collection[str]], circuit: Dataflow, registered: Mapping[str, UserFunction]) -> None:
    """Raises StateError for a function of the state that is missing in the circuit, or has changed.

    recorded: its digests by name. registered: the functions that SQL calls, by the name it has in SQL.
    """
    supplied = functions_of(circuit)
    instead = ", ".join(f"{word} is {function.name}" for word, function in registered.items() if function.name not in recorded)
    for name, digests in recorded.items():
        if "<lambda>" in name:
            continue
        if name not in supplied:
            raise StateError(
                f"the state has views that use the function {name}, which the program lacks{instead and f': {instead}'}",
                expected="views that call it among the first definitions of the session",
                remedy=REGISTERED if instead else TOGETHER,
            )
        if not set(digests) <= set(supplied[name]):
            words = [word for word, function in registered.items() if function.name == name]
            called = f"{words[0]} ({name})" if words else name
            raise StateError(
                f"the function {called} has changed since the state computed its views with it",
                expected="the same code, with the same values from outside",
                remedy=REGISTERED if words else f"give it another name; {REMEDY}",
            )
