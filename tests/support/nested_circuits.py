"""Test support: the random circuits of nested_programs.py, built of Deltic's operators."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from deltic.aggregates.definition import Measure
from deltic.circuit.builder import CircuitBuilder
from deltic.circuit.extremes import Extreme
from deltic.circuit.nesting import ScopeBuilder
from deltic.circuit.nodes import ArrangementSpec, Dataflow, NodeKind, Shape
from deltic.circuit.operators.aggregate import AggregateOperator
from deltic.circuit.operators.arrange import Arrange
from deltic.circuit.operators.join import JoinOperator
from deltic.circuit.operators.linear import Negate, Plus
from deltic.circuit.operators.map import Map
from deltic.circuit.operators.multiway import MultiwayJoinOperator
from deltic.circuit.operators.order import Sort
from deltic.circuit.operators.reweigh import Reweigh
from deltic.circuit.operators.table import TableInput
from deltic.circuit.operators.top_k import TopKOperator
from deltic.circuit.results import Result, SumSource
from deltic.circuit.terms import Term
from deltic.expr import Column, Expr, Literal, resolve
from deltic.schema import BIGINT, Field, Schema, TableSchema
from multiway_queries import Compiling, Order, Query, rules_of
from nested_programs import DOMAIN, LIMIT, MULTIWAY, Scope, Spec, live

PAIR = Schema((Field("a", BIGINT, False), Field("b", BIGINT, False)))
SHAPE = Shape(PAIR)
A, B = Column(0, BIGINT, False, "a"), Column(1, BIGINT, False, "b")
UNUSED = -1
"""The stream of a node that the view does not depend on: a tick runs it, a backfill does not."""

ZERO, ONE = Literal(0, BIGINT), Literal(1, BIGINT)


def number(value: int) -> Expr:
    return Literal(value, BIGINT)


def tables_alone(program: Scope) -> Dataflow:
    """The program's tables without readers."""
    tables = [spec for spec in program.nodes if spec.kind == "table"]
    return build(Scope(tables, 0), hoisted=False)


def build(program: Scope, hoisted: bool) -> Dataflow:
    """hoisted: joins inside scopes read imported streams from arrangements of the circuit outside."""
    builder = CircuitBuilder()
    streams = []
    tables = 0
    used = live(program)
    for at, spec in enumerate(program.nodes):
        if spec.kind == "table":
            name = f"t{tables}"
            tables += 1
            table = TableSchema(name, PAIR)
            streams.append(builder.add(TableInput(table, name, (0, 1), 0), (), SHAPE, (0, 1), kind=NodeKind.SOURCE, owns=name))
            builder.specify(ArrangementSpec(name, SHAPE, 0, 2, table=name, order=(0, 1)))
            builder.tables[name] = name
        elif at not in used:
            streams.append(UNUSED)
        else:
            streams.append(Building(builder, hoisted).add(spec, streams))
    if len(streams) > tables:
        builder.add(Arrange("out"), (streams[program.export],), SHAPE, (), kind=NodeKind.SINK, owns="out")
        builder.specify(ArrangementSpec("out", SHAPE, 0, 2, view="out", order=(0, 1)))
        builder.views["out"] = "out"
    return builder.finish()


