"""Streams within a scope. Operators over imported streams alone are added outside the scope, and their result is imported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deltic.aggregates.definition import Measure
from deltic.circuit.nesting import ScopeBuilder
from deltic.circuit.nodes import NodeKind, Shape
from deltic.circuit.operators.arrange import Arrange
from deltic.circuit.operators.interval_rows import IntervalRows, RangeRows
from deltic.expr.nodes import Expr
from deltic.lowering.streams import Arranged, Streams
from deltic.schema import Schema


class ScopeStreams(Streams):
    """Adds operators to a scope. All rows are on the home shard or, in a spread scope, the joined relations are on every shard.

    partition: the words of the recursive relation by which it is spread; () if it is not.
    """

    def __init__(self, outer: Streams, seed: str, partition: tuple[int, ...] = ()) -> None:
        self.outer, self.scope, self.words = outer, ScopeBuilder(outer.builder, seed), partition
        super().__init__(self.scope)

    def placed(self, stream: int) -> int:
        """The outer stream on the shards that read it."""
        on_every_shard = self.words and isinstance(self.outer.builder.nodes[stream].operator, Arrange)
        return stream if on_every_shard else self.outer.exchange(stream, self.words)

    def attach(self, stream: int) -> int:
        """The outer stream in this scope."""
        return self.scope.attach(stream)

    def outside(self, stream: int) -> int | None:
        """The outer stream that this stream imports; None if it is not an import."""
        return self.scope.imported(stream) if self.builder.nodes[stream].kind is NodeKind.IMPORT else None

    def map(
        self,
        stream: int,
        columns: Sequence[Expr],
        target: Schema,
        predicate: Expr | None = None,
        measures: tuple[Measure, ...] = (),
    ) -> int:
        outside = self.outside(stream)
        if outside is None:
            return super().map(stream, columns, target, predicate, measures)
        return self.attach(self.outer.map(outside, columns, target, predicate, measures))

    def laid_out(self, stream: int, operator: RangeRows | IntervalRows, shape: Shape) -> int:
        outside = self.outside(stream)
        return super().laid_out(stream, operator, shape) if outside is None else self.attach(self.outer.laid_out(outside, operator, shape))

    def exchange(self, stream: int, key: tuple[int, ...]) -> int:
        return stream

    def arrange(self, stream: int, key_fields: int, role: str = "trace") -> Arranged:
        outside = self.outside(stream)
        if outside is None:
            return super().arrange(stream, key_fields, role)
        placed = self.outer.broadcast(outside) if self.words else self.outer.exchange(outside, ())
        arranged = self.outer.arrange(placed, key_fields, role)
        return replace(arranged, node=self.scope.attach(arranged.node, arranged.id))
