"""Groups of rows for users' functions: reading them, and replacing what an operator has emitted for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from deltic.circuit.operator import Context
from deltic.expr.nodes import Value
from deltic.schema import Schema
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import decode_rows, encode_rows
from deltic.trace.entries import Words
from deltic.trace.probe import probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Row = tuple[Value, ...]


def read_groups(spine: Spine, groups: Sequence[Words], width: int, context: Context) -> Batch:
    """(position of the group, words) of all rows of the groups. groups: the words of each key. width: the number of words after the key."""
    key = len(groups)
    source, columns, weights = probe(spine, groups, range(key, key + width), context.counters)
    return consolidate(Rows((source, *columns), (weights[0],)))


def members(content: Rows | Batch, values: Schema, context: Context) -> Iterator[tuple[int, list[tuple[Row, int]]]]:
    """The (row, weight) pairs of each group, by its position. content: (position of the group, words of `values`), groups together."""
    rows = decode_rows(content.columns[1:], values, context.strings, len(content))
    entries = zip(content.columns[0].tolist(), rows, content.weights[0].tolist(), strict=True)
    for group, pairs in groupby(entries, key=lambda entry: entry[0]):
        yield group, [(row, weight) for _, row, weight in pairs]


def replaced(groups: Sequence[Words], old: Batch, positions: Sequence[int], rows: Sequence[Row], schema: Schema, context: Context) -> Batch:
    """The change from the emitted rows of the groups to new ones, keys first. old: as `read_groups` returns it.

    positions: the group of each of `rows`, of `schema`.
    """
    new = encode_rows(rows, schema, context.strings)
    places = np.concatenate((np.array(positions, np.int64), old.columns[0]))
    words = [np.concatenate(pair) for pair in zip(new, old.columns[1:], strict=True)]
    weights = np.concatenate((np.ones(len(positions), np.int64), -old.weights[0]))
    return consolidate(Rows((*(word[places] for word in groups), *words), (weights,)))
