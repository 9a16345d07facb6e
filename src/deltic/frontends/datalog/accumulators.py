"""stream_aggregate: a fold over a stream by a function of Datalog, with one accumulator for each key.

`var s = e.stream_aggregate((x, y), |acc, v, w| step, init)`: for each value v of e in a transaction, with its weight w, the accumulator
of the key becomes the step's value. Values of a transaction are folded in their order. A step of Option<T>, where T is the type of init,
drops the key by None. The name of a function f stands for |acc, v, w| f(acc, v, w). With one more argument n,
the values of n transactions are folded at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deltic.errors import TypeMismatch
from deltic.expr.accumulators import ElementPart
from deltic.expr.functions.signature import constant
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import Expr, UserFunction, Value
from deltic.frontends.datalog.bind_term import GROUPINGS, STREAM_AGGREGATE, TermBinder
from deltic.frontends.datalog.declarations import BoundTerm
from deltic.frontends.datalog.element_folds import ElementFold
from deltic.frontends.datalog.element_steps import AccumulatorLayout, LambdaReads, StepReader
from deltic.frontends.datalog.functions import is_generic
from deltic.frontends.datalog.kinds import S64, USIZE, Kind, MapKind, TupleKind, UnionKind, VectorKind, option, stored
from deltic.frontends.datalog.sets import SET
from deltic.frontends.datalog.tree import (
    BlockTerm,
    CallTerm,
    ClosureTerm,
    ConstructorTerm,
    FunctionDeclaration,
    IfTerm,
    MatchTerm,
    NamedTypeTerm,
    Term,
    TypeTerm,
    VariableTerm,
)
from deltic.plan.accumulators import AccumulateElements
from deltic.plan.columns import reference
from deltic.plan.fingerprint import fingerprint
from deltic.plan.nodes import MOST_BATCHED, Accumulate, OverTicks, Plan, Project, Values
from deltic.schema import BIGINT, Field, Schema


@dataclass(frozen=True, slots=True)
class Fold:
    """The function of an accumulator, for deltic.plan.nodes.Accumulate. step: over (accumulator, value, weight).

    drops: the step is an Option, a struct of the tag and the accumulator.
    """

    step: Expr
    init: Value
    drops: bool

    def __call__(self, held: Value, group: Iterable[tuple[Any, int]]) -> tuple[Value] | None:
        for row, weight in group:
            held = evaluate(self.step, (self.init if held is None else held, row[0], weight))
            if self.drops:
                assert isinstance(held, tuple)
                held = held[1]
        return None if held is None else (held,)  # a Vec of one element is a tuple, too


@dataclass(frozen=True, slots=True)
class BoundFold:
    """A stream_aggregate. input: its keys, then the value. kind: of the accumulator. drops: the step is an Option of it."""

    input: Plan
    keys: tuple[tuple[str, Expr], ...]
    kind: Kind
    step: Expr
    first: Value
    drops: bool
    digest: str

    def whole(self) -> Accumulate:
        """The relation of the keys and the accumulator, one value that each step replaces."""
        function = Fold(self.step, self.first, self.drops)
        return Accumulate(self.input, self.keys, (len(self.keys),), self._function(function, ""), self._schema((self.kind,)))

    def in_place(self) -> AccumulateElements | None:
        """The relation of the keys, the columns that are no Sets or Maps, and the sizes of these; None if a step copies them."""
        layout = layout_of(self.kind)
        if layout is None:
            return None
        reader = StepReader(layout)
        try:
            outcome = reader.outcome(self.step, drops=self.drops)
        except LambdaReads:
            return None
        if reader.copies:
            return None
        begin = (self.first,) if layout.alone else self.first
        assert isinstance(begin, tuple)
        fold = ElementFold(layout, tuple(reader.reads), outcome, begin)
        plain = [kind for kind, part in zip(column_kinds(self.kind), layout.parts, strict=True) if part is None]
        returned = self._schema((*plain, *(USIZE for _ in layout.elements)))
        function = self._function(fold, "elements.")
        return AccumulateElements(self.input, self.keys, (len(self.keys),), function, returned, layout.elements, None)

    def _function(self, fold: Callable[..., Any], form: str) -> UserFunction:
        names = (self.input.schema[len(self.keys)].name,)
        parameters = (None, None, names) if form else (None, names)
        return UserFunction(f"{STREAM_AGGREGATE}.<lambda>", f"deltic.datalog.{form}1.{self.digest}", parameters, 0, False, fold)

    def _schema(self, kinds: Sequence[Kind]) -> Schema:
        first = len(self.keys)
        names = [self.input.schema[first].name, *(f"{i}." for i in range(1, len(kinds)))]
        return Schema(tuple(Field(name, stored(kind), False) for name, kind in zip(names, kinds, strict=False)))


def column_kinds(kind: Kind) -> tuple[Kind, ...]:
    """Of an accumulator: those of a tuple or struct, or its own."""
    if isinstance(kind, TupleKind):
        return kind.items
    if isinstance(kind, UnionKind) and not kind.is_tagged:
        return tuple(kind.fields.values())
    return (kind,)


def layout_of(kind: Kind) -> AccumulatorLayout | None:
    """The layout of an accumulator that is a Set, Map or Vec, or a tuple or struct with some; None of others."""
    parts = tuple(_part(i, one) for i, one in enumerate(column_kinds(kind)))
    vectors = frozenset(i for i, one in enumerate(column_kinds(kind)) if isinstance(one, VectorKind) and one.name != SET)
    return AccumulatorLayout(parts, not isinstance(kind, TupleKind | UnionKind), vectors) if any(parts) else None


def _part(column: int, kind: Kind) -> ElementPart | None:
    if isinstance(kind, MapKind):
        return ElementPart(
            f"{column}", Field(f"{column}.key", stored(kind.key), False), Field(f"{column}.value", stored(kind.value), False)
        )
    if isinstance(kind, VectorKind) and kind.name == SET:
        return ElementPart(f"{column}", Field(f"{column}.element", stored(kind.item), False))
    if isinstance(kind, VectorKind):
        return ElementPart(f"{column}", Field(f"{column}.position", BIGINT, False), Field(f"{column}.element", stored(kind.item), False))
    return None


def bound_fold(plan: Plan, keys: Mapping[str, BoundTerm], value: BoundTerm, call: CallTerm, binder: TermBinder) -> BoundFold:
    """A call of stream_aggregate over the rows of a plan. binder: of terms without variables. Raises TypeMismatch."""
    closure, init = call.arguments[2:4]
    if not isinstance(closure, ClosureTerm) or len(closure.parameters) != 3:
        raise TypeMismatch(
            "the step is not a closure of the accumulator, a value and its weight", span=closure.span, expected="|acc, v, w| …"
        )
    type = _accumulator_type(closure, binder)
    first = binder.bind(init, None if type is None else binder.declarations.kind(type))
    literal = constant(first.expr)
    if literal is None:
        raise TypeMismatch("the first accumulator is not a constant", span=init.span, expected=GROUPINGS[STREAM_AGGREGATE])
    kinds = (first.kind, value.kind, S64)
    _check_types(closure, kinds, binder)
    schema = Schema(tuple(Field(name, stored(kind), False) for name, kind in zip(closure.parameters, kinds, strict=True)))
    parameters = {name: BoundTerm(reference(schema, i), kind) for i, (name, kind) in enumerate(zip(closure.parameters, kinds, strict=True))}
    drops = not _is_option(first.kind) and any(_may_drop(one, binder) for one in _results(closure.body))
    step = replace(binder, values=parameters).bind(closure.body, option(first.kind) if drops else first.kind)
    digest = fingerprint(Project(Values((), schema), (("step", step.expr), ("init", first.expr))))
    name = next(str(i) for i in range(len(keys) + 2) if str(i) not in keys)
    below: Plan = Project(plan, (*((key, bound.expr) for key, bound in keys.items()), (name, value.expr)))
    columns = tuple((key, reference(below.schema, i)) for i, key in enumerate(keys))
    if len(call.arguments) > 4:
        below = OverTicks(below, "batched", size=_ticks(call.arguments[4], binder))
    return BoundFold(below, columns, first.kind, step.expr, literal.value, drops, digest)


def _accumulator_type(closure: ClosureTerm, binder: TermBinder) -> TypeTerm | None:
    """The type in the text of the closure's first parameter: its own, or that of the function that is the step; None without either."""
    if closure.types and closure.types[0] is not None:
        return closure.types[0]
    called = binder.declarations.functions.get(closure.body.name) if isinstance(closure.body, CallTerm) else None
    if called is None or not isinstance(closure.body, CallTerm) or len(called.parameters) != len(closure.body.arguments):
        return None
    first, type = closure.body.arguments[0], called.parameters[0].type
    is_accumulator = isinstance(first, VariableTerm) and first.name == closure.parameters[0]
    return type if is_accumulator and not is_generic(type) else None


