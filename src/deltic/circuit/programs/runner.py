"""Runs the program of a level: the kernel as far as it goes, the `step` of an operator wherever it stops.

The arena is scratch memory that later ticks use again, so nothing of it leaves this module: batches to append are copied to one new block,
and so is what a `step` reads. Counters are those of `step`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Final

import numpy as np
import numpy.typing as npt

from deltic.circuit.decoded_change import DecodedChange
from deltic.circuit.operator import Context, Delta
from deltic.circuit.programs.assembler import Register
from deltic.circuit.programs.counted import LevelCounters
from deltic.circuit.programs.program import LevelProgram
from deltic.kernels import instructions as op
from deltic.kernels import level as kernel
from deltic.kernels.build import CHECKED
from deltic.kernels.gather import gathered_words
from deltic.kernels.merge import DIRECTORY_HEADER
from deltic.kernels.table import address
from deltic.trace.batch import Batch
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Words = npt.NDArray[np.int64]
Step = Callable[[int, Sequence[Delta]], Delta]
"""The change of the node with this number, from the changes of its inputs."""

LEAST_ARENA: Final = 1 << 13
LARGEST_KEPT: Final = 1 << 21
"""Words of an arena: at first, and the most that are kept for later ticks (16 MB)."""
LARGE_TICK: Final = 1 << 15
"""Words from which on each batch that a tick appends has a block of its own, since one may outlive the others."""
_FREE_ARENAS: Final[list[Words]] = []


class ProgramRun:
    """One run of a program. Nothing of it may be used after `close`, except what its methods have returned."""

    def __init__(self, program: LevelProgram, context: Context) -> None:
        self._program, self._context = program, context
        self._registers = np.zeros(program.words, np.int64)
        self._counters = np.zeros(op.COUNTERS * len(program.names), np.int64)
        self._appended = np.empty(3 * len(program.appends) + 1, np.int64)
        self._read: list[Spine | None] = []
        """The arrangements that the program reads; None for those of streams."""
        self._spines = self._located()
        self._state = np.zeros(program.state, np.int64)
        if program.reads_strings:
            self._find_strings()
        self._held: dict[int, Delta] = {}
        """By the start of a register: its rows, if they are an object of Python's."""
        self._arenas: list[Words] = []
        self._use(_free_arena())
        self.counters = LevelCounters(program.names, self._counters, context.inner)

    def _located(self) -> Words:
        """Where the kernel finds the arrangements that the program reads; those of streams are empty."""
        state, ephemeral, read = self._context.state, self._context.ephemeral, self._read
        words: list[int] = []
        for name in self._program.arrangements:
            spine = None if name in ephemeral else state[name]
            place, batches = (0, 0) if spine is None else spine.located
            words += (place, batches, 0, spine is not None and spine.share is not None)  # in the order of the SPINE constants
            read.append(spine)
        return np.array(words, np.int64)

    def _use(self, arena: Words) -> None:
        self._arenas.append(arena)
        state = self._state
        state[op.ARENA], state[op.WORDS], state[op.LOW], state[op.HIGH] = address(arena), len(arena), 0, len(arena)

    def _find_strings(self) -> None:
        """Sets the ids of the texts, and where the strings are; a `step` may have added some."""
        if self._program.texts:
            self._state[op.STATE :] = self._program.texts.of(self._context.strings)
        if self._program.strings:
            self._entries = entries = self._context.strings.entries
            self._state[op.STRINGS : op.STATE] = entries.located

    def run(self, arrived: Mapping[str, Delta], step: Step) -> None:
        """Computes all registers. arrived: port → rows; absent ports are empty."""
        program, state = self._program, self._state
        for port, register in program.arrives.items():
            rows = arrived.get(port)
            if rows is not None and rows.length:
                self._set(register, rows)
        entries, start, position = kernel.entries(), perf_counter(), 0
        started = kernel.now()
        while True:
            outcome = kernel.run(program.code, position, self._registers, self._spines, state, self._counters, self._appended, entries)
            if outcome == op.DONE:
                break
            if outcome == op.FULL:
                self._use(np.empty(max(2 * len(self._arenas[-1]), 2 * int(state[op.NEEDED])), np.int64))
                position = int(state[op.PC])
                continue
            self._step(int(state[op.NODE]), step)
            position = int(state[op.SKIP])
        self.counters.seconds = (perf_counter() - start) / max(kernel.now() - started, 1)
        self._finish()

    def _step(self, number: int, step: Step) -> None:
        program, node = self._program, self._program.nodes[number]
        context = self._context
        inputs = [self.rows(register) for register in program.inputs[number]]
        for i, rows in zip(node.inputs, inputs, strict=False):
            if i in program.shared and len(rows):  # that without rows is the same object for many nodes
                context.decoded.setdefault(id(rows), DecodedChange())
        output = step(number, inputs)
        self.counters.stepped[node.name] = context.counters
        self._set(program.outputs[node.id], output)
        if program.reads_strings:
            self._find_strings()

    def _set(self, register: Register, rows: Delta) -> None:
        start, words = register.start, self._registers
        length = rows.length
        words[start] = op.BATCH if isinstance(rows, Batch) else 0
        words[start + op.ROWS] = length
        words[start + op.INDEX] = 0
        if length:
            words[start + op.HEADER : start + op.HEADER + register.width] = rows.table
        self._held[start] = rows

    def rows(self, register: Register) -> Delta:
        """The rows of a register; copied if they are in the arena."""
        held = self._held.get(register.start)
        if held is not None:
            return held
        held = self._held[register.start] = self._copied(register)
        return held

    def _copied(self, register: Register) -> Delta:
        (start, columns, weights, _), words = register, self._registers
        length, width, is_batch = int(words[start + op.ROWS]), columns + weights, words[start] == op.BATCH
        if not length:
            return Batch.empty(columns, weights) if is_batch else Rows.empty(columns, weights)
        indexed = bool(is_batch and words[start + op.INDEX])
        block = np.empty(gathered_words(width, length) if indexed else width * length, np.int64)
        first, entry = address(block), np.empty(DIRECTORY_HEADER + width, np.int64)
        kernel.keep(words, np.array([0, start, width], np.int64), 1, int(indexed), first, entry)
        if indexed:
            return Batch.kept(block, 0, columns, weights, length, entry)
        if not is_batch:
            return Rows.packed(block, first, columns, weights, length)
        arrays = tuple(block.reshape(width, length))
        return Batch.trusted(arrays[:columns], arrays[columns:], table=None if CHECKED else entry[DIRECTORY_HEADER:])

    def output(self, node: int) -> Delta:
        """The rows of a node, or of a port's."""
        return self.rows(self._program.outputs[node])

    def _finish(self) -> None:
        """Appends what the instructions append, and counts the keys that they have sought."""
        state = self._state
        count, size = int(state[op.APPENDED]), int(state[op.KEPT])
        if count == 1 or size < LARGE_TICK:
            if count:
                self._keep(self._appended[: op.KEPT_REGISTER * count], size)
        else:
            kept = self._appended[: op.KEPT_REGISTER * count].reshape(count, op.KEPT_REGISTER)
            words = kept[:, op.WIDTH] * self._registers[kept[:, op.REGISTER] + op.ROWS]
            indexes = size - int(words.sum())
            for one, own in zip(kept, words.tolist(), strict=True):
                self._keep(one, own + indexes)
        Spine.count_all_sought(zip(self._read, self._spines[op.SPINE_SOUGHT :: op.SPINE].tolist(), strict=True))

    def _keep(self, appended: Words, size: int) -> None:
        """Appends registers, copied to one block. size: the words that they take at most, with their indexes."""
        appends, slots = self._program.appends, appended[op.SLOT :: op.KEPT_REGISTER].tolist()
        block, entries = np.empty(size, np.int64), np.empty(self._program.entries, np.int64)
        first = address(block)
        kernel.keep(self._registers, appended, len(slots), 1, first, entries)
        words, batches, begin = entries.tolist(), self._context.appended, 0
        for slot in slots:
            arrangement, columns, weights, entry = appends[slot]
            end = begin + entry
            place = (words[begin + DIRECTORY_HEADER] - first) >> 3
            batches[arrangement] = Batch.kept(block, place, columns, weights, words[begin], entries[begin:end])
            begin = end

    def close(self) -> None:
        """Gives the arena back."""
        arena = self._arenas[-1]
        self._arenas.clear()
        if len(arena) <= LARGEST_KEPT and len(_FREE_ARENAS) < 4:
            _FREE_ARENAS.append(arena)


def _free_arena() -> Words:
    try:
        return _FREE_ARENAS.pop()
    except IndexError:  # all are in use, by other threads
        return np.empty(LEAST_ARENA, np.int64)
