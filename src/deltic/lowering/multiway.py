"""Multiway joins: the arrangements that their delta rules read, and the rules over words.

A shared variable is one word, since it is never NULL; other variables have the words of their field. Rules, occurrences and views share
equal arrangements. In a scope the builder gives the operator its nested form.

Where arrangements keep rows with NULLs in shared columns, these match nothing: the changes that rules start from are without them, a flag
word is looked up as the constant 1, and a variable that only columns without flags bind is tested.

On several shards the rows of each arrangement are replicated by a cube of the shared variables (circuit/cube.py), so that each shard
computes its own part of the result. On a single shard, and in scopes, all rows are on the home shard, where joins of any shape share
arrangements.

COUNT and SUM over a join are weights of its result. The last variable is summed over without being listed; a column of a single input that
is only summed is a weight of its rows; a shared variable that is summed is multiplied in when it is bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from deltic.aggregates.definition import Measure
from deltic.circuit.cube import Cube, Placement
from deltic.circuit.nodes import Shape
from deltic.circuit.operators.keys import ONE
from deltic.circuit.operators.map import Map
from deltic.circuit.operators.multiway import MultiwayJoinOperator
from deltic.circuit.rules import Extend, Fetch, Limb, PrefixFilter, Product, Rule, RuleAtom, Step
from deltic.expr.nodes import Column, Expr, columns_of
from deltic.lowering.delta_rules import Bind, DeltaRule, Index, NeededParts, Take, delta_rules, size_of
from deltic.lowering.protocol import PlanLowering
from deltic.lowering.streams import FLAG, Arranged, Nulls, none_is_null
from deltic.lowering.weighing import Weighing
from deltic.plan.columns import columns_of_all, conjunction, conjuncts, is_not_null, reference, remap
from deltic.plan.nodes import MultiwayJoin
from deltic.schema import Field, Schema

Port = tuple[str, Nulls]
"""An input of the join: (arrangement, the words that are NULL in rows that it leaves out)."""


def lower_multiway_join(lowering: PlanLowering, plan: MultiwayJoin) -> int:
    listed = list(dict.fromkeys(plan.flat[i] for i in plan.output))
    joining = _Joining(lowering, plan, NeededParts.of(plan), listed)
    schema = joining.schema
    return lowering.streams.map(
        joining.lower(steady=True), [reference(schema, listed.index(plan.flat[i])) for i in plan.output], plan.schema
    )


@dataclass(frozen=True, slots=True)
class Summed:
    """A weight of the result besides the count: weight `weight` of an input's rows, or the count times a limb of a shared variable."""

    input: int | None = None
    weight: int = 0
    variable: int | None = None
    limb: Limb = "whole"


def weigh_multiway_join(lowering: PlanLowering, plan: MultiwayJoin, weighing: Weighing, schema: Schema) -> int | None:
    """The stream of the groups (the fields of `schema`) with weights (count, measures), summed during the join.

    None if a measure is not a plain column, or is a rounded sum.
    """
    sums = _Sums(plan)
    if not all(isinstance(m.argument, Column) and sums.add(m, plan.output[m.argument.index]) for m in weighing.measures):
        return None
    read = sorted(columns_of_all((*weighing.groups, *weighing.present)))
    listed = list(dict.fromkeys(plan.flat[plan.output[i]] for i in read))
    tested = frozenset(plan.flat[i] for i in columns_of_all([plan.condition])) if plan.condition is not None else frozenset[int]()
    need = NeededParts(tested.union(plan.shared, listed), frozenset(listed), sums.by_input())
    joining = _Joining(lowering, plan, need, listed, tuple(sums.weights), tuple(sums.limbs))
    joined = joining.schema
    places = {i: listed.index(plan.flat[plan.output[i]]) for i in read}
    groups, present = ([remap(expr, places, joined) for expr in exprs] for exprs in (weighing.groups, weighing.present))
    return lowering.streams.map(joining.lower(steady=False), groups, schema, none_is_null(present))


