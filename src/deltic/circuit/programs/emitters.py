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
from deltic.circuit.operators.join import JoinOperator
from deltic.circuit.operators.linear import Constant, Exchange, Negate, Place, Plus
from deltic.circuit.operators.map import Map
from deltic.circuit.operators.multiset import MultisetOperator
from deltic.circuit.operators.reweigh import Reweigh
from deltic.circuit.operators.semijoin import SemiJoin
from deltic.circuit.operators.table import TableInput
from deltic.circuit.pending import WEIGHT
from deltic.circuit.programs.assembler import NO_REGISTER, Assembler, Register
from deltic.circuit.results import Result
from deltic.expr.nodes import Column
from deltic.kernels import instructions as op
from deltic.schema import BIGINT
from deltic.trace.encoding import Layout

Emitter = Callable[[Any, Sequence[Register], Register, Assembler], bool]
"""(operator, the registers of its inputs, that of its output, assembler): whether it has instructions."""


def _table(operator: TableInput, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    (pending,) = inputs
    to.emit(op.REQUIRE, pending, pending.columns - 2, WEIGHT)
    ordered = to.register(len(operator.order), 1)
    to.select(ordered, pending, [(word, 0) for word in operator.order])
    to.emit(op.SORT, out, ordered, out.columns, out.weights)
    stored = to.spot(operator.arrangement)
    to.emit(op.CHECK_PRESENT, out, out.columns, stored)
    if operator.key:
        to.emit(op.CHECK_KEYS, out, out.columns, stored, operator.key)
    else:
        to.emit(op.CHECK_LIGHT, out, out.columns, out.weights)
    to.append(operator.arrangement, out)
    return True


def _arrange(operator: Arrange, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    to.emit(op.TOUCH, inputs[0])
    to.emit(op.SORT, out, inputs[0], out.columns, out.weights)
    to.emit(op.CHECK_LIGHT, out, out.columns, out.weights)
    to.append(operator.arrangement, out)
    return True


def _map(operator: Map, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    to.emit(op.TOUCH, inputs[0])
    return _map_step(operator, inputs[0], out, to)


def _chain(operator: Chain, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    to.emit(op.TOUCH, inputs[0])
    return not operator.fallible and _chain_steps(operator, inputs[0], out, to)


def _chain_steps(chain: Chain, source: Register, out: Register, to: Assembler) -> bool:
    if chain.last is not None:
        return False
    for number, step in enumerate(chain.steps, 1):
        if not isinstance(step, Map):
            return False
        weights = step.weights if step.measures else source.weights
        target = out if number == len(chain.steps) else to.register(step.target_layout.width, weights)
        if not _map_step(step, source, target, to):
            return False
        source = target
    return True


def _map_step(step: Map, source: Register, out: Register, to: Assembler) -> bool:
    if step.places is not None:
        to.select(out, source, step.places, ordered=step.identity)
        return True
    if step.predicate is not None or (not step.identity and any(move is None for move in step.moves)):
        return False
    return _measured(step, source, out, to)


def _measured(step: Map, source: Register, out: Register, to: Assembler) -> bool:
    """A Map of bare columns with measures of bare columns."""
    places = _moves(step)
    measures: list[int] = []
    kept = source
    words = list(range(source.columns)) if places is None else [word for word, _ in places]
    columns = source.columns if places is None else len(places)
    extra: list[int] = []
    for measure in step.measures:
        position = 0
        if measure.kind != "count":
            argument = measure.argument
            if measure.kind not in ("int", "bigint") or not isinstance(argument, Column):
                return False
            field = step.source[argument.index]
            if field.nullable or not field.type.is_integer:
                return False
            word = step.layout.slices[argument.index].start
            extra.append(word)
            position = columns + len(extra) - 1
        elif not (isinstance(measure.argument, Column) and not step.source[measure.argument.index].nullable):
            return False
        measures += [{"count": op.COUNT_ROWS, "int": op.WHOLE, "bigint": op.HALVES}[measure.kind], position]
    del words
    wide = to.register(columns + len(extra), source.weights)
    to.select(wide, kept, [*(places or [(word, 0) for word in range(source.columns)]), *((word, 0) for word in extra)])
    weighed = to.register(wide.columns, out.weights)
    to.emit(op.WEIGH, weighed, wide, wide.columns, len(step.measures), *measures)
    to.select(out, weighed, [(word, 0) for word in range(columns)])
    return True


def _moves(step: Map) -> list[tuple[int | None, int]] | None:
    """The origin of each word of the result; None if it has all words of the source."""
    return None if step.identity else list(step.origins() or ())


def _join(operator: JoinOperator, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    left, right = inputs
    new = to.sorted(right)
    to.emit(op.INDEXED, new, new.columns)
    joined = out if operator.chain is None else to.register(len(operator.output), len(operator.weights))
    parts = [to.register(joined.columns, joined.weights) for _ in range(2)]
    for side, change, part in ((0, left, parts[0]), (1, right, parts[1])):
        spine = to.spot(operator.right if side == 0 else operator.left)
        columns, weights = operator.widths[1 - side]
        key = operator.keys[side] if operator.keys else range(operator.key)
        output = [number for other, word in operator.output for number in (int(other == side), word)]
        pairs = [number for pair in operator.weights for number in (pair[side], pair[1 - side])]
        added = new if side == 0 else NO_REGISTER
        shape = (part, change, change.columns, spine, columns, weights, added)
        to.emit(op.MATCH, *shape, len(key), *key, len(operator.output), *output, len(operator.weights), *pairs)
    to.emit(op.CONCATENATE, joined, joined.width, 2, *parts)
    return operator.chain is None or _chain_steps(operator.chain, joined, out, to)


def _semijoin(operator: SemiJoin, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    left, right = inputs
    new = to.sorted(right)
    to.emit(op.INDEXED, new, new.columns)
    kept, flipped = to.register(out.columns, 1), to.register(out.columns, 1)
    present, other = to.spot(operator.right), to.spot(operator.left)
    key = operator.keys[0] if operator.keys else range(operator.key)
    shape = (kept, left, left.columns, present, operator.right_width, new, int(operator.anti))
    to.emit(op.KEEP_PRESENT, *shape, len(key), *key, len(operator.output), *operator.output)
    keys = new
    if operator.right_width > operator.right_key:
        cut = to.register(operator.right_key, 1)
        to.select(cut, right, [(word, 0) for word in range(operator.right_key)])
        keys = to.sorted(cut)
    sought = operator.keys[1] if operator.keys else range(keys.columns)
    flips = (flipped, keys, keys.columns, present, operator.right_width, other, operator.left_width, int(operator.anti))
    to.emit(op.FLIP, *flips, len(sought), *sought, len(operator.output), *operator.output)
    to.emit(op.CONCATENATE, out, out.width, 2, kept, flipped)
    return True


def _reweigh(operator: Reweigh, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    rules = {
        "distinct": op.DISTINCT,
        "except": op.EXCEPT,
        "except_all": op.EXCEPT_ALL,
        "intersect": op.INTERSECT,
        "intersect_all": op.INTERSECT_ALL,
    }
    to.emit(op.REWEIGH, out, inputs[0], inputs[0].columns, to.spot(operator.arrangement), rules[operator.rule])
    return True


def _multiset(operator: MultisetOperator, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    (source,) = inputs
    to.emit(op.CHECK_PRESENT, source, source.columns, to.spot(operator.arrangement))
    to.select(out, source, [(word, 0) for word in range(source.columns)], ordered=True)
    return Layout.of(operator.schema).width == source.columns


def _aggregate(operator: AggregateOperator, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    results = [_result(result) for result in operator.results]
    if len(inputs) > 1 or operator.memory is not None or operator.always or any(result is None for result in results):
        return False
    change = to.sorted(inputs[0])
    width = out.columns - operator.key
    numbers = [number for result in results if result is not None for number in result]
    shape = (out, change, operator.key, operator.weights, to.spot(operator.sums), width)
    to.emit(op.AGGREGATE, *shape, len(results), *numbers)
    return True


def _result(result: Result) -> tuple[int, int, int, int] | None:
    """kind, slot, counted, flagged; None if the runner cannot compute it."""
    if result.target.type != BIGINT:
        return None
    flagged = int(result.target.nullable)
    if result.kind == "count":
        return op.RESULT_COUNT, result.counted, result.counted, flagged
    if result.kind != "total":
        return None
    (source,) = result.sources
    if source.kind == "bigint":
        return op.RESULT_JOINED, source.slot, result.counted, flagged
    return (op.RESULT_TOTAL, source.slot, result.counted, flagged) if source.kind in ("count", "int") else None


def _plus(operator: Plus, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    to.emit(op.CONCATENATE, out, out.width, len(inputs), *inputs)
    return True


def _negate(operator: Negate, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    to.emit(op.NEGATE, out, inputs[0], out.columns, out.weights)
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
    to.emit(op.CONCATENATE, out, out.width, 0)
    return True


EMITTERS: Final[dict[type, Emitter]] = {
    TableInput: _table,
    Arrange: _arrange,
    Map: _map,
    Chain: _chain,
    JoinOperator: _join,
    SemiJoin: _semijoin,
    Reweigh: _reweigh,
    MultisetOperator: _multiset,
    AggregateOperator: _aggregate,
    Plus: _plus,
    Negate: _negate,
    Place: _place,
    Exchange: _exchange,
    Constant: _constant,
}
