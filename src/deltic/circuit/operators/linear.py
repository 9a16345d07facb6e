"""The small linear operators: plus, negate, place (weights in a direct sum), exchange, and constant rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.operator import HOME, Context, Delta
from deltic.expr.nodes import Value
from deltic.schema import Schema
from deltic.trace.encoding import encode_rows
from deltic.trace.rows import Rows
from deltic.trace.weights import multiply


@dataclass(frozen=True, slots=True)
class Plus:
    """The sum of its inputs."""

    @property
    def name(self) -> str:
        return "plus"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        nonempty = [delta for delta in inputs if len(delta)]
        return nonempty[0] if len(nonempty) == 1 else Rows.concat(nonempty)


@dataclass(frozen=True, slots=True)
class Negate:
    """Every weight times -1."""

    @property
    def name(self) -> str:
        return "negate"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        return negated(inputs[0])


def negated(rows: Delta) -> Rows:
    """Every weight times -1."""
    minus_one = np.full(len(rows), -1, np.int64)
    return Rows(rows.columns, [multiply(weight, minus_one) for weight in rows.weights])


@dataclass(frozen=True, slots=True)
class Place:
    """Moves input weight i to position positions[i] of `weights` weights, the others being 0 (a direct sum); None drops it."""

    positions: tuple[int | None, ...]
    weights: int

    @property
    def name(self) -> str:
        return "place"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        placed = [np.zeros(len(inputs[0]), np.int64)] * self.weights
        for weight, position in zip(inputs[0].weights, self.positions, strict=True):
            if position is not None:
                placed[position] = weight
        return Rows(tuple(inputs[0].columns), tuple(placed))


@dataclass(frozen=True, slots=True)
class Exchange:
    """Sends each row to the shard determined by the hash of its `key` words; () is the home shard, None every shard.

    The runtime moves the rows; the step itself passes them on.
    """

    key: tuple[int, ...] | None

    @property
    def name(self) -> str:
        return "exchange"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        return inputs[0]


@dataclass(frozen=True, slots=True)
class Constant:
    """Constant rows, emitted once, in the backfill, on the home shard."""

    schema: Schema
    rows: tuple[tuple[Value, ...], ...]

    @property
    def name(self) -> str:
        return "constant"

    @property
    def eager(self) -> bool:
        return True

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        rows = self.rows if context.backfill and context.shard == HOME else ()
        return Rows(encode_rows(rows, self.schema, context.strings), (np.ones(len(rows), np.int64),))
