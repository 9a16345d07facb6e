"""The instructions that read numbers in nested values: fields of STRUCTs as words after those of the rows, elements of ARRAYs as rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from deltic.circuit.operators.flat_map import FlatMapOperator
from deltic.circuit.programs.assembler import Assembler, Register
from deltic.circuit.programs.listing import show
from deltic.expr.nodes import Column, Expr, FieldPath, children, field_path
from deltic.kernels import instructions as op
from deltic.kernels import nested_words as words
from deltic.schema import BIGINT, Field, Schema, Type
from deltic.trace.encoding import Layout, words_of
from deltic.trace.sums import NARROW


class FieldWords(NamedTuple):
    """A field as words of rows. start: the first of them. value: its type, and whether it may be NULL."""

    start: int
    value: Field

    @property
    def end(self) -> int:
        return self.start + words_of(self.value.type, self.value.nullable)


@dataclass(slots=True)
class Fields:
    """The fields that are words of the rows of a register, after those of `schema`. read: where each is."""

    schema: Schema
    read: dict[FieldPath, FieldWords] = field(default_factory=dict)

    def of(self, expr: Expr) -> FieldWords | None:
        """The words of an expression that is such a field."""
        path = field_path(expr)
        return None if path is None else self.read.get(path)

    def within(self, exprs: Sequence[Expr]) -> list[int]:
        """The words of all fields that the expressions read, of those there are."""
        places = {place for expr in exprs for path, _ in _paths(expr) if (place := self.read.get(path)) is not None}
        return [word for place in sorted(places, key=lambda place: place.start) for word in range(place.start, place.end)]

    def extended(self, exprs: Sequence[Expr], source: Register, to: Assembler) -> Register:
        """The rows of a register with all fields that the expressions read and instructions can; the register if it has them."""
        wanted: dict[int, dict[FieldPath, Expr]] = {}
        for expr in exprs:
            for path, part in _paths(expr):
                if path not in self.read:
                    wanted.setdefault(path[0], {})[path] = part
        for column, parts in wanted.items():
            source = self._with_fields(column, parts, source, to)
        return source

    def _with_fields(self, column: int, parts: dict[FieldPath, Expr], source: Register, to: Assembler) -> Register:
        start, code, shown = source.columns, list[int](), list[str]()
        for path, expr in parts.items():
            value = Field("", expr.type, expr.nullable)
            steps, form = path_steps(self.schema[column].type, path[1]), _form(value)
            if steps is None or form is None:
                continue
            self.read[path] = place = FieldWords(start, value)
            start = place.end
            code += [form, len(steps), *(word for step in steps for word in step)]
            shown.append(show(expr))
        if not shown:
            return source
        out, word = to.register(start, source.weights), Layout.of(self.schema).slices[column].start
        to.strings = True
        shape = (out, source, source.columns, source.weights, word, start - source.columns, len(shown))
        to.emit(op.FIELDS, *shape, *code, shown=f"{out} ← {source} with {', '.join(shown)}")
        return out


def unnested(operator: FlatMapOperator, source: Register, out: Register, to: Assembler) -> bool:
    """The instruction of a table function that gives the elements of an ARRAY of numbers."""
    if operator.function != "elements" or not operator.returned or not isinstance(argument := operator.arguments[0], Column):
        return False
    array, element = operator.source[argument.index].type, operator.returned[-1]
    form = _form(element)
    if array.name != "ARRAY" or array.has_zeros or array.entries.parts[0].type != element.type or form is None:
        return False
    width = _width(element.type)
    assert width is not None
    slices = Layout.of(operator.source).slices
    carried = [word for i in operator.carried for word in range(slices[i].start, slices[i].stop)]
    to.strings = True
    shape = (out, out.columns, source, source.columns, source.weights, slices[argument.index].start)
    flags = (width, form, int(operator.outer), int(operator.position))
    shown = f"{out} ← {source}[{', '.join(map(str, carried))}] for each element of {show(argument)}"
    to.emit(op.UNNEST, *shape, *flags, len(carried), *carried, shown=shown)
    return True


def _paths(expr: Expr) -> Iterator[tuple[FieldPath, Expr]]:
    """The fields of columns that the expression reads."""
    if (path := field_path(expr)) is not None:
        yield path, expr
    else:
        for part in children(expr):
            yield from _paths(part)


def _width(type: Type) -> int | None:
    """Of a number of one word, as the kernels take it; None for other values."""
    stored = type.kind.stored
    if type.is_nested or type.is_float or stored in ("bytes", "none"):
        return None
    if stored == "bits":
        return words.BOOLEAN
    if stored == "decimal":
        return words.DECIMAL if type.precision <= NARROW else None
    return np.dtype(stored).itemsize


def _form(value: Field) -> int | None:
    """How a number is written; None for other values."""
    if _width(value.type) is None:
        return None
    if value.type == BIGINT:
        return words.FLAGGED if value.nullable else words.PLAIN
    if value.nullable:
        return words.MARKED
    return None if value.type.kind.stored == "i8" else words.PLAIN  # encoding refuses the marker in these


def path_steps(struct: Type, path: Sequence[int]) -> list[tuple[int, int]] | None:
    """How a field is read; None if instructions cannot."""
    if struct.has_zeros:  # values with a -0.0 are written twice
        return None
    steps: list[tuple[int, int]] = []
    for depth, position in enumerate(path):
        if depth:
            steps.append((words.ENTER, 0))
        for part in struct.parts[:position]:
            skipped = _skipping(part.type)
            if skipped is None:
                return None
            steps += skipped
        struct = struct.parts[position].type
    width = _width(struct)
    return None if width is None else [*steps, (words.READ, width)]


def _skipping(type: Type) -> list[tuple[int, int]] | None:
    """The steps past a part of this type; None if there are none."""
    stored = type.kind.stored
    if type.held.name == "STRUCT":
        parts = [_skipping(part.type) for part in type.held.parts]
        steps = [step for part in parts if part is not None for step in part]
        return None if None in parts else [(words.SKIP_STRUCT, len(steps)), *steps]
    if type.is_nested:
        size = _size(type.entries.parts[0].type)
        return None if type.name != "ARRAY" or size is None else [(words.SKIP_NUMBERS, size)]
    if stored == "bytes":
        return [(words.SKIP_TEXT, 0)]
    size = _size(type)
    return None if size is None else [(words.SKIP_NUMBER, size)]


def _size(type: Type) -> int | None:
    """The bytes of a number of any width."""
    stored = type.kind.stored
    if type.is_nested or stored in ("bytes", "none"):
        return None
    return {"bits": 1, "decimal": 16}.get(stored) or np.dtype(stored).itemsize
