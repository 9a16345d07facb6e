"""Checks that the relations that `apply` gives to a transformer are those that it declares; its rules are bound over them."""

from __future__ import annotations

from deltic.errors import TypeMismatch
from deltic.frontends.datalog.declarations import DatalogRelation, Declarations, Substitution, record_columns, unify
from deltic.frontends.datalog.kinds import Kind
from deltic.frontends.datalog.tree import AppliedRelation, FormalRelation


def check_application(applied: AppliedRelation, declarations: Declarations) -> None:
    """Raises TypeMismatch if the relation has other columns than the transformer declares, or one of the two is a stream."""
    relation, formal, span = declarations.relations[applied.name], applied.formal, applied.span
    shown = f"{formal.name} of the transformer"
    if relation.is_stream != (formal.kind == "stream"):
        what, expected = ("stream", "relation") if relation.is_stream else ("relation", "stream")
        raise TypeMismatch(f"{relation.name} is a {what}, and {shown} is a {expected}", span=span, expected=f"a {expected}")
    columns = _columns(formal, relation, declarations)
    if len(columns) != len(relation.columns):
        expected = f"{len(columns)}: {', '.join(name for name, _ in columns)}"
        raise TypeMismatch(f"relation {relation.name} has {len(relation.columns)} columns", span=span, expected=expected)
    for (name, kind), (column, required) in zip(relation.columns, columns, strict=True):
        if kind != required:
            message = f"the column {name} of {relation.name} is {kind}, and {column} of {shown} is {required}"
            raise TypeMismatch(message, span=span, expected=str(required), remedy="give it a relation with these columns")


def _columns(formal: FormalRelation, relation: DatalogRelation, declarations: Declarations) -> list[tuple[str, Kind | None]]:
    """The columns that the transformer declares; a type variable is what the relation has in its place. None: of a column too many."""
    if formal.record is not None:
        return list(record_columns(declarations.kind(formal.record)))
    kinds = [kind for _, kind in relation.columns]
    variables: Substitution = {}
    for column, kind in zip(formal.columns, kinds, strict=False):
        unify(column.type, kind, variables)
    typed = [declarations.kind(column.type, variables) for column, _ in zip(formal.columns, kinds, strict=False)]
    return [(column.name, typed[i] if i < len(typed) else None) for i, column in enumerate(formal.columns)]
