"""Rows in the making: what a pass of linear operators has so far, each word gathered from where it stands only when it is read.

A step keeps some rows, repeats some, and adds columns; the words that it passes on stay where they are, and the positions of the rows
among them are composed. So a chain of steps reads of its input what its expressions read, and writes its output once.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa

from deltic.circuit.decoded_change import DecodedChange, distinct_strings
from deltic.expr.columns import evaluate_columns
from deltic.expr.nodes import Column, Expr, PythonFunction, columns_of
from deltic.expr.python import Results, call_of
from deltic.schema import Schema
from deltic.trace.batch import Batch
from deltic.trace.encoding import Layout, Words, decode
from deltic.trace.rows import Rows
from deltic.trace.strings import StringTable

Positions = np.ndarray
"""int64[n]: where each row stands among the words of a source."""
Part = tuple[Words, int]
"""Words, and the number of their source."""


class SelectionVector:
    """n rows of `schema`. fields: for each field its words, and the number of their source; weights likewise.

    sources: the positions of the rows in each source; None is all of it as it is. whole: the rows, if they are a change as it came.
    ordered: they are some of a Batch's, in its order and with all of its words. answers: what users' functions gave for the rows, and by
    text columns for the different texts in them.
    """

    __slots__ = ("answers", "decoded", "fields", "length", "ordered", "schema", "sources", "weights", "whole")

    def __init__(self, schema: Schema, fields: list[Part], weights: Part, sources: list[Positions | None], length: int) -> None:
        self.schema, self.fields, self.weights, self.sources, self.length = schema, fields, weights, sources, length
        self.answers: defaultdict[int | None, Results] = defaultdict(dict)
        self.whole: Rows | None = None
        self.decoded: DecodedChange | None = None
        self.ordered = False

    @classmethod
    def of(cls, rows: Rows, schema: Schema, layout: Layout, decoded: DecodedChange | None = None) -> SelectionVector:
        """All of a change. layout: of `schema`, whose lookup costs more than all else on a small change. decoded: see `Context.decoded`."""
        columns = rows.columns
        found = cls(schema, [(columns[at], 0) for at in layout.slices], (rows.weights, 0), [None], rows.length)
        found.whole, found.ordered, found.decoded = rows, isinstance(rows, Batch), decoded
        return found

    def words(self, i: int) -> Words:
        """The words of field i; gathered once."""
        words, source = self.fields[i]
        positions = self.sources[source]
        if positions is None:
            return words
        found = tuple(word[positions] for word in words)
        self.fields[i] = (found, self.here())
        return found

    def all_weights(self) -> Words:
        words, source = self.weights
        positions = self.sources[source]
        if positions is not None:
            words = tuple(word[positions] for word in words)
            self.weights = (words, self.here())
        return words

    def here(self) -> int:
        """The source of words that are in the order of the rows."""
        for number, positions in enumerate(self.sources):
            if positions is None:
                return number
        self.sources.append(None)
        return len(self.sources) - 1

    def taken(self, positions: Positions) -> SelectionVector:
        """These rows: some left out, some repeated. O(positions) for each source."""
        sources: list[Positions | None] = [positions if old is None else old[positions] for old in self.sources]
        return SelectionVector(self.schema, [*self.fields], self.weights, sources, len(positions))

    def filtered(self, positions: Positions) -> SelectionVector:
        """The rows at ascending positions."""
        found = self.taken(positions)
        found.ordered = self.ordered
        return found

    def with_fields(self, schema: Schema, fields: list[Part], weights: Part | None = None) -> SelectionVector:
        """The same rows with other columns, and other weights if they are given."""
        return SelectionVector(schema, fields, self.weights if weights is None else weights, self.sources, self.length)

    def array(self, expr: Expr, strings: StringTable) -> pa.Array:
        """The expression's value on every row. Over one string column it is evaluated once for each different string."""
        if isinstance(expr, Column):
            return self._decoded(expr.index, strings)
        used = columns_of(expr)
        only = next(iter(used)) if len(used) == 1 and self.schema[next(iter(used))].type.has_bytes else None
        answers = self.answers[only]
        answered = isinstance(expr, PythonFunction) and bool(answers.get(call_of(expr)))
        columns: list[pa.Array | None] = [None] * len(self.schema)
        if only is not None:
            different, inverse = self._distinct(only, strings)
            columns[only] = None if answered else different
            return evaluate_columns(expr, columns, len(different), answers).take(inverse)
        for i in () if answered else used:
            columns[i] = self._decoded(i, strings)
        return evaluate_columns(expr, columns, self.length, answers)

    def _decoded(self, i: int, strings: StringTable) -> pa.Array:
        if self.decoded is None:
            return decode(self.words(i), self.schema[i], strings)
        return self.decoded.column(i, self.words(i), self.schema[i], strings)

    def _distinct(self, i: int, strings: StringTable) -> tuple[pa.Array, pa.Array]:
        if self.decoded is None:
            return distinct_strings(self.words(i)[0], self.schema[i], strings)
        return self.decoded.distinct(i, self.words(i)[0], self.schema[i], strings)

    def rows(self) -> Rows:
        """The rows, written out: a Batch if they are some of a Batch's."""
        if self.whole is not None:
            return self.whole
        columns = tuple(word for i in range(len(self.fields)) for word in self.words(i))
        weights = self.all_weights()
        return Batch.trusted(columns, weights) if self.ordered else Rows(columns, weights)
