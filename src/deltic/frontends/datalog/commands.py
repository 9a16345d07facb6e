"""DDlog's commands: changes of input relations in transactions, and what is read of the outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from typing import Literal as OneOf

from lark import Token

from deltic.errors import Span, TypeMismatch, UnknownName, did_you_mean
from deltic.frontends.datalog.bind_program import DatalogBinder
from deltic.frontends.datalog.bind_term import TermBinder
from deltic.frontends.datalog.declarations import DatalogRelation
from deltic.frontends.datalog.fact_terms import constant_value
from deltic.frontends.datalog.grammar import grammar, parsed
from deltic.frontends.datalog.kinds import UnionKind
from deltic.frontends.datalog.parse import Converter
from deltic.frontends.datalog.patterns import by_name
from deltic.frontends.datalog.shown_values import Row
from deltic.frontends.datalog.tree import AtomTerm, ConstructorTerm, Term, TupleTerm
from deltic.frontends.datalog.values import part
from deltic.frontends.statements import Namespace


@dataclass(frozen=True, slots=True)
class PlainCommand:
    """A command without values. argument: a relation's name, or the text of echo."""

    name: OneOf["start", "commit", "commit dump_changes", "rollback", "dump", "clear", "timestamp", "profile", "exit", "echo"]
    argument: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class UpdateCommand:
    """A change of an input relation. key: of delete_key and modify. row: None of delete_key; of modify, the columns that change."""

    name: OneOf["insert", "insert_or_update", "delete", "delete_key", "modify"]
    relation: DatalogRelation
    key: tuple[Any, ...] | None
    row: Row | None
    span: Span


@dataclass(frozen=True, slots=True)
class QueryCommand:
    """query_index name(key)."""

    index: str
    relation: DatalogRelation
    key: tuple[Any, ...]
    span: Span


Command: TypeAlias = PlainCommand | UpdateCommand | QueryCommand
_PLAIN: Final[dict[str, Any]] = {
    "start_command": "start",
    "commit_command": "commit",
    "commit_and_dump": "commit dump_changes",
    "rollback_command": "rollback",
    "timestamp_command": "timestamp",
    "profile_command": "profile",
    "exit_command": "exit",
}


def parse_commands(text: str, name: str, binder: DatalogBinder, namespace: Namespace) -> list[Command]:
    """The commands of a script, each ended by a semicolon. Raises subclasses of QueryError, with the place."""
    tree = parsed(grammar("ddlog.lark"), text, name, "commands")
    reader = CommandReader(binder, namespace, Converter(text, name))
    return [reader.command(node) for node in tree.children]


