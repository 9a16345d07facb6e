"""Binds the bodies of rules: each part extends a plan whose columns are the variables bound so far.

Parts are bound in the order of the text, as DDlog does, so a variable is bound before it is used. The rows of a plan are the valuations of
the variables, each as often as the rows that it was derived from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from deltic.errors import Span, TypeMismatch, UnsafeRule, Unsupported
from deltic.expr import resolve
from deltic.expr.nodes import Expr, Literal, columns_of
from deltic.frontends.datalog.accumulators import bound_fold
from deltic.frontends.datalog.bind_term import GROUP_BY, GROUPINGS, STREAM_AGGREGATE, TermBinder
from deltic.frontends.datalog.declarations import BoundTerm, DatalogRelation, Declarations, check_comparable
from deltic.frontends.datalog.fold_uses import FLAT_MAP, FoldUses, folded_rows
from deltic.frontends.datalog.groups import COLLECTIONS, aggregate_name, collection, group_call, is_collected
from deltic.frontends.datalog.inspections import inspected_value
from deltic.frontends.datalog.kinds import Kind, UnionKind, VectorKind, stored
from deltic.frontends.datalog.maps import elements
from deltic.frontends.datalog.patterns import by_name, take_apart
from deltic.frontends.datalog.rewriting import parts_of_kind, replaced
from deltic.frontends.datalog.tree import (
    AssignmentTerm,
    AtomTerm,
    CallTerm,
    ClosureTerm,
    ConstantTerm,
    InspectTerm,
    OperationTerm,
    RecordTerm,
    Term,
    TupleTerm,
    VariableTerm,
)
from deltic.frontends.datalog.values import common, compared, constructed
from deltic.frontends.statements import Namespace
from deltic.plan.columns import conjunction, reference, shift
from deltic.plan.nodes import Aggregate, Filter, FlatMap, Hint, Join, Plan, Project, Reduce, Values
from deltic.schema import INT, Field, Schema

UNIT: Final = Values(((),), Schema(()))
"""One row without columns: a body without parts."""
ReadRelation: TypeAlias = Callable[[AtomTerm], tuple[Plan, DatalogRelation]]
"""The rows of the relation of an atom. Raises UnknownName."""


@dataclass(slots=True)
class AtomVisitor:
    """Collects what an atom's arguments say of a row: conditions on it, equalities with the prefix, and the variables that it binds."""

    binder: TermBinder
    conditions: list[Expr] = field(default_factory=list)
    keys: list[tuple[Expr, Expr]] = field(default_factory=list)
    names: dict[str, BoundTerm] = field(default_factory=dict)

    def condition(self, condition: Expr) -> None:
        self.conditions.append(condition)

    def variable(self, term: VariableTerm, value: BoundTerm) -> None:
        bound = self.binder.values.get(term.name)
        if term.new and (bound is not None or term.name in self.names):
            raise TypeMismatch(f"the variable {term.name} is declared twice", span=term.span, remedy="leave out var to compare with it")
        if term.name in self.names:
            self.conditions.append(compared("==", self.names[term.name], value, term.span).expr)
        elif bound is not None:
            one, other = common(bound, value, "==", term.span)
            check_comparable(one.kind, f"the variable {term.name} at two places", term.span)
            self.keys.append((one.expr, other.expr))
        else:
            self.names[term.name] = value

    def term(self, term: Term, value: BoundTerm) -> None:
        bound = self.binder.bind(term, value.kind)
        check_comparable(bound.kind, "an argument that is compared", term.span)
        if columns_of(bound.expr):
            self.keys.append((bound.expr, value.expr))
        else:
            self.conditions.append(compared("==", value, bound, term.span).expr)


