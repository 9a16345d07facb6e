"""Plans to circuits: each plan node becomes operators on changes, by the chain rule of incremental view maintenance.

Linear operators work on changes as they are, bilinear ones on changes and old versions, the rest have an incremental form of their
own. Equal plans become one node, whichever view they stand in; so do equal arrangements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from deltic.circuit.nodes import ArrangementSpec, Circuit, NodeKind, Shape
from deltic.circuit.operators.arrange import Arrange
from deltic.circuit.operators.linear import Constant, Place
from deltic.circuit.operators.multiset import Multiset as MultisetOperator
from deltic.circuit.operators.order import Sort, Term
from deltic.circuit.operators.reweigh import Reweigh, Rule
from deltic.circuit.operators.top_k import TopK as TopKOperator
from deltic.expr.nodes import Expr
from deltic.lowering.aggregates import lower_aggregate
from deltic.lowering.joins import lower_join
from deltic.lowering.keys import unique_key
from deltic.lowering.multiway import lower_multiway_join
from deltic.lowering.scopes import ScopeStreams
from deltic.lowering.streams import Arranged, Streams, normalized
from deltic.lowering.temporal import lower_temporal_filter
from deltic.plan.columns import columns_of_all, reference, remap
from deltic.plan.nodes import (
    Aggregate,
    Distinct,
    Filter,
    FlatMap,
    Join,
    Multiset,
    MultiwayJoin,
    Plan,
    Project,
    Recursion,
    Reference,
    SetOperation,
    Table,
    TemporalFilter,
    TopK,
    Union,
    Values,
    references,
)
from deltic.schema import BIGINT, STRING, Field, Schema, TableSchema


def lower(views: Mapping[str, Plan], tables: Mapping[str, TableSchema], shards: int = 1) -> Circuit:
    """The circuit that keeps every view of `views` (name → optimized plan) exact. Tables that no view reads are kept too.

    shards: on how many it is to run; it is right on any number, but on one only does without what divides work among several.
    """
    lowering = Lowering(spread=shards > 1)
    for table in tables.values():
        lowering.streams.table(table)
    for name, plan in views.items():
        lowering.view(name, plan)
    return lowering.streams.builder.finish()


class Lowering:
    """The streams of the plans met so far. scoped: whether they lie in a recursion's scope. spread: whether several shards share work."""

    scoped = False

    def __init__(self, streams: Streams | None = None, *, spread: bool = False) -> None:
        self.streams = Streams() if streams is None else streams
        self.spread = spread
        self._known: dict[Plan, int] = {}

    def relation(self, plan: Plan) -> int:
        """The stream of the plan's changes, laid out as its schema says."""
        if plan not in self._known:
            self._known[plan] = self._lower(plan)
        return self._known[plan]

    def _lower(self, plan: Plan) -> int:
        match plan:
            case Table():
                return self.streams.table(plan.table)
            case Values():
                return self.streams.builder.add(Constant(plan.schema, plan.rows), (), Shape(plan.schema), (), kind=NodeKind.SOURCE)
            case Project(input=FlatMap() as made):
                return self._projected_elements(plan, made)
            case Project():
                return self.streams.map(self.relation(plan.input), [e for _, e in plan.columns], plan.schema)
            case Filter():
                return self.streams.filter(self.relation(plan.input), plan.predicate)
            case Join():
                return lower_join(self, plan)
            case MultiwayJoin():
                return lower_multiway_join(self, plan)
            case Aggregate():
                return lower_aggregate(self, plan)
            case Distinct():
                return self.distinct(self._normalized(plan.input))
            case Union():
                return self.streams.plus([self.streams.conform(self.relation(i), plan.schema) for i in plan.inputs])
            case SetOperation():
                return self._set_operation(plan)
            case TopK():
                return self._top_k(plan)
            case FlatMap():
                return self.streams.flat_map(self.relation(plan.input), plan, range(len(plan.input.schema)))
            case Multiset():
                return self._multiset(plan)
            case TemporalFilter():
                return lower_temporal_filter(self, plan)
            case Recursion():
                return lower_recursion(self, plan)
            case Reference():
                raise AssertionError(f"{plan.name} is read outside of its recursion")
            case _:
                assert_never(plan)

    def _projected_elements(self, plan: Project, made: FlatMap) -> int:
        """Only the columns that the projection reads are copied for each element."""
        width = len(made.input.schema)
        carried = sorted(i for i in columns_of_all(expr for _, expr in plan.columns) if i < width)
        stream = self.streams.flat_map(self.relation(made.input), made, carried)
        places = {old: new for new, old in enumerate((*carried, *range(width, len(made.schema))))}
        schema = self.streams.schema(stream)
        return self.streams.map(stream, [remap(expr, places, schema) for _, expr in plan.columns], plan.schema)

    def _multiset(self, plan: Multiset) -> int:
        rows = self.relation(plan.input)
        width = self.streams.shape(rows).layout.width
        gathered = self.streams.gather(rows, width) if width else self.streams.exchange(rows, ())
        arranged = self.streams.arrange(gathered, len(plan.schema))
        operator = MultisetOperator(arranged.id, plan.schema, plan.span)
        partition = self.streams.partition(arranged.node)
        return self.streams.builder.add(operator, (arranged.node,), Shape(plan.schema), partition, reads=(arranged.id,))

    def _normalized(self, plan: Plan) -> int:
        """The plan's rows with -0.0 as 0.0."""
        return self.streams.map(self.relation(plan), [normalized(reference(plan.schema, i)) for i in range(len(plan.schema))], plan.schema)

    def distinct(self, stream: int) -> int:
        """Each row of the stream once."""
        return self.reweighed(stream, "distinct")

    def reweighed(self, stream: int, rule: Rule) -> int:
        """Each row with its weight by the rule."""
        width = self.streams.shape(stream).layout.width
        gathered = self.streams.gather(stream, width) if width else self.streams.exchange(stream, ())
        arranged = self.streams.arrange(gathered, len(self.streams.schema(stream)))
        shape = Shape(self.streams.schema(stream))
        partition = self.streams.partition(arranged.node)
        return self.streams.builder.add(Reweigh(arranged.id, width, rule), (arranged.node,), shape, partition, reads=(arranged.id,))

    def _set_operation(self, plan: SetOperation) -> int:
        wide = Union((plan.left, plan.right)).schema
        sides = []
        for i, side in enumerate((plan.left, plan.right)):
            rows = self.streams.conform(self._normalized(side), wide)
            shape = Shape(wide, 2)
            sides.append(self.streams.builder.add(Place((i,), 2), (rows,), shape, self.streams.partition(rows)))
        return self.streams.conform(self.reweighed(self.streams.plus(sides), plan.kind), plan.schema)

    def _top_k(self, plan: TopK) -> int:
        """The first rows of each shard, then the first of these."""
        stream = self.relation(plan.input)
        if self.streams.partition(stream) != ():
            stream = self._first_rows(stream, plan)
        return self._first_rows(self.streams.exchange(stream, ()), plan)

    def _first_rows(self, stream: int, plan: TopK) -> int:
        schema = plan.input.schema
        exprs: list[Expr] = [reference(schema, i) for i in range(len(schema))]
        exprs += [normalized(o.expr) for o in plan.order]
        fields = schema.fields + tuple(Field(f"o{i}", o.expr.type, o.expr.nullable) for i, o in enumerate(plan.order))
        mapped = self.streams.map(stream, exprs, Schema(fields))
        slices = self.streams.shape(mapped).layout.slices
        parts: list[int | Term] = [
            Term(s.start, f, o.descending, o.nulls_first)
            for s, f, o in zip(slices[len(schema) :], fields[len(schema) :], plan.order, strict=True)
        ]
        for s, f in zip(slices, schema, strict=False):
            parts += (Term(s.start, f),) if f.type == STRING else range(s.start, s.stop)
        return self._sorted_first(mapped, tuple(parts), schema, plan.limit)

    def _sorted_first(self, mapped: int, parts: tuple[int | Term, ...], schema: Schema, limit: int) -> int:
        """The rows laid out in order, arranged, and the first `limit` of them as rows of `schema`."""
        fields, texts, output = [Field("all", BIGINT, False)], [], []
        row_parts = Shape(schema).layout.width
        for i, part in enumerate(parts):
            fields += (Field("w", BIGINT, False),) if isinstance(part, int) else self.order_fields(part)
            if isinstance(part, Term) and part.field.type == STRING:
                texts.append((len(fields) - 1, part.descending))
            if i >= len(parts) - row_parts:
                output.append(len(fields) - 1)
        builder = self.streams.builder
        sorted_ = builder.add(
            Sort(parts, constant=True), (mapped,), Shape(Schema(tuple(fields))), _unless_keyed(self.streams.partition(mapped))
        )
        arranged = self.streams.arrange(sorted_, 1)
        return self._limited(arranged, limit, tuple(output), tuple(texts), schema)

    def _limited(self, rows: Arranged, limit: int, output: tuple[int, ...], texts: tuple[tuple[int, bool], ...], schema: Schema) -> int:
        builder = self.streams.builder
        memory = builder.name("first", limit, builder.fingerprint(rows.node))
        operator = TopKOperator(rows.id, memory, rows.width, limit, output, texts)
        partition = self.streams.partition(rows.node)
        node = builder.add(operator, (rows.node,), Shape(schema), partition, owns=memory, reads=(rows.id,))
        builder.specify(replace(builder.arrangements[rows.id], id=memory))
        return node

    def order_fields(self, term: Term) -> tuple[Field, ...]:
        """Fields for the words of a term, its string's id last."""
        words = term.width - (term.field.type == STRING)
        fields = tuple(Field(f"w{i}", BIGINT, False) for i in range(words))
        return (*fields, Field("id", STRING, False)) if term.field.type == STRING else fields

    def specify_memory(self, name: str, node: int, key_fields: int) -> None:
        """State that an operator keeps of its own output."""
        made = self.streams.builder.nodes[node]
        self.streams.builder.specify(ArrangementSpec(name, made.shape, made.level, key_fields))

    def view(self, name: str, plan: Plan) -> None:
        """The plan's content is kept as an arrangement, its unique key first if it has one."""
        key = unique_key(plan)
        order = tuple(range(len(plan.schema))) if key is None else (*key, *(i for i in range(len(plan.schema)) if i not in key))
        stored = Schema(tuple(plan.schema[i] for i in order))
        rows = self.streams.map(self.relation(plan), [reference(plan.schema, i) for i in order], stored)
        builder = self.streams.builder
        arrangement = builder.name("view", name, builder.fingerprint(rows))
        node = builder.add(Arrange(arrangement), (rows,), Shape(stored), self.streams.partition(rows), kind=NodeKind.SINK, owns=arrangement)
        fields = len(order) if key is None else len(key)
        builder.specify(ArrangementSpec(arrangement, Shape(stored), builder.nodes[node].level, fields, view=name, order=order))
        builder.views[name] = arrangement


