"""The instructions of operators that read words, whatever they encode: rows without NULL keys, and words in which rows sort in an order."""

from __future__ import annotations

from collections.abc import Sequence

from deltic.circuit.operators.not_null import NotNull
from deltic.circuit.operators.order import Sort
from deltic.circuit.programs.assembler import Assembler, Register
from deltic.circuit.programs.scalars import Operations
from deltic.circuit.terms import BYTES_WORDS, Term
from deltic.kernels import instructions as op
from deltic.kernels import scalars
from deltic.schema import Schema
from deltic.trace.encoding import MARKER


def not_null(operator: NotNull, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    (source,) = inputs
    words = _Words(to)
    tests = [words.negated(words.equals(word, null)) for word, null in operator.words]
    verdict = tests[0]
    for each in tests[1:]:
        verdict = words.emit(scalars.AND, verdict, each)
    words.write(scalars.KEEP, verdict)
    columns = range(source.columns)
    shown = f"{out} ← rows of {source}[{', '.join(str(word) for word, _ in operator.words)}] without NULL"
    to.emit(op.FILTER, out, source, source.columns, source.weights, len(columns), *columns, *words.operands, shown=shown)
    return True


def order(operator: Sort, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    (source,) = inputs
    words = _Words(to)
    moved: list[tuple[int | None, int]] = [(None, 0)] if operator.constant else []
    computed: list[int] = []
    for part in operator.parts:
        if isinstance(part, int):
            moved.append((part, 0))
        else:
            _term(part, words, moved, computed)
    if not computed:
        to.select(out, source, moved)
        return True
    places: list[int] = []
    for target, (word, value) in enumerate(moved):
        if target not in computed:
            places += [target, op.CONSTANT, value] if word is None else [target, op.WORD, word]
    shape: list[int | Register] = [out, out.columns, source, source.columns, source.weights, len(places) // 3, *places]
    shown = f"{out} ← order words of {source}: {', '.join(_shown(part) for part in operator.parts)}"
    to.emit(op.COMPUTE, *shape, len(computed), *computed, *words.operands, shown=shown)
    return True


def _term(term: Term, words: _Words, moved: list[tuple[int | None, int]], computed: list[int]) -> None:
    """Appends the order words of a term: moved words, or computed ones, whose places in `moved` are not used."""
    count = term.width
    if term.flagged:
        is_null = words.equals(term.start, 0 if term.is_split else int(MARKER))
        words.put(words.negated(is_null) if term.nulls_first else is_null, len(moved))
        computed.append(len(moved))
        moved.append((None, 0))
        count -= 1
    start = term.start + term.is_split
    if term.field.type.has_bytes:
        _text(start, term.descending, words, moved, computed)
        return
    for word in range(start, start + count):
        if term.descending:
            words.put(words.inverted(words.word(word)), len(moved))
            computed.append(len(moved))
        moved.append((word, 0))


def _text(start: int, descending: bool, words: _Words, moved: list[tuple[int | None, int]], computed: list[int]) -> None:
    """Those of a text: words of its first bytes, and its id."""
    text = words.word(start)
    for number in range(BYTES_WORDS):
        word = words.text_word(text, number)
        words.put(words.inverted(word) if descending else word, len(moved))
        computed.append(len(moved))
        moved.append((None, 0))
    moved.append((start, 0))


def _shown(part: int | Term) -> str:
    if isinstance(part, int):
        return str(part)
    return f"{part.start} {'descending' if part.descending else 'ascending'}"


class _Words(Operations):
    """Operations on the words of rows as they are."""

    def __init__(self, to: Assembler) -> None:
        super().__init__(Schema(()), to)

    def word(self, position: int) -> int:
        return self.emit(scalars.PLAIN, position)

    def constant(self, value: int) -> int:
        return self.emit(scalars.CONSTANT_VALUE, value, value >> 63)

    def equals(self, position: int, value: int) -> int:
        return self.emit(scalars.EQUAL, self.word(position), self.constant(value))

    def text_word(self, lane: int, number: int) -> int:
        self._to.strings = True
        return self.emit(scalars.TEXT_WORD, lane, number)

    def inverted(self, lane: int) -> int:
        """~w, which is -1 - w."""
        return self.emit(scalars.SUBTRACT, self.constant(-1), lane)

    def negated(self, lane: int) -> int:
        return self.emit(scalars.NOT, lane)

    def put(self, lane: int, target: int) -> None:
        self.write(scalars.PUT, lane, target)
