"""Passes of linear operators over many rows: their instructions, on one block of rows after another.

In a load or a large tick operators run by their `step`. That of a linear operator reads Arrow arrays of whole columns; its instructions
(`linear.py`) read the words of a block, which are still in the processor's cache when the next operation reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from deltic.circuit.nodes import Level, Node, NodeKind, Port, Shape
from deltic.circuit.operator import Context, Delta, Operator
from deltic.circuit.operators.chain import Chain, Step
from deltic.circuit.operators.map import Map, placed
from deltic.circuit.programs.program import LevelProgram, assembled
from deltic.circuit.programs.runner import ProgramRun
from deltic.errors import WeightOverflow
from deltic.kernels import table
from deltic.kernels.memory import Words
from deltic.schema import Schema
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.rows import Rows

LEAST_ROWS: Final = 1 << 15
"""Rows for which a program is worth assembling."""
BLOCK_ROWS: Final = 1 << 14
"""Rows whose words fit in the processor's cache."""
STRETCH_ROWS: Final = 1 << 20
"""Rows with measures that are added up at once, to take less memory."""
_PORT: Final = "rows"
_INPUT, _OUTPUT = 0, 1


class _Declined(Exception):
    """An instruction has met something rare, such as a user's error. Caught by `pass_natively`."""


def pass_natively(operator: Operator, length: int, part: Callable[[int, int], Delta], context: Context) -> Delta | None:
    """As `Passes`: None if there are few rows, the operator has no instructions, or one of them declines.

    If the operator can fail, the parts are those of a batch. Rows with measures, which are to be added up, are added up within each block,
    and within each STRETCH_ROWS, as long as that leaves at most half of them.
    """
    if length < LEAST_ROWS or not isinstance(operator, Map | Chain):
        return None
    computed = _computed(operator)
    if not computed:
        return _in_blocks(operator, length, part, context)
    assert isinstance(operator, Map)
    schema = Schema(tuple(operator.target[i] for i in computed))
    alone = Map(operator.source, schema, tuple(operator.columns[i] for i in computed))
    rows = _in_blocks(alone, length, part, context)
    return None if rows is None else _beside_moved(operator, alone, rows, part(0, length))


def _computed(operator: Map | Chain) -> list[int]:
    """The columns of a Map that are computed beside others, whose arrays it passes on; [] if it drops rows or passes none on."""
    if isinstance(operator, Chain) or operator.predicate is not None or operator.measures:
        return []
    computed = [i for i in range(len(operator.columns)) if operator.origin(i) is None]
    return computed if len(computed) < len(operator.columns) else []


def _beside_moved(operator: Map, alone: Map, computed: Rows, rows: Rows) -> Rows:
    """The result of a Map on `rows`, of which `alone` has computed columns."""
    words = (computed.columns[part] for part in alone.target_layout.slices)
    columns: list[Words] = []
    for i in range(len(operator.columns)):
        origin = operator.origin(i)
        columns += next(words) if origin is None else placed(rows, origin)
    return Rows(columns, rows.weights)


class _Results:
    """The results on blocks, one after another in memory for as many rows as are expected; pages are used for those that come."""

    def __init__(self, columns: int, weights: int, room: int) -> None:
        self._words, _ = table.block(columns + weights, room)
        self._columns, self._end = columns, 0
        self._begin = 0
        """Where the rows begin that are to be added up."""
        self._adds = True

    def append(self, rows: Rows) -> None:
        begin, self._end = self._end, self._end + len(rows)
        if self._end > self._words.shape[1]:
            words, _ = table.block(len(self._words), 2 * self._end)
            words[:, :begin] = self._words[:, :begin]
            self._words = words
        for whole, part in zip(self._words, (*rows.columns, *rows.weights), strict=True):
            whole[begin : self._end] = part

    def add_up(self) -> None:
        """Adds up what has come since the last time, if that is much; no more once it leaves more than half of the rows."""
        if self._adds and self._end - self._begin >= STRETCH_ROWS:
            rows = self._rows(self._begin)
            added = _added_up(rows)
            self._adds = 2 * len(added) <= len(rows)
            if self._adds:
                self._end = self._begin
                self.append(added)
            self._begin = self._end

    def rows(self) -> Rows:
        if 2 * self._end < self._words.shape[1]:
            self._words = self._words[:, : self._end].copy()
        return self._rows(0)

    def _rows(self, begin: int) -> Rows:
        arrays = tuple(self._words[:, begin : self._end])
        return Rows(arrays[: self._columns], arrays[self._columns :])


def _in_blocks(operator: Map | Chain, length: int, part: Callable[[int, int], Delta], context: Context) -> Rows | None:
    program: LevelProgram | None = None
    results: _Results | None = None
    ordered, measures = _keeps_order(operator), _has_measures(operator)
    adds = measures
    for start in range(0, length, BLOCK_ROWS):
        context.check_needed()
        block = part(start, min(start + BLOCK_ROWS, length))
        program = program or _program(operator, len(block.weights))
        result = _run(program, block, context)
        if result is None:
            return None
        added = _added_up(result) if adds else result
        adds = adds and 2 * len(added) <= len(result)
        ordered = ordered and isinstance(block, Batch)
        results = results or _Results(*added.shape, length)
        results.append(added)
        if measures:
            results.add_up()
    assert results is not None
    rows = results.rows()
    return Batch.trusted(rows.columns, rows.weights) if ordered else rows


def _added_up(rows: Rows) -> Rows:
    """Equal rows as one; the rows as they are if a sum leaves 64 bits, which that of all blocks may not."""
    try:
        return consolidate(rows)
    except WeightOverflow:
        return rows


def _run(program: LevelProgram, block: Delta, context: Context) -> Rows | None:
    """The result on a block; None if an instruction declines, or there is none."""
    if not program.native:
        return None
    run = ProgramRun(program, context)
    try:
        run.run({_PORT: block}, _decline)
        return run.output(_OUTPUT)
    except _Declined:
        return None
    finally:
        run.close()


def _program(operator: Map | Chain, weights: int) -> LevelProgram:
    """The instructions of one operator, whose input has so many weights."""
    steps = _steps(operator)
    measured = [step for step in steps if isinstance(step, Map) and step.measures]
    shape = Shape(steps[-1].target, measured[-1].weights if measured else weights)
    node = Node((_OUTPUT,), NodeKind.OPERATOR, operator, (_INPUT,), shape, None, 0, "", "")
    port = Port(_PORT, _INPUT, Shape(steps[0].source, weights), -1, 0)
    return assembled(Level(0, (node,), (port,), (), (), ()))


def _keeps_order(operator: Map | Chain) -> bool:
    """Whether its result on a batch is one: it drops rows, and changes none."""
    return all(isinstance(step, Map) and step.identity and not step.measures for step in _steps(operator))


def _has_measures(operator: Map | Chain) -> bool:
    return any(isinstance(step, Map) and step.measures for step in _steps(operator))


def _steps(operator: Map | Chain) -> Sequence[Step]:
    return operator.steps if isinstance(operator, Chain) else (operator,)


def _decline(number: int, inputs: Sequence[Delta]) -> NoReturn:
    raise _Declined
