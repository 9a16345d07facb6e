"""States whose time an earlier version of Deltic has moved while their program was not defined: rows that have come due still wait there.

Such rows would come late, or never, and views that were filled meanwhile have them already. So what is computed from them is filled again.
A state that this version has written has none: its time moves with its rows.
"""

from __future__ import annotations

from deltic.circuit.nodes import Dataflow
from deltic.circuit.operators.chain import temporal_filter
from deltic.circuit.operators.over_ticks import PreviousTick
from deltic.errors import StateError
from deltic.runtimes.durable.partial import is_kept
from deltic.runtimes.durable.version import DurableVersion
from deltic.storage.program import CLOCK
from deltic.trace.between import first_after
from deltic.trace.counters import Counters
from deltic.trace.entries import MARKER


def overdue(circuit: Dataflow, version: DurableVersion) -> frozenset[str]:
    """The arrangements to fill again, of those that the state has. O(queues). Raises StateError if what they depend on cannot be."""
    known = version.program.arrangements
    waiting = {node.id: filter.queue for node in circuit.nodes if (filter := temporal_filter(node.operator)) and filter.queue in known}
    late = {id for id, queue in waiting.items() if _is_late(version, queue)}
    stale: set[str] = set()
    for node in circuit.nodes if late else ():
        if node.id in late or late.intersection(node.inputs) or stale.intersection(node.reads):
            if is_kept(circuit, node) or isinstance(node.operator, PreviousTick):
                _refuse(circuit, node.id)
            late.add(node.id)
            stale.update(node.owned)
    return frozenset(stale & known.keys())


def _is_late(version: DurableVersion, queue: str) -> bool:
    """Whether a row waits that is due at the time of the state or before."""
    now = version.notes.get(CLOCK)
    dues = [first_after(spine, int(MARKER), Counters()) for spine in version.snapshot(queue)]
    return now is not None and any(due is not None and due <= now for due in dues)


def _refuse(circuit: Dataflow, node: int) -> None:
    """Raises StateError."""
    view = next(name for name, arrangement in circuit.views.items() if node in circuit.upstream(frozenset((arrangement,))))
    raise StateError(
        f"an earlier version of Deltic moved the time of the state without view {view}, whose rows of earlier ticks are wrong since",
        expected="a state whose time moved with its views",
        remedy=f"for {view} to begin again, give it another name, or run the program without it once; or restore a copy of the folder",
    )
