"""What does not fit in a circuit is refused where it is written: by an error of ours that says what was expected."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest

import deltic
from deltic.errors import CircuitError, ClockError, QueryError, SetupError, SyntaxFailure, UnknownName

PAIR = {"a": int, "b": int}


def stream() -> deltic.Stream:
    return deltic.Circuit().input("t", schema=PAIR)


def rows_of(build: Callable[[deltic.Stream], deltic.Stream]) -> list[tuple[Any, ...]]:
    circuit = deltic.Circuit()
    circuit.output("out", build(circuit.input("t", schema=PAIR)))
    with deltic.Session() as session:
        session.install(circuit)
        session.apply({"t": [{"a": a, "b": b, "_weight": 1} for a, b in ((1, 2), (1, 3), (2, 5))]})
        return [tuple(row.values()) for row in session.view("out").rows()]


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda t: t.filter("a > 1 ORDER BY a LIMIT 1"), "one condition on a row"),
        (lambda t: t.filter("a > 1 GROUP BY a, b"), "one condition on a row"),
        (lambda t: t.filter("a > 1 UNION ALL SELECT * FROM input"), "one condition on a row"),
        (lambda t: t.map({"x": "a, b"}), "one expression for each column"),
        (lambda t: t.map({"x": "a AS q, b"}), "one expression for each column"),
        (lambda t: t.map({"x": "DISTINCT a"}), "one expression for each column"),
        (lambda t: t.map({"x": "a FROM input WHERE a > 1 --"}), "syntax error at 'AS'"),
        (lambda t: t.index_with("a").aggregate(n="count(*), sum(b)"), "one expression for each column"),
        (lambda t: t.top_k(1, "b LIMIT 3 --"), "syntax error at 'LIMIT'"),
        (lambda t: t.index_with("a").top_k(1, "b LIMIT 3 --"), "syntax error at 'LIMIT'"),
        (lambda t: t.top_k(1, "b) x"), "unmatched closing parenthesis"),
        (lambda t: t.temporal_filter(lower="TIMESTAMP '2020-01-01' AS TIMESTAMP), (a"), "names in parentheses"),
    ],
)
def test_a_text_contains_only_its_part_of_the_query(build: Callable[[deltic.Stream], object], text: str) -> None:
    with pytest.raises(QueryError, match=text):
        build(stream())


def test_texts_may_contain_any_expression() -> None:
    assert rows_of(lambda t: t.filter("a IN (SELECT a FROM input WHERE b = 5) -- those")) == [(2, 5)]
    assert rows_of(lambda t: t.map({"x": "a + 1 -- one more"}).map({"y": "x + 1 /* and one */"})) == [(3,), (3,), (4,)]
    assert rows_of(lambda t: t.map({"x": "explode(array(a, b))"}).aggregate(n="sum(x) FILTER (WHERE x > 1)")) == [(12,)]
    assert rows_of(lambda t: t.index_with("a").top_k(1, "b DESC NULLS LAST, a -- the last")) == [(1, 3), (2, 5)]


LEAKED: list[deltic.Stream] = []


def leaking() -> None:
    circuit = deltic.Circuit()
    edges = circuit.input("e", schema=PAIR)

    @circuit.recursive("p", schema=PAIR)
    def p(p: deltic.Stream) -> deltic.Stream:
        LEAKED.append(p)
        return edges.plus(p).distinct()

    circuit.output("out", LEAKED[-1].plus(p))


def installed_without(t: deltic.Stream) -> None:
    circuit = deltic.Circuit()
    circuit.output("x", t)
    with deltic.Session() as session:
        session.install(circuit)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda t: t.map({"x": "sum(a)"}), "sum.a. is an aggregate"),
        (lambda t: t.map({}), "no columns"),
        (lambda t: t.map({"x": 1}), "invalid SQL 1"),
        (lambda t: t.aggregate(), "no columns"),
        (lambda t: t.sql(None), "invalid SQL None"),
        (lambda t: t.map(5), "5 is not a function"),
        (lambda t: t.map("a"), "'a' is not a function"),
        (lambda t: t.filter(5), "5 is not a function"),
        (lambda t: t.inspect(5), "5 is not a function"),
        (lambda t: t.flat_map(5, schema=PAIR), "5 is not a function"),
        (lambda t: t.followed_by(5, schema=PAIR), "5 is not a function"),
        (lambda t: t.map(lambda row, more: row.a + more, schema={"x": int}), r"cannot be called with \(row\): missing a required arg"),
        (lambda t: t.filter(lambda: len("x") > 1), r"cannot be called with \(row\): too many positional"),
        (lambda t: t.index_with("a").join(t.index_with("b"), lambda one, other: one), r"cannot be called with \(key, row, other row\)"),
        (lambda t: t.index_with("a").aggregate(lambda a, b: 1, schema={"x": int}), r"cannot be called with \(group\)"),
        (lambda t: t.top_k(1.5, "a"), "invalid limit 1.5"),
        (lambda t: t.top_k(-1, "a"), "invalid limit -1"),
        (lambda t: t.top_k(True, "a"), "invalid limit True"),
        (lambda t: t.plus(None), "invalid argument None"),
        (lambda t: t.plus(t.index_with("a")), "invalid argument of class IndexedStream"),
        (lambda t: t.minus(t.trace_append()), "invalid argument of class Trace"),
        (lambda t: t.index_with("a").plus(t), "invalid argument of class Stream"),
        (lambda t: t.index_with("a").minus(None), "invalid argument None"),
        (lambda t: t.index_with("a").join(t), "invalid argument of class Stream"),
        (lambda t: t.index_with("a").join_trace(t), "invalid argument of class Stream"),
        (lambda t: t.index_with("a").antijoin(None), "invalid argument None"),
        (lambda t: t.distinct_trace(t), "invalid argument of class Stream"),
        (lambda t: t.distinct_incremental(t.trace_append()), "invalid argument of class Trace"),
        (lambda t: t.trace_append(t), "invalid argument of class Stream"),
        (lambda t: t.index_with(0), "invalid key column 0"),
        (lambda t: t.index_with(lambda row: row.a, "b"), "invalid key column"),
        (lambda t: t.index_with("a", schema={"x": int}), "a key of columns with a schema"),
        (lambda t: deltic.Circuit().output("x", t.index_with("a")), "invalid argument of class IndexedStream"),
        (lambda t: deltic.Circuit().output("x", None), "invalid argument None"),
        (installed_without, "output x reads the input t of another circuit, which is not installed"),
        (lambda t: leaking(), "output out reads p as of an iteration"),
        (lambda t: deltic.Circuit().output("", t), "invalid name ''"),
        (lambda t: deltic.Circuit().input(None, schema=PAIR), "invalid name None"),
        (lambda t: deltic.Circuit().input("x", schema="a INT"), "invalid schema 'a INT'"),
        (lambda t: deltic.Circuit().input("x", schema={3: int}), "invalid column name 3"),
        (lambda t: deltic.Circuit().input("x", schema={"a": [int]}), "column a: invalid type"),
        (lambda t: deltic.Circuit().recursive("p", schema=PAIR, limit=-1)(lambda p: p), "limit=-1"),
        (lambda t: deltic.Circuit().recursive("p", schema=PAIR, limit=1.5)(lambda p: p), "limit=1.5"),
        (lambda t: deltic.Session().install(None), "invalid circuit None"),
    ],
)
def test_misuse_is_refused_where_it_is_written(build: Callable[[deltic.Stream], object], text: str) -> None:
    with pytest.raises(CircuitError, match=text) as caught:
        build(stream())
    assert "expected: " in str(caught.value) or "help: " in str(caught.value)


def test_a_key_is_one_name_or_several_and_never_null() -> None:
    circuit = deltic.Circuit()
    one = circuit.input("one", schema={"id": int | None}, key="id")
    two = circuit.input("two", schema={"id": int | None, "n": int}, key=["id", "id"])
    assert [(f.name, f.nullable) for f in one.schema] == [("id", False)]
    circuit.output("all", two.map({"id": "id"}).plus(one))
    with deltic.Session() as session:
        session.install(circuit)
        session.apply({"two": [{"id": 1, "n": 2, "_op": "upsert"}], "one": [{"id": 1, "_op": "insert"}]})
        assert session.view("all").rows() == [{"id": 1}] * 2


def test_a_column_without_a_python_identifier_is_named_by_position() -> None:
    circuit = deltic.Circuit()
    odd = circuit.input("größe 数", schema={"a b": int, "数": str, "class": int})
    circuit.output("picked", odd.map(lambda row: (row._2, row.数, row._0)))
    circuit.output("made", odd.map(lambda row: (row._2 + row[0], row.数 + "!"), schema={"n": int, "ü": str}))
    with pytest.raises(UnknownName, match="ambiguous column _3"):
        odd.map(lambda row: row._3)
    with deltic.Session() as session:
        session.install(circuit)
        session.apply({"größe 数": [{"a b": 1, "数": "日", "class": 2, "_weight": 1}]})
        assert session.view("picked").rows() == [{"class": 2, "数": "日", "a b": 1}]
        assert session.view("made").rows() == [{"n": 3, "ü": "日!"}]


@pytest.mark.parametrize("moment", [datetime.date(2024, 1, 1), 5, "2024-01-01", None])
def test_invalid_times_are_refused(moment: Any) -> None:
    with deltic.Session() as session, pytest.raises(ClockError, match="invalid time"):
        session.advance_to(moment)


def test_a_limit_is_a_number_and_a_delay_a_time() -> None:
    with pytest.raises(SetupError, match="iteration_limit='5'"):
        deltic.Session(iteration_limit="5")  # type: ignore[arg-type]
    with pytest.raises(SetupError, match=r"the delay of the watermark t\.at is 3"):
        deltic.Session(clock=deltic.Watermark("t", "at", delay=3))  # type: ignore[arg-type]
    with pytest.raises(SyntaxFailure, match="LIMIT"):
        stream().top_k(1, "")


@pytest.mark.parametrize("name", ["join", "semijoin", "antijoin", "join_stream"])
def test_a_stream_without_a_key_says_how_to_index_it(name: str) -> None:
    with pytest.raises(CircuitError, match=rf"no key, which {name} requires.*(.|\n)*index_with\('id'\)"):
        getattr(stream(), name)(stream())
    with pytest.raises(CircuitError, match=r"of class Stream(.|\n)*index_with\(\) of a Stream returns one"):
        stream().index_with("a").join(stream())  # type: ignore[arg-type]
    assert not hasattr(stream(), name) and not hasattr(stream(), "unknown")
    with pytest.raises(AttributeError, match="no attribute 'filtr'"):
        stream().filtr("a > 1")  # type: ignore[attr-defined]
