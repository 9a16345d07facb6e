"""Binds terms to expressions: each gets a kind, and is checked against the one that its place expects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from deltic.errors import Span, TypeMismatch, UnknownName, UnsafeRule, Unsupported, did_you_mean
from deltic.expr import resolve
from deltic.expr.nodes import Expr, Literal
from deltic.expr.typing import case
from deltic.frontends.datalog.builtins import BUILTINS, call_builtin, call_sql, shown_as_text
from deltic.frontends.datalog.declarations import BoundTerm, Declarations, Substitution, check_comparable, unify
from deltic.frontends.datalog.functions import call_declared, call_python
from deltic.frontends.datalog.kinds import BOOL, STRING_KIND, Kind, MapKind, TupleKind, UnionKind, VectorKind, stored
from deltic.frontends.datalog.maps import MAP_EMPTY
from deltic.frontends.datalog.patterns import by_field, constructor_of, local_name, take_apart, unmatched
from deltic.frontends.datalog.sets import SET, SET_EMPTY, set_of
from deltic.frontends.datalog.tree import (
    AssignmentTerm,
    AtomTerm,
    BindingTerm,
    BlockTerm,
    CallTerm,
    ConstantTerm,
    ConstructorTerm,
    ConversionTerm,
    FieldTerm,
    IfTerm,
    InterpolatedTerm,
    MapTerm,
    MatchTerm,
    OperationTerm,
    Term,
    TupleTerm,
    VariableTerm,
    VectorTerm,
    WildcardTerm,
)
from deltic.frontends.datalog.values import (
    arithmetic,
    compared,
    constant,
    constructed,
    converted,
    field_index,
    fitted,
    inverse,
    map_of,
    negative,
    part,
    tuple_of,
    vector_of,
)
from deltic.frontends.statements import Namespace
from deltic.plan.columns import conjunction

COMPARISONS: Final = ("==", "!=", "<", "<=", ">", ">=")
GROUP_BY: Final = "group_by"
STREAM_AGGREGATE: Final = "stream_aggregate"
GROUPINGS: Final = {
    GROUP_BY: "var x = e.group_by(k).sum()",
    STREAM_AGGREGATE: "var s = e.stream_aggregate((x, y), |acc, v, w| …, init, every)",
}
"""What replaces the variables of a body, and how it is written."""


@dataclass(slots=True)
class CaseVisitor:
    """Collects the conditions and variables of one case of a match."""

    binder: TermBinder
    conditions: list[Expr]
    names: dict[str, BoundTerm]

    def condition(self, condition: Expr) -> None:
        self.conditions.append(condition)

    def variable(self, term: VariableTerm, value: BoundTerm) -> None:
        if term.name in self.names:
            raise TypeMismatch(f"the pattern has the variable {term.name} twice", span=term.span, remedy="compare two variables by ==")
        self.names[term.name] = value

    def term(self, term: Term, value: BoundTerm) -> None:
        bound = self.binder.bind(term, value.kind)
        self.conditions.append(compared("==", value, bound, term.span).expr)


@dataclass(frozen=True, slots=True)
class TermBinder:
    """Binds terms over named values. calls: collects the functions of the session that are called. around: the functions being bound."""

    declarations: Declarations
    namespace: Namespace
    values: Mapping[str, BoundTerm]
    calls: set[str]
    around: tuple[str, ...] = ()

    def bind(self, term: Term, expected: Kind | None = None) -> BoundTerm:
        """The term; if a kind is expected, of this kind. Raises TypeMismatch and UnsafeRule."""
        bound = self._bind(term, expected)
        return bound if expected is None else fitted(bound, expected, term.span, _described(term))

    def condition(self, term: Term) -> Expr:
        """A term that is a bool."""
        bound = self._bind(term, BOOL)
        if bound.kind != BOOL:
            raise TypeMismatch("the condition is not a bool", span=term.span, expected=f"bool, found {bound.kind}")
        return bound.expr

    def _bind(self, term: Term, expected: Kind | None) -> BoundTerm:
        match term:
            case ConstantTerm():
                return constant(term, expected)
            case VariableTerm():
                return self._variable(term)
            case OperationTerm():
                return self._operation(term, expected)
            case TupleTerm():
                kinds = expected.items if isinstance(expected, TupleKind) and len(expected.items) == len(term.items) else ()
                item_kinds = kinds or (None,) * len(term.items)
                return tuple_of([self.bind(item, kind) for item, kind in zip(term.items, item_kinds, strict=True)], term.span)
            case VectorTerm():
                return self._vector(term, expected)
            case MapTerm():
                return self._map(term, expected)
            case FieldTerm():
                return self._field(term)
            case ConstructorTerm():
                return self._construct(term, expected)
            case CallTerm():
                return self._call(term, expected)
            case ConversionTerm():
                kind = self.declarations.kind(term.type)
                hint = kind if isinstance(term.value, ConstantTerm) else None
                return converted(self._bind(term.value, hint), kind, term.span)
            case IfTerm():
                return self._if(term, expected)
            case MatchTerm():
                return self._match(term, expected)
            case BlockTerm():
                return self._block(term, expected)
            case InterpolatedTerm():
                texts = [shown_as_text(self.bind(one), one.span) for one in term.parts]
                whole = resolve("||", texts, term.span) if len(texts) > 1 else texts[0]
                return BoundTerm(whole, STRING_KIND)
            case _:
                raise self._misplaced(term)

    def _misplaced(self, term: Term) -> Exception:
        match term:
            case WildcardTerm():
                return UnsafeRule("_ has no value", span=term.span, expected="a value", remedy="_ stands only where a value is matched")
            case AtomTerm():
                is_relation = self.declarations.relation_named(term.name) is not None
                remedy = (
                    "a relation is read by an atom of its own in the body" if is_relation else f"a constructor has braces: {term.name}{{…}}"
                )
                return TypeMismatch(f"{term.name}(…) is not a value", span=term.span, remedy=remedy)
            case BindingTerm():
                remedy = "x@pattern stands in an argument of an atom; a row is x in R(…)"
                return TypeMismatch("this is not a value", span=term.span, expected="a value", remedy=remedy)
            case _:
                return TypeMismatch("this is not a value", span=term.span, expected="a value")

    def _variable(self, term: VariableTerm) -> BoundTerm:
        if term.new:
            raise TypeMismatch(f"var {term.name} declares a variable where a value is expected", span=term.span, remedy="leave out var")
        bound = self.values.get(term.name)
        if bound is None:
            names = [name for name in self.values if name.isidentifier()]
            remedy = did_you_mean(term.name, names) if names else None
            raise UnsafeRule(
                f"the variable {term.name} is not bound",
                span=term.span,
                expected=f"a {'parameter' if self.around else 'variable of a preceding positive atom'}, or one that var declares",
                remedy=remedy if remedy and remedy.startswith("did") else None,
            )
        return BoundTerm(replace(bound.expr, span=term.span), bound.kind) if not bound.expr.span else bound

    def _operation(self, term: OperationTerm, expected: Kind | None) -> BoundTerm:
        match term.operator, term.operands:
            case ("and" | "or", operands):
                return BoundTerm(resolve(term.operator, [self.condition(one) for one in operands], term.span), BOOL)
            case ("not", (operand,)):
                return BoundTerm(resolve("not", [self.condition(operand)], term.span), BOOL)
            case ("=>", (left, right)):
                negated = resolve("not", [self.condition(left)], term.span)
                return BoundTerm(resolve("or", [negated, self.condition(right)], term.span), BOOL)
            case ("unary -", (operand,)):
                return negative(self._bind(operand, expected), term.span)
            case ("unary ~", (operand,)):
                return inverse(self._bind(operand, expected), term.span)
            case (operator, (left, right)):
                return self._binary(operator, left, right, expected, term.span)
        raise AssertionError(term)

    def _binary(self, operator: str, left: Term, right: Term, expected: Kind | None, span: Span) -> BoundTerm:
        hint = None if operator in COMPARISONS else expected
        if operator in ("<<", ">>"):
            return arithmetic(operator, self._bind(left, hint), self._bind(right, None), span)
        if operator == "++":
            return self._concatenated(left, right, span)
        one, other = self._pair(left, right, hint)
        return compared(operator, one, other, span) if operator in COMPARISONS else arithmetic(operator, one, other, span)

    def _pair(self, left: Term, right: Term, hint: Kind | None) -> tuple[BoundTerm, BoundTerm]:
        """Both operands; a constant takes the kind of the other operand."""
        if _is_adaptable(left) and not _is_adaptable(right):
            other = self._bind(right, hint)
            return self._bind(left, other.kind), other
        one = self._bind(left, hint)
        return one, self._bind(right, one.kind if _is_adaptable(right) else hint)

    def _concatenated(self, left: Term, right: Term, span: Span) -> BoundTerm:
        one, other = self.bind(left), self.bind(right)
        for operand, term in ((one, left), (other, right)):
            if operand.kind != STRING_KIND:
                raise TypeMismatch(f"++ does not accept {operand.kind}", span=term.span, expected="string", remedy="to_string(x)")
        return BoundTerm(resolve("||", [one.expr, other.expr], span), STRING_KIND)

    def _vector(self, term: VectorTerm, expected: Kind | None) -> BoundTerm:
        item = expected.item if isinstance(expected, VectorKind) else None
        if not term.items and item is None:
            raise TypeMismatch("the type of an empty vector is not known here", span=term.span, remedy="add an element")
        values: list[BoundTerm] = []
        for one in term.items:
            values.append(self.bind(one, item))
            item = values[0].kind
        assert item is not None
        is_set = isinstance(expected, VectorKind) and expected.name == SET
        if not values and is_set and expected is not None:
            return BoundTerm(Literal((), stored(expected), term.span), expected)
        vector = vector_of(values, item, term.span)
        return set_of(vector, item, term.span) if is_set else vector

    def _map(self, term: MapTerm, expected: Kind | None) -> BoundTerm:
        key, value = (expected.key, expected.value) if isinstance(expected, MapKind) else (None, None)
        pairs: list[tuple[BoundTerm, BoundTerm]] = []
        for one, other in term.entries:
            pairs.append((self.bind(one, key), self.bind(other, value)))
            key, value = pairs[0][0].kind, pairs[0][1].kind
        assert key is not None and value is not None
        check_comparable(key, "the key of a Map", term.entries[0][0].span)
        return map_of(pairs, MapKind(key, value), term.span)

    def _field(self, term: FieldTerm) -> BoundTerm:
        value = self.bind(term.value)
        kind = value.kind
        if isinstance(kind, TupleKind) and term.name.isdigit() and int(term.name) < len(kind.items):
            return part(value, int(term.name), kind.items[int(term.name)], term.span)
        if isinstance(kind, UnionKind) and term.name in kind.fields:
            partial = [one.name for one in kind.constructors if term.name not in dict(one.fields)]
            if partial:
                remedy = f"match (…) {{…{{…}} -> …}}, since {partial[0]} does not have it"
                raise TypeMismatch(f"not every value of {kind} has the field {term.name}", span=term.span, remedy=remedy)
            return part(value, field_index(kind, term.name), kind.fields[term.name], term.span)
        names = (
            [*kind.fields]
            if isinstance(kind, UnionKind)
            else [str(i) for i in range(len(kind.items))]
            if isinstance(kind, TupleKind)
            else []
        )
        raise UnknownName(f"{kind} has no field {term.name}", span=term.span, remedy=did_you_mean(term.name, names))

    def _construct(self, term: ConstructorTerm, expected: Kind | None) -> BoundTerm:
        name = local_name(term.name)
        declared = self.declarations.constructors.get(name)
        if declared is None:
            raise UnknownName(
                f"there is no constructor {term.name}", span=term.span, remedy=did_you_mean(name, self.declarations.constructors)
            )
        written = next(one for one in declared.constructors if one.name == name)
        if isinstance(expected, UnionKind) and expected.name == declared.name:
            kind: Kind = expected
            values = self._arguments(term, expected)
        else:
            substitution: Substitution = {}
            probe = self.declarations.named(declared, tuple(BOOL for _ in declared.parameters), ())
            assert isinstance(probe, UnionKind)
            terms = by_field(term, constructor_of(term, probe))
            for column, argument in zip(written.fields, terms, strict=True):
                if argument is not None and declared.parameters:
                    unify(column.type, self.bind(argument).kind, substitution)
            missing = [one for one in declared.parameters if one not in substitution]
            if missing:
                remedy = "write it where its type is known: as an argument of an atom, a function, or an if with another branch"
                raise TypeMismatch(f"the type {missing[0]} of {name} is not known here", span=term.span, remedy=remedy)
            kind = self.declarations.named(declared, tuple(substitution[one] for one in declared.parameters), ())
            assert isinstance(kind, UnionKind)
            values = self._arguments(term, kind)
        assert isinstance(kind, UnionKind)
        return constructed(kind, name, values, term.span)

    def _arguments(self, term: ConstructorTerm, kind: UnionKind) -> list[BoundTerm]:
        constructor = constructor_of(term, kind)
        values = []
        for (name, inner), argument in zip(constructor.fields, by_field(term, constructor), strict=True):
            if argument is None:
                raise TypeMismatch(f"{constructor.name} lacks its field {name}", span=term.span, expected=f".{name} = …")
            values.append(self.bind(argument, inner))
        return values

    def _call(self, term: CallTerm, expected: Kind | None) -> BoundTerm:
        if term.name in GROUPINGS:
            raise Unsupported(f"{term.name} is not allowed here", span=term.span, expected=f"{GROUPINGS[term.name]} as a part of a body")
        declared = self.declarations.functions.get(term.name)
        if declared is not None:
            return call_declared(self, declared, term)
        name = local_name(term.name)
        if name in BUILTINS:
            return call_builtin(self, name, term, expected)
        arguments = [self.bind(one) for one in term.arguments]
        scalar = self.namespace.functions().get(name.lower())
        if scalar is not None:
            self.calls.add(name.lower())
            return call_python(scalar, arguments, None, term.span)
        return call_sql(name, arguments, term.span, (*self.declarations.functions, *BUILTINS))

    def _if(self, term: IfTerm, expected: Kind | None) -> BoundTerm:
        if term.otherwise is None:
            raise TypeMismatch("if has no else, so it has no value where its condition is false", span=term.span, remedy="add else …")
        condition = self.condition(term.condition)
        then, otherwise = self._branches([term.then, term.otherwise], [self, self], expected)
        return BoundTerm(case([(condition, then.expr)], otherwise.expr, term.span), then.kind)

    def _branches(self, terms: list[Term], binders: list[TermBinder], expected: Kind | None) -> list[BoundTerm]:
        """The branches as values of one kind: the expected one, or that of a branch that has a kind by itself."""
        if expected is None:
            for term, binder in zip(terms, binders, strict=True):
                if not _is_adaptable(term):
                    expected = binder.bind(term).kind
                    break
        first = binders[0].bind(terms[0], expected)
        return [first, *(binder.bind(term, first.kind) for term, binder in zip(terms[1:], binders[1:], strict=True))]

    def _match(self, term: MatchTerm, expected: Kind | None) -> BoundTerm:
        value = self.bind(term.value)
        visitors = []
        for pattern, _ in term.cases:
            visitor = CaseVisitor(self, [], {})
            take_apart(pattern, value, visitor)
            visitors.append(visitor)
        missing = unmatched([pattern for pattern, _ in term.cases], value.kind)
        if missing is not None:
            raise TypeMismatch(
                f"the match has no case for {missing}",
                span=term.span,
                expected="a case for every value",
                remedy=f"add {missing} -> …, or _ -> …",
            )
        binders = [replace(self, values={**self.values, **visitor.names}) for visitor in visitors]
        results = self._branches([result for _, result in term.cases], binders, expected)
        pairs = [(conjunction(one.conditions), result.expr) for one, result in zip(visitors, results, strict=True)]
        return BoundTerm(case(pairs[:-1], pairs[-1][1], term.span) if len(pairs) > 1 else pairs[0][1], results[0].kind)

    def _block(self, term: BlockTerm, expected: Kind | None) -> BoundTerm:
        binder = self
        for step in term.steps:
            binder = replace(binder, values={**binder.values, **binder.assigned(step)})
        return binder.bind(term.result, expected)

    def assigned(self, step: AssignmentTerm) -> dict[str, BoundTerm]:
        """The variables of pattern = value, where the pattern matches every value."""
        value = self.bind(step.value)
        visitor = CaseVisitor(self, [], {})
        take_apart(step.pattern, value, visitor)
        old = [name for name in visitor.names if name in self.values]
        if old:
            remedy = f"declare another one: var {old[0]}_2 = …"
            raise Unsupported(f"the variable {old[0]} is assigned twice", span=step.span, remedy=remedy)
        missing = unmatched([step.pattern], value.kind)
        if missing is not None:
            raise TypeMismatch(f"the pattern does not match {missing}", span=step.pattern.span, remedy="match (…) {…}")
        return visitor.names


def _is_adaptable(term: Term) -> bool:
    """Whether the kind of the term depends on its place: a constant, a constructor of a generic type, an empty vector."""
    match term:
        case ConstantTerm():
            return term.kind in ("integer", "float") or term.kind == "string"
        case ConstructorTerm():
            return True
        case VectorTerm():
            return not term.items
        case OperationTerm(operator=operator):
            return operator not in (*COMPARISONS, "and", "or", "not", "=>", "++") and all(map(_is_adaptable, term.operands))
        case TupleTerm():
            return any(map(_is_adaptable, term.items))
        case CallTerm():
            return term.name in (MAP_EMPTY, SET_EMPTY)
        case _:
            return False


def _described(term: Term) -> str:
    return f"the variable {term.name}" if isinstance(term, VariableTerm) and term.is_written else "the value"
