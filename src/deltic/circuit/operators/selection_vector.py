"""Intermediate rows of a pass of linear operators: each word is gathered from its source only when it is read.

A step drops rows, repeats rows and adds columns. Words that it passes on are not copied; the positions of the rows in their source are
composed instead. So a chain of steps reads only the words that its expressions use, and writes its output once.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import numpy as np
import pyarrow as pa

from deltic.circuit.decoded_change import DecodedChange, distinct_strings
from deltic.expr.columns import evaluate_columns
from deltic.expr.nodes import Column, Expr, FieldPath, PythonFunction, columns_of, field_path
from deltic.expr.python import Results, call_of
from deltic.schema import Schema
from deltic.trace.batch import Batch
from deltic.trace.encoding import Layout, Words, decode, decode_field
from deltic.trace.rows import Rows
from deltic.trace.strings import StringTable

Positions = np.ndarray
"""int64[n]: the position of each row in a source."""
FEW: Final = 4
"""Rows whose distinct strings take longer to find than to evaluate an expression on all of them."""
Part = tuple[Words, int]
"""(words, the number of their source)."""


class SelectionVector:
    """n rows of `schema`. fields: for each field (words, the number of their source); weights likewise.

    sources: the positions of the rows in each source; None if the rows are exactly the source. whole: the rows, if they are a whole change.
    ordered: they are rows of a Batch in its order, with all its words. answers: the results of user functions on the rows, and by
    string column for its distinct strings. arrays: computed fields as they were before they became words.
    """

    __slots__ = ("answers", "arrays", "decoded", "fields", "length", "ordered", "schema", "sources", "weights", "whole")

    def __init__(self, schema: Schema, fields: list[Part], weights: Part, sources: list[Positions | None], length: int) -> None:
        self.schema, self.fields, self.weights, self.sources, self.length = schema, fields, weights, sources, length
        self.answers: defaultdict[int | None, Results] = defaultdict(dict)
        self.arrays: dict[int, pa.Array] = {}
        self.whole: Rows | None = None
        self.decoded: DecodedChange | None = None
        self.ordered = False

    @classmethod
    def of(cls, rows: Rows, schema: Schema, layout: Layout, decoded: DecodedChange | None = None) -> SelectionVector:
        """A whole change. layout: that of `schema`, a parameter since its lookup dominates on small changes. decoded: as in Context."""
        columns = rows.columns
        vector = cls(schema, [(columns[part], 0) for part in layout.slices], (rows.weights, 0), [None], rows.length)
        vector.whole, vector.ordered, vector.decoded = rows, isinstance(rows, Batch), decoded
        return vector

    def words(self, i: int) -> Words:
        """The words of field i; gathered once."""
        words, source = self.fields[i]
        positions = self.sources[source]
        if positions is None:
            return words
        gathered = tuple(word[positions] for word in words)
        self.fields[i] = (gathered, self.here())
        return gathered

    def all_weights(self) -> Words:
        words, source = self.weights
        positions = self.sources[source]
        if positions is not None:
            words = tuple(word[positions] for word in words)
            self.weights = (words, self.here())
        return words

    def here(self) -> int:
        """The number of the source whose words are in the order of the rows."""
        for number, positions in enumerate(self.sources):
            if positions is None:
                return number
        self.sources.append(None)
        return len(self.sources) - 1

    def take(self, positions: Positions) -> SelectionVector:
        """The rows at these positions, in any order and number. O(positions) for each source."""
        sources: list[Positions | None] = [positions if old is None else old[positions] for old in self.sources]
        return SelectionVector(self.schema, [*self.fields], self.weights, sources, len(positions))

    def filtered(self, positions: Positions) -> SelectionVector:
        """The rows at ascending positions."""
        kept = self.take(positions)
        kept.ordered = self.ordered
        return kept

    def with_fields(self, schema: Schema, fields: list[Part], weights: Part | None = None) -> SelectionVector:
        """The same rows with other columns, and with `weights` if given."""
        return SelectionVector(schema, fields, self.weights if weights is None else weights, self.sources, self.length)

    def array(self, expr: Expr, strings: StringTable) -> pa.Array:
        """The expression on every row. Over one string column, of more than FEW rows, it is evaluated once for each distinct string."""
        if isinstance(expr, Column):
            return self._decoded(expr.index, strings)
        if (path := field_path(expr)) is not None and (self.decoded is None or not self.decoded.has(path[0])):
            return self._field(path, strings)
        used = columns_of(expr)
        only = next(iter(used)) if self.length > FEW and len(used) == 1 and self.schema[next(iter(used))].type.has_bytes else None
        answers = self.answers[only]
        answered = isinstance(expr, PythonFunction) and bool(answers.get(call_of(expr)))
        columns: list[pa.Array | None] = [None] * len(self.schema)
        if only is not None:
            distinct, inverse = self._distinct(only, strings)
            columns[only] = None if answered else distinct
            return evaluate_columns(expr, columns, len(distinct), answers).take(inverse)
        for i in () if answered else used:
            columns[i] = self._decoded(i, strings)
        return evaluate_columns(expr, columns, self.length, answers)

    def _decoded(self, i: int, strings: StringTable) -> pa.Array:
        if i in self.arrays:
            return self.arrays[i]
        if self.decoded is None:
            return decode(self.words(i), self.schema[i], strings)
        return self.decoded.column(i, self.words(i), self.schema[i], strings)

    def _field(self, path: FieldPath, strings: StringTable) -> pa.Array:
        words, field = self.words(path[0]), self.schema[path[0]]
        if self.decoded is None:
            return decode_field(words[0], field.type, path[1], strings)
        return self.decoded.field(path, words, field, strings)

    def _distinct(self, i: int, strings: StringTable) -> tuple[pa.Array, pa.Array]:
        if self.decoded is None:
            return distinct_strings(self.words(i)[0], self.schema[i], strings)
        return self.decoded.distinct(i, self.words(i)[0], self.schema[i], strings)

    def rows(self) -> Rows:
        """The rows, gathered; a Batch if they are `ordered`."""
        if self.whole is not None:
            return self.whole
        columns = tuple(word for i in range(len(self.fields)) for word in self.words(i))
        weights = self.all_weights()
        return Batch.trusted(columns, weights) if self.ordered else Rows(columns, weights)
