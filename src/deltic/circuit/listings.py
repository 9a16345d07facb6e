"""What an aggregate computes from all rows of a group, or from the first ones: COLLECT_LIST, LISTAGG, MAX_BY(x, y, k), functions of users.

The rows are kept in an arrangement (group, values) → weight. If one of them changes, the value is computed again from all rows of its
group, as the result is as large as the group, or the function is not known to be computable from less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from deltic.aggregates import Signature, aggregate_function
from deltic.circuit.extremes import old_words, written
from deltic.circuit.operator import Context
from deltic.errors import EvaluationError, Span
from deltic.expr.nodes import PythonFunction, UserFunction, Value
from deltic.expr.python import value_of_group
from deltic.schema import Field, Schema
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import Layout, decode_rows, encode_rows
from deltic.trace.probe import first_of_each, probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Words = tuple[np.ndarray, ...]
Row = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """`function` over the rows of a group in the arrangement (key words, words of `values`) → weight.

    arguments: for each argument the position of its value, or a constant in a tuple. written: how many of them do not only sort the rows.
    signature: of the call. result: the field of the value. user: the function, if it is a user's.
    """

    arrangement: str
    key: int
    values: Schema
    arguments: tuple[int | tuple[Value], ...]
    function: str
    written: int
    signature: Signature
    result: Field
    user: UserFunction | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def fields(self) -> tuple[Field, ...]:
        return (self.result,)

    @property
    def width(self) -> int:
        """The number of words of a row."""
        return Layout.of(self.values).width

    @property
    def identity(self) -> object:
        """What determines the value, beside the rows of the arrangement."""
        types = tuple(type.sql for type in self.signature.arguments)
        user = None if self.user is None else (self.user.name, self.user.digest, self.signature.result.sql)
        return (self.function, self.written, self.arguments, types, self.signature.directions, user)


def new_listing(
    listing: Listing, groups: Words, old: Sequence[Words], existed: np.ndarray, delta: Batch, context: Context
) -> Sequence[Words]:
    """The words of the value of each group after `delta`. old, existed: as for `new_extremes`."""
    (words,) = old_words(listing.fields, old, existed)
    changed = np.zeros(len(existed), bool) if listing.signature.nullable else ~existed
    content = None
    if len(delta):
        content, in_delta = _content(listing, groups, delta, context)
        changed[in_delta] = True
    positions = np.flatnonzero(changed)
    if not len(positions):
        return [words]
    members = {} if content is None else _members(listing, content, context)
    values = [(_value(listing, members.get(group, [])),) for group in positions.tolist()]
    return [written(words, positions, encode_rows(values, Schema((listing.result,)), context.strings))]


def _content(listing: Listing, groups: Words, delta: Batch, context: Context) -> tuple[Batch, np.ndarray]:
    """((group, words) of all rows of the groups that have a change; these groups)."""
    source, _, _ = probe(Spine.of(delta), groups, (), context.counters)
    changed = source[first_of_each(source)]
    now = context.old(listing.arrangement, listing.key + listing.width, 1).with_batch(delta)
    columns = range(listing.key, listing.key + listing.width)
    positions, words, weights = probe(now, [group[changed] for group in groups], columns, context.counters)
    return consolidate(Rows((changed[positions], *words), (weights[0],))), changed


def _members(listing: Listing, content: Batch, context: Context) -> dict[int, list[tuple[Row, int]]]:
    """The argument lists of each group, with their weights."""
    rows = decode_rows(content.columns[1:], listing.values, context.strings, len(content))
    entries = zip(content.columns[0].tolist(), rows, content.weights[0].tolist(), strict=True)
    return {
        group: [(tuple(row[a] if isinstance(a, int) else a[0] for a in listing.arguments), weight) for _, row, weight in each]
        for group, each in groupby(entries, key=lambda entry: entry[0])
    }


def _value(listing: Listing, rows: Sequence[tuple[Row, int]]) -> Value:
    """The value over the rows of a group, each with its weight; NULL over none if the result is nullable."""
    if not rows and listing.signature.nullable:
        return None
    try:
        if listing.user is not None:
            result = PythonFunction(listing.user, (), 0, listing.result.type, listing.result.nullable, listing.span)
            return value_of_group(result, rows, listing.signature.arguments)
        return aggregate_function(listing.function).of(listing.written).reference(rows, listing.signature)
    except EvaluationError as error:
        if error.span is None:
            error.move(listing.span)
        raise
