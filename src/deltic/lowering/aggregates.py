"""GROUP BY: sums and counts as weights, wide sums as digits, selected rows beside them, DISTINCT arguments as separate relations.

The definition of a function (deltic.aggregates) states the sums that it needs. All measures of one GROUP BY share one arrangement
group → (count, words of every measure), in which each part fills its own words.

Where rows are never retracted, the sums of all ticks so far and the first rows are kept, and the rows are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deltic.aggregates.definition import Digits, Linear, Measure, Ranked
from deltic.circuit.extremes import Extreme
from deltic.circuit.nodes import ArrangementSpec, Shape
from deltic.circuit.operators.aggregate import AggregateOperator
from deltic.circuit.operators.aggregate import Selection as Reader
from deltic.circuit.operators.digits import TakeApart
from deltic.circuit.operators.fold_groups import FoldExtremes, FoldSums
from deltic.circuit.operators.linear import Place
from deltic.circuit.operators.merge_levels import MergeLevels
from deltic.circuit.operators.order import Sort
from deltic.circuit.results import Result, SumSource
from deltic.expr.nodes import TRUE, Expr
from deltic.lowering.protocol import PlanLowering
from deltic.lowering.selections import AllRows, FirstRow, MergedRows, RankedValues, Selection, frequency_of, selection_of
from deltic.lowering.streams import ZERO, Arranged, guarded, none_is_null
from deltic.lowering.weigh import weigh
from deltic.lowering.weighing import Weighing
from deltic.plan.columns import narrowed, normalized, reference
from deltic.plan.fingerprint import fingerprint
from deltic.plan.nodes import Aggregate, AggregateCall, Plan, TickAggregate
from deltic.plan.signs import may_be_negative
from deltic.plan.streams import derivative, integrals
from deltic.schema import BIGINT, Field, Schema

Part = tuple[Expr, ...] | None
"""The arguments of a DISTINCT call, as expressions over the plan's input; None for a call over all rows."""


def lower_aggregate(lowering: PlanLowering, plan: Aggregate) -> int:
    if isinstance(plan, TickAggregate):
        return Grouping(lowering, replace(plan, input=added_rows(lowering, plan.input)), fingerprint(plan)).lower()
    return Grouping(lowering, plan).lower()


def added_rows(lowering: PlanLowering, rows: Plan) -> Plan:
    """The stream of the rows that each tick adds to `rows`; or `rows`, of the same changes, if a view keeps them.

    The state is then filled with the rows so far. It is the same state, which stays when that view is dropped.
    """
    return derivative(rows) if integrals(rows).isdisjoint(lowering.stored) else rows


