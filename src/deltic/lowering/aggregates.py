"""GROUP BY: sums and counts as weights, float sums as limbs, MIN and MAX as sorted values, DISTINCT arguments as relations of their own.

All linear parts of one GROUP BY meet in a single arrangement group → (count, words of every measure): each part fills its own words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deltic.circuit.extremes import Extreme
from deltic.circuit.measures import Measure, MeasureKind
from deltic.circuit.nodes import Shape
from deltic.circuit.operators.aggregate import Aggregate as AggregateOperator
from deltic.circuit.operators.linear import Place
from deltic.circuit.operators.order import Limbs, Sort, Term
from deltic.circuit.results import Result, ResultKind
from deltic.expr.nodes import TRUE, Cast, Expr
from deltic.lowering.streams import ZERO, guarded, is_not_null, normalized
from deltic.lowering.weighing import Weighing, weigh
from deltic.plan.columns import conjunction, reference
from deltic.plan.nodes import Aggregate, AggregateCall
from deltic.schema import BIGINT, DOUBLE, Field, Schema

if TYPE_CHECKING:
    from deltic.lowering.lower import Lowering


RESULTS: dict[tuple[str, MeasureKind], ResultKind] = {
    ("sum", "int"): "sum_int",
    ("sum", "bigint"): "sum_bigint",
    ("sum", "decimal"): "sum_decimal",
    ("avg", "int"): "avg_int",
    ("avg", "rounded"): "avg_rounded",
    ("avg", "decimal"): "avg_decimal",
}


def lower_aggregate(lowering: Lowering, plan: Aggregate) -> int:
    return _Grouping(lowering, plan).lower()


class _Grouping:
    """Lowers one GROUP BY. First every call says what it needs, then weights are numbered, then nodes are made."""

    def __init__(self, lowering: Lowering, plan: Aggregate) -> None:
        self.lowering, self.plan, self.streams = lowering, plan, lowering.streams
        self.always = not plan.keys
        self.keys: list[Expr] = [normalized(e) for _, e in plan.keys] or [ZERO]
        self.key_fields = [Field(n, e.type, e.nullable) for n, e in plan.keys] or [Field("group", BIGINT, False)]
        self.main: list[Measure] = []
        self.branches: dict[tuple[Expr, ...], list[Measure]] = {}
        self.floats: list[tuple[tuple[Expr, ...] | None, Expr]] = []
        self.extremes: list[tuple[Expr, bool, Field]] = []

    def lower(self) -> int:
        for _, call in self.plan.aggregates:
            self._need(call)
        sums = self.streams.arrange(self._gathered(self.streams.plus(self._sum_streams())), len(self.keys), "sums")
        inputs, reads = [sums.node], [sums.id]
        floats = None
        if self.floats:
            limbs = self.streams.arrange(self._gathered(self.streams.plus(self._limb_streams())), len(self.keys), "limbs")
            floats = limbs.id
            inputs.append(limbs.node)
            reads.append(limbs.id)
        extremes = []
        for expr, descending, out in self.extremes:
            values = self.streams.arrange(self._gathered(self._ordered(expr, descending)), len(self.keys), "extreme")
            extremes.append(Extreme(values.id, self._key_words, out, descending))
            inputs.append(values.node)
            reads.append(values.id)
        return self._aggregate(inputs, reads, sums.id, floats, tuple(extremes))

    def _aggregate(self, inputs: list[int], reads: list[str], sums: str, floats: str | None, extremes: tuple[Extreme, ...]) -> int:
        results = tuple(
            self._result(call, f) for (_, call), f in zip(self.plan.aggregates, self.plan.schema.fields[len(self.plan.keys) :], strict=True)
        )
        target = Schema(tuple(self.key_fields) + tuple(r.target for r in results))
        builder = self.streams.builder
        memory = builder.name("groups", target, results, *(builder.fingerprint(i) for i in inputs)) if floats or extremes else None
        operator = AggregateOperator(
            self._key_words, target, results, sums, self._weights, floats, len(self.floats), extremes, memory, self.always
        )
        partition = self.streams.partition(inputs[0])
        node = builder.add(operator, tuple(inputs), Shape(target), partition, owns=memory, reads=reads)
        if memory is not None:
            self.lowering.specify_memory(memory, node, len(self.keys))
        if not self.always:
            return node
        return self.streams.map(node, [reference(target, i + 1) for i in range(len(results))], self.plan.schema)

    @property
    def _key_words(self) -> int:
        return Shape(Schema(tuple(self.key_fields))).layout.width

    @property
    def _weights(self) -> int:
        return 1 + sum(m.width for part in (self.main, *self.branches.values()) for m in part)

    def _slot(self, part: tuple[Expr, ...] | None, measure: Measure) -> int:
        """The first weight of a measure."""
        at = 1
        for name, measures in ((None, self.main), *self.branches.items()):
            for m in measures:
                if (name, m) == (part, measure):
                    return at
                at += m.width
        raise AssertionError(measure)

    def _need(self, call: AggregateCall) -> None:
        part = self._part(call)
        measures = self.main if part is None else self.branches.setdefault(part, [])
        for measure in self._measures(call):
            if measure not in measures:
                measures.append(measure)
        if call.function in ("min", "max"):
            if (extreme := self._extreme(call)) not in self.extremes:
                self.extremes.append(extreme)
        elif _is_float_sum(call) and (part, value := _double(self._argument(call))) not in self.floats:
            self.floats.append((part, value))

    def _part(self, call: AggregateCall) -> tuple[Expr, ...] | None:
        """The distinct tuple over which the call is taken, as expressions over the plan's input."""
        if not call.distinct or call.function in ("min", "max"):
            return None
        return tuple(normalized(guarded(a, call.filter)) for a in call.arguments)

    def _argument(self, call: AggregateCall) -> Expr:
        """What is summed, over the input of the call's part."""
        part = self._part(call)
        if part is not None:
            return self._part_reference(part, 0)
        return guarded(call.arguments[0], call.filter)

    def _part_reference(self, part: tuple[Expr, ...], i: int) -> Expr:
        schema = self._part_schema(part)
        return reference(schema, len(self.keys) + i)

    def _part_schema(self, part: tuple[Expr, ...]) -> Schema:
        return Schema((*self.key_fields, *(Field(f"v{i}", e.type, False) for i, e in enumerate(part))))

    def _counted(self, call: AggregateCall) -> Measure | None:
        """The measure that counts the values that the call is taken over; None where it is every row."""
        part = self._part(call)
        if part is not None:
            return Measure("count", TRUE)
        present = is_not_null(call.arguments)
        if present is None and call.filter is None:
            return None
        conditions = [c for c in (call.filter, present) if c is not None]
        if len(call.arguments) == 1 and call.filter is None:
            return Measure("count", call.arguments[0])
        return Measure("count", guarded(TRUE, conjunction(conditions)))

    def _measures(self, call: AggregateCall) -> list[Measure]:
        counted = self._counted(call)
        found = [] if counted is None or call.function in ("min", "max") else [counted]
        kind = _kind(call)
        return found if kind is None else [*found, Measure(kind, self._argument(call))]

    def _extreme(self, call: AggregateCall) -> tuple[Expr, bool, Field]:
        value = guarded(call.arguments[0], call.filter)
        at = [c for _, c in self.plan.aggregates].index(call)
        return value, call.function == "max", self.plan.schema[len(self.plan.keys) + at]

    def _sum_streams(self) -> list[int]:
        """One stream of (group, weights) for the input and each distinct part, every one with all the weights."""
        wanted = Weighing(tuple(self.keys), tuple(self.main))
        streams = [weigh(self.lowering, self.plan.input, wanted, Schema(tuple(self.key_fields)))]
        if not self.branches:
            return streams
        streams = [self._placed(streams[0], 0, self.main, None)]
        for part, measures in self.branches.items():
            rows = self._distinct(part)
            keys = [reference(self._part_schema(part), i) for i in range(len(self.keys))]
            weighed = self.streams.map(rows, keys, Schema(tuple(self.key_fields)), None, tuple(measures))
            streams.append(self._placed(weighed, None, measures, part))
        return streams

    def _placed(self, stream: int, count: int | None, measures: Sequence[Measure], part: tuple[Expr, ...] | None) -> int:
        positions: list[int | None] = [count]
        for measure in measures:
            start = self._slot(part, measure)
            positions += range(start, start + measure.width)
        shape = Shape(self.streams.schema(stream), self._weights)
        return self.streams.builder.add(Place(tuple(positions), self._weights), (stream,), shape, self.streams.partition(stream))

    def _distinct(self, part: tuple[Expr, ...]) -> int:
        """The distinct (group, values) in which no value is NULL."""
        schema = self._part_schema(part)
        rows = self.streams.map(self.lowering.relation(self.plan.input), [*self.keys, *part], schema, is_not_null(part))
        return self.lowering.distinct(rows)

    def _limb_streams(self) -> list[int]:
        streams = []
        for slot, (part, value) in enumerate(self.floats):
            schema = Schema((*self.key_fields, Field("value", DOUBLE, False)))
            if part is None:
                stream, keys = self.lowering.relation(self.plan.input), self.keys
            else:
                stream = self._distinct(part)
                keys = [reference(self._part_schema(part), i) for i in range(len(self.keys))]
            rows = self.streams.map(stream, [*keys, value], schema, is_not_null([value]))
            shape = Shape(Schema((*self.key_fields, Field("slot", BIGINT, False), Field("position", BIGINT, False))))
            streams.append(self.streams.builder.add(Limbs(self._key_words, slot), (rows,), shape, self._kept(rows)))
        return streams

    def _ordered(self, value: Expr, descending: bool) -> int:
        """(group, order words of the value): what MIN or MAX searches."""
        present = Field("value", value.type, False)
        schema = Schema((*self.key_fields, present))
        rows = self.streams.map(self.lowering.relation(self.plan.input), [*self.keys, value], schema, is_not_null([value]))
        if self.always:
            rows = self._local_extremes(rows, schema, descending)
        return self._sorted(rows, present, descending)

    def _sorted(self, rows: int, value: Field, descending: bool) -> int:
        term = Term(self._key_words, value, descending)
        shape = Shape(Schema((*self.key_fields, *self.lowering.order_fields(term))))
        return self.streams.builder.add(Sort((*range(self._key_words), term)), (rows,), shape, self._kept(rows))

    def _local_extremes(self, rows: int, schema: Schema, descending: bool) -> int:
        """Each shard's own extreme, so that the home shard holds one value of each."""
        value = schema[len(schema) - 1]
        sums = self.streams.arrange(self.streams.map(rows, [reference(schema, 0)], Schema(schema.fields[:1])), 1, "sums")
        values = self.streams.arrange(self._sorted(rows, value, descending), 1, "extreme")
        builder = self.streams.builder
        inputs = (sums.node, values.node)
        memory = builder.name("groups", schema, descending, *(builder.fingerprint(i) for i in inputs))
        extreme = Extreme(values.id, 1, value, descending)
        operator = AggregateOperator(1, schema, (Result("extreme", value, 0),), sums.id, 1, None, 0, (extreme,), memory)
        node = builder.add(operator, inputs, Shape(schema), self.streams.partition(rows), owns=memory, reads=(sums.id, values.id))
        self.lowering.specify_memory(memory, node, 1)
        return node

    def _kept(self, rows: int) -> tuple[int, ...] | None:
        """The partition, if it is by group words: all others are replaced."""
        partition = self.streams.partition(rows)
        return partition if partition is not None and all(w < self._key_words for w in partition) else None

    def _gathered(self, stream: int) -> int:
        return self.streams.exchange(stream, () if self.always else tuple(range(self._key_words)))

    def _result(self, call: AggregateCall, out: Field) -> Result:
        if call.function in ("min", "max"):
            slot = self.extremes.index(self._extreme(call))
            return Result("extreme", out, slot, span=call.span)
        counted = self._counted(call)
        part = self._part(call)
        count = 0 if counted is None else self._slot(part, counted)
        if call.function == "count":
            return Result("count", out, count, span=call.span)
        if _is_float_sum(call):
            slot = self.floats.index((part, _double(self._argument(call))))
            return Result("sum_float" if call.function == "sum" else "avg_float", out, slot, count, span=call.span)
        kind = _kind(call)
        assert kind is not None
        measure = Measure(kind, self._argument(call))
        slot = self._slot(part, measure)
        return Result(RESULTS[call.function, kind], out, slot, count, measure.width, measure.argument.type.scale, call.span)


def _is_float_sum(call: AggregateCall) -> bool:
    return call.function in ("sum", "avg") and call.arguments[0].type.is_float


def _double(expr: Expr) -> Expr:
    return expr if expr.type == DOUBLE else Cast(expr, DOUBLE, expr.nullable)


def _kind(call: AggregateCall) -> MeasureKind | None:
    """How the call's argument is summed exactly; None where nothing is, or a float."""
    if call.function not in ("sum", "avg") or _is_float_sum(call):
        return None
    type_ = call.arguments[0].type
    if type_.is_decimal:
        return "decimal"
    if type_ != BIGINT:
        return "int"
    return "bigint" if call.function == "sum" else "rounded"
