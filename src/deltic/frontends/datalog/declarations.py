"""What a program declares: types, functions and relations by name, checked as declarations. Rules are kept as they are.

Names are case-sensitive in Datalog, but not in the catalog: two relations whose names differ in case alone are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

from deltic.errors import CatalogError, Span, TypeMismatch, UnknownName, Unsupported, did_you_mean
from deltic.expr.nodes import Expr
from deltic.frontends.datalog.kinds import (
    ALIASES,
    TAG,
    Constructor,
    IntegerKind,
    Kind,
    MapKind,
    TupleKind,
    UnionKind,
    VectorKind,
    is_comparable,
    option,
)
from deltic.frontends.datalog.tree import (
    AppliedRelation,
    Attribute,
    ConstructorDeclaration,
    DatalogColumn,
    DatalogRule,
    FunctionDeclaration,
    IndexDeclaration,
    Item,
    NamedTypeTerm,
    RelationDeclaration,
    TupleTypeTerm,
    TypeDeclaration,
    TypeTerm,
    TypeVariableTerm,
)

T = TypeVar("T")
Substitution: TypeAlias = dict[str, Kind]
"""Kinds of type variables."""
_WRAPPERS: Final = ("Ref", "Intern")
"""Types of DDlog that say how a value is stored: the value is that of their argument."""
_PLACE: Final = Span("", 0, 0, "<builtin>")
OPTION: Final = TypeDeclaration(
    "Option",
    ("'A",),
    None,
    (
        ConstructorDeclaration("None", (), _PLACE),
        ConstructorDeclaration("Some", (DatalogColumn("x", TypeVariableTerm("'A", _PLACE), _PLACE),), _PLACE),
    ),
    _PLACE,
)


@dataclass(frozen=True, slots=True)
class BoundTerm:
    """A term as an expression over the rows of a plan, and its kind."""

    expr: Expr
    kind: Kind


@dataclass(frozen=True, slots=True)
class DatalogRelation:
    """A relation: its columns and, of `relation R[T]` and of a struct per row, the kind of a row as a value.

    key: the columns of the primary key. declaration: None of a table or view of the session.
    """

    name: str
    columns: tuple[tuple[str, Kind], ...]
    row: Kind
    declaration: RelationDeclaration | None = field(default=None, repr=False)

    @property
    def is_input(self) -> bool:
        return self.declaration is not None and self.declaration.role == "input"

    @property
    def is_set(self) -> bool:
        """Whether each row counts once."""
        return self.declaration is None or self.declaration.kind == "relation"

    @property
    def is_multiset(self) -> bool:
        return not self.is_set

    @property
    def is_stream(self) -> bool:
        return self.declaration is not None and self.declaration.kind == "stream"


class Declarations:
    """All declarations of a program. Raises subclasses of QueryError."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.types: dict[str, TypeDeclaration] = {"Option": OPTION}
        self.functions: dict[str, FunctionDeclaration] = {}
        self.relations: dict[str, DatalogRelation] = {}
        self.indexes: dict[str, IndexDeclaration] = {}
        self.rules: list[DatalogRule] = []
        self.attributes = _of(items, Attribute)
        self.applied = _of(items, AppliedRelation)
        self.constructors: dict[str, TypeDeclaration] = {}
        for declared in _of(items, TypeDeclaration):
            _check_new(declared.name, "type", self.types, declared.span)
            self.types[declared.name] = declared
        for declared in self.types.values():
            self._add_constructors(declared)
        for function in _of(items, FunctionDeclaration):
            _check_new(function.name, "function", self.functions, function.span)
            _check_parameters(function)
            self.functions[function.name] = function
        for relation in _of(items, RelationDeclaration):
            self._add_relation(relation)
        for index in _of(items, IndexDeclaration):
            _check_new(index.name, "index", self.indexes, index.span)
            self.indexes[index.name] = index
        self.rules += _of(items, DatalogRule)
        for declared in self.types.values():
            self._check_type(declared)

    def _add_constructors(self, declared: TypeDeclaration) -> None:
        for one in declared.constructors:
            _check_new(one.name, "constructor", self.constructors, one.span)
            self.constructors[one.name] = declared

    def _check_type(self, declared: TypeDeclaration) -> None:
        """Resolves the type with an arbitrary argument for each parameter."""
        names = [one.lower() for one in declared.parameters]
        if len(set(names)) < len(names):
            raise CatalogError(f"type {declared.name} has two parameters of one name", span=declared.span)
        self.named(declared, tuple(ALIASES["bigint"] for _ in declared.parameters), ())

    def _add_relation(self, declared: RelationDeclaration) -> None:
        same = next((name for name in self.relations if name.lower() == declared.name.lower()), None)
        if same is not None:
            other = "" if same == declared.name else f", as {same}: names of relations that differ in case alone are the same in SQL"
            raise CatalogError(f"relation {declared.name} is declared twice{other}", span=declared.span, remedy="give it another name")
        if declared.record is not None:
            row = self.kind(declared.record)
            columns = record_columns(row)
        else:
            columns = tuple((one.name, self.kind(one.type)) for one in declared.columns)
            row = UnionKind(declared.name, (), (Constructor(declared.name, columns),))
        _check_columns(declared, [name for name, _ in columns])
        if not columns:
            remedy = "give it a column, such as a bool"
            raise Unsupported(f"relation {declared.name} has no columns", span=declared.span, remedy=remedy)
        if declared.kind == "relation" and (declared.role != "input" or declared.key is None):
            _check_set(declared, columns)
        self.relations[declared.name] = DatalogRelation(declared.name, columns, row, declared)
        if declared.record is None and declared.name not in self.types and declared.name not in self.constructors:
            fields = tuple(DatalogColumn(one.name, one.type, one.span) for one in declared.columns)
            record = TypeDeclaration(
                declared.name, (), None, (ConstructorDeclaration(declared.name, fields, declared.span),), declared.span
            )
            self.types[declared.name] = self.constructors[declared.name] = record

    def kind(self, term: TypeTerm, variables: Mapping[str, Kind] | None = None, around: tuple[str, ...] = ()) -> Kind:
        """The kind that a type in the text is. variables: the meaning of type variables. around: the types that are being resolved."""
        match term:
            case TypeVariableTerm():
                if variables is None or term.name not in variables:
                    raise UnknownName(f"the type variable {term.name} is not a parameter of the type", span=term.span)
                return variables[term.name]
            case TupleTypeTerm():
                return TupleKind(tuple(self.kind(item, variables, around) for item in term.items))
            case NamedTypeTerm():
                return self._named_kind(term, variables, around)

    def _named_kind(self, term: NamedTypeTerm, variables: Mapping[str, Kind] | None, around: tuple[str, ...]) -> Kind:
        name = term.name.removeprefix("ddlog_std::").removeprefix("std::")
        if name in ("bit", "signed"):
            return _integer(term, signed=name == "signed")
        given = [argument for argument in term.arguments if not isinstance(argument, int)]
        kinds = tuple(self.kind(argument, variables, around) for argument in given)
        if name in ("Vec", "Set") or name in _WRAPPERS:
            if len(kinds) != 1:
                raise TypeMismatch(f"{name} takes one type", span=term.span, expected=f"{name}<T>")
            if name == "Set":
                check_comparable(kinds[0], "the type of the elements of a Set", term.span)
            return kinds[0] if name in _WRAPPERS else VectorKind(kinds[0], name)
        if name == "Map":
            if len(kinds) != 2:
                raise TypeMismatch("Map takes two types", span=term.span, expected="Map<K, V>")
            check_comparable(kinds[0], "the type of the keys of a Map", term.span)
            return MapKind(*kinds)
        if name in ALIASES and not kinds:
            return ALIASES[name]
        if name not in self.types:
            names = (*self.types, *ALIASES, "bit", "signed", "Vec", "Set", "Map")
            raise UnknownName(f"there is no type {term.name}", span=term.span, remedy=did_you_mean(name, names))
        declared = self.types[name]
        if len(kinds) != len(declared.parameters):
            count = len(declared.parameters)
            raise TypeMismatch(f"type {name} takes {count} types", span=term.span, expected=f"{count}, found {len(kinds)}")
        if name in around:
            path = " → ".join((*around[around.index(name) :], name))
            remedy = "a relation of the parts, whose rows refer to one another by a key"
            raise Unsupported(f"type {name} contains itself: {path}", span=term.span, remedy=remedy)
        return self.named(declared, kinds, (*around, name))

    def named(self, declared: TypeDeclaration, arguments: tuple[Kind, ...], around: tuple[str, ...]) -> Kind:
        """The kind of a declared type with these arguments."""
        if declared is OPTION:
            return option(arguments[0])
        variables = dict(zip(declared.parameters, arguments, strict=True))
        around = around if declared.name in around else (*around, declared.name)
        if declared.alias is not None:
            return self.kind(declared.alias, variables, around)
        constructors = tuple(
            Constructor(one.name, tuple((part.name, self.kind(part.type, variables, around)) for part in one.fields))
            for one in declared.constructors
        )
        _check_fields(declared, constructors)
        return UnionKind(declared.name, arguments, constructors)

    def relation_named(self, name: str) -> DatalogRelation | None:
        """A declared relation."""
        return self.relations.get(name)


