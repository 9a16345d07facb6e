"""The instructions of filters, projections and measures, of one operator or of several that are fused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deltic.aggregates.definition import Measure
from deltic.circuit.operators.chain import Chain
from deltic.circuit.operators.flat_map import FlatMapOperator
from deltic.circuit.operators.map import Map, Place
from deltic.circuit.programs.assembler import Assembler, Register
from deltic.circuit.programs.listing import show
from deltic.circuit.programs.nested import Fields, unnested
from deltic.circuit.programs.scalars import NoOperations, Operations
from deltic.expr.nodes import Column, Expr, columns_of
from deltic.kernels import instructions as op
from deltic.kernels import scalars
from deltic.schema import BIGINT, Field
from deltic.trace.encoding import Layout
from deltic.trace.sums import NARROW
from deltic.types import INTEGER_BITS

COUNTED: Final = "w0"
"""The weight that counts rows, in listings."""


def touch(source: Register, to: Assembler) -> None:
    to.emit(op.TOUCH, source, shown=f"{source}")


def map_instructions(operator: Map, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    touch(inputs[0], to)
    source = to.sorted(inputs[0]) if operator.fallible and operator.places is None else inputs[0]
    return _instructed(operator, source, out, to)


def flat_map_instructions(operator: FlatMapOperator, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    touch(inputs[0], to)
    return unnested(operator, inputs[0], out, to)


def chain_instructions(operator: Chain, inputs: Sequence[Register], out: Register, to: Assembler) -> bool:
    touch(inputs[0], to)
    return chained(operator, to.sorted(inputs[0]) if operator.fallible else inputs[0], out, to)


def chained(chain: Chain, source: Register, out: Register, to: Assembler) -> bool:
    """The steps of a chain. source: consolidated if one of them can fail."""
    if chain.last is not None:
        return False
    for number, step in enumerate(chain.steps, 1):
        weights = step.weights if isinstance(step, Map) and step.measures else source.weights
        target = out if number == len(chain.steps) else to.register(Layout.of(step.target).width, weights)
        if isinstance(step, Map):
            instructed = _instructed(step, source, target, to)
        else:
            instructed = isinstance(step, FlatMapOperator) and unnested(step, source, target, to)
        if not instructed:
            return False
        source = target
    return True


def _instructed(step: Map, source: Register, out: Register, to: Assembler) -> bool:
    if step.places is not None:
        to.select(out, source, step.places, ordered=step.identity)
        return True
    try:
        _assemble(step, source, out, to)
    except NoOperations:
        return False
    return True


def _assemble(step: Map, source: Register, out: Register, to: Assembler) -> None:
    bare = step.identity and not step.measures
    fields = Fields(step.source)
    if step.predicate is not None:
        source = _filtered(step, step.predicate, fields, source, out if bare else None, to)
    if bare:
        return
    source = fields.extended(_computed(step), source, to)
    if not step.measures:
        _Columns(step, source, fields, to).emit(out)
        return
    computed = _Columns(step, source, fields, to)
    measures = [word for measure in step.measures for word in computed.measured(measure)]
    wide = to.register(computed.width, source.weights)
    computed.emit(wide)
    weighed = to.register(wide.columns, out.weights)
    kinds = {op.COUNT_ROWS: COUNTED, op.WHOLE: f"{COUNTED} × {{}}", op.HALVES: f"{COUNTED} × halves of {{}}"}
    terms = ", ".join(kinds[kind].format(word) for kind, word in measures)
    shown = f"{weighed} ← {wide} with {COUNTED}, {terms}"
    to.emit(op.WEIGH, weighed, wide, wide.columns, len(measures), *(word for measure in measures for word in measure), shown=shown)
    to.select(out, weighed, [(word, 0) for word in range(out.columns)])


def _filtered(step: Map, predicate: Expr, fields: Fields, source: Register, out: Register | None, to: Assembler) -> Register:
    """The rows on which the predicate is TRUE, with the words that are read later. out: where they are wanted as they are."""
    width = source.columns
    source = fields.extended([predicate], source, to)
    kept = out if out is not None and source.columns == width else to.register(source.columns, source.weights)
    operations = Operations(step.source, to, fields)
    operations.write(scalars.KEEP, operations.value(predicate))
    needed = [*_read(step), *(fields.within(_computed(step)) if out is None else ())]
    shown = f"{kept} ← rows of {source} where {show(predicate)}"
    to.emit(op.FILTER, kept, source, source.columns, source.weights, len(needed), *needed, *operations.operands, shown=shown)
    if out is not None and kept is not out:
        to.select(out, kept, [(word, 0) for word in range(width)])
    return kept


def _computed(step: Map) -> list[Expr]:
    """The expressions of the columns and measures of a step, which are computed after its filter."""
    return [*(() if step.identity else step.columns), *(measure.argument for measure in step.measures)]


def _read(step: Map) -> list[int]:
    """The words of the input that the columns and measures of a step read."""
    if step.identity:
        return list(range(step.layout.width))
    fields = set[int]().union(*map(columns_of, _computed(step)))
    return [word for i in sorted(fields) for word in range(step.layout.slices[i].start, step.layout.slices[i].stop)]


class _Columns:
    """The columns of a Map, then the words of its measures: those that are moved, and those that are computed."""

    def __init__(self, step: Map, source: Register, fields: Fields, to: Assembler) -> None:
        self._step, self._source, self._fields, self._to = step, source, fields, to
        self._operations = Operations(step.source, to, fields)
        self._moved: list[tuple[int, Place]] = []
        self._computed: list[int] = []
        self._shown: list[str] = []
        self.width = 0
        if step.identity:
            self._move([(word, 0) for word in range(step.layout.width)])
            return
        for i, (expr, field) in enumerate(zip(step.columns, step.target, strict=True)):
            if (origin := step.origin(i)) is not None:
                self._move(origin)
            elif (read := fields.of(expr)) is not None and (read.value.type, read.value.nullable) == (field.type, field.nullable):
                self._move([(word, 0) for word in range(read.start, read.end)])
            else:
                self._put(expr, field)

    def _move(self, places: Sequence[Place]) -> None:
        for place in places:
            self._moved.append((self.width, place))
            self._shown.append(f"={place[1]}" if place[0] is None else str(place[0]))
            self.width += 1

    def _put(self, expr: Expr, field: Field) -> None:
        """Writes the words of a value."""
        if not (expr.type == field.type or (expr.type.is_integer and field.type.is_integer and _is_wider(field, expr))):
            raise NoOperations
        lane = self._operations.value(expr)
        if field.type == BIGINT and field.nullable:
            self._write(scalars.PUT_FLAGGED, lane, words=2)
        elif field.type.is_decimal and field.type.precision > NARROW:
            self._write(scalars.PUT_WIDE_MARKED if field.nullable else scalars.PUT_WIDE, lane, words=2)
        else:
            self._write(scalars.PUT_MARKED if field.nullable else scalars.PUT, lane)
        self._shown.append(show(expr))

    def _write(self, operation: int, lane: int, limb: int = 0, *, words: int = 1) -> int:
        """The first of the words that the operation writes."""
        first = self.width
        self._operations.write(operation, lane, first, limb)
        self._computed += range(first, first + words)
        self.width += words
        return first

    def measured(self, measure: Measure) -> list[tuple[int, int]]:
        """(kind, word) of each part of the measure, as WEIGH takes them."""
        argument = measure.argument
        if measure.kind == "count" and not argument.nullable:
            return [(op.COUNT_ROWS, 0)]
        if measure.kind == "bigint" and isinstance(argument, Column) and not argument.nullable:
            self._move([(self._step.layout.slices[argument.index].start, 0)])
            return [(op.HALVES, self.width - 1)]
        if measure.kind != "count" and not (argument.type.is_integer or argument.type.is_decimal):
            raise NoOperations
        lane = self._operations.value(argument)
        shown = show(argument)
        if measure.kind in ("count", "int"):
            self._shown.append(f"whether {shown} is present" if measure.kind == "count" else shown)
            return [(op.WHOLE, self._write(scalars.PUT_STATE if measure.kind == "count" else scalars.PUT_VALUE, lane))]
        operation = scalars.PUT_ROUNDED if measure.kind == "rounded" else scalars.PUT_LIMB
        limbs = (scalars.UPPER, 0) if measure.width == 2 else (3, 2, 1, 0)
        self._shown += [f"limb {limb} of {shown}" for limb in reversed(range(measure.width))]
        return [(op.WHOLE, self._write(operation, lane, limb)) for limb in limbs]

    def emit(self, out: Register) -> None:
        source, to = self._source, self._to
        if not self._computed:
            to.select(out, source, [place for _, place in self._moved])
            return
        moved: list[int] = []
        for target, (word, value) in self._moved:
            moved += [target, op.CONSTANT, value] if word is None else [target, op.WORD, word]
        shape: list[int | Register] = [out, out.columns, source, source.columns, source.weights, len(self._moved)]
        shape += [*moved, len(self._computed), *self._computed]
        shown = f"{out} ← {source}[{', '.join(self._shown)}]"
        to.emit(op.COMPUTE, *shape, *self._operations.operands, shown=shown)


def _is_wider(field: Field, expr: Expr) -> bool:
    return INTEGER_BITS[field.type.name] >= INTEGER_BITS[expr.type.name]
