"""Assembles the program of a level: instructions over registers (`kernels/instructions.py`), node by node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from deltic.circuit.nodes import Node
from deltic.kernels import instructions as op

NO_REGISTER: Final = -1
NAMES: Final = {
    op.END: "end",
    op.BEGIN: "begin",
    op.FINISH: "finish",
    op.STEP: "step",
    op.APPEND: "append",
    op.JUMP: "jump",
    op.JUMP_UNLESS: "jump_unless",
    op.SELECT: "select",
    op.WEIGH: "weigh",
    op.SORT: "sort",
    op.INDEXED: "index",
    op.CHECK_LIGHT: "check_light",
    op.CONCATENATE: "concatenate",
    op.NEGATE: "negate",
    op.TOUCH: "touch",
    op.FILTER: "filter",
    op.COMPUTE: "compute",
    op.FIELDS: "fields",
    op.UNNEST: "unnest",
    op.TAKE_APART: "take_apart",
    op.CHECK_PRESENT: "check_present",
    op.CHECK_KEYS: "check_keys",
    op.MATCH: "match",
    op.KEEP_PRESENT: "keep_present",
    op.FLIP: "flip",
    op.RESOLVE: "resolve",
    op.REWEIGH: "reweigh",
    op.AGGREGATE: "aggregate",
    op.EXTREMES: "extremes",
    op.FIRST_ROWS: "first_rows",
    op.LOOP: "loop",
    op.RECUR: "recur",
}
"""The names of opcodes in listings."""


class Register(NamedTuple):
    """Rows of `columns` words with `weights` weights. start: its first word in the array of registers. number: in listings."""

    start: int
    columns: int
    weights: int
    number: int

    @property
    def width(self) -> int:
        return self.columns + self.weights

    def __str__(self) -> str:
        return f"r{self.number}"


class ArrangementSlot(NamedTuple):
    """An arrangement that a program reads. slot: its position among these."""

    slot: int
    name: str

    def __str__(self) -> str:
        role, _, digest = self.name.partition("-")
        return f"{role}-{digest[:6]}"


@dataclass(frozen=True, slots=True)
class ProgramLine:
    """A line of a listing. position: of the instruction in the program."""

    position: int
    node: int
    text: str


class Assembler:
    """The code so far. An instruction's operands are integers, registers and arrangements; see `instructions` for their order."""

    def __init__(self, nodes: int) -> None:
        """nodes: of the level."""
        self._nodes = nodes
        self.code: list[int] = []
        self.lines: list[ProgramLine] = []
        self.arrangements: dict[str, ArrangementSlot] = {}
        self.registers: list[Register] = []
        self.words = 0
        """The words of all registers."""
        self.outputs: dict[int, Register] = {}
        """By node."""
        self.appends: list[tuple[str, Register]] = []
        """The arrangements that instructions append to, by the slot of the instruction."""
        self.texts: dict[str, int] = {}
        """The texts that instructions read, by number."""
        self.made: dict[str, None] = {}
        """Those that may be values, in order."""
        self.strings = False
        """Whether an instruction may read bytes of strings."""
        self.inner: list[str] = []
        """Nodes in scopes that have counters, by name."""
        self.node = NO_REGISTER

    def register(self, columns: int, weights: int) -> Register:
        new = Register(self.words, columns, weights, len(self.registers))
        self.words += op.HEADER + new.width
        self.registers.append(new)
        return new

    def slot(self, arrangement: str) -> ArrangementSlot:
        return self.arrangements.setdefault(arrangement, ArrangementSlot(len(self.arrangements), arrangement))

    def counters(self, node: str) -> int:
        """The number of the counters of a node in a scope."""
        self.inner.append(node)
        return self._nodes + len(self.inner) - 1

    def emit(self, opcode: int, *operands: int | Register | ArrangementSlot, shown: str) -> None:
        """shown: the operands, in the listing."""
        numbers = [
            part.start if isinstance(part, Register) else part.slot if isinstance(part, ArrangementSlot) else part for part in operands
        ]
        self.lines.append(ProgramLine(len(self.code), self.node, f"{NAMES[opcode]:13} {shown}".rstrip()))
        self.code += [opcode, 2 + len(numbers), *numbers]

    def select(
        self,
        out: Register,
        source: Register,
        places: Sequence[tuple[int | None, int]],
        weights: Sequence[int | None] | None = None,
        *,
        ordered: bool = False,
    ) -> None:
        """places: (position, 0) or (None, constant) for each column. weights: the position of each weight; None: zeros; ONES."""
        moved = range(source.weights) if weights is None else weights
        columns = [part for word, value in places for part in ((op.CONSTANT, value) if word is None else (op.WORD, word))]
        positions = [NO_REGISTER if w is None else w for w in moved]
        words = [f"={value}" if word is None else str(word) for word, value in places]
        weighed = ["0" if w is None else "1" if w == op.ONES else f"w{w}" for w in moved]
        shown = f"{out} ← {source}[{', '.join((*words, *weighed))}]"
        self.emit(op.SELECT, out, source, source.columns, int(ordered), len(positions), *positions, len(places), *columns, shown=shown)

    def sorted(self, source: Register) -> Register:
        """The register's rows as a batch."""
        out = self.register(source.columns, source.weights)
        self.sort(out, source)
        return out

    def sort(self, out: Register, source: Register) -> None:
        self.emit(op.SORT, out, source, source.columns, source.weights, shown=f"{out} ← {source}")

    def index(self, source: Register) -> None:
        self.emit(op.INDEXED, source, source.columns, shown=f"{source}")

    def check_light(self, source: Register) -> None:
        self.emit(op.CHECK_LIGHT, source, source.columns, source.weights, shown=f"weights of {source}")

    def concatenate(self, out: Register, *parts: Register) -> None:
        self.emit(op.CONCATENATE, out, out.width, len(parts), *parts, shown=f"{out} ← {' + '.join(map(str, parts)) or 'nothing'}")

    def append(self, arrangement: str, source: Register) -> None:
        self.emit(
            op.APPEND, len(self.appends), source, source.columns, source.weights, shown=f"{source} to {ArrangementSlot(0, arrangement)}"
        )
        self.appends.append((arrangement, source))

    def jump_unless(self, source: Register, column: int, word: int, shown: str) -> int:
        """A jump unless all words of a column are this one; see `land`. shown: the condition."""
        self.emit(op.JUMP_UNLESS, 0, source, column, word, shown=shown)
        return len(self.code) - 4

    def jump(self) -> int:
        """A jump; see `land`."""
        self.emit(op.JUMP, 0, shown="")
        return len(self.code) - 1

    def land(self, jump: int) -> None:
        """Makes the next instruction the target of a jump."""
        self.code[jump] = len(self.code)
        number = next(i for i, line in enumerate(self.lines) if line.position == jump - 2)
        line = self.lines[number]
        self.lines[number] = replace(line, text=f"{line.text} → {len(self.code)}")

    def mark(self) -> tuple[int, ...]:
        """What `reset` undoes to."""
        return (
            len(self.code),
            len(self.lines),
            len(self.appends),
            len(self.registers),
            self.words,
            len(self.arrangements),
            len(self.texts),
            len(self.made),
            len(self.inner),
        )

    def reset(self, mark: tuple[int, ...]) -> None:
        """Forgets the instructions since a mark."""
        code, lines, appends, registers, self.words, arrangements, texts, made, inner = mark
        del self.code[code:], self.lines[lines:], self.appends[appends:], self.registers[registers:], self.inner[inner:]
        self.arrangements = dict(list(self.arrangements.items())[:arrangements])
        self.texts = dict(list(self.texts.items())[:texts])
        self.made = dict.fromkeys(list(self.made)[:made])

    def begin(self, node: Node, number: int, inputs: Sequence[Register], out: Register) -> int:
        """The position of the operand that is the end of the node's instructions."""
        self.node = number
        read = "always" if node.operator.eager else f"if there are rows in {' or '.join(map(str, inputs))}"
        self.emit(op.BEGIN, number, out, int(node.operator.eager), 0, len(inputs), *inputs, shown=read)
        return len(self.code) - len(inputs) - 2
