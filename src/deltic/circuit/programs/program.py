"""LevelProgram: the instructions of one level, made once from its nodes and run in every tick."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple
from weakref import ref

import numpy as np
import numpy.typing as npt

from deltic.circuit.nodes import Level, Node, NodeKind
from deltic.circuit.programs.assembler import Assembler, ProgramLine, Register
from deltic.circuit.programs.emitters import EMITTERS
from deltic.circuit.programs.texts import TextIds
from deltic.kernels import instructions as op
from deltic.kernels.merge import DIRECTORY_HEADER
from deltic.stacks import roomy

Words = npt.NDArray[np.int64]


class Append(NamedTuple):
    """An arrangement to which a program appends, the columns and weights of a batch, and the words of its part of a directory."""

    arrangement: str
    columns: int
    weights: int
    entry: int


@dataclass(frozen=True, eq=False)
class LevelProgram:
    """The program of a level.

    code: the instructions. words: those of its registers. arrives: the register of each port. inputs: of each node, by its number. outputs:
    of each node, by its id. names: of the nodes, and of those in scopes that have counters. shared: the ids of those that several read.
    arrangements: those that it reads. texts: those that instructions read. strings: whether it reads bytes of strings. reads_strings:
    whether it reads either. state: the words of the runner's state. appends: what it may append, by slot. entries: the words of all their
    parts of directories. lines: the listing. native: how many nodes have instructions.
    """

    code: Words
    words: int
    nodes: tuple[Node, ...]
    arrives: dict[str, Register]
    inputs: tuple[tuple[Register, ...], ...]
    outputs: dict[int, Register]
    names: tuple[str, ...]
    shared: frozenset[int]
    arrangements: tuple[str, ...]
    texts: TextIds
    strings: bool
    reads_strings: bool
    state: int
    appends: tuple[Append, ...]
    entries: int
    lines: tuple[ProgramLine, ...]
    native: int

    def listing(self, nodes: Collection[int] | None = None) -> str:
        """The instructions, under the operator that each belongs to. nodes: ids of those to list; by default all."""
        parts = [f"{register} holds the changes of {port.removeprefix('table:')}" for port, register in self.arrives.items()]
        for number, node in enumerate(self.nodes):
            if nodes is not None and node.id not in nodes:
                continue
            read = ", ".join(map(str, self.inputs[number])) or "nothing"
            parts.append(f"operator {node.name}, {node.operator.name}: {read} → {self.outputs[node.id]}")
            parts += [f"  {line.position:4}  {line.text}" for line in self.lines if line.node == number]
        return "\n".join(parts)


_PROGRAMS: Final[dict[int, tuple[ref[Level], LevelProgram]]] = {}
"""By the identity of the level, since it takes as long to hash a level as to assemble it; as long as the level lives. An interrupt may
leave a program for longer, and another level may have the identity then."""


def program_of(level: Level) -> LevelProgram:
    """The program of a level, assembled at the first call."""
    known = _PROGRAMS.get(id(level))
    if known is None or known[0]() is not level:
        gone = partial(_PROGRAMS.pop, id(level), None)
        known = _PROGRAMS[id(level)] = ref(level, lambda _: gone()), assembled(level)
    return known[1]


@roomy
def assembled(level: Level) -> LevelProgram:
    """A new program of a level."""
    to = Assembler(len(level.nodes))
    arrives = {port.name: to.register(port.columns, port.weights) for port in level.arrives}
    by_node = {port.node: arrives[port.name] for port in level.arrives}
    to.outputs.update(by_node)
    inputs: list[tuple[Register, ...]] = []
    native = 0
    for number, node in enumerate(level.nodes):
        source = node.kind is NodeKind.SOURCE and not node.inputs
        read = _read(node, by_node, to) if source else tuple(to.outputs[i] for i in node.inputs)
        out = to.register(node.shape.layout.width, node.shape.weights)
        inputs.append(read)
        native += _assemble(node, number, read, out, to)
        to.outputs[node.id] = out
    to.emit(op.END, shown="")
    code = np.array(to.code, np.int64)
    appends = tuple(Append(name, source.columns, source.weights, DIRECTORY_HEADER + source.width) for name, source in to.appends)
    return LevelProgram(
        code,
        to.words,
        level.nodes,
        arrives,
        tuple(inputs),
        to.outputs,
        (*(node.name for node in level.nodes), *to.inner),
        level.shared,
        tuple(to.arrangements),
        TextIds(tuple(to.texts), tuple(to.made)),
        to.strings,
        to.strings or bool(to.texts),
        op.STATE + len(to.texts),
        appends,
        sum(append.entry for append in appends),
        tuple(to.lines),
        native,
    )


def _read(node: Node, arriving: dict[int, Register], to: Assembler) -> tuple[Register, ...]:
    """The register of a source's pending rows; an empty one for a source without a port, such as constant rows."""
    register = arriving.get(node.id)
    return (to.register(node.shape.layout.width, node.shape.weights) if register is None else register,)


def _assemble(node: Node, number: int, read: tuple[Register, ...], out: Register, to: Assembler) -> bool:
    skip = to.begin(node, number, read, out)
    mark = to.mark()
    emitter = EMITTERS.get(type(node.operator))
    emitted = emitter is not None and emitter(node.operator, read, out, to)
    if emitted:
        to.emit(op.FINISH, out, shown=str(out))
    else:
        to.reset(mark)
        to.emit(op.STEP, number, shown=f"in Python → {out}")
    to.code[skip] = len(to.code)
    return emitted