class ScopeLowering(Lowering):
    """The streams within the scope of a recursion. What does not rest on its relations is lowered around it, and imported."""

    scoped = True

    def __init__(self, outer: Lowering, plan: Recursion) -> None:
        streams = ScopeStreams(outer.streams, outer.streams.builder.digest(plan))
        super().__init__(streams)
        self.outer, self._inside = outer, streams
        self._relations = {name: streams.scope.feedback(Shape(body.schema), name) for name, body in plan.relations}

    def close(self, plan: Recursion) -> int:
        """The recursion's result as a stream of the outer lowering."""
        bodies = {name: self.streams.conform(self.relation(body), body.schema) for name, body in plan.relations}
        for name, feedback in self._relations.items():
            self._inside.scope.connect(feedback, bodies[name])
        return self._inside.scope.close(bodies[plan.result], plan.limit, lambda stream: self._inside.outer.exchange(stream, ()))

    def _lower(self, plan: Plan) -> int:
        if self._relations.keys().isdisjoint(name for name, _ in references(plan)):
            return self._inside.attach(self.outer.relation(plan))
        if isinstance(plan, Reference):
            return self.streams.conform(self._relations[plan.name], plan.schema)
        return super()._lower(plan)

    def reweighed(self, stream: int, rule: Rule) -> int:
        outside = self._inside.outside(stream)
        return super().reweighed(stream, rule) if outside is None else self._inside.attach(self.outer.reweighed(outside, rule))


def lower_recursion(lowering: Lowering, plan: Recursion) -> int:
    """The recursion's result: a scope that runs to its fixed point."""
    return ScopeLowering(lowering, plan).close(plan)


def _unless_keyed(partition: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The home shard stays the home shard; other partitions are lost when words are laid out anew."""
    return () if partition == () else None