def unify(term: TypeTerm, kind: Kind, substitution: Substitution) -> None:
    """Adds to `substitution` what the type variables of a type in the text are if it is this kind."""
    match term:
        case TypeVariableTerm():
            substitution.setdefault(term.name, kind)
        case TupleTypeTerm() if isinstance(kind, TupleKind):
            for part, item in zip(term.items, kind.items, strict=False):
                unify(part, item, substitution)
        case NamedTypeTerm() if isinstance(kind, VectorKind | MapKind | UnionKind):
            match kind:
                case VectorKind():
                    items: tuple[Kind, ...] = (kind.item,)
                case MapKind():
                    items = (kind.key, kind.value)
                case UnionKind():
                    items = kind.arguments
            parts = [part for part in term.arguments if not isinstance(part, int)]
            for part, item in zip(parts, items, strict=False):
                unify(part, item, substitution)


def check_comparable(kind: Kind, what: str, span: Span) -> None:
    """Raises TypeMismatch if values of the kind cannot be equal. what: the place that requires it."""
    if not is_comparable(kind):
        remedy = "use a part of it, as m.get(k), m.keys() and m.size(), or Vec<(K, V)>"
        raise TypeMismatch(f"{what} cannot be {kind}: Maps are not compared", span=span, expected="a type without a Map", remedy=remedy)


