"""What a rule uses of an accumulator with Sets, Maps and Vecs: their sizes and elements, and the other columns.

If it uses nothing else, they are changed in place: the rows of elements are a relation of their own, which FlatMap reads. A Set or Map as a
value is one of a column, which each change writes again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from deltic.expr import cast
from deltic.expr.nodes import Column
from deltic.frontends.datalog.accumulators import BoundFold, column_kinds
from deltic.frontends.datalog.declarations import BoundTerm
from deltic.frontends.datalog.kinds import USIZE, IntegerKind, Kind, MapKind, TupleKind, UnionKind, VectorKind
from deltic.frontends.datalog.rewriting import parts_of_kind
from deltic.frontends.datalog.tree import AssignmentTerm, AtomTerm, CallTerm, FieldTerm, Term, TupleTerm, VariableTerm
from deltic.plan.accumulators import AccumulateElements
from deltic.plan.columns import reference
from deltic.plan.nodes import Join, Plan, Project
from deltic.schema import INT

FLAT_MAP = "FlatMap"
SIZES = ("len", "size", "vec_len", "map_size")


@dataclass(slots=True)
class FoldUses:
    """The terms of a rule that use the accumulator `name`. columns: those of one column, by their number. sizes: of a Set or Map."""

    name: str
    kind: Kind
    columns: dict[FieldTerm, int] = field(default_factory=dict)
    sizes: dict[CallTerm, int] = field(default_factory=dict)
    elements: dict[AssignmentTerm, int] = field(default_factory=dict)

    def add(self, term: Term) -> bool:
        """Whether it uses the accumulator in these ways only."""
        count = 0
        if isinstance(term, AssignmentTerm) and isinstance(term.value, AtomTerm) and term.value.name == FLAT_MAP:
            column = self._part(term.value.arguments[0][1]) if len(term.value.arguments) == 1 else None
            if column is not None:
                self.elements[term] = column
                count += 1
        for call in parts_of_kind(term, CallTerm, lambda one: one.name in SIZES and len(one.arguments) == 1):
            column = self._part(call.arguments[0])
            if column is not None:
                self.sizes[call] = column
                count += 1
        for part in parts_of_kind(term, FieldTerm):
            column = self._column(part)
            if column is not None and not _is_part(column_kinds(self.kind)[column]):
                self.columns[part] = column
                count += 1
        return count == len(parts_of_kind(term, VariableTerm, lambda one: one.name == self.name))

    def _part(self, term: Term) -> int | None:
        """The column of the Set or Map that a term is."""
        kinds = column_kinds(self.kind)
        column = self._column(term)
        return column if column is not None and _is_part(kinds[column]) else None

    def _column(self, term: Term) -> int | None:
        if isinstance(term, VariableTerm) and term.name == self.name and not term.new:
            return 0 if not isinstance(self.kind, TupleKind | UnionKind) else None
        if not isinstance(term, FieldTerm) or not isinstance(term.value, VariableTerm) or term.value.name != self.name:
            return None
        if isinstance(self.kind, TupleKind):
            return int(term.name) if term.name.isdigit() and int(term.name) < len(self.kind.items) else None
        names = [*self.kind.fields] if isinstance(self.kind, UnionKind) else []
        return names.index(term.name) if term.name in names else None


def _is_part(kind: Kind) -> bool:
    return isinstance(kind, MapKind | VectorKind)


@dataclass(slots=True)
class FoldedRows:
    """The rows of a rule after stream_aggregate. columns: what they have after the keys, with their kinds. by: what replaces terms."""

    plan: Plan
    columns: dict[str, Kind]
    by: dict[Term, Term]


def folded_rows(fold: BoundFold, relation: AccumulateElements, uses: FoldUses) -> FoldedRows:
    """The keys, the columns and sizes that are used, and a row for each element that FlatMap reads."""
    rows = _Rows(fold, relation, uses)
    rows.read_columns()
    for number, (term, column) in enumerate(uses.elements.items()):
        rows.read_elements(term, column, f"{uses.name}.e{number}")
    assert rows.plan is not None
    return FoldedRows(rows.plan, rows.columns, rows.by)


class _Rows:
    def __init__(self, fold: BoundFold, relation: AccumulateElements, uses: FoldUses) -> None:
        self.relation, self.uses, self.kinds = relation, uses, column_kinds(fold.kind)
        self.keys = [name for name, _ in fold.keys]
        self.parts = [i for i, kind in enumerate(self.kinds) if _is_part(kind)]
        self.plain = [i for i in range(len(self.kinds)) if i not in self.parts]
        self.plan: Plan | None = None
        self.columns: dict[str, Kind] = {}
        self.by: dict[Term, Term] = {}

    def read_columns(self) -> None:
        """The columns and sizes; none if the rule reads elements alone, whose rows stay when the others change."""
        values: dict[str, BoundTerm] = {}
        for term, column in self.uses.columns.items():
            values[f"{self.uses.name}.{column}"] = self._value(self.plain.index(column), self.kinds[column])
            self.by[term] = VariableTerm(f"{self.uses.name}.{column}", term.span)
        for call, column in self.uses.sizes.items():
            is_int = call.name == "size" and isinstance(self.kinds[column], VectorKind)  # the function of SQL
            name = f"{self.uses.name}.{column}.{'size' if is_int else 'len'}"
            size = self._value(len(self.plain) + self.parts.index(column), USIZE)
            values[name] = BoundTerm(cast(size.expr, INT), IntegerKind(32, True)) if is_int else size
            self.by[call] = VariableTerm(name, call.span)
        if values or not self.uses.elements:
            self.plan = Project(self.relation, (*self._keys(self.relation), *((name, one.expr) for name, one in values.items())))
            self.columns = {name: one.kind for name, one in values.items()}

    def _value(self, place: int, kind: Kind) -> BoundTerm:
        return BoundTerm(reference(self.relation.schema, len(self.keys) + place), kind)

    def _keys(self, plan: Plan) -> list[tuple[str, Column]]:
        return [(name, reference(plan.schema, i)) for i, name in enumerate(self.keys)]

    def read_elements(self, term: AssignmentTerm, column: int, name: str) -> None:
        """A row for each element of a Set or Vec, or entry of a Map."""
        kind = self.kinds[column]
        pair = (kind.key, kind.value) if isinstance(kind, MapKind) else None
        assert pair is not None or isinstance(kind, VectorKind)
        kinds = pair or (kind.item,)  # type: ignore[union-attr]
        names = [f"{name}.{i}" for i in range(len(kinds))]
        rows = replace(self.relation, part=self.parts.index(column))
        first = len(rows.schema) - len(kinds)  # that of a Vec is after its position
        self._join(Project(rows, (*self._keys(rows), *((one, reference(rows.schema, first + i)) for i, one in enumerate(names)))), names)
        self.columns |= dict(zip(names, kinds, strict=True))
        variables: tuple[Term, ...] = tuple(VariableTerm(one, term.value.span) for one in names)
        value = variables[0] if pair is None else TupleTerm(variables, term.value.span)
        self.by[term] = replace(term, value=value)

    def _join(self, rows: Plan, names: Sequence[str]) -> None:
        if self.plan is None:
            self.plan = rows
            return
        pairs = zip(self._keys(self.plan), self._keys(rows), strict=True)
        joined = Join(self.plan, rows, "inner", tuple((left, right) for (_, left), (_, right) in pairs))
        width, first = len(self.plan.schema), len(self.keys)
        kept = [(field.name, reference(joined.schema, i)) for i, field in enumerate(self.plan.schema)]
        self.plan = Project(joined, (*kept, *((one, reference(joined.schema, width + first + i)) for i, one in enumerate(names))))