class CommandReader:
    """Converts lark's trees of commands. Values are bound as constants of the kinds that relations declare."""

    def __init__(self, binder: DatalogBinder, namespace: Namespace, convert: Converter) -> None:
        self.binder, self.convert = binder, convert
        self._terms = TermBinder(binder.declarations, namespace, {}, set())

    def command(self, node: Any) -> Command:
        span = self.convert.span(node)
        if node.data in _PLAIN:
            return PlainCommand(_PLAIN[node.data], None, span)
        match node.data:
            case "echo_command":
                return PlainCommand("echo", str(node.children[0])[4:].strip(), span)
            case "dump_command" | "clear_command":
                name = node.children[0]
                if name is not None:
                    self._relation(str(name), self.convert.span(name), inputs=node.data == "clear_command")
                return PlainCommand("dump" if node.data == "dump_command" else "clear", None if name is None else str(name), span)
            case "query_command":
                return self._query(node, span)
            case _:
                return self._update(node, span)

    def _relation(self, name: str, span: Span, *, inputs: bool) -> DatalogRelation:
        relations = self.binder.declarations.relations
        relation = relations.get(name)
        role = "input" if inputs else "output"
        names = [one.name for one in relations.values() if one.declaration is not None and one.declaration.role == role]
        if relation is None or relation.name not in names:
            if relation is not None and relation.is_stream and relation.is_input:
                remedy = f"dump an output stream that is derived from {name}: it has the rows of the last transaction"
                raise UnknownName(f"{name} is an input stream, whose rows are gone after the transaction", span=span, remedy=remedy)
            message = f"{name} is not an {role} relation" if relation else f"there is no relation {name}"
            raise UnknownName(message, span=span, remedy=did_you_mean(name, names))
        return relation

    def _update(self, node: Any, span: Span) -> UpdateCommand:
        name: Any = str(node.data).removesuffix("_command").replace("upsert", "insert_or_update")
        first = node.children[0]
        if not isinstance(first, Token):
            atom = self.convert.atom(first)
            relation = self._relation(atom.name, atom.place, inputs=True)
            return UpdateCommand(name, relation, None, self._row(atom, relation), span)
        relation = self._relation(str(first), self.convert.span(first), inputs=True)
        key = self._key(self.convert.term(node.children[1]), relation)
        changes = None if name == "delete_key" else self._changes(self.convert.term(node.children[-1]), relation)
        return UpdateCommand(name, relation, key, changes, span)

    def _row(self, atom: AtomTerm, relation: DatalogRelation) -> Row:
        if atom.record is not None:
            value = self._terms.bind(atom.record, relation.row)
            if not isinstance(relation.row, UnionKind) or relation.row.is_tagged:
                return {relation.columns[0][0]: constant_value(value, atom.span)}
            return {name: constant_value(part(value, i, kind, atom.span), atom.span) for i, (name, kind) in enumerate(relation.columns)}
        terms = by_name(atom.arguments, [name for name, _ in relation.columns], f"relation {atom.name}", atom.span)
        row = {}
        for (name, kind), term in zip(relation.columns, terms, strict=True):
            if term is None:
                raise TypeMismatch(f"{atom.name} lacks its column {name}", span=atom.span, expected=f".{name} = …")
            row[name] = constant_value(self._terms.bind(term, kind), term.span)
        return row

    def _key(self, term: Term, relation: DatalogRelation) -> tuple[Any, ...]:
        positions = self.binder.table(relation).key
        if relation.declaration is None or relation.declaration.key is None:
            raise TypeMismatch(f"{relation.name} has no primary key", span=term.span, remedy=f"delete {relation.name}(…)")
        terms = term.items if isinstance(term, TupleTerm) and len(positions) > 1 else (term,)
        if len(terms) != len(positions):
            raise TypeMismatch(f"the key of {relation.name} has {len(positions)} columns", span=term.span)
        kinds = [relation.columns[i][1] for i in positions]
        return tuple(constant_value(self._terms.bind(one, kind), one.span) for one, kind in zip(terms, kinds, strict=True))

    def _changes(self, term: Term, relation: DatalogRelation) -> Row:
        """The columns that R{.a = x} names."""
        if not isinstance(term, ConstructorTerm):
            raise TypeMismatch("expected the new values of columns", span=term.span, expected=f"{relation.name}{{.column = value}}")
        kinds = dict(relation.columns)
        names = [name for name, _ in relation.columns]
        given = by_name(term.arguments, names, f"relation {relation.name}", term.span)
        return {
            name: constant_value(self._terms.bind(one, kinds[name]), one.span)
            for name, one in zip(names, given, strict=True)
            if one is not None
        }

    def _query(self, node: Any, span: Span) -> QueryCommand:
        name, *arguments = node.children
        index = self.binder.declarations.indexes.get(str(name))
        if index is None:
            remedy = did_you_mean(str(name), self.binder.declarations.indexes)
            raise UnknownName(f"there is no index {name}", span=self.convert.span(name), remedy=remedy)
        terms = self.convert.arguments(arguments)
        given = by_name(terms, [one.name for one in index.columns], f"index {name}", span)
        kinds = [self.binder.declarations.kind(one.type) for one in index.columns]
        key = tuple(
            constant_value(self._terms.bind(one, kind), one.span) for one, kind in zip(given, kinds, strict=True) if one is not None
        )
        if len(key) != len(kinds):
            raise TypeMismatch(f"index {name} takes {len(kinds)} values", span=span)
        return QueryCommand(index.name, self.binder.declarations.relations[index.atom.name], key, span)