class BodyBinder:
    """The plan of the parts bound so far.

    read: of an atom's relation. calls: collects the called functions of the session. hint: of the joins.
    """

    def __init__(
        self, declarations: Declarations, namespace: Namespace, read: ReadRelation, calls: set[str], hint: Hint | None = None
    ) -> None:
        self.declarations, self.namespace, self.read, self.calls, self.hint = declarations, namespace, read, calls, hint
        self.plan: Plan = UNIT
        self.kinds: dict[str, Kind] = {}
        """The kind of each column of the plan, by the variable's name."""
        self.inspected: list[tuple[InspectTerm, Plan, BoundTerm]] = []
        """What each Inspect prints: its value, over the rows of the parts before it."""

    @property
    def binder(self) -> TermBinder:
        """Binds terms over the variables bound so far."""
        schema = self.plan.schema
        values = {name: BoundTerm(reference(schema, i), kind) for i, (name, kind) in enumerate(self.kinds.items())}
        return TermBinder(self.declarations, self.namespace, values, self.calls)

    def add_all(self, body: Sequence[Term], heads: Sequence[AtomTerm] = ()) -> tuple[AtomTerm, ...]:
        """Adds the parts of a body in turn, and returns the heads over the variables that are bound at the end."""
        rest = list(body)
        while rest:
            term = rest.pop(0)
            if isinstance(term, AssignmentTerm) and parts_of_kind(term.value, CallTerm, lambda call: call.name == GROUP_BY):
                rest, heads = self._group(term, rest, heads)
            elif isinstance(term, AssignmentTerm) and isinstance(term.value, CallTerm) and term.value.name == STREAM_AGGREGATE:
                rest, heads = self._accumulate(term, term.value, rest, heads)
            else:
                self.add(term)
        return tuple(heads)

    def add(self, term: Term) -> None:
        """Adds one part."""
        match term:
            case AtomTerm():
                self._positive(term)
            case OperationTerm(operator="not", operands=(AtomTerm() as atom,)):
                self._negative(atom)
            case RecordTerm():
                self._positive(term.atom, term)
            case AssignmentTerm(value=AtomTerm(name=name)) if name == FLAT_MAP:
                self._flat_map(term)
            case AssignmentTerm():
                self._assign(term)
            case InspectTerm():
                self.inspected.append((term, self.plan, inspected_value(term, self.binder)))
            case _:
                self.plan = Filter(self.plan, self.binder.condition(term))

    def _matched(self, atom: AtomTerm, record: RecordTerm | None = None) -> tuple[Plan, AtomVisitor]:
        """(the rows of the atom's relation that satisfy its conditions, what its arguments say)."""
        rows, relation = self.read(atom)
        values = [BoundTerm(reference(rows.schema, i), kind) for i, (_, kind) in enumerate(relation.columns)]
        visitor = AtomVisitor(self.binder)
        if atom.record is not None:
            take_apart(atom.record, row_of(relation, values, atom.span), visitor)
        else:
            names = [name for name, _ in relation.columns]
            for value, argument in zip(values, by_name(atom.arguments, names, f"relation {atom.name}", atom.span), strict=True):
                if argument is not None:
                    take_apart(argument, value, visitor)
        if record is not None:
            visitor.variable(VariableTerm(record.name, record.span), row_of(relation, values, atom.span))
        return (Filter(rows, conjunction(visitor.conditions)) if visitor.conditions else rows), visitor

    def _positive(self, atom: AtomTerm, record: RecordTerm | None = None) -> None:
        rows, visitor = self._matched(atom, record)
        names = visitor.names
        if self.plan is UNIT:
            columns = tuple((name, value.expr) for name, value in names.items())
            self.plan = Project(rows, columns)
        else:
            width = len(self.plan.schema)
            joined = Join(self.plan, rows, "inner", tuple(visitor.keys), hint=self.hint)
            kept = tuple((name, reference(joined.schema, i)) for i, name in enumerate(self.kinds))
            self.plan = Project(joined, (*kept, *((name, shift(value.expr, width)) for name, value in names.items())))
        self.kinds.update({name: value.kind for name, value in names.items()})

    def _negative(self, atom: AtomTerm) -> None:
        rows, visitor = self._matched(atom)
        for name, value in visitor.names.items():
            raise UnsafeRule(
                f"the variable {name} of a negated atom is not bound",
                span=value.expr.span or _place_of(atom, name),
                expected="a variable of a preceding positive atom",
                remedy=f"read {name} from a positive atom before it, or write _ for any value",
            )
        self.plan = Join(self.plan, rows, "anti", tuple(visitor.keys))

    def _assign(self, term: AssignmentTerm) -> None:
        """pattern = value: keeps the rows whose value the pattern matches."""
        value = self.binder.bind(term.value)
        self._check_new(term.pattern)
        if isinstance(term.pattern, VariableTerm):
            self._extend({term.pattern.name: value})
            return
        whole = f"{len(self.kinds)}"  # the value is computed once, as a column whose name is no variable's
        self._extend({whole: value})
        visitor = AtomVisitor(self.binder)
        take_apart(term.pattern, self.binder.values[whole], visitor)
        if visitor.keys:
            pairs = [compared("==", BoundTerm(a, value.kind), BoundTerm(b, value.kind), term.span).expr for a, b in visitor.keys]
            visitor.conditions += pairs
        if visitor.conditions:
            self.plan = Filter(self.plan, conjunction(visitor.conditions))
        self._extend(visitor.names)
        self._keep([name for name in self.kinds if name != whole])

    def _check_new(self, pattern: Term) -> None:
        for part in parts_of_kind(pattern, VariableTerm):
            if part.name in self.kinds:
                remedy = f"compare with it: {part.name} == …, or choose another name"
                raise TypeMismatch(f"the variable {part.name} is bound already", span=part.span, remedy=remedy)

    def _extend(self, values: dict[str, BoundTerm]) -> None:
        """Adds columns."""
        schema = self.plan.schema
        kept = tuple((name, reference(schema, i)) for i, name in enumerate(self.kinds))
        self.plan = Project(self.plan, (*kept, *((name, value.expr) for name, value in values.items())))
        self.kinds.update({name: value.kind for name, value in values.items()})

    def _keep(self, names: Sequence[str]) -> None:
        """Removes the other columns."""
        order = list(self.kinds)
        self.plan = Project(self.plan, tuple((name, reference(self.plan.schema, order.index(name))) for name in names))
        self.kinds = {name: self.kinds[name] for name in names}

    def _flat_map(self, term: AssignmentTerm) -> None:
        """var x = FlatMap(e): a row for each element."""
        atom = term.value
        assert isinstance(atom, AtomTerm)
        if len(atom.arguments) != 1:
            raise TypeMismatch("FlatMap takes one argument", span=atom.span, expected="var x = FlatMap(e)")
        self._check_new(term.pattern)
        made = self._range(atom.arguments[0][1]) or self._elements(atom.arguments[0][1])
        whole = f"{len(self.kinds)}"
        self.plan = FlatMap(self.plan, made.function, made.arguments, (whole,), span=atom.span)
        self.kinds[whole] = made.kind
        value = VariableTerm(whole, atom.span)
        self._assign(replace(term, value=value))
        self._keep([name for name in self.kinds if name != whole])

    def _elements(self, argument: Term) -> ElementCall:
        value = self.binder.bind(argument)
        vector = elements(value)
        if vector is None:
            raise TypeMismatch(f"FlatMap does not accept {value.kind}", span=argument.span, expected="a Vec, a Set or a Map")
        assert isinstance(vector.kind, VectorKind)
        return ElementCall("elements", (vector.expr,), vector.kind.item)

    def _range(self, argument: Term) -> ElementCall | None:
        """range_vec(start, end, step), without the end."""
        if not isinstance(argument, CallTerm) or argument.name != "range_vec" or len(argument.arguments) != 3:
            return None
        binder, (first, end, step) = self.binder, argument.arguments
        typed = next((one for one in (first, end) if not isinstance(one, ConstantTerm)), first)
        kind = binder.bind(typed).kind
        ends = [binder.bind(one, kind if isinstance(one, ConstantTerm) else None) for one in (first, end)]
        start, stop = common(ends[0], ends[1], "range_vec", argument.span)
        by = binder.bind(step, start.kind)
        if not isinstance(by.expr, Literal) or by.expr.value != 1 or not start.expr.type.is_integer:
            raise Unsupported("range_vec takes integers and the step 1", span=argument.span, remedy="multiply the elements")
        last = resolve("-", [stop.expr, Literal(1, stop.expr.type)], argument.span)  # may be -1, of an unsigned range without elements
        return ElementCall("generate_series", (start.expr, last), start.kind)

    # groups

    def _group(self, term: AssignmentTerm, rest: list[Term], heads: Sequence[AtomTerm]) -> tuple[list[Term], Sequence[AtomTerm]]:
        """var x = e.group_by(k).f(…), or var g = e.group_by(k) and calls of functions of g in the rest and in the heads.

        Returns these without the calls.
        """
        name = self._group_name(term)
        call = term.value
        if isinstance(call, CallTerm) and call.name == GROUP_BY:
            calls = _calls_of(name, [*rest, *heads])
            if not calls:
                raise Unsupported(f"the group {name} is not aggregated", span=term.span, expected=f"var s = {name}.sum(), …")
            names = {one: f"{name}.{i}" for i, one in enumerate(calls)}
            self._aggregate(call, {names[one]: one for one in calls}, term.span)
            by = {one: VariableTerm(names[one], one.span) for one in calls}
            return [replaced(part, by) for part in rest], [replaced(head, by) for head in heads]
        inner = call.arguments[0] if isinstance(call, CallTerm) and call.arguments else None
        if not isinstance(call, CallTerm) or not isinstance(inner, CallTerm) or inner.name != GROUP_BY:
            remedy = "assign the aggregate first: var s = e.group_by(k).sum(), var t = s + 1"
            raise Unsupported("group_by is part of a larger term", span=term.value.span, remedy=remedy)
        self._aggregate(inner, {name: call}, term.span)
        return rest, heads

    def _group_name(self, term: AssignmentTerm) -> str:
        """The new variable to which a group is assigned."""
        if not isinstance(term.pattern, VariableTerm):
            raise Unsupported("a group is assigned to one variable", span=term.pattern.span, expected="var x = e.group_by(k).sum()")
        if term.pattern.name in self.kinds:
            raise TypeMismatch(f"the variable {term.pattern.name} is bound already", span=term.pattern.span, remedy="choose another name")
        return term.pattern.name

    def _aggregate(self, group: CallTerm, results: dict[str, CallTerm], span: Span) -> None:
        """Replaces the plan by its groups: the columns are the keys and the results of the calls."""
        if len(group.arguments) != 2:
            raise TypeMismatch("group_by takes the variables of the key", span=group.span, expected="e.group_by((x, y))")
        keys = _key_names(group.arguments[1], self.kinds)
        rows, kinds = self.plan, self.kinds
        for i, part in enumerate(_parted(results)):
            before, self.plan, self.kinds = (self.plan, self.kinds), rows, kinds
            value = self.binder.bind(group.arguments[0])
            if any(is_collected(one.name) for one in part.values()):
                self._collect(keys, value, part, span)
            else:
                self._add_up(keys, value, part)
            if i:
                self._join_groups(before, keys)

    def _join_groups(self, other: tuple[Plan, dict[str, Kind]], keys: Sequence[str]) -> None:
        """Adds to the plan the columns of other groups of the same rows by the same keys. The keys come first in both."""
        (plan, kinds), width = other, len(other[0].schema)
        pairs = tuple((reference(plan.schema, i), reference(self.plan.schema, i)) for i in range(len(keys)))
        joined = Join(plan, self.plan, "inner", pairs)
        kept = [*range(width), *range(width + len(keys), len(joined.schema))]
        self.kinds = {**kinds, **self.kinds}
        self.plan = Project(joined, tuple((name, reference(joined.schema, i)) for name, i in zip(self.kinds, kept, strict=True)))

    def _add_up(self, keys: Sequence[str], value: BoundTerm, results: dict[str, CallTerm]) -> None:
        """Groups with aggregates that are not collected."""
        values = self.binder.values
        calls = {
            name: group_call(aggregate_name(one.name), value, one.arguments[1:], self._closure, one.span) for name, one in results.items()
        }
        key_columns = tuple((name, values[name].expr) for name in keys)
        grouped = Aggregate(self.plan, key_columns or (("", Literal(1, INT)),), tuple((name, one.call) for name, one in calls.items()))
        first = len(key_columns) or 1
        finished = {name: one.finish(reference(grouped.schema, first + i)) for i, (name, one) in enumerate(calls.items())}
        kept = tuple((name, reference(grouped.schema, i)) for i, name in enumerate(keys))
        self.plan = Project(grouped, (*kept, *((name, one.expr) for name, one in finished.items())))
        self.kinds = {**{name: self.kinds[name] for name in keys}, **{name: one.kind for name, one in finished.items()}}

    def _collect(self, keys: Sequence[str], value: BoundTerm, results: dict[str, CallTerm], span: Span) -> None:
        """A group as one value, and functions on it."""
        names = {aggregate_name(one.name) for one in results.values()}
        column = "value"
        function, kind = collection(next(iter(names & set(COLLECTIONS)), "to_vec"), value.kind, column, span)
        values = self.binder.values
        pairs = (*((name, values[name].expr) for name in keys), (column, value.expr))
        below = Project(self.plan, pairs)
        key_columns = tuple((name, reference(below.schema, i)) for i, name in enumerate(keys)) or (("", Literal(1, INT)),)
        whole = f"{len(self.kinds)}"
        reduced = Reduce(below, key_columns, (len(keys),), function, Schema((Field(whole, stored(kind), False),)))
        self.plan = reduced if keys else Project(reduced, ((whole, reference(reduced.schema, 1)),))
        self.kinds = {**{name: self.kinds[name] for name in keys}, whole: kind}
        for name, call in results.items():
            bare = aggregate_name(call.name)
            group = VariableTerm(whole, call.span)
            term: Term = group if bare in COLLECTIONS else CallTerm(call.name, (group, *call.arguments[1:]), call.span)
            self._extend({name: self.binder.bind(term)})
        self._keep([name for name in self.kinds if name != whole])

    def _accumulate(
        self, term: AssignmentTerm, call: CallTerm, rest: list[Term], heads: Sequence[AtomTerm]
    ) -> tuple[list[Term], Sequence[AtomTerm]]:
        """Replaces the plan by a fold over its ticks: the columns are the keys and the accumulator, or what the rule uses of it.

        Returns the rest, with the columns in place of such uses.
        """
        name = self._group_name(term)
        if len(call.arguments) not in (4, 5):
            what = "stream_aggregate takes a key, a step, the first accumulator, and in how many transactions once"
            raise TypeMismatch(what, span=call.span, expected=GROUPINGS[STREAM_AGGREGATE])
        keys, values = _key_names(call.arguments[1], self.kinds), self.binder.values
        value = self.binder.bind(call.arguments[0])
        fold = bound_fold(self.plan, {key: values[key] for key in keys}, value, call, replace(self.binder, values={}))
        kinds = {key: self.kinds[key] for key in keys}
        uses = FoldUses(name, fold.kind)
        relation = fold.in_place() if all([uses.add(one) for one in (*rest, *heads)]) else None
        if relation is None:
            self.plan = fold.whole()
            self.plan = Project(self.plan, tuple((one, reference(self.plan.schema, i)) for i, one in enumerate((*keys, name))))
            self.kinds = {**kinds, name: fold.kind}
            return rest, heads
        rows = folded_rows(fold, relation, uses)
        self.plan, self.kinds = rows.plan, kinds | rows.columns
        return [replaced(one, rows.by) for one in rest], [replaced(one, rows.by) for one in heads]

    def _closure(self, closure: ClosureTerm, value: BoundTerm) -> BoundTerm:
        if len(closure.parameters) != 1:
            raise TypeMismatch("the closure takes one parameter", span=closure.span, expected="|x| …")
        for type in closure.types:
            if type is not None and self.declarations.kind(type) != value.kind:
                raise TypeMismatch(f"the parameter {closure.parameters[0]} is {value.kind}", span=type.span, expected=str(value.kind))
        binder = self.binder
        return replace(binder, values={**binder.values, closure.parameters[0]: value}).bind(closure.body)