class Building:
    """Adds nodes to the circuit or scope of `builder`."""

    def __init__(self, builder: CircuitBuilder, hoisted: bool) -> None:
        self.builder, self.hoisted = builder, hoisted

    def add(self, spec: Spec, streams: list[int]) -> int:
        given = [streams[i] for i in spec.inputs] if spec.kind not in ("feedback", "import", "delay") else []
        match spec.kind:
            case "child":
                assert spec.inside is not None
                return self.child(spec.inside, given)
            case "map":
                columns: dict[str, tuple[Expr, Expr]] = {
                    "swap": (B, A),
                    "next": (A, self._modulo(resolve("+", [B, ONE], None))),
                    "first": (A, A),
                    "sum": (self._modulo(resolve("+", [A, B], None)), B),
                }
                return self.map(given[0], columns[spec.detail])
            case "filter":
                test = {"unequal": resolve("<>", [A, B], None), "less": resolve("<", [A, B], None)}[spec.detail]
                return self.builder.add(Map(PAIR, PAIR, (A, B), test), (given[0],), SHAPE, ())
            case "negate":
                return self.negate(given[0])
            case "plus":
                return self.builder.add(Plus(), tuple(given), SHAPE, ())
            case "minus":
                return self.builder.add(Plus(), (given[0], self.negate(given[1])), SHAPE, ())
            case "join":
                return self.join(*given, ((0, 1), (1, 1)))
            case "multiway":
                return self.multiway(given, MULTIWAY[spec.detail])
            case "distinct":
                return self.distinct(given[0])
            case "semijoin":
                return self.semijoin(*given)
            case "antijoin":
                return self.builder.add(Plus(), (given[0], self.negate(self.semijoin(*given))), SHAPE, ())
            case "reduce":
                return self.reduce(spec.detail, self.distinct(given[0]))
            case "top":
                return self.top(self.distinct(given[0]))
            case _:
                raise AssertionError(spec.kind)

    def child(self, scope: Scope, given: list[int]) -> int:
        inside = ScopeBuilder(self.builder, f"{len(self.builder.nodes)}")
        building = Building(inside, self.hoisted)
        local: list[int] = []
        later: list[tuple[int, int]] = []
        for spec in scope.nodes:
            if spec.kind in ("feedback", "delay"):
                local.append(inside.feedback(SHAPE, f"relation {len(local)}"))
                later.append((local[-1], spec.inputs[0]))
            elif spec.kind == "import":
                local.append(inside.attach(given[spec.inputs[0]]))
            else:
                local.append(building.add(spec, local))
        for feedback, source in later:
            inside.connect(feedback, local[source])
        return inside.close(local[scope.export], LIMIT)

    @staticmethod
    def _modulo(expr: Expr) -> Expr:
        rest = resolve("%", [expr, number(DOMAIN)], None)
        return resolve("coalesce", [rest, ZERO], None) if rest.nullable else rest

    def map(self, stream: int, columns: tuple[Expr, ...]) -> int:
        return self.builder.add(Map(PAIR, PAIR, columns), (stream,), SHAPE, ())

    def negate(self, stream: int) -> int:
        return self.builder.add(Negate(), (stream,), SHAPE, ())

    def arrange(self, stream: int, role: str = "trace") -> tuple[int, str]:
        builder = self.builder
        node = builder.nodes[stream]
        if self.hoisted and isinstance(builder, ScopeBuilder) and node.kind is NodeKind.IMPORT:
            outside = builder.imported(stream)
            below, name = Building(builder.parent, True).arrange(outside, role)
            return builder.attach(below), name
        name = builder.name(role, builder.fingerprint(stream))
        made = builder.add(Arrange(name), (stream,), node.shape, (), owns=name)
        builder.specify(ArrangementSpec(name, node.shape, 0, 1))
        return made, name

    def join(self, left: int, right: int, output: tuple[tuple[int, int], ...]) -> int:
        (a, left_name), (b, right_name) = self.arrange(left), self.arrange(right)
        join = JoinOperator(left_name, right_name, 1, ((2, 1), (2, 1)), output)
        return self.builder.add(join, (a, b), SHAPE, (), reads=(left_name, right_name))

    def multiway(self, streams: Sequence[int], atoms: Sequence[str]) -> int:
        """The rules bind words in a pseudorandom order, and look up some relations only when all of their words are bound."""
        arrangements = Arrangements(self)
        query = Query(tuple(zip(map(str, streams), atoms, strict=True)), "pq")
        operator = MultiwayJoinOperator(rules_of(query, random.Random(len(self.builder.nodes)), arrangements))
        return self.builder.add(operator, tuple(arrangements.nodes), SHAPE, (), reads=tuple(operator.sources))

    def arrange_by(self, stream: int, order: Order) -> tuple[int, str]:
        """The stream's arrangement with its words in this order."""
        if order == (0, 1):
            return self.arrange(stream)
        builder = self.builder
        if self.hoisted and isinstance(builder, ScopeBuilder) and builder.nodes[stream].kind is NodeKind.IMPORT:
            below, name = Building(builder.parent, True).arrange_by(builder.imported(stream), order)
            return builder.attach(below), name
        return self.arrange(self.map(stream, (B, A)))

    def distinct(self, stream: int) -> int:
        builder = self.builder
        name = builder.name("trace", builder.fingerprint(stream))
        node = builder.add(Arrange(name), (stream,), SHAPE, (), owns=name)
        builder.specify(ArrangementSpec(name, SHAPE, 0, 2))
        return builder.add(Reweigh(name, 2, "distinct"), (node,), SHAPE, (), reads=(name,))

    def semijoin(self, left: int, right: int) -> int:
        return self.join(left, self.distinct(self.map(right, (A, ZERO))), ((0, 0), (0, 1)))

    def reduce(self, function: str, stream: int) -> int:
        builder = self.builder
        key_schema = Schema(PAIR.fields[:1])
        key: Expr = ZERO if function == "all" else A
        measures = (Measure("bigint", B),) if function == "sum" else ()
        exploded = builder.add(Map(PAIR, key_schema, (key,), None, measures), (stream,), Shape(key_schema, 3 if measures else 1), ())
        sums, sums_name = self.arrange(exploded, "sums")
        inputs, reads, extremes = [sums], [sums_name], ()
        out = Field("b", BIGINT, False)
        if function in ("min", "max"):
            values = builder.add(Sort((0, Term(1, out, function == "max"))), (stream,), SHAPE, ())
            node, name = self.arrange(values, "extreme")
            inputs.append(node)
            reads.append(name)
            extremes = (Extreme(name, 1, (Term(1, out, function == "max"),), (out,)),)
            result = Result("extreme", out)
        elif function == "sum":
            result = Result("total", out, (SumSource("bigint", 1, 2),))
        else:
            result = Result("count", out)
        memory = builder.name("groups", function, *map(builder.fingerprint, inputs)) if extremes else None
        operator = AggregateOperator(1, PAIR, (result,), sums_name, 3 if measures else 1, None, 0, extremes, memory, function == "all")
        made = builder.add(operator, tuple(inputs), SHAPE, (), owns=memory, reads=reads)
        return self.map(made, (B, A)) if function == "all" else made

    def top(self, stream: int) -> int:
        builder = self.builder
        sorted_schema = Schema((Field("all", BIGINT, False), *PAIR.fields))
        rows = builder.add(Sort((0, 1), constant=True), (stream,), Shape(sorted_schema), ())
        node, name = self.arrange(rows)
        memory = builder.name("first", builder.fingerprint(node))
        made = builder.add(TopKOperator(name, memory, 3, 2, (1, 2)), (node,), SHAPE, (), owns=memory, reads=(name,))
        if memory in builder.depths and not isinstance(builder, ScopeBuilder):
            builder.specify(replace(builder.arrangements[name], id=memory))
        return made


class Arrangements(Compiling):
    """The arrangements that a multiway join reads; relations are named by their streams. nodes: that of each port."""

    def __init__(self, building: Building) -> None:
        super().__init__()
        self.building = building
        self.nodes: list[int] = []
        self.names: list[str] = []

    def port(self, relation: str, order: Sequence[int]) -> tuple[int, str]:
        key = (relation, (order[0], order[1]))
        if key not in self.ports:
            node, name = self.building.arrange_by(int(relation), key[1])
            if node not in self.nodes:
                self.nodes.append(node)
                self.names.append(name)
            self.ports[key] = self.nodes.index(node)
        return self.ports[key], self.names[self.ports[key]]
