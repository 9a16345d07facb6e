"""The syntax tree of a Datalog program: declarations, rules and terms, each with its place.

A term is an expression or a pattern; the binder decides which is allowed where. In Soufflé's dialect the tree is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, TypeAlias
from typing import Literal as OneOf

from deltic.errors import Span
from deltic.frontends.datalog.fact_files import FactFile
from deltic.options import Option, Options
from deltic.plan.nodes import Hint


@dataclass(frozen=True, slots=True)
class ConstantTerm:
    """A constant. kind: what its text is; the binder gives it a type. bits, signed: of a constant with a width, such as 32'd5."""

    value: bool | int | float | str
    kind: OneOf["bool", "integer", "float", "string"]
    span: Span
    bits: int | None = None
    signed: bool = False


@dataclass(frozen=True, slots=True)
class VariableTerm:
    """A variable. new: it is declared here, by `var`."""

    name: str
    span: Span
    new: bool = False

    @property
    def is_written(self) -> bool:
        """Whether it is in the text; the names of others have a blank, and are not for errors."""
        return " " not in self.name


@dataclass(frozen=True, slots=True)
class WildcardTerm:
    """`_`, or in Soufflé also a variable that occurs once with a leading underscore."""

    span: Span


@dataclass(frozen=True, slots=True)
class BindingTerm:
    """name @ pattern."""

    name: str
    pattern: Term
    span: Span