@dataclass(frozen=True, slots=True)
class ElementCall:
    """The elements of a FlatMap."""

    function: Any
    arguments: tuple[Expr, ...]
    kind: Kind


def row_of(relation: DatalogRelation, values: Sequence[BoundTerm], span: Span) -> BoundTerm:
    """A row of the relation as one value."""
    if isinstance(relation.row, UnionKind) and not relation.row.is_tagged:
        return constructed(relation.row, relation.row.constructors[0].name, values, span)
    return values[0]


def _place_of(atom: AtomTerm, name: str) -> Span:
    return next((one.span for one in parts_of_kind(atom, VariableTerm) if one.name == name), atom.span)


def _calls_of(group: str, rest: Sequence[Term]) -> list[CallTerm]:
    """The calls of functions of the group, each once."""
    calls = [
        call
        for part in rest
        for call in parts_of_kind(part, CallTerm)
        if call.arguments and isinstance(call.arguments[0], VariableTerm) and call.arguments[0].name == group
    ]
    return list(dict.fromkeys(calls))


def _parted(results: dict[str, CallTerm]) -> Iterator[dict[str, CallTerm]]:
    """The results of a group that are computed together: aggregates that are not collected, each way to collect it, and functions.

    Functions are of the one value that the group is collected as, or of a Vec.
    """
    ways = {aggregate_name(one.name) for one in results.values()} & set(COLLECTIONS)
    own = next(iter(ways)) if len(ways) == 1 else "to_vec"

    def way(call: CallTerm) -> str:
        name = aggregate_name(call.name)
        return name if name in COLLECTIONS else own if is_collected(name) else ""

    for each in dict.fromkeys(map(way, results.values())):
        yield {name: call for name, call in results.items() if way(call) == each}


def _key_names(term: Term, kinds: dict[str, Kind]) -> list[str]:
    """The variables of a key."""
    items = term.items if isinstance(term, TupleTerm) else (term,)
    names = []
    for item in items:
        if not isinstance(item, VariableTerm):
            raise Unsupported("the key of group_by is not a variable", span=item.span, remedy="assign it first: var k = …")
        if item.name not in kinds:
            raise UnsafeRule(f"the variable {item.name} is not bound", span=item.span, expected="a variable of a preceding atom")
        check_comparable(kinds[item.name], f"the key {item.name} of a group", item.span)
        names.append(item.name)
    return list(dict.fromkeys(names))
