"""Plans to dataflows: each plan node becomes operators on changes, by the chain rule of incremental view maintenance.

Linear operators apply to changes directly, bilinear ones to changes and old versions; the others have incremental forms of their own.
Equal plans become one node, whichever views they occur in; so do equal arrangements.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import NamedTuple, assert_never

from deltic.circuit.builder import last_of
from deltic.circuit.nodes import ArrangementSpec, NodeKind, Shape
from deltic.circuit.operators.arrange import Arrange
from deltic.circuit.operators.fold_groups import FoldTopK
from deltic.circuit.operators.linear import Constant, Place
from deltic.circuit.operators.multiset import MultisetOperator
from deltic.circuit.operators.order import Sort
from deltic.circuit.operators.reweigh import Reweigh, Rule
from deltic.circuit.operators.top_k import TopKOperator
from deltic.circuit.terms import Term
from deltic.expr.nodes import Column
from deltic.lowering.aggregates import added_rows, lower_aggregate
from deltic.lowering.by_watermark import lower_by_watermark
from deltic.lowering.expand import lower_expand
from deltic.lowering.feedback import FeedbackRelations
from deltic.lowering.joins import lower_join
from deltic.lowering.keys import unique_key
from deltic.lowering.multiway import lower_multiway_join
from deltic.lowering.over_ticks import lower_over_ticks, lower_weighted
from deltic.lowering.passing import spread_by
from deltic.lowering.ranges import lower_range_join
from deltic.lowering.reduce import lower_accumulate, lower_reduce
from deltic.lowering.scopes import ScopeStreams
from deltic.lowering.streams import Arranged, Streams
from deltic.lowering.temporal import lower_temporal_filter
from deltic.lowering.windows import lower_window
from deltic.plan.columns import all_columns, columns_of_all, normalized, reference, remap, substitute
from deltic.plan.divided_joins import by_ranges
from deltic.plan.fingerprint import EnclosingNames, column_names, fingerprint
from deltic.plan.nodes import (
    Accumulate,
    Aggregate,
    ByWatermark,
    DependentJoin,
    Distinct,
    Expand,
    Filter,
    FlatMap,
    Generate,
    Inspect,
    Join,
    Multiset,
    MultiwayJoin,
    OverTicks,
    Plan,
    Project,
    Recursion,
    Reduce,
    Reference,
    SetOperation,
    Table,
    TemporalFilter,
    TickRecursion,
    TickTopK,
    TopK,
    Union,
    Values,
    Weighted,
    Window,
    references,
)
from deltic.plan.recursion import is_set, place_of
from deltic.plan.walk import nodes
from deltic.schema import BIGINT, Field, Schema
from deltic.stacks import unbounded


class LoweringSize(NamedTuple):
    """The numbers of keys and of identities of recursions of a Lowering."""

    keys: int
    seeds: int


class Lowering:
    """The streams of the lowered plans.

    scoped: whether they are in a recursion's scope. spread: whether multiway joins are divided. stored: the integrals that views keep.
    """

    scoped = False
    enclosing: EnclosingNames = ()
    """The relations of the recursions around, the innermost last."""

    def __init__(self, streams: Streams | None = None, *, shards: int | None = None) -> None:
        self.streams = Streams(single=shards == 1) if streams is None else streams
        self.spread = shards is not None and shards > 1
        self.stored: set[Plan] = set()
        self._by_key: dict[Hashable, int] = {}
        self._seeds: dict[str, object] = {}

    def size(self) -> LoweringSize:
        """How far it has grown."""
        return LoweringSize(len(self._by_key), len(self._seeds))

    def since(self, size: LoweringSize) -> list[Hashable] | None:
        """The keys of the streams that were added since it had this size; None if others may depend on their order. O(these)."""
        return None if len(self._seeds) > size.seeds else last_of(self._by_key, len(self._by_key) - size.keys)

    def forget(self, keys: Iterable[Hashable]) -> None:
        """Removes streams, which then are lowered again."""
        for key in keys:
            del self._by_key[key]

    def relation(self, plan: Plan) -> int:
        """The stream of the plan's changes, laid out by its schema."""
        return self.once(plan, lambda: self._lower(plan))

    def once(self, key: Hashable, make: Callable[[], int]) -> int:
        """The stream under this key; `make` adds it on the first call."""
        if key not in self._by_key:
            self._by_key[key] = make()
        return self._by_key[key]

    @unbounded
    def _lower(self, plan: Plan) -> int:
        match plan:
            case Table():
                return self.streams.table(plan.table)
            case Values():
                return self.streams.builder.add(Constant(plan.schema, plan.rows), (), Shape(plan.schema), (), kind=NodeKind.SOURCE)
            case Project(input=FlatMap() as elements):
                return self._projected_elements(plan, elements)
            case Project(input=Join() as join) if (ranged := lower_range_join(self, join, plan)) is not None:
                return ranged
            case Project(input=Join() as join) if (parts := by_ranges(join)) is not None:
                return self.streams.plus([self.relation(_over_part(plan, part)) for part in parts])
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
            case Window():
                return lower_window(self, plan)
            case Expand():
                return lower_expand(self, plan)
            case FlatMap():
                return self.streams.flat_map(self.relation(plan.input), plan, range(len(plan.input.schema)))
            case Generate():
                return self.streams.generate(self.relation(plan.input), plan)
            case Multiset():
                return self._multiset(plan)
            case TemporalFilter():
                return lower_temporal_filter(self, plan)
            case ByWatermark():
                return lower_by_watermark(self, plan)
            case Accumulate():
                return lower_accumulate(self, plan)
            case Reduce():
                return lower_reduce(self, plan)
            case OverTicks():
                return lower_over_ticks(self, plan)
            case Weighted():
                return lower_weighted(self, plan)
            case Inspect():
                return self.streams.inspect(self.relation(plan.input), plan)
            case TickRecursion():
                return TickRecursionLowering(self, plan).close(plan)
            case Recursion():
                return lower_recursion(self, plan)
            case DependentJoin():
                raise AssertionError("subqueries are unnested while a query is bound")
            case Reference():
                raise AssertionError(f"{plan.name} is read outside its recursion")
            case _:
                assert_never(plan)

    def _projected_elements(self, plan: Project, elements: FlatMap) -> int:
        """A projection of a FlatMap: only the columns that it reads are copied for each element."""
        width = len(elements.input.schema)
        carried = sorted(i for i in columns_of_all(expr for _, expr in plan.columns) if i < width)
        stream = self.streams.flat_map(self.relation(elements.input), elements, carried)
        places = {old: new for new, old in enumerate((*carried, *range(width, len(elements.schema))))}
        schema = self.streams.schema(stream)
        return self.streams.map(stream, [remap(expr, places, schema) for _, expr in plan.columns], plan.schema)

    def _multiset(self, plan: Multiset) -> int:
        rows = self.relation(plan.input)
        width = self.streams.shape(rows).layout.width
        gathered = self.streams.gather(rows, width) if width else self.streams.exchange(rows, ())
        arranged = self.streams.arrange(gathered, len(plan.schema))
        operator = MultisetOperator(arranged.id, plan.schema, plan.span, plan.place, plan.reason)
        return self.streams.builder.add(operator, (arranged.node,), Shape(plan.schema), arranged.partition, reads=(arranged.id,))

    def _normalized(self, plan: Plan) -> int:
        """The plan's rows with -0.0 as 0.0."""
        return self.streams.map(self.relation(plan), [*map(normalized, all_columns(plan.schema))], plan.schema)

    def distinct(self, stream: int) -> int:
        """Each row of the stream once."""
        return self.reweighed(stream, "distinct")

    def reweighed(self, stream: int, rule: Rule) -> int:
        """Each row with the weight computed by the rule."""
        width = self.streams.shape(stream).layout.width
        gathered = self.streams.gather(stream, width) if width else self.streams.exchange(stream, ())
        arranged = self.streams.arrange(gathered, len(self.streams.schema(stream)))
        shape = Shape(self.streams.schema(stream))
        return self.streams.builder.add(
            Reweigh(arranged.id, width, rule), (arranged.node,), shape, arranged.partition, reads=(arranged.id,)
        )

    def _set_operation(self, plan: SetOperation) -> int:
        wide = Union((plan.left, plan.right)).schema
        sides = []
        for i, side in enumerate((plan.left, plan.right)):
            rows = self.streams.conform(self._normalized(side), wide)
            shape = Shape(wide, 2)
            sides.append(self.streams.builder.add(Place((i,), 2), (rows,), shape, self.streams.partition(rows)))
        return self.streams.conform(self.reweighed(self.streams.plus(sides), plan.kind), plan.schema)

    def _top_k(self, plan: TopK) -> int:
        """The first rows; of these without the first `offset`, if there is one: both read one arrangement."""
        if isinstance(plan, TickTopK):
            return self._folded_first(replace(plan, input=added_rows(self, plan.input)), fingerprint(plan))
        stream = self.relation(plan.input)
        if not plan.offset:
            return self._first_rows(stream, plan)
        skipped = self._first_rows(stream, replace(plan, limit=plan.offset, offset=0))
        if plan.limit is not None:
            stream = self._first_rows(stream, replace(plan, limit=plan.offset + plan.limit, offset=0))
        return self.streams.plus([self.streams.conform(stream, plan.schema), self.streams.negate(skipped)])

    def _first_rows(self, stream: int, plan: TopK) -> int:
        """The first rows of each shard, then the first of these; with groups, those of each group on its shard."""
        if plan.keys:
            return self._first_of_groups(stream, plan)
        if self.streams.partition(stream) != ():
            stream = self._first_here(stream, plan)
        return self._first_here(self.streams.exchange(stream, ()), plan)

    def _first_here(self, stream: int, plan: TopK) -> int:
        mapped, parts = self._in_order(stream, plan)
        return self._sorted_first(mapped, parts, plan)

    def _first_of_groups(self, stream: int, plan: TopK) -> int:
        mapped, parts = self._in_order(stream, plan)
        return self._sorted_first(self.streams.gather(mapped, self._key_words(plan)), parts, plan)

    def _key_words(self, plan: TopK) -> int:
        return Shape(Schema(tuple(Field(f"k{i}", k.type, k.nullable) for i, k in enumerate(plan.keys)))).layout.width

    def _in_order(self, stream: int, plan: TopK) -> tuple[int, tuple[int | Term, ...]]:
        """(the stream of rows preceded by the group's key and followed by the order columns, the parts of a row in sort order)."""
        schema = plan.input.schema
        exprs = [*map(normalized, plan.keys), *all_columns(schema)]
        exprs += [normalized(o.expr) for o in plan.order]
        keys = tuple(Field(f"k{i}", k.type, k.nullable) for i, k in enumerate(plan.keys))
        fields = (*keys, *schema.fields, *(Field(f"o{i}", o.expr.type, o.expr.nullable) for i, o in enumerate(plan.order)))
        mapped = self.streams.map(stream, exprs, Schema(fields))
        slices = self.streams.shape(mapped).layout.slices
        order_start = len(keys) + len(schema)
        parts: list[int | Term] = list(range(slices[len(keys)].start if keys else 0))
        parts += [
            Term(s.start, f, o.descending, o.nulls_first)
            for s, f, o in zip(slices[order_start:], fields[order_start:], plan.order, strict=True)
        ]
        for s, f in zip(slices[len(keys) : order_start], schema, strict=True):
            parts += (Term(s.start, f),) if f.type.has_bytes else range(s.start, s.stop)
        return mapped, tuple(parts)

    def _folded_first(self, plan: TopK, identity: str) -> int:
        """The first rows of each group, of which alone a state of this identity is kept. plan: over the rows that a tick adds."""
        mapped, parts = self._in_order(self.relation(plan.input), plan)
        key, builder = self._key_words(plan), self.streams.builder
        rows, output, texts = self._sorted(self.streams.gather(mapped, key), parts, plan)
        memory, shape, partition = builder.name("folded_first", identity), self.streams.shape(rows), self.streams.partition(rows)
        assert plan.limit is not None
        first = TopKOperator(memory, memory, shape.layout.width, plan.limit, output, texts, key)
        operator = FoldTopK(memory, shape.layout.width, True, first)
        node = builder.add(operator, (rows,), Shape(plan.schema), None, owns=memory, content=builder.digest(memory))
        builder.specify(ArrangementSpec(memory, shape, builder.nodes[node].level, key, partition=partition))
        return node

    def _sorted_first(self, mapped: int, parts: tuple[int | Term, ...], plan: TopK) -> int:
        """The first `limit` rows, or of each group, from the rows arranged in order."""
        rows, output, texts = self._sorted(mapped, parts, plan)
        return self._limited(self.streams.arrange(rows, max(self._key_words(plan), 1)), plan, output, texts)

    def _sorted(self, mapped: int, parts: tuple[int | Term, ...], plan: TopK) -> tuple[int, tuple[int, ...], tuple[tuple[int, bool], ...]]:
        """(the stream of the rows in words whose order is that of the rows, the words of the plan's rows there, the ids of strings)."""
        key, schema = self._key_words(plan), plan.input.schema
        fields, texts, output = [] if plan.keys else [Field("all", BIGINT, False)], [], []
        row_parts = Shape(schema).layout.width
        for i, part in enumerate(parts):
            fields += (Field("w", BIGINT, False),) if isinstance(part, int) else part.order_fields
            if isinstance(part, Term) and part.field.type.has_bytes:
                texts.append((len(fields) - 1, part.descending))
            if i >= len(parts) - row_parts:
                output.append(len(fields) - 1)
        builder = self.streams.builder
        partition = self.streams.partition(mapped)
        kept = partition if partition is not None and all(word < key for word in partition) else None
        shape = Shape(Schema(tuple(fields)))
        return builder.add(Sort(parts, constant=not plan.keys), (mapped,), shape, kept), tuple(output), tuple(texts)

    def _limited(self, rows: Arranged, plan: TopK, output: tuple[int, ...], texts: tuple[tuple[int, bool], ...]) -> int:
        assert plan.limit is not None
        builder = self.streams.builder
        memory = builder.name("first", plan.limit, self.streams.fingerprint(rows))
        partition, key = rows.partition, max(self._key_words(plan), 1)
        operator = TopKOperator(rows.id, memory, rows.width, plan.limit, output, texts, key)
        shape, spread = Shape(plan.schema), None if plan.keys else partition
        node = builder.add(operator, (rows.node,), shape, spread, owns=memory, reads=(rows.id,))
        builder.specify(replace(builder.arrangements[rows.id], id=memory, partition=partition))
        return node

    def seed(self, plan: Recursion) -> str:
        """The identity of its scope's state: a hash of its plan and columns, without its limit and the names of its relations.

        Recursions that differ only in these do not share a scope: the second gets its own identity.
        """
        identity = self.streams.builder.digest(fingerprint(plan, self.enclosing), column_names(plan))
        watched = [(n.limit,) if isinstance(n, Recursion) else (n.function,) for n in nodes(plan) if isinstance(n, Recursion | Inspect)]
        same = self._seeds.setdefault(identity, watched) == watched
        return identity if same else self.streams.builder.digest(identity, watched)

    def view(self, name: str, plan: Plan) -> None:
        """Adds the view: an arrangement of the plan's content, its unique key first if it has one."""
        key = unique_key(plan)
        order = tuple(range(len(plan.schema))) if key is None else (*key, *(i for i in range(len(plan.schema)) if i not in key))
        stored = Schema(tuple(plan.schema[i] for i in order))
        rows = self.streams.map(self.relation(plan), [reference(plan.schema, i) for i in order], stored)
        builder = self.streams.builder
        placed = builder.placed(rows, self.streams.partition(rows))  # its readers do not need to know a row's shard
        moved = () if order == tuple(range(len(order))) else (order,)  # with other places of the same columns it is another content
        arrangement = builder.name("view", name, placed, *moved)
        node = builder.add(Arrange(arrangement), (rows,), Shape(stored), self.streams.partition(rows), kind=NodeKind.SINK, owns=arrangement)
        fields = len(order) if key is None else len(key)
        builder.specify(ArrangementSpec(arrangement, Shape(stored), builder.nodes[node].level, fields, view=name, order=order))
        builder.views[name] = arrangement