def _of(items: Iterable[Item], kind: type[T]) -> list[T]:
    return [item for item in items if isinstance(item, kind)]


def _check_new(name: str, what: str, declared: Mapping[str, object], span: Span) -> None:
    if name in declared:
        raise CatalogError(f"{what} {name} is declared twice", span=span, remedy="give one of them another name")


def _check_parameters(declared: FunctionDeclaration) -> None:
    names = [one.name for one in declared.parameters]
    for i, one in enumerate(declared.parameters):
        if one.name in names[:i]:
            message = f"function {declared.name} has two parameters {one.name}"
            raise CatalogError(message, span=one.span, remedy="give one of them another name")


def _check_columns(declared: RelationDeclaration, names: Sequence[str]) -> None:
    for i, name in enumerate(names):
        if name.lower() in (other.lower() for other in names[:i]):
            span = declared.columns[i].span if declared.columns else declared.span
            raise CatalogError(f"relation {declared.name} has two columns {name}", span=span, remedy="give one of them another name")


def _check_set(declared: RelationDeclaration, columns: Sequence[tuple[str, Kind]]) -> None:
    """The rows of a set are compared: by all columns, unless it is an input with a primary key."""
    for i, (name, kind) in enumerate(columns):
        if not is_comparable(kind):
            span = declared.columns[i].span if declared.columns else declared.span
            remedy = f"multiset {declared.name}(…){', or a primary key' if declared.role == 'input' else ''}; or Vec<(K, V)>"
            message = f"the column {name} is {kind}, and rows of the relation {declared.name} are compared, since it is a set"
            raise TypeMismatch(message, span=span, expected="a type without a Map", remedy=remedy)


def _check_fields(declared: TypeDeclaration, constructors: Sequence[Constructor]) -> None:
    """A field that several constructors have is one field, so it has one type; case does not distinguish names."""
    fields: dict[str, tuple[str, Kind, str]] = {}
    for constructor, written in zip(constructors, declared.constructors, strict=True):
        own: set[str] = set()
        for (name, kind), column in zip(constructor.fields, written.fields, strict=True):
            key = name.lower()
            if key in own:
                raise CatalogError(f"constructor {constructor.name} has two fields {name}", span=column.span)
            own.add(key)
            if key == TAG and len(constructors) > 1:
                raise CatalogError(f"a field of a tagged union cannot be called {name}", span=column.span, remedy="give it another name")
            other = fields.setdefault(key, (name, kind, constructor.name))
            if other[:2] != (name, kind):
                raise TypeMismatch(
                    f"the field {name} of {declared.name} is {kind} in {constructor.name} and {other[1]} in {other[2]}",
                    span=column.span,
                    remedy="give one of them another name",
                )


def _integer(term: NamedTypeTerm, *, signed: bool) -> Kind:
    match term.arguments:
        case (int(bits),) if 1 <= bits <= 64:
            return IntegerKind(bits, signed)
        case (int(bits),) if bits > 64:
            raise Unsupported(f"{term.name} of more than 64 bits is not supported", span=term.span, remedy="bigint, of 38 digits")
        case _:
            raise TypeMismatch(f"{term.name} takes a number of bits, from 1 to 64", span=term.span, expected=f"{term.name}<32>")


def record_columns(row: Kind) -> tuple[tuple[str, Kind], ...]:
    """The columns of `relation R[T]`: the fields of a struct, or one column."""
    if isinstance(row, UnionKind) and not row.is_tagged:
        return row.constructors[0].fields
    return (("x", row),)
