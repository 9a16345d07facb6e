"""The instructions of a scope that a kernel runs: those of `Loop.run` and `RecursiveScope.run`, for ticks that derive few rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deltic.circuit.operators.child import Child
from deltic.circuit.operators.loop import Loop
from deltic.circuit.operators.recursion import RecursiveScope
from deltic.circuit.programs.assembler import NO_REGISTER, Assembler, Register
from deltic.kernels import instructions as op
from deltic.kernels.level import load
from deltic.trace import fixpoint, recursion


def scope(operator: Child, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    if isinstance(operator.loop, Loop):
        return _loop(operator.loop, operator.limit, inputs, out, to)
    return operator.loop is not None and _recursion(operator.loop, operator.limit, inputs, out, to)


def _loop(loop: Loop, limit: int, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    load(op.LOOP)
    width, moves = loop.recursion.width, loop.recursion.moves.tolist()
    base = to.register(width, 1)
    to.concatenate(base, *(inputs[position] for position in loop.positions))
    sums, derived, changed = to.register(width, 1), to.register(width + 1, 1), to.register(width + 1, 1)
    past = to.slot(loop.arrangement)
    counters = to.counters(loop.distinct.name), to.counters(loop.steps[0].join.name)
    joins: list[int] = []
    read = []
    changes = {position: _indexed(inputs[position], to) for position in dict.fromkeys(step.position for step in loop.steps)}
    for step, place in zip(loop.steps, loop.recursion.places, strict=True):
        change = changes[step.position]
        other, recursive = to.slot(step.imported), to.slot(step.arrangement)
        joins += (step.key, other.slot, change.columns, change.start, recursive.slot, len(step.arranged) + 1, place)
        read.append(f"{recursive} with {other} + {change}")
    shown = f"{sums}, {derived}, {changed} ← {base} + {' + '.join(read)}, and {past}, to the fixed point"
    results = (sums, derived, changed, base, width, limit, fixpoint.HASH_KEY, past)
    to.emit(op.LOOP, *results, *counters, len(loop.steps), *joins, len(moves), *moves, shown=shown)
    appended = {loop.arrangement: derived}
    for arrangement, order in loop.orders.items():
        appended[arrangement] = to.register(len(order) + 1, 1)
        to.select(appended[arrangement], changed, [(word, 0) for word in (*order, width)])
    _finish(sums, appended, out, to)
    return True


def _recursion(scope: RecursiveScope, limit: int, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    program, tables = scope.program, scope.program.tables
    if scope.exported.name == scope.joins.name:
        return False
    load(op.RECUR)
    numbers = {name: number for number, name in enumerate(scope.depths)}
    spines: list[int] = []
    read = []
    for name in numbers:
        position, slot = scope.imported.get(name), to.slot(name)
        change = NO_REGISTER if position is None else _indexed(inputs[position], to).start
        spines += (slot.slot, scope.widths[name], change)
        read.append(str(slot))
    appended: dict[str, Register] = {}
    results: list[int] = []
    kept = [(0, n, relation.width, relation.derivations) for n, relation in enumerate(program.relations)]
    kept += [(1, n, collection.width, collection.arrangement) for n, collection in enumerate(program.collections)]
    for adds, number, width, arrangement in kept:
        if arrangement is not None:
            appended[arrangement] = register = to.register(width + 1, 1)
            results += (adds, number, register.start, width)
    given = [(n, inputs[c.input]) for n, c in enumerate(program.collections) if c.input is not None]
    pasts = [(n, numbers[r.derivations]) for n, r in enumerate(program.relations) if r.derivations is not None]
    sums = to.register(program.relations[program.exported].width, 1)
    counters = to.counters(scope.exported.name), to.counters(scope.joins.name)
    lists = [
        spines,
        [word for number, register in given for word in (number, register.start)],
        [word for past in pasts for word in past],
        [numbers[step.arrangement] for step in program.lookups],
        results,
        *(table.reshape(-1).tolist() for table in (tables.collections, tables.relations, tables.operations, tables.rules)),
        *(table.reshape(-1).tolist() for table in (tables.variants, tables.steps, tables.moves, tables.keys)),
    ]
    head = (sums, program.recursive, tables.width, tables.registers, program.exported, limit, recursion.HASH_KEY, *counters)
    targets = ", ".join(map(str, (sums, *appended.values())))
    shown = f"{targets} ← rules over {', '.join(read)}, from {' and '.join(str(register) for _, register in given)}, to the fixed point"
    to.emit(op.RECUR, *head, *(word for words in lists for word in (len(words), *words)), shown=shown)
    _finish(sums, appended, out, to)
    return True


def _indexed(change: Register, to: Assembler) -> Register:
    """The change of an arrangement that a kernel reads, as a batch."""
    batch = to.sorted(change)
    to.index(batch)
    return batch


def _finish(sums: Register, appended: Mapping[str, Register], out: Register, to: Assembler) -> None:
    """The output, and what is appended: at the end, once nothing before can be begun again."""
    to.sort(out, sums)
    batches = {arrangement: to.sorted(rows) for arrangement, rows in appended.items()}
    for batch in batches.values():
        to.check_light(batch)
        to.index(batch)
    for arrangement, batch in batches.items():
        to.append(arrangement, batch)