class _Sums:
    """The weights of a join besides its count."""

    def __init__(self, plan: MultiwayJoin) -> None:
        self._plan, self._shared = plan, frozenset(plan.shared)
        self._measures: list[list[Measure]] = [[] for _ in plan.inputs]
        self.weights: list[Summed] = []
        self.limbs: list[tuple[int, int]] = []

    def by_input(self) -> tuple[tuple[Measure, ...], ...]:
        return tuple(map(tuple, self._measures))

    def add(self, measure: Measure, column: int) -> bool:
        """Adds a measure of a column; False if that is not possible."""
        variable = self._plan.flat[column]
        if variable not in self._shared:
            self._add_own(measure, column)
        elif measure.kind == "count":
            self.weights.append(Summed())
        elif measure.kind == "int":
            self.weights.append(Summed(variable=variable))
        elif measure.kind in ("bigint", "decimal"):
            self.weights += [Summed(variable=variable, limb="high"), Summed(variable=variable, limb="low")]
        else:
            return False
        return True

    def _add_own(self, measure: Measure, column: int) -> None:
        """Adds a measure of a column of a single input, as a weight of its rows."""
        i = max(i for i, start in enumerate(self._plan.starts) if start <= column)
        source = self._plan.inputs[i]
        own = Measure(measure.kind, reference(source.schema, column - self._plan.starts[i]))
        if own not in self._measures[i]:
            self._measures[i].append(own)
        weight = 1 + sum(m.width for m in self._measures[i][: self._measures[i].index(own)])
        first = 1 + len(self.weights)
        self.weights += [Summed(i, weight + limb) for limb in range(own.width)]
        self.limbs += [(first + limb, first + limb + 1) for limb in range(own.width - 2, -1, -1)]


