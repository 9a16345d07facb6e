"""Datalog queries in EDN: what they mean, what they keep, and where a bad one is at fault."""

from __future__ import annotations

import random

import pytest

from deltic.dbsp.weights import summed
from deltic.errors import DataError, QueryError, SyntaxFailure, UnknownName, Unsupported
from deltic.wcoj.edn import EdnKeyword, EdnMap, EdnSymbol, EdnVector, read
from deltic.wcoj.query import FACTS, IncrementalQuery, parse
from deltic.wcoj.trie import ZSetTrie
from join_shapes import joined

TO, AGE = EdnKeyword("g/to"), EdnKeyword("person/age")


def test_values_of_edn_are_read() -> None:
    text = '{:a [1 -2, 2.5 1e3 "x\\n\\"y\\""] ; what follows is a comment\n :b [true false nil ?x _]}'
    form = read(text)
    assert isinstance(form.value, EdnMap)
    (a, first), (b, second) = form.value.pairs
    assert a.value == EdnKeyword("a") and b.value == EdnKeyword("b")
    assert isinstance(first.value, EdnVector) and [part.value for part in first.value.parts] == [1, -2, 2.5, 1000.0, 'x\n"y"']
    assert isinstance(second.value, EdnVector)
    assert [part.value for part in second.value.parts] == [True, False, None, EdnSymbol("?x"), EdnSymbol("_")]
    assert text[second.span.start : second.span.end] == "[true false nil ?x _]" and second.span.line == 2


def test_a_random_query_over_facts_is_brute_force() -> None:
    text = "{:find [?a ?c] :where [[?a :g/to ?b] [?b :g/to ?c] [?a :g/to ?c] [?c :person/age 3] [?b _ ?c]]}"
    for seed in range(5):
        rng = random.Random(seed)
        query, facts, answer = IncrementalQuery(text), {}, ZSetTrie()
        for size in (15, *[1] * 8):
            values = [(rng.randrange(4), rng.choice([TO, TO, AGE]), rng.randrange(4)) for _ in range(size)]
            change = summed(((row, rng.choice([-1, 1, 2])) for row in values), "change")
            facts = summed([*facts.items(), *change.items()], "facts")
            answer = answer.plus(query.join([*change.items()]))
            a, _, c = (query.generic_join.order.index(query.query.where[at].terms[0]) for at in (0, 1, 3))
            bindings = joined(query.query.where, {FACTS: facts})
            assert answer == ZSetTrie.of(((row[a], row[c]), weight) for row, weight in bindings.items())


def test_a_pattern_may_leave_out_its_last_parts() -> None:
    query = IncrementalQuery("{:find [?a] :where [[?a] [?a :person/age]]}")
    assert query.join([((1, AGE, 30), 1), ((1, TO, 2), 1), ((2, TO, 1), 1)]) == ZSetTrie({(1,): 2})


def test_a_constant_anywhere_leads_its_permutation() -> None:
    query = IncrementalQuery("{:find [?a ?b] :where [[?a :g/to 7] [7 ?b ?a]]}")
    assert query.permutations == ["AVE", "EVA"]
    assert query.join([((1, TO, 7), 1), ((7, AGE, 1), 5), ((7, TO, 2), 1)]) == ZSetTrie({(1, AGE): 5})


BAD = [
    ("{:find [?a] :where [[?a :g/to ?b]}", SyntaxFailure, 1, 34, "unmatched }"),
    ("{:find [?a] :where [[?a :g/to ?b]]", SyntaxFailure, 1, 1, "{ is not closed"),
    ("{:find [?a] :where [[?a :g/to ?b]]} 1", SyntaxFailure, 1, 37, "unexpected text after the form"),
    ("", SyntaxFailure, 1, 1, "unexpected end of text"),
    ("{:find [?a] :where}", SyntaxFailure, 1, 13, "a key without a value"),
    ('{:find [?a] :where [[?a "a\\q" 1]]}', SyntaxFailure, 1, 25, "invalid escape"),
    ("{:find [?a] :where [[?a :g/to @]]}", SyntaxFailure, 1, 31, "unexpected @"),
    ("{:find [?a] :where [(not [?a :g/to 1])]}", Unsupported, 1, 21, "is not supported in queries"),
    ("{:find [?a] :where [[?a :g/to #{1}]]}", Unsupported, 1, 31, "is not supported in queries"),
    ("[:find ?a]", SyntaxFailure, 1, 1, "expected a query"),
    ("{:find [?a]}", SyntaxFailure, 1, 1, "no :where"),
    ("{:find [?a] :find [?a]}", SyntaxFailure, 1, 13, "duplicate clause :find"),
    ("{:find [?a]\n :in [$] :where [[?a]]}", Unsupported, 2, 2, "unsupported clause :in"),
    ("{:find [] :where [[?a]]}", SyntaxFailure, 1, 8, "expected a vector of"),
    ("{:find [?a] :where ?a}", SyntaxFailure, 1, 20, "expected a vector of"),
    ("{:find [?c] :where [[?a :g/to ?b]]}", UnknownName, 1, 9, "no pattern binds ?c"),
    ("{:find [a] :where [[?a :g/to ?b]]}", Unsupported, 1, 9, "a is not a variable"),
    ("{:find [?a] :where [[?a :g/to ?b 1]]}", SyntaxFailure, 1, 21, "invalid pattern"),
    ("{:find [?a] :where [[?a] [1 :g/to 2]]}", Unsupported, 1, 26, "a pattern without a variable"),
    ("{:find [?a] :where [[?a to ?b]]}", UnknownName, 1, 25, "to is neither"),
    ("{:find [?a] :where [[?a :g/to [?b]]]}", Unsupported, 1, 31, "a nested pattern"),
]


@pytest.mark.parametrize(("text", "error", "line", "column", "message"), BAD)
def test_a_bad_query_is_refused_by_its_place(text: str, error: type[QueryError], line: int, column: int, message: str) -> None:
    with pytest.raises(error) as raised:
        parse(text)
    span = raised.value.span
    assert span is not None and (span.line, span.column) == (line, column) and message in raised.value.message


def test_a_fact_of_another_shape_is_refused() -> None:
    with pytest.raises(DataError, match="has 2 columns"):
        IncrementalQuery("{:find [?a] :where [[?a]]}").join([((1, 2), 1)])
