"""The instructions of a scope that is one linear recursion: those of `Loop.run`, for ticks that derive few rows."""

from __future__ import annotations

from collections.abc import Sequence

from deltic.circuit.operators.child import Child
from deltic.circuit.operators.loop import Loop
from deltic.circuit.programs.assembler import Assembler, Register
from deltic.kernels import instructions as op
from deltic.kernels.level import load_loops
from deltic.trace.fixpoint import HASH_KEY


def recursion(operator: Child, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    loop = operator.loop
    if not isinstance(loop, Loop):
        return False
    load_loops()
    width, moves = loop.recursion.width, loop.recursion.moves.tolist()
    base = to.register(width, 1)
    to.concatenate(base, *(inputs[position] for position in loop.positions))
    sums, derived, changed = to.register(width, 1), to.register(width + 1, 1), to.register(width + 1, 1)
    past = to.slot(loop.arrangement)
    counters = to.counters(loop.distinct.name), to.counters(loop.steps[0].join.name)
    joins: list[int] = []
    read = []
    for step, place in zip(loop.steps, loop.recursion.places, strict=True):
        change = to.sorted(inputs[step.position])
        to.index(change)
        other, recursive = to.slot(step.imported), to.slot(step.arrangement)
        joins += (step.key, other.slot, change.columns, change.start, recursive.slot, len(step.arranged) + 1, place)
        read.append(f"{recursive} with {other} + {change}")
    shown = f"{sums}, {derived}, {changed} ← {base} + {' + '.join(read)}, and {past}, to the fixed point"
    results = (sums, derived, changed, base, width, operator.limit, HASH_KEY, past)
    to.emit(op.LOOP, *results, *counters, len(loop.steps), *joins, len(moves), *moves, shown=shown)
    to.sort(out, sums)
    appended = {loop.arrangement: to.sorted(derived)}
    for arrangement, order in loop.orders.items():
        arranged = to.register(len(order) + 1, 1)
        to.select(arranged, changed, [(word, 0) for word in (*order, width)])
        appended[arrangement] = to.sorted(arranged)
    for batch in appended.values():
        to.check_light(batch)
        to.index(batch)
    for arrangement, batch in appended.items():  # once nothing before can be begun again
        to.append(arrangement, batch)
    return True