@dataclass(frozen=True, slots=True)
class CallTerm:
    """f(x, y), and x.f(y), which is the same call."""

    name: str
    arguments: tuple[Term, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """value.name, and value.0 of a tuple."""

    value: Term
    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class TupleTerm:
    """(x, y)."""

    items: tuple[Term, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class VectorTerm:
    """[x, y]."""

    items: tuple[Term, ...]
    span: Span


Arguments: TypeAlias = "tuple[tuple[str | None, Term], ...]"
"""(the field's name, or None if it is positional, the term)."""


@dataclass(frozen=True, slots=True)
class MapTerm:
    """[key -> value, …]."""

    entries: tuple[tuple[Term, Term], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ConstructorTerm:
    """C{x, y}, C{.a = x}, and C."""

    name: str
    arguments: Arguments
    span: Span


@dataclass(frozen=True, slots=True)
class AtomTerm:
    """R(x, y), R(.a = x), and R[x], where `record` is x. delay, differentiated: of R-N(…) and R'(…). place: the relation's name."""

    name: str
    arguments: Arguments
    span: Span
    place: Span
    record: Term | None = None
    delay: int = 0
    differentiated: bool = False


@dataclass(frozen=True, slots=True)
class OperationTerm:
    """An operator and its one or two operands, or more of `and` and `or`."""

    operator: str
    operands: tuple[Term, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ConversionTerm:
    """value as type."""

    value: Term
    type: TypeTerm
    span: Span


@dataclass(frozen=True, slots=True)
class IfTerm:
    """if (condition) then else otherwise."""

    condition: Term
    then: Term
    otherwise: Term | None
    span: Span


@dataclass(frozen=True, slots=True)
class MatchTerm:
    """match (value) {pattern -> result, …}, and if let."""

    value: Term
    cases: tuple[tuple[Term, Term], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class BlockTerm:
    """{pattern = value; …; result}."""

    steps: tuple[AssignmentTerm, ...]
    result: Term
    span: Span


@dataclass(frozen=True, slots=True)
class ClosureTerm:
    """|x| body. types: those that are written; of all parameters, or none."""

    parameters: tuple[str, ...]
    body: Term
    span: Span
    types: tuple[TypeTerm | None, ...] = ()


@dataclass(frozen=True, slots=True)
class InterpolatedTerm:
    """Text with ${…} in it."""

    parts: tuple[Term, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class AssignmentTerm:
    """pattern = value."""

    pattern: Term
    value: Term
    span: Span


@dataclass(frozen=True, slots=True)
class RecordTerm:
    """x in R(…): the row as a value."""

    name: str
    atom: AtomTerm
    span: Span


@dataclass(frozen=True, slots=True)
class InspectTerm:
    """Inspect e."""

    value: Term
    span: Span


@dataclass(frozen=True, slots=True)
class SouffleAggregateTerm:
    """min x : { body }, of Soufflé."""

    function: str
    value: Term | None
    body: tuple[Term, ...]
    span: Span


Term: TypeAlias = (
    ConstantTerm
    | VariableTerm
    | WildcardTerm
    | BindingTerm
    | CallTerm
    | FieldTerm
    | TupleTerm
    | VectorTerm
    | MapTerm
    | ConstructorTerm
    | AtomTerm
    | OperationTerm
    | ConversionTerm
    | IfTerm
    | MatchTerm
    | BlockTerm
    | ClosureTerm
    | InterpolatedTerm
    | AssignmentTerm
    | RecordTerm
    | InspectTerm
    | SouffleAggregateTerm
)


@dataclass(frozen=True, slots=True)
class NamedTypeTerm:
    """name<arguments>; an argument is a type or the number of bits."""

    name: str
    arguments: tuple[TypeTerm | int, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class TupleTypeTerm:
    """(T, U)."""

    items: tuple[TypeTerm, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class TypeVariableTerm:
    """'A."""

    name: str
    span: Span


TypeTerm: TypeAlias = NamedTypeTerm | TupleTypeTerm | TypeVariableTerm


@dataclass(frozen=True, slots=True)
class DatalogColumn:
    """name: type, of a relation, a constructor or a function."""

    name: str
    type: TypeTerm
    span: Span


@dataclass(frozen=True, slots=True)
class ConstructorDeclaration:
    """An alternative of a tagged union, or the only one of a struct."""

    name: str
    fields: tuple[DatalogColumn, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class TypeDeclaration:
    """typedef name<parameters> = alias, or constructors."""

    name: str
    parameters: tuple[str, ...]
    alias: TypeTerm | None
    constructors: tuple[ConstructorDeclaration, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class FunctionDeclaration:
    """function name(parameters): type body. body: None of an extern function."""

    name: str
    parameters: tuple[DatalogColumn, ...]
    type: TypeTerm | None
    body: Term | None
    span: Span


@dataclass(frozen=True, slots=True)
class RelationDeclaration:
    """input relation name(columns) primary key (x) key. record: T of `relation R[T]`. span: the name."""

    role: OneOf["input", "output", "internal"]
    kind: OneOf["relation", "multiset", "stream"]
    name: str
    columns: tuple[DatalogColumn, ...]
    record: TypeTerm | None
    key: tuple[str, Term] | None
    span: Span
    files: tuple[FactFile, ...] = ()
    """Of Soufflé's .input and .output."""
    connector: Options | None = None
    """The source of an input relation, or the sink of an output relation."""
    is_written: bool = True
    """False of one that stands for an aggregate of Soufflé."""


@dataclass(frozen=True, slots=True)
class IndexDeclaration:
    """index name(columns) on atom."""

    name: str
    columns: tuple[DatalogColumn, ...]
    atom: AtomTerm
    span: Span


@dataclass(frozen=True, slots=True)
class DatalogRule:
    """heads :- body. A fact has no body. join: how its joins are computed. iterations: the most of its recursion, and the place."""

    heads: tuple[AtomTerm, ...]
    body: tuple[Term, ...]
    span: Span
    join: Hint | None = None
    iterations: tuple[int, Span] | None = None


@dataclass(frozen=True, slots=True)
class Attribute:
    """#[name = value], before a declaration, a rule or a column. connector: of source and sink. hints: of a rule, by name."""

    name: str
    span: Span
    connector: Options | None = None
    hints: Mapping[str, Option] = field(default_factory=dict, hash=False)

    @property
    def has_effect(self) -> bool:
        return self.connector is not None or bool(self.hints)


@dataclass(frozen=True, slots=True)
class ModuleImport:
    """import name as alias."""

    name: str
    alias: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class FormalRelation:
    """A parameter or result of a transformer."""

    name: str
    kind: str
    columns: tuple[DatalogColumn, ...]
    record: TypeTerm | None
    span: Span


@dataclass(frozen=True, slots=True)
class TransformerDeclaration:
    """transformer name(inputs) -> (outputs) { declarations and rules }."""

    name: str
    inputs: tuple[FormalRelation, ...]
    outputs: tuple[FormalRelation, ...]
    items: tuple[Item, ...] = field(repr=False)
    span: Span


@dataclass(frozen=True, slots=True)
class TransformerApplication:
    """apply name(inputs) -> (outputs)."""

    name: str
    inputs: tuple[tuple[str, Span], ...]
    outputs: tuple[tuple[str, Span], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class AppliedRelation:
    """A relation that is given to a transformer. formal: what the transformer declares. span: its place in the application."""

    name: str
    formal: FormalRelation
    span: Span


Item: TypeAlias = (
    TypeDeclaration
    | FunctionDeclaration
    | RelationDeclaration
    | IndexDeclaration
    | DatalogRule
    | ModuleImport
    | Attribute
    | TransformerDeclaration
    | TransformerApplication
    | AppliedRelation
)


def parts_of(node: object) -> Iterator[object]:
    """The node and all its parts, in the order of the text."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        kind: Any = type(part)
        if isinstance(part, tuple):
            waiting.extend(reversed(part))
        elif (names := _names_of_parts(kind)) is not None:
            yield part
            waiting.extend([getattr(part, name) for name in names])


@cache
def _names_of_parts(kind: Any) -> tuple[str, ...] | None:
    """The fields of a class of the tree, the last one first; None for other classes."""
    return tuple(one.name for one in reversed(fields(kind))) if is_dataclass(kind) and kind is not Span else None
