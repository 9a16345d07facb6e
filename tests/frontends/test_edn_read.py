"""EDN: what is written is read back, and every error has its place."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltic.errors import QueryError
from deltic.frontends.edn.read import read, read_all
from deltic.frontends.edn.values import Char, Keyword, ListForm, LocatedForm, MapForm, SetForm, Symbol, VectorForm, form_of, write

TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=6)
NAMES = st.from_regex(r"[a-z?][a-z0-9.*+!?<>=_-]{0,5}(/[a-z][a-z0-9-]{0,3})?", fullmatch=True)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.decimals(allow_nan=False, allow_infinity=False, places=4),
    TEXTS,
    st.builds(Keyword, NAMES),
    st.builds(Symbol, NAMES.filter(lambda name: name not in ("nil", "true", "false"))),
    st.builds(Char, st.characters(blacklist_categories=["Cs", "Z", "C"])),
    st.sampled_from([Char(" "), Char("\n"), Char("\t")]),
    st.datetimes(timezones=st.just(UTC)),
    st.uuids(),
).map(LocatedForm)


def collections(forms: st.SearchStrategy[LocatedForm]) -> st.SearchStrategy[LocatedForm]:
    parts = st.lists(forms, max_size=3).map(tuple)
    different = st.lists(forms, max_size=3, unique_by=write).map(tuple)
    pairs = different.flatmap(lambda keys: parts.map(lambda values: MapForm(tuple(zip(keys, values, strict=False)))))
    return st.one_of(parts.map(VectorForm), parts.map(ListForm), different.map(SetForm), pairs).map(LocatedForm)


@given(st.recursive(SCALARS, collections, max_leaves=8))
def test_what_is_written_is_read_back(form: LocatedForm) -> None:
    text = write(form)
    assert read(text) == form
    assert write(read(text)) == text
    assert read_all(f"#_{text} {text}") == (form,)


@given(st.lists(st.recursive(SCALARS, collections, max_leaves=3), max_size=4))
def test_places_of_forms_are_their_text(forms: list[LocatedForm]) -> None:
    text = " , ".join(map(write, forms))
    read_forms = read_all(text)
    assert [text[form.span.start : form.span.end] for form in read_forms if form.span is not None] == [write(form) for form in forms]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7N", 7),
        ("-0", 0),
        ("+1.", 1.0),
        ("1e3", 1000.0),
        ("1.50M", Decimal("1.5")),
        ("##-Inf", float("-inf")),
        ("\\u0041", Char("A")),
        ("\\newline", Char("\n")),
        ('"\\u0041\\n\\""', 'A\n"'),
        ('"\\ud83d\\ude00"', "😀"),
        ("..", Symbol("..")),
        ("clojure.string/upper-case", Symbol("clojure.string/upper-case")),
        ("-", Symbol("-")),
        ("?0", Symbol("?0")),
        ("*1", Symbol("*1")),
        ("/", Symbol("/")),
        (":a.b/c-d?", Keyword("a.b/c-d?")),
        ('#inst "2020-02-03T04:05:06.789+01:00"', datetime(2020, 2, 3, 3, 5, 6, 789000, UTC)),
        ('#inst "2020"', datetime(2020, 1, 1, tzinfo=UTC)),
        ('#uuid "F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6"', uuid.UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")),
    ],
)
def test_values(text: str, value: object) -> None:
    found = read(text).value
    assert found == value and type(found) is type(value)


def test_discarded_forms_and_comments() -> None:
    assert write(read('[1 #_ 2 #_#_ 3 4 ; 5\n #_{:a #_b 1} 6 #inst #_no "2020"]')) == '[1 6 #inst "2020-01-01T00:00:00.000000-00:00"]'


def test_equality_is_typed() -> None:
    forms = read_all('1 1.0 1M true :a a \\a "a" 1N 0.0 -0.0')
    assert [[one == other for one in forms].count(True) for other in forms] == [2, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2]
    assert len(set(forms)) == 9


def test_values_of_python() -> None:
    data = [{":person/name": "Ann", "tags": {1, "b"}}, [":db/add", -1, ":person/name", ":b"], (Keyword("x"), 1.0, True, None)]
    assert write(form_of(data)) == '[{:person/name "Ann", "tags" #{"b" 1}} [:db/add -1 :person/name ":b"] [:x 1.0 true nil]]'
    assert write(form_of([":person/name", ":b"])) == '[:person/name ":b"]' and write(form_of([":b", 1, 2], names=True)) == "[:b 1 2]"


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("[1 (2 3]", 8, "unmatched ]"),
        ("[1 {:a (2 3)", 4, "{ is not closed"),
        ("#{1 2", 2, "{ is not closed"),
        ("1 2", 3, "unexpected text after the form"),
        (" ; nothing", 11, "there is no form"),
        ('[1 "ab]', 4, "the string is not closed"),
        ("[1 #_]", 6, "unmatched ]"),
        ("[#_", 1, "[ is not closed"),
        ("{:a 1 :b}", 7, "a key without a value"),
        ("{:a 1 :a 2}", 7, "a map has the same key twice"),
        ("#{1 2N 2}", 8, "a set has the same value twice"),
        ("[1/2]", 2, "the ratio 1/2 is not supported"),
        ("9223372036854775808", 1, "9223372036854775808 is out of the range of a long"),
        ("012", 1, "the number 012 is not decimal"),
        ("1a", 1, "invalid number 1a"),
        ("[:]", 2, "invalid keyword :"),
        ("a/b/c", 1, "invalid symbol a/b/c"),
        ("\\foo", 1, "there is no character \\foo"),
        ('"a\\qb"', 3, "invalid escape \\q"),
        ('"\\ud83d"', 1, "half of a surrogate pair"),
        ("##Nan", 1, "there is no value ##Nan"),
        ("#my/tag 1", 1, "the tag #my/tag is not supported"),
        ("#:a{:b 1}", 1, "the namespaced map #:a is not supported"),
        ('#inst "2020-13"', 7, "invalid instant '2020-13'"),
        ("#inst 1", 7, "#inst requires a string"),
        ('#uuid "1"', 7, "invalid UUID '1'"),
        ("[" * 300 + "]" * 300, 200, "the form is nested too deeply"),
    ],
)
def test_errors_have_places(text: str, column: int, message: str) -> None:
    with pytest.raises(QueryError) as raised:
        read(text)
    assert raised.value.message == message
    assert raised.value.span is not None and (raised.value.span.line, raised.value.span.column) == (1, column)
