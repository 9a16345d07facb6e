"""Datalog queries in EDN over entity-attribute-value data, kept exact.

A fact is a row (entity, attribute, value). Each pattern of a query is an occurrence of the one relation of all facts; a constant narrows it
as a bound variable does, so it leads the trie. The tries are permutations of E, A and V: of the six, those that the query's rules read.
Values are equal where Python's are: 1, 1.0 and true are one value.
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
    """find: what result rows have. where: patterns as atoms over FACTS."""

    find: tuple[Variable, ...]
    where: tuple[Atom, ...]


class IncrementalQuery:
    """A query whose answer follows its facts.

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
        """Raises a QueryError with the place in the text."""
        self.query = parse(text)
        self.generic_join = IncrementalGenericJoin(self.query.where)

    def join(self, facts: Collection[tuple[Row, int]]) -> ZSetTrie:
        """The change of the answer in a tick with these changes of facts: rows over `find`, as often as there are bindings for them.

        Raises DataError for a fact that has not three parts, WeightOverflow.
        """
        places = [self.generic_join.order.index(variable) for variable in self.query.find]
        bindings = self.generic_join.join({FACTS: facts})
        return ZSetTrie.of(((tuple(row[place] for place in places), weight) for (row,), weight in bindings.rows()), "find")

    @property
    def permutations(self) -> list[str]:
        """The tries that it keeps, each by its order of columns."""
        return sorted("".join(EAV[column] for column in columns) for _, columns in self.generic_join.arrangements)


def parse(text: str) -> Query:
    """The query that the text is. Raises SyntaxFailure, UnknownName and Unsupported, with the place.

    >>> parse("{:find [?a] :where [[?a :name \\"Ann\\"]]}").where[0].terms
    (Variable(name='?a'), :name, 'Ann')
    """
    form = read(text, "<query>")
    if not isinstance(form.value, EdnMap):
        raise SyntaxFailure("a query is a map", span=form.span, expected="{:find [?a …] :where [[…] …]}")
    clauses = _clauses(form.value)
    for needed in (":find", ":where"):
        if needed not in clauses:
            raise SyntaxFailure(f"the query has no {needed}", span=form.span, expected="{:find [?a …] :where [[…] …]}")
    where = tuple(_atom(pattern) for pattern in _parts(clauses[":where"], "patterns, [?entity attribute ?value]"))
    known = {variable for atom in where for variable in atom.variables}
    return Query(tuple(_found(one, known) for one in _parts(clauses[":find"], "variables")), where)


def _clauses(query: EdnMap) -> dict[str, EdnForm]:
    clauses: dict[str, EdnForm] = {}
    for key, value in query.pairs:
        name = repr(key.value)
        if name not in (":find", ":where"):
            raise Unsupported(f"{_text(key.span)} is no clause of a query here", span=key.span, expected=":find or :where")
        if name in clauses:
            raise SyntaxFailure(f"{name} stands twice", span=key.span)
        clauses[name] = value
    return clauses


def _parts(form: EdnForm, what: str) -> tuple[EdnForm, ...]:
    if not isinstance(form.value, EdnVector) or not form.value.parts:
        raise SyntaxFailure("this is no list of anything", span=form.span, expected=f"a vector of {what}")
    return form.value.parts


def _found(form: EdnForm, known: set[Variable]) -> Variable:
    if not _is_variable(form):
        raise Unsupported(f"{_text(form.span)} is no variable", span=form.span, expected="a variable, ?name")
    variable = Variable(_text(form.span))
    if variable not in known:
        raise UnknownName(f"{variable.name} is bound by no pattern", span=form.span, expected="a variable of :where")
    return variable


def _atom(pattern: EdnForm) -> Atom:
    parts = pattern.value.parts if isinstance(pattern.value, EdnVector) else ()
    if not 1 <= len(parts) <= len(EAV):
        raise SyntaxFailure("this is no pattern", span=pattern.span, expected="[?entity attribute ?value], the last ones may be missing")
    terms = [_term(part) for part in parts] + [Variable(f"_{pattern.span.end}.{place}") for place in range(len(parts), len(EAV))]
    if not any(isinstance(term, Variable) for term in terms):
        raise Unsupported("a pattern of constants alone", span=pattern.span, expected="a variable in each pattern")
    return Atom(FACTS, tuple(terms))


def _term(form: EdnForm) -> Variable | Key:
    """_ is a variable that stands nowhere else: it is named by its place."""
    match form.value:
        case EdnSymbol("_"):
            return Variable(f"_{form.span.start}")
        case EdnSymbol() if _is_variable(form):
            return Variable(_text(form.span))
        case EdnSymbol(name):
            raise UnknownName(f"{name} is neither a variable nor a value", span=form.span, expected="?name, _, a keyword or a value")
        case EdnVector() | EdnMap():
            raise Unsupported("a pattern in a pattern", span=form.span, expected="a variable, a keyword or a value")
        case value:
            return value


def _is_variable(form: EdnForm) -> bool:
    return isinstance(form.value, EdnSymbol) and form.value.name.startswith("?") and len(form.value.name) > 1


def _text(span: Span) -> str:
    return span.text[span.start : span.end]
