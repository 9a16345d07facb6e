"""What a state has of earlier ticks: sums and windows of streams, accumulators, feedbacks. It cannot be computed again.

A state has a hash of each query of this kind. If the query is the same and its state is missing, another version of Deltic wrote it, in
another form.
"""

from __future__ import annotations

from collections.abc import Mapping

from deltic.circuit.nodes import Dataflow
from deltic.errors import StateError
from deltic.plan.fingerprint import fingerprint
from deltic.plan.nodes import Plan
from deltic.plan.streams import keeps_ticks
from deltic.runtimes.durable.partial import is_kept
from deltic.storage.program import ProgramDescription


def queries_of(denotations: Mapping[str, Plan]) -> dict[str, str]:
    """By view, in lower case, a hash of its query: of those whose state depends on earlier ticks."""
    return {name.lower(): fingerprint(plan) for name, plan in denotations.items() if keeps_ticks(plan)}


def check_earlier_ticks(state: ProgramDescription, circuit: Dataflow, queries: Mapping[str, str], *, replace: bool) -> None:
    """Raises StateError for a view of the state whose rows of earlier ticks would be lost by the first definitions of a session.

    queries: of the circuit's views, as of `queries_of`. replace: whether views that the circuit lacks are dropped; a view whose query has
    changed begins again in any case.
    """
    if state.queries is not None and not replace:
        views = {name.lower() for name in circuit.views}
        for name in state.views:
            if name.lower() in state.queries and name.lower() not in views:
                raise StateError(
                    f"the state has rows of earlier ticks for view {name}, which the program lacks",
                    expected="first of all a script, circuit or Datalog program with the views of the state",
                    remedy="define them together, by session.program(deltic.Program(script, circuit, …)), which drops views that it lacks",
                )
    fresh = frozenset(name for node in circuit.nodes if is_kept(circuit, node) for name in node.owned) - state.arrangements.keys()
    if not fresh:
        return
    before = {name.lower() for name in state.views}
    for name, arrangement in circuit.views.items():
        key = name.lower()
        same = key in before if state.queries is None else state.queries.get(key) == queries.get(key, "")
        if same and any(not fresh.isdisjoint(circuit.nodes[i].owned) for i in circuit.upstream(frozenset((arrangement,)))):
            raise StateError(
                f"another version of Deltic wrote the state, and kept other rows of earlier ticks for view {name}",
                expected="a state that this version wrote",
                remedy="deltic state export writes the rows that the views have. "
                f"For {name} to begin again, give it another name, or run the program without it once",
            )
