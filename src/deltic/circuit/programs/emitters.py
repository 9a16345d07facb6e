"""The instructions of each operator: functions from an operator to code, for those that the runner executes by itself.

An emitter returns False if the operator, or this form of it, has no instructions: then the program calls its `step`. What an emitter makes
must return what `step` returns, as a Z-set, and count what it counts; where it cannot, the instruction declines, and `step` runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from deltic.circuit.operators.aggregate import AggregateOperator
from deltic.circuit.operators.arrange import Arrange
from deltic.circuit.operators.chain import Chain
from deltic.circuit.operators.child import Child
from deltic.circuit.operators.digits import TakeApart
from deltic.circuit.operators.flat_map import FlatMapOperator
from deltic.circuit.operators.join import JoinOperator
from deltic.circuit.operators.linear import Constant, Exchange, Negate, Place, Plus
from deltic.circuit.operators.map import Map
from deltic.circuit.operators.multiset import MultisetOperator
from deltic.circuit.operators.not_null import NotNull
from deltic.circuit.operators.order import Sort
from deltic.circuit.operators.reweigh import Reweigh
from deltic.circuit.operators.semijoin import SemiJoin
from deltic.circuit.operators.table import TableInput
from deltic.circuit.operators.top_k import TopKOperator
from deltic.circuit.pending import INSERT, WEIGHT
from deltic.circuit.programs.assembler import NO_REGISTER, Assembler, Register
from deltic.circuit.programs.groups import aggregate, top_k
from deltic.circuit.programs.linear import chain_instructions, chained, flat_map_instructions, map_instructions, touch
from deltic.circuit.programs.scopes import scope
from deltic.circuit.programs.words import not_null, order
from deltic.kernels import instructions as op
from deltic.trace.encoding import Layout

Emitter = Callable[[Any, Sequence[Register], Register, Assembler], bool]
"""(operator, the registers of its inputs, that of its output, assembler): whether it has instructions."""


def _table(operator: TableInput, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    (pending,) = inputs
    operations, columns = pending.columns - 2, len(operator.order)
    ordered, stored = to.register(pending.columns, 1), to.slot(operator.arrangement)
    to.select(ordered, pending, [(word, 0) for word in (*operator.order, operations, operations + 1)])
    otherwise = to.jump_unless(ordered, operations, WEIGHT, "all rows have weights")
    if not operator.key:
        weighed = to.jump()
        to.land(otherwise)
        otherwise = to.jump_unless(ordered, operations, INSERT, "all rows are inserted")
        to.land(weighed)
    rows = to.register(columns, 1)
    to.select(rows, ordered, [(word, 0) for word in range(columns)])
    to.sort(out, rows)
    to.emit(op.CHECK_PRESENT, out, columns, stored, shown=f"removed rows of {out} in {stored}")
    if operator.key:
        shown = f"new keys of {out}, of {operator.key} words, not in {stored}"
        to.emit(op.CHECK_KEYS, out, columns, stored, operator.key, shown=shown)
    end = to.jump()
    to.land(otherwise)
    shown = f"{out} ← operations of {ordered} on {stored}, in order"
    to.emit(op.RESOLVE, out, ordered, columns, operator.key, stored, shown=shown)
    to.land(end)
    if not operator.key:
        to.check_light(out)
    to.append(operator.arrangement, out)
    return True


def _arrange(operator: Arrange, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    touch(inputs[0], to)
    to.sort(out, inputs[0])
    to.check_light(out)
    to.append(operator.arrangement, out)
    return True


def _join(operator: JoinOperator, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    left, right = inputs
    new = to.sorted(right)
    to.index(new)
    joined = out if operator.chain is None else to.register(len(operator.output), len(operator.weights))
    parts = [to.register(joined.columns, joined.weights) for _ in range(2)]
    for side, change, part in ((0, left, parts[0]), (1, right, parts[1])):
        spine = to.slot(operator.right if side == 0 else operator.left)
        columns, weights = operator.widths[1 - side]
        key = operator.keys[side] if operator.keys else range(operator.key)
        output = [number for other, word in operator.output for number in (int(other == side), word)]
        pairs = [number for pair in operator.weights for number in (pair[side], pair[1 - side])]
        added = new if side == 0 else NO_REGISTER
        shape = (part, change, change.columns, spine, columns, weights, added)
        shown = f"{part} ← {change}{_words(key)} with {spine}{f' + {new}' if side == 0 else ''}"
        to.emit(op.MATCH, *shape, len(key), *key, len(operator.output), *output, len(operator.weights), *pairs, shown=shown)
    to.concatenate(joined, *parts)
    return operator.chain is None or chained(operator.chain, joined, out, to)


def _words(positions: Sequence[int]) -> str:
    """Words of rows in a listing."""
    return f"[{', '.join('=1' if position == op.ONE else str(position) for position in positions)}]"


def _semijoin(operator: SemiJoin, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    left, right = inputs
    new = to.sorted(right)
    to.index(new)
    kept, flipped = to.register(out.columns, 1), to.register(out.columns, 1)
    present, other = to.slot(operator.right), to.slot(operator.left)
    key = operator.keys[0] if operator.keys else range(operator.key)
    shape = (kept, left, left.columns, present, operator.right_width, new, int(operator.anti))
    which = "not in" if operator.anti else "in"
    shown = f"{kept} ← rows of {left} with {_words(key)} {which} {present} + {new}"
    to.emit(op.KEEP_PRESENT, *shape, len(key), *key, len(operator.output), *operator.output, shown=shown)
    keys = new
    if operator.right_width > operator.right_key:
        cut = to.register(operator.right_key, 1)
        to.select(cut, right, [(word, 0) for word in range(operator.right_key)])
        keys = to.sorted(cut)
    sought = operator.keys[1] if operator.keys else range(keys.columns)
    flips = (flipped, keys, keys.columns, present, operator.right_width, other, operator.left_width, int(operator.anti))
    shown = f"{flipped} ← rows of {other} with keys that {keys} brings into {present} or takes away"
    to.emit(op.FLIP, *flips, len(sought), *sought, len(operator.output), *operator.output, shown=shown)
    to.concatenate(out, kept, flipped)
    return True


def _reweigh(operator: Reweigh, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    rules = {
        "distinct": op.DISTINCT,
        "except": op.EXCEPT,
        "except_all": op.EXCEPT_ALL,
        "intersect": op.INTERSECT,
        "intersect_all": op.INTERSECT_ALL,
    }
    (source,), slot = inputs, to.slot(operator.arrangement)
    to.emit(op.REWEIGH, out, source, source.columns, slot, rules[operator.rule], shown=f"{out} ← {operator.rule} of {slot} + {source}")
    return True


def _multiset(operator: MultisetOperator, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    (source,) = inputs
    slot = to.slot(operator.arrangement)
    to.emit(op.CHECK_PRESENT, source, source.columns, slot, shown=f"removed rows of {source} in {slot}")
    to.select(out, source, [(word, 0) for word in range(source.columns)], ordered=True)
    return Layout.of(operator.schema).width == source.columns


def _take_apart(operator: TakeApart, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    (source,), key = inputs, operator.key
    shown = f"{out} ← {source}[{_words(range(key))[1:-1]}, digits of {key}]"
    to.emit(op.TAKE_APART, out, source, key, operator.slot, shown=shown)
    return operator.kind == "real"


def _plus(operator: Plus, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    to.concatenate(out, *inputs)
    return True


def _negate(operator: Negate, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    to.emit(op.NEGATE, out, inputs[0], out.columns, out.weights, shown=f"{out} ← {inputs[0]}")
    return True


def _place(operator: Place, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    origins: list[int | None] = [None] * operator.weights
    for weight, position in enumerate(operator.positions):
        if position is not None:
            origins[position] = weight
    to.select(out, inputs[0], [(word, 0) for word in range(out.columns)], origins)
    return True


def _exchange(operator: Exchange, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    to.select(out, inputs[0], [(word, 0) for word in range(out.columns)], ordered=True)
    return True


def _constant(operator: Constant, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    to.concatenate(out)
    return True


EMITTERS: Final[dict[type, Emitter]] = {
    TableInput: _table,
    Arrange: _arrange,
    Map: map_instructions,
    Chain: chain_instructions,
    FlatMapOperator: flat_map_instructions,
    JoinOperator: _join,
    SemiJoin: _semijoin,
    Reweigh: _reweigh,
    MultisetOperator: _multiset,
    AggregateOperator: aggregate,
    TopKOperator: top_k,
    TakeApart: _take_apart,
    Plus: _plus,
    Negate: _negate,
    Place: _place,
    Exchange: _exchange,
    Constant: _constant,
    NotNull: not_null,
    Sort: order,
    Child: scope,
}