class ScopeLowering(Lowering):
    """The streams within the scope of a recursion. Plans that do not read its relations are lowered outside it, and imported."""

    scoped = True

    def __init__(self, outer: Lowering, plan: Recursion) -> None:
        words = () if outer.scoped else spread_by(plan)
        streams = ScopeStreams(outer.streams, outer.seed(plan), words)
        super().__init__(streams)
        self.enclosing = (*outer.enclosing, tuple(name for name, _ in plan.relations))
        self.outer, self._inside = outer, streams
        self._relations = {
            name: streams.scope.feedback(Shape(body.schema), name, place_of(plan, name), is_set=is_set(body))
            for name, body in plan.relations
        }

    def close(self, plan: Recursion) -> int:
        """The recursion's result as a stream of the outer lowering."""
        bodies = {name: self.streams.conform(self.relation(body), body.schema) for name, body in plan.relations}
        for name, feedback in self._relations.items():
            self._inside.scope.connect(feedback, bodies[name])
        return self._inside.scope.close(bodies[plan.result], plan.limit, self._inside.placed, self._inside.words)

    def _lower(self, plan: Plan) -> int:
        if self._relations.keys().isdisjoint(name for name, _ in references(plan)):
            return self._inside.attach(self.outer.relation(plan))
        if isinstance(plan, Reference):
            return self.streams.conform(self._relations[plan.name], plan.schema)
        if isinstance(plan, OverTicks):
            return self._delayed(plan)
        return super()._lower(plan)

    def _delayed(self, plan: OverTicks) -> int:
        """A delay by one iteration."""
        assert plan.function == "delay", "a relation of a recursion is read over ticks"
        stream = self.relation(plan.input)
        feedback = self._inside.scope.feedback(self.streams.shape(stream), "of a delay")
        self._inside.scope.connect(feedback, stream)
        return feedback

    def reweighed(self, stream: int, rule: Rule) -> int:
        outside = self._inside.outside(stream)
        return super().reweighed(stream, rule) if outside is None else self._inside.attach(self.outer.reweighed(outside, rule))