class _Joining:
    """Lowers one join: first arrangements, then a rule over words for each delta rule. listed: the variables of the result."""

    def __init__(
        self,
        lowering: PlanLowering,
        plan: MultiwayJoin,
        need: NeededParts,
        listed: Sequence[int],
        summed: tuple[Summed, ...] = (),
        limbs: tuple[tuple[int, int], ...] = (),
    ) -> None:
        self.lowering, self.plan, self.streams = lowering, plan, lowering.streams
        self.listed, self.summed, self.limbs = listed, summed, limbs
        self.rules = delta_rules(plan, need)
        self.cube = self._cube()
        self.fields = self._fields()
        self.conditions = () if plan.condition is None else conjuncts(plan.condition)

    @property
    def schema(self) -> Schema:
        """The schema of `lower`: each listed variable once."""
        return Schema(tuple(self.fields[variable] for variable in self.listed))

    def lower(self, *, steady: bool) -> int:
        """The stream. steady: a row must be removed on the shard that added it, because readers may keep rows without an exchange."""
        builder = self.streams.builder
        indexes = list(dict.fromkeys(index for rule in self.rules for index in rule.indexes))
        arranged = {index: self._arranged(index, self._stream(index, self.streams.keeps_nulls)) for index in indexes}
        ports, sources = self._ports(arranged), {a.id: a.node for a in arranged.values()}
        placed = () if steady or self.cube is None else tuple(map(self._placements, arranged))
        operator = MultiwayJoinOperator(self._rules(arranged), cube=self.cube, placed=placed)
        relation = builder.digest("multiway join", steady, *self._rules({index: self._unspread(index) for index in indexes}))
        inputs = tuple(self.streams.not_null(sources[name], nulls) for name, nulls in ports)
        reads = tuple(sources)
        shape = Shape(self.schema, 1 + len(self.summed))  # the partition is None on a single shard too, so that readers have the same ids
        return builder.add(operator, inputs, shape, None, reads=reads, relation=relation)

    def _fields(self) -> dict[int, Field]:
        """The field of each variable; shared variables are not nullable."""
        shared = self.plan.shared
        fields = dict(zip(self.plan.flat, self.plan.columns, strict=True))
        return {v: Field(f.name, f.type, f.nullable and v not in shared) for v, f in fields.items()}

    def _cube(self) -> Cube | None:
        """The division of the join among the shards; None in a scope or on a single shard."""
        if self.lowering.scoped or not self.lowering.spread:
            return None
        relations = tuple(
            (tuple(d for d, variable in enumerate(self.plan.shared) if variable in variables), size_of(part))
            for part, variables in zip(self.plan.inputs, self.plan.variables, strict=True)
        )
        return Cube(len(self.plan.shared), relations)

    def _stream(self, index: Index, keeps_nulls: bool) -> int:
        """The rows of an index, in the order of its columns. keeps_nulls: also those with NULL in a shared column."""
        columns = [reference(index.source.schema, i) for i in index.order]
        fields = (index.source.schema[column] for column in index.order)
        schema = Schema(tuple(Field(f.name, f.type, f.nullable and (keeps_nulls or i >= index.shared)) for i, f in enumerate(fields)))
        present = None if keeps_nulls else none_is_null(columns[: index.shared])
        return self.streams.map(self.lowering.relation(index.source), columns, schema, present, index.measures)

    def _unspread(self, index: Index) -> Arranged:
        """The index as part of the join's identity, which depends neither on shards nor on whether rows with NULLs are kept."""
        stream = self._stream(index, keeps_nulls=False)
        return self.streams.arranged(stream, self.streams.builder.nodes[stream].content, index.shared)

    def _arranged(self, index: Index, stream: int) -> Arranged:
        if self.cube is None:
            return self.streams.arrange(self.streams.exchange(stream, ()), index.shared)
        return self.streams.arrange(self.streams.replicate(stream, self.cube, self._placements(index)), index.shared)

    def _placements(self, index: Index) -> tuple[Placement, ...]:
        """The placements of all inputs that read the index."""
        placed = {self._placement(i, index) for rule in self.rules for i, used in enumerate(rule.indexes) if used == index}
        return tuple(sorted(placed, key=repr))

    def _placement(self, i: int, index: Index) -> Placement:
        """The placement of the rows of input i, as words of the index."""
        variables = [self.plan.variables[i][column] for column in index.order[: index.shared]]
        return tuple(variables.index(variable) if variable in variables else None for variable in self.plan.shared)

    def _ports(self, arranged: Mapping[Index, Arranged]) -> list[Port]:
        """The changes of all arrangements, then those that rules start from; different plans may have one stream."""
        starts = ((a.id, self._nulls(index, a)) for index, a in arranged.items())
        return list(dict.fromkeys([*((a.id, ()) for a in arranged.values()), *starts]))

    def _nulls(self, index: Index, source: Arranged) -> Nulls:
        """The words that are NULL in rows that match nothing; () if there are no such rows."""
        return self.streams.nulls(source.node, index.shared)

    def _rules(self, arranged: Mapping[Index, Arranged]) -> tuple[Rule, ...]:
        ports = self._ports(arranged)
        return tuple(self._rule(rule, arranged, ports) for rule in self.rules)

    def _variables(self, rule: DeltaRule, i: int) -> list[int]:
        """The variables of input i in the order of the index that the rule reads."""
        return [self.plan.variables[i][column] for column in rule.indexes[i].order]

    def _rule(self, rule: DeltaRule, arranged: Mapping[Index, Arranged], ports: Sequence[Port]) -> Rule:
        prefix = _Prefix(self.fields)
        prefix.bind(self._variables(rule, rule.input))
        nulls = {index: self._nulls(index, arranged[index]) for index in rule.indexes}
        first = rule.indexes[rule.input]
        start = [word for word in range(arranged[first].width) if (word, FLAG) not in nulls[first]]
        if any(null == FLAG for index in rule.others for _, null in nulls[index]):
            prefix.bind_one()
            start.append(ONE)
        waiting = list(self.conditions)
        steps: list[Step] = []
        leaves = [rule.input]
        for step in rule.steps:
            read = step.inputs if isinstance(step, Bind) else (step.input,)
            atoms = tuple(self._atom(rule, i, step, arranged[rule.indexes[i]], ports, prefix) for i in read)
            leaves += [i for i, atom in zip(read, atoms, strict=True) if atom.leaf]
            prefix.bind([step.variable] if isinstance(step, Bind) else step.variables)
            ready = [part for part in waiting if all(self.plan.flat[column] in prefix.places for column in columns_of(part))]
            waiting = [part for part in waiting if part not in ready]
            tested = step.variable if isinstance(step, Bind) and self._may_bind_null(rule, step, arranged) else None
            condition = self._filter(ready, prefix, tested) if ready or tested is not None else None
            steps.append(Extend(atoms, condition) if isinstance(step, Bind) else Fetch(atoms[0], condition))
        assert sorted(leaves) == list(range(len(self.plan.inputs)))
        output = tuple(word for variable in self.listed for word in prefix.places[variable])
        weights = (Product(), *(self._product(each, leaves, prefix) for each in self.summed))
        port = ports.index((arranged[first].id, nulls[first]))
        return Rule(port, tuple(start), tuple(steps), output, weights, self.limbs, self._dimensions(prefix))

    def _may_bind_null(self, rule: DeltaRule, step: Bind, arranged: Mapping[Index, Arranged]) -> bool:
        """Whether all columns that bind the variable are nullable and without a flag, so that the word of NULL could be common to them."""
        for i in step.inputs:
            index = rule.indexes[i]
            place = arranged[index].fields[self._variables(rule, i).index(step.variable)][0]
            if all(word != place or null == FLAG for word, null in self._nulls(index, arranged[index])):
                return False
        return True

    def _dimensions(self, prefix: _Prefix) -> tuple[int | None, ...]:
        """The dimension of each position's variable."""
        dimension = {prefix.places[variable].start: d for d, variable in enumerate(self.plan.shared)}
        return tuple(dimension.get(position) for position in range(prefix.width))

    def _product(self, summed: Summed, leaves: Sequence[int], prefix: _Prefix) -> Product:
        factors = tuple(summed.weight if i == summed.input else 0 for i in leaves) if summed.weight else ()
        word = None if summed.variable is None else prefix.places[summed.variable].start
        return Product(factors, word, summed.limb)

    def _atom(self, rule: DeltaRule, i: int, step: Bind | Take, source: Arranged, ports: Sequence[Port], prefix: _Prefix) -> RuleAtom:
        index, variables = rule.indexes[i], self._variables(rule, i)
        flags = [(words[0], FLAG) in self._nulls(index, source) for words in source.fields]
        bound = variables[: variables.index(step.variable)] if isinstance(step, Bind) else variables[: index.shared]
        key = [word for variable, flag in zip(bound, flags, strict=False) for word in prefix.looked_up(variable, flag)]
        if isinstance(step, Bind) and flags[len(bound)]:
            key.append(prefix.one)
        leaf = isinstance(step, Take) or len(key) + 1 == source.width
        return RuleAtom(ports.index((source.id, ())), source.id, source.width, tuple(key), i < rule.input, leaf, source.weights)

    def _filter(self, conditions: Sequence[Expr], prefix: _Prefix, tested: int | None) -> PrefixFilter:
        """The conditions as a filter over the variables that they read. tested: a variable that must not be NULL, where it may be."""
        parts = list(conditions)
        fields = dict(self.fields)
        if tested is not None:
            fields[tested] = replace(fields[tested], nullable=True)
            column = Column(self.plan.flat.index(tested), fields[tested].type, True, fields[tested].name)
            parts.append(is_not_null(column))
        columns = sorted({column for part in parts for column in columns_of(part)})
        schema = Schema(tuple(fields[self.plan.flat[column]] for column in columns))
        places = {column: place for place, column in enumerate(columns)}
        predicate = conjunction(remap(part, places, schema) for part in parts)
        words = tuple(word for column in columns for word in prefix.places[self.plan.flat[column]])
        return PrefixFilter(Map(schema, Schema(()), (), predicate), words)


class _Prefix:
    """The variables bound so far. places: the positions of each variable's words. one: that of the constant 1, if it is bound."""

    def __init__(self, fields: dict[int, Field]) -> None:
        self._fields, self.places, self.width, self.one = fields, dict[int, range](), 0, ONE

    def bind_one(self) -> None:
        self.one, self.width = self.width, self.width + 1

    def looked_up(self, variable: int, flag: bool) -> Sequence[int]:
        """The positions of the words by which a shared variable is looked up in a column, which may have a flag word."""
        return (self.one, *self.places[variable]) if flag else self.places[variable]

    def bind(self, variables: Sequence[int]) -> None:
        for variable in variables:
            width = Shape(Schema((self._fields[variable],))).layout.width
            self.places[variable] = range(self.width, self.width + width)
            self.width += width
