"""The building blocks of lowering: maps that fuse, exchanges where they are needed, arrangements that are shared.

A stream is the id of the node that produces it. `Streams` owns the dataflow while it is built.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import pyarrow as pa

from deltic.aggregates.definition import Measure
from deltic.circuit.builder import CircuitBuilder
from deltic.circuit.cube import Cube, Placement, Replicate
from deltic.circuit.nodes import ArrangementSpec, Node, NodeKind, Shape
from deltic.circuit.operator import Operator
from deltic.circuit.operators.arrange import Arrange
from deltic.circuit.operators.flat_map import FlatMapOperator
from deltic.circuit.operators.generate import GenerateOperator
from deltic.circuit.operators.inspect import InspectOperator
from deltic.circuit.operators.interval_rows import IntervalRows, RangeRows
from deltic.circuit.operators.linear import Exchange, Negate, Plus
from deltic.circuit.operators.map import Map, is_identity
from deltic.circuit.operators.not_null import NotNull
from deltic.circuit.operators.table import StreamInput, TableInput
from deltic.expr.failing import can_fail
from deltic.expr.nodes import TRUE, Call, Case, Column, Expr, Literal, children
from deltic.plan.columns import all_columns, conjunction, narrowed, not_null, reference, substitute
from deltic.plan.nodes import FlatMap, Generate, Inspect
from deltic.schema import BIGINT, BOOLEAN, Field, Forms, Schema, StreamSchema, TableSchema
from deltic.trace.encoding import MARKER, Layout, words_of

FALLIBLE = ("sequence", "generate_series")
"""Table functions that can fail on some arguments."""

Origins = Sequence[int | Literal]
"""For each column of an altered table its position in the table before, or its value in the rows that the table has."""
NO_FORMS: Mapping[str, Forms] = MappingProxyType({})

ZERO = Literal(0, BIGINT)
"""The key of rows without a key: they form one group, on the home shard."""


FLAG = 0
"""The flag word of NULL, in types whose values have a flag word before them if they are nullable."""

Nulls = tuple[tuple[int, int], ...]
"""(position, the word of NULL: FLAG or the marker) for each nullable column of a key."""


@dataclass(frozen=True, slots=True)
class Arranged:
    """An arranged stream: the output of its node is the change as a batch, `id` is the arrangement.

    key: the number of words of the lookup key. width, weights: the numbers of words and weights of a row. fields: the words of each field.
    partition: that of the stream; on a single shard the arrangement may have another one, that of the first stream of equal content.
    """

    node: int
    id: str
    key: int
    width: int
    weights: int
    fields: tuple[tuple[int, ...], ...]
    partition: tuple[int, ...] | None


class Streams:
    """Adds operators to a dataflow; takes and returns stream ids. single: whether there is only one shard."""

    def __init__(self, builder: CircuitBuilder | None = None, *, single: bool = False, forms: Mapping[str, Forms] = NO_FORMS) -> None:
        """forms: by table in lower case, of those that were altered."""
        self.builder = CircuitBuilder(several=not single) if builder is None else builder
        self.single, self.forms = single, forms
        self._shown: set[int] = set()
        """The nodes that show a table in an earlier form."""

    @property
    def keeps_nulls(self) -> bool:
        """Whether arrangements for joins hold rows with NULL keys too, so that all joins share them.

        On several shards such rows, which never match, are not moved to one shard, where all of them would be. A scope is the same on any
        number of shards.
        """
        return self.single

    def shape(self, stream: int) -> Shape:
        return self.builder.nodes[stream].shape

    def schema(self, stream: int) -> Schema:
        return self.shape(stream).schema

    def partition(self, stream: int) -> tuple[int, ...] | None:
        return self.builder.nodes[stream].partition

    def table(self, table: TableSchema) -> int:
        """The source of a base table, or of a form that it had, in the user's column order."""
        forms = self.forms.get(table.name.lower(), ())
        fields = stored_fields(table)
        stored = Schema(tuple(table.schema.read[i] for i in fields))
        source = self._source(table, forms) if not forms or table == forms[-1].table else self._in_form(table, forms)
        return self.map(source, [reference(stored, fields.index(i)) for i in range(len(fields))], table.schema.read)

    def _source(self, table: TableSchema, forms: Forms) -> int:
        """The rows of a table as they are stored."""
        operator = self._input(table, forms)
        name, fields = operator.arrangement, stored_fields(table)
        stored = Schema(tuple(table.schema.read[i] for i in fields))
        route = tuple(range(operator.key or len(operator.order)))
        source = self.builder.add(operator, (), Shape(stored), route, kind=NodeKind.SOURCE, owns=name)
        self.builder.specify(table_spec(table, name))
        self.builder.tables[table.name] = name
        return source

    def _input(self, table: TableSchema, forms: Forms = ()) -> TableInput:
        layout = Layout.of(table.schema)
        order = tuple(w for i in stored_fields(table) for w in range(layout.slices[i].start, layout.slices[i].stop))
        key = sum(layout.slices[i].stop - layout.slices[i].start for i in table.key)
        kind = StreamInput if isinstance(table, StreamSchema) else TableInput
        return kind(table, self.builder.name("table", table), order, key, forms)

    def _in_form(self, table: TableSchema, forms: Forms) -> int:
        """The rows of a table as they were stored in an earlier form. What reads them has the state that it had then.

        The columns that are gone have any values: nothing reads them.
        """
        own, form = forms[-1], next(one for one in reversed(forms) if one.table == table)
        source, operator = self._source(own.table, forms), self._input(table)
        stored, places = self.schema(source), {own.numbers[i]: place for place, i in enumerate(stored_fields(own.table))}
        fields = stored_fields(table)
        target = Schema(tuple(table.schema.read[i] for i in fields))
        columns = [
            reference(stored, places[form.numbers[i]]) if form.numbers[i] in places else any_value(table.schema.read[i]) for i in fields
        ]
        shown = Map(stored, target, tuple(columns))
        partition, content = _kept_partition(self.partition(source), shown), self.builder.content_of_source(operator)
        node = self.builder.add(shown, (source,), Shape(target), partition, content=content, stands_for=operator.arrangement)
        self._shown.add(node)
        return node

    def prepare(self, before: TableSchema, after: TableSchema, origins: Origins) -> str:
        """The arrangement that `after` has as a table, filled from the table `before`; its name."""
        source, operator = self._source(before, self.forms.get(before.name.lower(), ())), self._input(after)
        stored, places = self.schema(source), {i: place for place, i in enumerate(stored_fields(before))}
        fields = stored_fields(after)
        target = Schema(tuple(after.schema.read[i] for i in fields))
        columns: list[Expr] = []
        for i in fields:
            origin = origins[i]
            columns.append(reference(stored, places[origin]) if isinstance(origin, int) else origin)
        rows = self.map(source, columns, target)
        rows = rows if self.single else self.exchange(rows, tuple(range(operator.key or len(operator.order))))
        name = operator.arrangement
        route = tuple(range(operator.key or len(operator.order)))
        self.builder.add(Arrange(name), (rows,), Shape(target), route, owns=name)
        level = max(node.level for node in self.builder.nodes if node.owns == name)
        self.builder.specify(ArrangementSpec(name, Shape(target), level, len(after.key) or len(target), order=fields))
        return name

    def map(
        self,
        stream: int,
        columns: Sequence[Expr],
        target: Schema,
        predicate: Expr | None = None,
        measures: tuple[Measure, ...] = (),
    ) -> int:
        """map and filter; fused with a map before it unless an expression would be evaluated twice."""
        node = self.builder.nodes[stream]
        if predicate is None and not measures and is_identity(node.shape.schema, columns, target):
            return stream
        inner = node.operator
        if (
            isinstance(inner, Map)
            and stream not in self._shown
            and not inner.measures
            and _fusible(inner, [*columns, *([predicate] if predicate else []), *(m.argument for m in measures)])
        ):
            columns = [substitute(e, inner.columns) for e in columns]
            measures = tuple(Measure(m.kind, substitute(m.argument, inner.columns)) for m in measures)
            predicate = narrowed(inner.predicate, None if predicate is None else substitute(predicate, inner.columns))
            return self.map(node.inputs[0], columns, target, predicate, measures)
        operator = Map(node.shape.schema, target, tuple(columns), predicate, measures)
        weights = operator.weights if measures else node.shape.weights
        return self.builder.add(operator, (stream,), Shape(target, weights), _kept_partition(node.partition, operator))

    def origins(self, exprs: Sequence[Expr], stream: int) -> list[Expr]:
        """Expressions over a stream as such over the rows of which it is a map: copies of a column are equal there."""
        operator = self.builder.nodes[stream].operator
        return [substitute(expr, operator.columns) for expr in exprs] if isinstance(operator, Map) else list(exprs)

    def laid_out(self, stream: int, operator: RangeRows | IntervalRows, shape: Shape) -> int:
        """The rows as a range join stores them."""
        partition = self.partition(stream)
        if partition is not None:
            partition = tuple(map(operator.moves.index, partition)) if set(partition).issubset(operator.moves) else None
        return self.builder.add(operator, (stream,), shape, partition)

    def filter(self, stream: int, predicate: Expr) -> int:
        schema = self.schema(stream)
        return self.map(stream, all_columns(schema), schema, predicate)

    def flat_map(self, stream: int, plan: FlatMap, carried: Sequence[int]) -> int:
        """The fields `carried` of the stream and the element, once for each element."""
        node = self.builder.nodes[stream]
        fallible = plan.function in FALLIBLE or any(map(can_fail, plan.arguments))
        schema, kept = node.shape.schema, tuple(carried)
        operator = FlatMapOperator(
            schema, plan.function, plan.arguments, kept, plan.returned, plan.position, plan.outer, fallible, plan.span
        )
        columns = tuple(reference(node.shape.schema, i) for i in carried)
        passed = Map(node.shape.schema, Schema(operator.target.fields[: len(carried)]), columns)
        return self.builder.add(operator, (stream,), Shape(operator.target), _kept_partition(node.partition, passed))

    def generate(self, stream: int, plan: Generate) -> int:
        """The rows that a user's table function returns for those of the stream."""
        node = self.builder.nodes[stream]
        operator = GenerateOperator(node.shape.schema, plan.function, plan.returned, plan.weighted)
        return self.builder.add(operator, (stream,), Shape(operator.target), () if node.partition == () else None)

    def inspect(self, stream: int, plan: Inspect) -> int:
        """The stream, after adding a sink that calls the plan's function with its changes."""
        operator = InspectOperator(plan.schema, plan.function)
        self.builder.add(operator, (stream,), self.shape(stream), self.partition(stream), kind=NodeKind.SINK)
        return stream

    def conform(self, stream: int, schema: Schema) -> int:
        """The same rows with the nullability of `schema`."""
        own = self.schema(stream)
        return self.map(stream, [reference(own, i) for i in range(len(own))], schema)

    def plus(self, streams: Sequence[int]) -> int:
        """The sum of streams of one shape."""
        if len(streams) == 1:
            return streams[0]
        partitions = {self.partition(s) for s in streams}
        partition = partitions.pop() if len(partitions) == 1 else None
        return self.builder.add(Plus(), tuple(streams), self.shape(streams[0]), partition)

    def not_null(self, stream: int, nulls: Nulls) -> int:
        """The rows of an arranged stream in which no word is that of NULL."""
        if not nulls:
            return stream
        return self.builder.add(NotNull(nulls), (stream,), self.shape(stream), self.partition(stream))

    def nulls(self, stream: int, fields: int) -> Nulls:
        """The words that are NULL in the stream's first fields, where these are nullable."""
        first = zip(self.schema(stream).fields[:fields], self.shape(stream).layout.slices, strict=False)
        return tuple((s.start, FLAG if words_of(f.type, True) > words_of(f.type, False) else int(MARKER)) for f, s in first if f.nullable)

    def negate(self, stream: int) -> int:
        """Every weight times -1."""
        return self.builder.add(Negate(), (stream,), self.shape(stream), self.partition(stream))

    def minus(self, stream: int, rows: int) -> int:
        """The stream without some of its rows, each removed on its own shard: no shard has a row of negative weight."""
        key = self.partition(stream)
        if key is None:
            key = tuple(range(self.shape(stream).layout.width))
        return self.plus([self.exchange(stream, key), self.negate(self.exchange(rows, key))])

    def exchange(self, stream: int, key: tuple[int, ...]) -> int:
        """The stream with each row on the shard of its `key` words; the same stream if it already is."""
        if self.partition(stream) == key:
            return stream
        return self.builder.add(Exchange(key), (stream,), self.shape(stream), key)

    def broadcast(self, stream: int) -> int:
        """The stream with all rows on every shard."""
        return self.builder.add(Exchange(None), (stream,), self.shape(stream), None)

    def replicate(self, stream: int, cube: Cube, placements: tuple[Placement, ...]) -> int:
        """The stream with each row on all shards that the cube assigns it to."""
        return self.builder.add(Replicate((), cube, placements), (stream,), self.shape(stream), None)

    def gather(self, stream: int, words: int) -> int:
        """The stream with rows whose first `words` words are equal on one shard."""
        partition = self.partition(stream)
        if partition is not None and all(w < words for w in partition):
            return stream
        return self.exchange(stream, tuple(range(words)))

    def arrange(self, stream: int, key_fields: int, role: str = "trace") -> Arranged:
        """trace_append of the stream in its layout. key_fields: the number of leading fields that form the key.

        There is one for each content and partition. On a single shard the partition is irrelevant, so there is one for each content, named
        as if partitioned by its first field, as most joins would partition it on several; a whole table uses its own arrangement.
        """
        if self.single and role == "trace":
            return replace(self._arranged_once(self._before_exchanges(stream), key_fields), partition=self.partition(stream))
        name = self.builder.name(role, self.builder.fingerprint(stream))
        operator = self.builder.nodes[stream].operator
        replicated = isinstance(operator, Exchange) and operator.key is None
        return self._appended(stream, name, self.partition(stream), key_fields, replicated=replicated)

    def _arranged_once(self, stream: int, key_fields: int) -> Arranged:
        table = self.builder.nodes[stream]
        if isinstance(table.operator, TableInput) and table.owns is not None:
            return self.arranged(stream, table.owns, key_fields)
        slices = self.shape(stream).layout.slices
        partition = tuple(range(slices[0].start, slices[0].stop)) if slices else ()
        return self._appended(stream, self.builder.name("trace", self.builder.placed(stream, partition)), partition, key_fields)

    def _appended(
        self, stream: int, name: str, partition: tuple[int, ...] | None, key_fields: int, *, replicated: bool = False
    ) -> Arranged:
        shape = self.shape(stream)
        node = self.builder.add(Arrange(name), (stream,), shape, partition, owns=name)
        self.builder.specify(ArrangementSpec(name, shape, self.builder.nodes[node].level, key_fields, replicated=replicated))
        return self.arranged(node, name, key_fields)

    def rows(self, arranged: Arranged) -> int:
        """The arrangement's stream, its rows on the shards of `arranged`: on a single shard its node may be of another partition."""
        return arranged.node if arranged.partition is None else self.exchange(arranged.node, arranged.partition)

    def fingerprint(self, arranged: Arranged) -> str:
        """The identity of the arrangement as input of an operator with state, its rows on the shards of the stream."""
        if arranged.partition is None and not self.single:
            return self.builder.fingerprint(arranged.node)
        return self.builder.placed(arranged.node, arranged.partition)

    def _before_exchanges(self, stream: int) -> int:
        while isinstance(self.builder.nodes[stream].operator, Exchange):
            (stream,) = self.builder.nodes[stream].inputs
        return stream

    def arranged(self, node: int, name: str, key_fields: int) -> Arranged:
        layout = self.shape(node).layout
        key = layout.slices[key_fields - 1].stop if key_fields else 0
        fields = tuple(tuple(range(s.start, s.stop)) for s in layout.slices)
        return Arranged(node, name, key, layout.width, self.shape(node).weights, fields, self.partition(node))

    def keep(self, operator: Operator, arranged: Arranged, shape: Shape, memory: str, key_fields: int) -> int:
        """The node of an operator that reads an arrangement, and keeps its own output under the name `memory`."""
        node = self.builder.add(operator, (arranged.node,), shape, arranged.partition, owns=memory, reads=(arranged.id,))
        self.specify_memory(memory, node, key_fields)
        return node

    def specify_memory(self, name: str, node: int, key_fields: int) -> None:
        """Declares the state that an operator keeps of its own output."""
        output = self.builder.nodes[node]
        self.builder.specify(ArrangementSpec(name, output.shape, output.level, key_fields))

    def as_table(self, stream: int) -> tuple[int, tuple[int, ...]] | None:
        """(source node, its field for each field of the stream), if the stream is a projection of a table; else None."""
        node = self.builder.nodes[stream]
        if isinstance(node.operator, TableInput):
            return stream, tuple(range(len(node.shape.schema)))
        operator = node.operator
        if not isinstance(operator, Map) or operator.predicate is not None or operator.measures:
            return None
        below = self.builder.nodes[node.inputs[0]]
        if operator.target != Schema(
            tuple(Field(f.name, e.type, e.nullable) for f, e in zip(operator.target, operator.columns, strict=True))
        ):
            return None
        columns = [e.index for e in operator.columns if isinstance(e, Column)]
        if len(columns) != len(operator.columns):
            return None
        if below.id in self._shown:
            return self._as_altered(below, columns)
        return (below.id, tuple(columns)) if isinstance(below.operator, TableInput) else None

    def _as_altered(self, shown: Node, columns: Sequence[int]) -> tuple[int, tuple[int, ...]] | None:
        """The same of a projection of a table in an earlier form."""
        assert isinstance(shown.operator, Map)
        read = [shown.operator.columns[i] for i in columns]
        fields = tuple(e.index for e in read if isinstance(e, Column))
        return (shown.inputs[0], fields) if len(fields) == len(read) else None