class TickRecursionLowering(Lowering):
    """The streams of a feedback over ticks. Plans that do not read its relations are lowered outside it."""

    def __init__(self, outer: Lowering, plan: TickRecursion) -> None:
        assert not outer.scoped, "a feedback over ticks in a recursion"
        super().__init__(outer.streams)
        self.spread, self.outer, self.enclosing = outer.spread, outer, (*outer.enclosing, tuple(name for name, _ in plan.relations))
        self._fed = FeedbackRelations(outer.streams, outer.seed(plan), plan)

    def close(self, plan: TickRecursion) -> int:
        """The relation that the plan denotes, after the bodies of all are connected with what reads them in the next tick."""
        bodies = {name: self.streams.conform(self.relation(body), body.schema) for name, body in plan.relations}
        return {name: self._fed.connect(name, body) for name, body in bodies.items()}[plan.result]

    def _lower(self, plan: Plan) -> int:
        if isinstance(plan, Reference) and plan.name in self._fed.names:
            return self.streams.conform(self._fed.before(plan.name), plan.schema)
        if self._fed.names.isdisjoint(name for name, _ in references(plan)):
            return self.outer.relation(plan)
        return super()._lower(plan)


def lower_recursion(lowering: Lowering, plan: Recursion) -> int:
    """The recursion's result: a scope that runs to its fixed point."""
    return ScopeLowering(lowering, plan).close(plan)


def _over_part(plan: Project, part: Plan) -> Project:
    """The projection of a part of a join, of which one that only orders columns is left out, so that its join has only those read."""
    if isinstance(part, Project) and all(isinstance(expr, Column) for _, expr in part.columns):
        columns = tuple((name, substitute(expr, [each for _, each in part.columns])) for name, expr in plan.columns)
        return replace(plan, input=part.input, columns=columns)
    return replace(plan, input=part)