class Grouping:
    """Lowers one GROUP BY: collects the sums that the calls need, numbers the weights, then adds nodes.

    folded: if rows are only added, the identity of the state.
    """

    def __init__(self, lowering: PlanLowering, plan: Aggregate, folded: str | None = None) -> None:
        self.lowering, self.plan, self.streams, self.folded = lowering, plan, lowering.streams, folded
        self.always = not plan.keys
        self.keys: list[Expr] = [normalized(e) for _, e in plan.keys] or [ZERO]
        self.key_fields = [Field(n, e.type, e.nullable) for n, e in plan.keys] or [Field("group", BIGINT, False)]
        self.main: list[Measure] = []
        self.branches: dict[tuple[Expr, ...], list[Measure]] = {}
        self.digits: list[tuple[Part, Digits]] = []
        self.selections: list[Selection] = []

    def lower(self) -> int:
        for _, call in self.plan.aggregates:
            self._need(call)
        sums = self._arranged(self.streams.plus(self._sum_streams()), "sums")
        inputs, reads = [sums.node], [sums.id]
        digits = None
        if self.digits:
            arranged = self._arranged(self.streams.plus(self._digit_streams()), "digits")
            digits = arranged.id
            inputs.append(arranged.node)
            reads.append(arranged.id)
        extremes = []
        for number, selection in enumerate(self.selections):
            values = self._arranged(self._selected(selection), "extreme", number)
            if isinstance(selection, MergedRows):
                values = self._levels(selection, values)
            extremes.append(self._reader(selection, values.id))
            inputs.append(values.node)
            reads.append(values.id)
        return self._aggregate(inputs, reads, sums.id, digits, tuple(extremes))

    def _arranged(self, stream: int, role: str, number: int = 0) -> Arranged:
        """The stream by group: all rows, or what is kept of them. number: of the selection."""
        gathered, keys = self._gathered(stream), len(self.keys)
        if self.folded is None:
            return self.streams.arrange(gathered, keys, role)
        builder, shape = self.streams.builder, self.streams.shape(gathered)
        memory = builder.name(f"folded_{role}", self.folded, number)
        operator: FoldSums = FoldSums(memory, shape.layout.width, not self.always)
        if role == "extreme":
            first = self._reader(self.selections[number], memory)
            assert isinstance(first, Extreme), "rows are kept for a function that is not folded"
            operator = FoldExtremes(memory, shape.layout.width, not self.always, first)
        content = builder.digest(memory)
        node = builder.add(operator, (gathered,), shape, self.streams.partition(gathered), owns=memory, content=content)
        builder.specify(ArrangementSpec(memory, shape, builder.nodes[node].level, keys))
        return self.streams.arranged(node, memory, keys)

    def _levels(self, selection: MergedRows, rows: Arranged) -> Arranged:
        """The states of parts of the groups. rows: arranged by group."""
        streams, builder, terms = self.streams, self.streams.builder, selection.terms(self._key_words)
        user, result = selection.user, selection.result
        assert user.merge is not None
        identity = (user.name, user.digest, result.type.sql, selection.arguments)
        memory = builder.name("merged", terms, *identity, streams.fingerprint(rows))
        operator = MergeLevels(rows.id, memory, self._key_words, terms, selection.arguments, result, user, selection.call.span)
        order = tuple(replace(field, nullable=field.type.has_bytes) for term in terms for field in term.order_fields)
        fields = (*self.key_fields, Field("level", BIGINT, False), *order, *user.merge.state)
        node = self.streams.keep(operator, rows, Shape(Schema(fields)), memory, len(self.keys) + 1)
        return streams.arranged(node, memory, len(self.keys))

    def _aggregate(self, inputs: list[int], reads: list[str], sums: str, digits: str | None, extremes: tuple[Reader, ...]) -> int:
        """The operator over its arranged inputs, without the columns that the plan does not have: what selections remember."""
        fields = self.plan.schema.fields[len(self.plan.keys) :]
        results = [self._result(call, f) for (_, call), f in zip(self.plan.aggregates, fields, strict=True)]
        shown = len(results)
        results += self._remaining_parts(extremes)
        target = Schema(tuple(self.key_fields) + tuple(r.target for r in results))
        builder = self.streams.builder
        content = (
            target,
            results,
            *(builder.fingerprint(i) for i in inputs),
            *(e.identity for e in extremes if not isinstance(e, Extreme)),
        )
        memory = builder.name("groups", *content) if digits or extremes else None
        operator = AggregateOperator(
            self._key_words, target, tuple(results), sums, self._weights, digits, len(self.digits), extremes, memory, self.always
        )
        partition = self.streams.partition(inputs[0])
        node = builder.add(operator, tuple(inputs), Shape(target), partition, owns=memory, reads=reads)
        if memory is not None:
            self.lowering.streams.specify_memory(memory, node, len(self.keys))
        if not self.always and shown == len(results):
            return node
        first = 1 if self.always else 0
        return self.streams.map(node, [reference(target, first + i) for i in range(len(self.plan.schema))], self.plan.schema)

    def _remaining_parts(self, extremes: tuple[Reader, ...]) -> list[Result]:
        """What selections remember beside the result of a call: the next search starts from there."""
        parts = ((i, extreme, j, field) for i, extreme in enumerate(extremes) for j, field in enumerate(extreme.fields))
        return [Result("extreme", field, extreme=i, part=j) for i, _, j, field in parts if j != self.selections[i].shown]

    @property
    def _key_words(self) -> int:
        return Shape(Schema(tuple(self.key_fields))).layout.width

    @property
    def _weights(self) -> int:
        return 1 + sum(m.width for part in (self.main, *self.branches.values()) for m in part)

    def _slot(self, part: Part, measure: Measure) -> int:
        """The first weight of a measure."""
        slot = 1
        for name, measures in ((None, self.main), *self.branches.items()):
            for m in measures:
                if (name, m) == (part, measure):
                    return slot
                slot += m.width
        raise AssertionError(measure)

    def _need(self, call: AggregateCall) -> None:
        state = call.definition.state
        selection = self._selection(call)
        if selection is not None and selection not in self.selections:
            self.selections.append(selection)
        if not isinstance(state, Linear | Ranked):
            return
        part = self._part(call)
        measures = self.main if part is None else self.branches.setdefault(part, [])
        counted = self._counted(call)
        sums = state.sums(self._arguments(call)) if isinstance(state, Linear) else ()
        for need in (*(() if counted is None else (counted,)), *sums):
            if isinstance(need, Digits):
                if (part, need) not in self.digits:
                    self.digits.append((part, need))
            elif need not in measures:
                measures.append(need)

    def _part(self, call: AggregateCall) -> Part:
        return tuple(normalized(guarded(a, call.filter)) for a in call.arguments) if call.distinct else None

    def _arguments(self, call: AggregateCall) -> tuple[Expr, ...]:
        """The summed expressions over the input of the call's part; all are NULL on rows that do not count."""
        part = self._part(call)
        if part is not None:
            return tuple(self._part_reference(part, i) for i in range(len(part)))
        condition = narrowed(call.filter, none_is_null(call.required) if len(call.arguments) > 1 else None)
        return tuple(guarded(argument, condition) for argument in call.arguments)

    def _part_reference(self, part: tuple[Expr, ...], i: int) -> Expr:
        return reference(self._part_schema(part), i)

    def _part_keys(self, part: tuple[Expr, ...]) -> list[Expr]:
        schema = self._part_schema(part)
        return [reference(schema, len(part) + i) for i in range(len(self.keys))]

    def _part_schema(self, part: tuple[Expr, ...]) -> Schema:
        """Values come first: there are more of them than groups, as a rule, so an index over them finds a row in fewer."""
        return Schema((*(Field(f"v{i}", e.type, False) for i, e in enumerate(part)), *self.key_fields))

    def _counted(self, call: AggregateCall) -> Measure | None:
        """The measure that counts the rows of the call, or adds up their frequencies; None if all rows count."""
        part = self._part(call)
        if isinstance(state := call.definition.state, Ranked) and state.frequency is not None:
            return Measure("bigint", frequency_of(self._arguments(call)[state.frequency], call))
        if part is not None:
            return Measure("count", TRUE)
        present = none_is_null(call.required)
        if present is None and call.filter is None:
            return None
        if len(call.arguments) == 1 and call.filter is None:
            return Measure("count", call.arguments[0])
        return Measure("count", guarded(TRUE, narrowed(call.filter, present)))

    def _selection(self, call: AggregateCall) -> Selection | None:
        keys = tuple((field.name, key) for field, key in zip(self.key_fields, self.keys, strict=True))
        return selection_of(self.plan, keys, call)

    def _sum_streams(self) -> list[int]:
        """One stream of (group, weights) for the input and for each distinct part, each with all weights."""
        weighing = Weighing(tuple(self.keys), tuple(self.main))
        streams = [weigh(self.lowering, self.plan.input, weighing, Schema(tuple(self.key_fields)))]
        if not self.branches:
            return streams
        streams = [self._placed(streams[0], 0, self.main, None)]
        for part, measures in self.branches.items():
            rows = self._distinct(part)
            weighed = self.streams.map(rows, self._part_keys(part), Schema(tuple(self.key_fields)), None, tuple(measures))
            streams.append(self._placed(weighed, None, measures, part))
        return streams

    def _placed(self, stream: int, count: int | None, measures: Sequence[Measure], part: Part) -> int:
        positions: list[int | None] = [count]
        for measure in measures:
            start = self._slot(part, measure)
            positions += range(start, start + measure.width)
        shape = Shape(self.streams.schema(stream), self._weights)
        return self.streams.builder.add(Place(tuple(positions), self._weights), (stream,), shape, self.streams.partition(stream))

    def _distinct(self, part: tuple[Expr, ...]) -> int:
        """The distinct (values, group) in which no value is NULL."""
        schema = self._part_schema(part)
        rows = self.streams.map(self.lowering.relation(self.plan.input), [*part, *self.keys], schema, none_is_null(part))
        return self.lowering.distinct(rows)

    def _digit_streams(self) -> list[int]:
        streams = []
        for slot, (part, digits) in enumerate(self.digits):
            values = tuple(Field(f"v{i}", value.type, False) for i, value in enumerate(digits.arguments))
            if part is None:
                stream, keys = self.lowering.relation(self.plan.input), self.keys
            else:
                stream = self._distinct(part)
                keys = self._part_keys(part)
            schema = Schema((*self.key_fields, *values))
            rows = self.streams.map(stream, [*keys, *digits.arguments], schema, none_is_null(digits.arguments))
            shape = Shape(Schema((*self.key_fields, Field("slot", BIGINT, False), Field("position", BIGINT, False))))
            operator = TakeApart(self._key_words, slot, digits.kind, values)
            streams.append(self.streams.builder.add(operator, (rows,), shape, self._kept(rows)))
        return streams

    def _selected(self, selection: Selection) -> int:
        """The stream (group, words of the values) of the rows of a selection; sorted values as order words."""
        schema = Schema((*self.key_fields, *selection.stored))
        stream = self.lowering.relation(selection.input)
        keys = [key for _, key in selection.keys]
        rows = self.streams.map(stream, [*keys, *selection.values], schema, self._present(selection))
        if isinstance(selection, AllRows):
            return rows
        local = self.always and self.folded is None and not may_be_negative(selection.input)  # negative ones may cancel at home alone
        if local and isinstance(selection, FirstRow):
            rows = self._local_extremes(rows, schema, selection)
        return self._sorted(rows, selection)

    def _present(self, selection: Selection) -> Expr | None:
        """The condition on the rows of a selection that have a value."""
        return None if isinstance(selection, AllRows | MergedRows) else none_is_null(selection.values[:1])

    def _reader(self, selection: Selection, arrangement: str) -> Reader:
        match selection:
            case FirstRow():
                return selection.reader(arrangement, self._key_words, selection.fields)
            case RankedValues():
                return selection.reader(arrangement, self._key_words, self._counted_slot(selection.call))
            case AllRows() | MergedRows():
                return selection.reader(arrangement, self._key_words)

    def _counted_slot(self, call: AggregateCall) -> int:
        """The weight that counts the rows of the call."""
        counted = self._counted(call)
        return 0 if counted is None else self._slot(self._part(call), counted)

    def _sorted(self, rows: int, selection: FirstRow | RankedValues | MergedRows) -> int:
        terms = selection.terms(self._key_words)
        shape = Shape(Schema((*self.key_fields, *(field for term in terms for field in term.order_fields))))
        return self.streams.builder.add(Sort((*range(self._key_words), *terms)), (rows,), shape, self._kept(rows))

    def _local_extremes(self, rows: int, schema: Schema, first: FirstRow) -> int:
        """The first row of each shard, so that the home shard holds one row per shard."""
        sums = self.streams.arrange(self.streams.map(rows, [reference(schema, 0)], Schema(schema.fields[:1])), 1, "sums")
        values = self.streams.arrange(self._sorted(rows, first), 1, "extreme")
        builder = self.streams.builder
        inputs = (sums.node, values.node)
        descending = first.descending[0] if len(set(first.descending)) == 1 else first.descending
        memory = builder.name("groups", schema, descending, *(builder.fingerprint(i) for i in inputs))
        results = tuple(Result("extreme", field, part=i) for i, field in enumerate(first.stored))
        extreme = first.reader(values.id, 1, first.stored)
        operator = AggregateOperator(1, schema, results, sums.id, 1, None, 0, (extreme,), memory)
        node = builder.add(operator, inputs, Shape(schema), self.streams.partition(rows), owns=memory, reads=(sums.id, values.id))
        self.lowering.streams.specify_memory(memory, node, 1)
        return node

    def _kept(self, rows: int) -> tuple[int, ...] | None:
        """The partition, if it is by words of the group; None otherwise, since the other words are replaced."""
        partition = self.streams.partition(rows)
        return partition if partition is not None and all(w < self._key_words for w in partition) else None

    def _gathered(self, stream: int) -> int:
        return self.streams.exchange(stream, () if self.always else tuple(range(self._key_words)))

    def _result(self, call: AggregateCall, out: Field) -> Result:
        state = call.definition.state
        if not isinstance(state, Linear):
            selection = self._selection(call)
            assert selection is not None
            return Result("extreme", out, extreme=self.selections.index(selection), part=selection.shown, span=call.span)
        part, count = self._part(call), self._counted_slot(call)
        sources = tuple(self._source(part, each) for each in state.sums(self._arguments(call)))
        if not callable(state.finish):
            return Result(state.finish, out, sources, count, span=call.span)
        arguments = tuple(argument.type for argument in call.arguments)
        return Result("computed", out, sources, count, function=call.function, arguments=arguments, span=call.span)

    def _source(self, part: Part, each: Measure | Digits) -> SumSource:
        if isinstance(each, Digits):
            return SumSource(each.kind, self.digits.index((part, each)))
        return SumSource(each.kind, self._slot(part, each), each.width, each.argument.type.scale)
