"""Incremental Datalog queries in EDN over entity-attribute-value data.

A fact is a row (entity, attribute, value). Each pattern of a query is an occurrence of the relation of all facts. A constant narrows it
like a bound variable, so constants come first in the trie. The tries are those of the six permutations of E, A and V that the query's rules
read. Values compare as in Python: 1, 1.0 and true are equal.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from deltic.errors import Span, SyntaxFailure, UnknownName, Unsupported
from deltic.wcoj.edn import EdnForm, EdnMap, EdnSymbol, EdnVector, read
from deltic.wcoj.index import Atom, Variable
from deltic.wcoj.join import IncrementalGenericJoin
from deltic.wcoj.trie import Key, Row, ZSetTrie

FACTS: Final = "facts"
EAV: Final = "EAV"


@dataclass(frozen=True, slots=True)
class Query:
    """find: the variables of result rows. where: patterns as atoms over FACTS."""

    find: tuple[Variable, ...]
    where: tuple[Atom, ...]


class IncrementalQuery:
    """A query whose result is maintained under changes of facts.

    >>> from deltic.wcoj.edn import EdnKeyword
    >>> to = EdnKeyword("g/to")
    >>> pairs = IncrementalQuery("{:find [?a ?c] :where [[?a :g/to ?b] [?b :g/to ?c]]}")
    >>> pairs.join([((1, to, 2), 1), ((2, to, 3), 1)])
    {(1, 3): 1}
    >>> pairs.join([((1, to, 2), -1)])
    {(1, 3): -1}
    >>> pairs.permutations
    ['AEV', 'AVE']
    """

    def __init__(self, text: str) -> None:
        """Raises a QueryError with a span of the text."""
        self.query = parse(text)
        self.generic_join = IncrementalGenericJoin(self.query.where)

    def join(self, facts: Collection[tuple[Row, int]]) -> ZSetTrie:
        """The change of the result in a tick with these changes of facts: rows over `find`, weighted by their bindings.

        Raises DataError for a fact without exactly three parts, WeightOverflow.
        """
        positions = [self.generic_join.order.index(variable) for variable in self.query.find]
        bindings = self.generic_join.join({FACTS: facts})
        return ZSetTrie.of(((tuple(row[position] for position in positions), weight) for (row,), weight in bindings.rows()), "find")

    @property
    def permutations(self) -> list[str]:
        """The column orders of its tries."""
        return sorted("".join(EAV[column] for column in columns) for _, columns in self.generic_join.arrangements)


def parse(text: str) -> Query:
    """Parses a query. Raises SyntaxFailure, UnknownName and Unsupported, with the span.

    >>> parse("{:find [?a] :where [[?a :name \\"Ann\\"]]}").where[0].terms
    (Variable(name='?a'), :name, 'Ann')
    """
    form = read(text, "<query>")
    if not isinstance(form.value, EdnMap):
        raise SyntaxFailure("expected a query", span=form.span, expected="{:find [?a …] :where [[…] …]}")
    clauses = _clauses(form.value)
    for clause in (":find", ":where"):
        if clause not in clauses:
            raise SyntaxFailure(f"the query has no {clause}", span=form.span, expected="{:find [?a …] :where [[…] …]}")
    where = tuple(_atom(pattern) for pattern in _parts(clauses[":where"], "patterns, [?entity attribute ?value]"))
    variables = {variable for atom in where for variable in atom.variables}
    return Query(tuple(_find_variable(one, variables) for one in _parts(clauses[":find"], "variables")), where)


def _clauses(query: EdnMap) -> dict[str, EdnForm]:
    clauses: dict[str, EdnForm] = {}
    for key, value in query.pairs:
        name = repr(key.value)
        if name not in (":find", ":where"):
            raise Unsupported(f"unsupported clause {_text(key.span)}", span=key.span, expected=":find or :where")
        if name in clauses:
            raise SyntaxFailure(f"duplicate clause {name}", span=key.span)
        clauses[name] = value
    return clauses


def _parts(form: EdnForm, what: str) -> tuple[EdnForm, ...]:
    if not isinstance(form.value, EdnVector) or not form.value.parts:
        raise SyntaxFailure(f"expected a vector of {what}", span=form.span)
    return form.value.parts


def _find_variable(form: EdnForm, variables: set[Variable]) -> Variable:
    if not _is_variable(form):
        raise Unsupported(f"{_text(form.span)} is not a variable", span=form.span, expected="a variable, ?name")
    variable = Variable(_text(form.span))
    if variable not in variables:
        raise UnknownName(f"no pattern binds {variable.name}", span=form.span, expected="a variable of :where")
    return variable


def _atom(pattern: EdnForm) -> Atom:
    parts = pattern.value.parts if isinstance(pattern.value, EdnVector) else ()
    if not 1 <= len(parts) <= len(EAV):
        raise SyntaxFailure(
            "invalid pattern", span=pattern.span, expected="[?entity attribute ?value], of which the last parts may be omitted"
        )
    terms = [_term(part) for part in parts] + [Variable(f"_{pattern.span.end}.{column}") for column in range(len(parts), len(EAV))]
    if not any(isinstance(term, Variable) for term in terms):
        raise Unsupported("a pattern without a variable", span=pattern.span, expected="a variable in each pattern")
    return Atom(FACTS, tuple(terms))


def _term(form: EdnForm) -> Variable | Key:
    """A term of a pattern; each _ is a distinct variable, named by its position."""
    match form.value:
        case EdnSymbol("_"):
            return Variable(f"_{form.span.start}")
        case EdnSymbol() if _is_variable(form):
            return Variable(_text(form.span))
        case EdnSymbol(name):
            raise UnknownName(f"{name} is neither a variable nor a value", span=form.span, expected="?name, _, a keyword or a value")
        case EdnVector() | EdnMap():
            raise Unsupported("a nested pattern", span=form.span, expected="a variable, a keyword or a value")
        case value:
            return value


def _is_variable(form: EdnForm) -> bool:
    return isinstance(form.value, EdnSymbol) and form.value.name.startswith("?") and len(form.value.name) > 1


def _text(span: Span) -> str:
    return span.text[span.start : span.end]