def _ticks(term: Term, binder: TermBinder) -> int:
    """The number of transactions whose values are folded at once."""
    literal = constant(binder.bind(term, S64).expr)
    if literal is None or not isinstance(literal.value, int) or not 1 <= literal.value <= MOST_BATCHED:
        raise TypeMismatch("an invalid number of transactions", span=term.span, expected=f"an integer from 1 to {MOST_BATCHED}")
    return literal.value


def _check_types(closure: ClosureTerm, kinds: tuple[Kind, ...], binder: TermBinder) -> None:
    for parameter, type, kind in zip(closure.parameters, closure.types or (None,) * len(kinds), kinds, strict=True):
        if type is not None and binder.declarations.kind(type) != kind:
            raise TypeMismatch(f"the parameter {parameter} is {kind}", span=type.span, expected=str(kind))


def _results(term: Term) -> list[Term]:
    """The terms whose value the term may have."""
    match term:
        case IfTerm():
            return [*_results(term.then), *([] if term.otherwise is None else _results(term.otherwise))]
        case MatchTerm():
            return [one for _, result in term.cases for one in _results(result)]
        case BlockTerm():
            return _results(term.result)
        case _:
            return [term]


def _may_drop(result: Term, binder: TermBinder) -> bool:
    """Whether a result is an Option."""
    if isinstance(result, ConstructorTerm):
        return result.name in ("None", "Some")
    declared = binder.declarations.functions.get(result.name) if isinstance(result, CallTerm) else None
    return isinstance(declared, FunctionDeclaration) and isinstance(declared.type, NamedTypeTerm) and declared.type.name == "Option"


def _is_option(kind: Kind) -> bool:
    return isinstance(kind, UnionKind) and kind.name == "Option"