def stored_fields(table: TableSchema) -> tuple[int, ...]:
    """The columns of a table in stored order: the primary key first."""
    return (*table.key, *(i for i in range(len(table.schema)) if i not in table.key))


def table_spec(table: TableSchema, name: str) -> ArrangementSpec:
    """How the rows of a table are stored. name: of the arrangement."""
    fields = stored_fields(table)
    stored = Schema(tuple(table.schema.read[i] for i in fields))
    return ArrangementSpec(name, Shape(stored), 0, len(table.key) or len(stored), table=table.name, order=fields)


def any_value(field: Field) -> Expr:
    """Some value of the column's type, for a column that nothing reads."""
    return Literal(None if field.nullable else pa.array([field.type.kind.zero], field.type.arrow)[0].as_py(), field.type)


def none_is_null(exprs: Sequence[Expr]) -> Expr | None:
    """TRUE where no expression is NULL; None if none is nullable."""
    checks = not_null(exprs)
    return conjunction(checks) if checks else None


def any_is_null(exprs: Sequence[Expr]) -> Expr | None:
    """TRUE where any expression is NULL; None if none is nullable."""
    none_null = none_is_null(exprs)
    return None if none_null is None else Call("not", (none_null,), BOOLEAN, False)


def guarded(expr: Expr, condition: Expr | None) -> Expr:
    """The expression, evaluated only where the condition is TRUE; NULL elsewhere."""
    return expr if condition is None or condition == TRUE else Case(((condition, expr),), Literal(None, expr.type), expr.type, True)


def _fusible(inner: Map, outer: Sequence[Expr]) -> bool:
    """Whether each computed column of `inner` is read at most once."""
    reads = [0] * len(inner.columns)
    for expr in outer:
        _count(expr, reads)
    return all(n <= 1 or isinstance(e, Column | Literal) for n, e in zip(reads, inner.columns, strict=True))


def _count(expr: Expr, reads: list[int]) -> None:
    if isinstance(expr, Column):
        reads[expr.index] += 1
    for part in children(expr):
        _count(part, reads)


def _kept_partition(partition: tuple[int, ...] | None, operator: Map) -> tuple[int, ...] | None:
    """The positions in the output of the words that the input is partitioned by; None if one is not in the output."""
    if not partition:
        return partition
    layout = Layout.of(operator.target)
    places: dict[int, int] = {}
    for move, target in zip(operator.moves, layout.slices, strict=True):
        if move is not None:
            for back in range(1, min(move.stop - move.start, target.stop - target.start) + 1):
                places.setdefault(move.stop - back, target.stop - back)
    return tuple(places[w] for w in partition) if all(w in places for w in partition) else None
