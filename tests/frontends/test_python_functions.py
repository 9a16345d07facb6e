"""Users' functions in circuits: what they are called, what tells one from another, and names of columns."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import deltic
from deltic.errors import CircuitError, EvaluationError, ImpureFunction
from deltic.expr.nodes import user_functions
from deltic.frontends.python import functions

START = datetime(2024, 1, 1, tzinfo=UTC)


def installed(build: Callable[[deltic.Stream], deltic.Stream]) -> list[dict[str, Any]]:
    circuit = deltic.Circuit()
    circuit.output("out", build(circuit.input("t", schema={"a": int, "b": int})))
    with deltic.Session() as session:
        session.advance_to(START)
        session.install(circuit)
        session.apply({"t": [{"a": 1, "b": 5, "_weight": 1}, {"a": 2, "b": 6, "_weight": 1}]})
        return session.view("out").rows()


def always(n: int, row: Any) -> list[Any]:
    return [((n,), None, 1)]


def test_logics_with_different_captured_values_are_distinct() -> None:
    made = {"x": int}
    assert installed(
        lambda t: t.join_function(partial(always, 1), schema=made).plus(t.join_function(partial(always, 2), schema=made)).distinct()
    ) == [{"x": 1}, {"x": 2}]


def test_a_function_is_of_a_library_only_if_its_module_has_it() -> None:
    def made_in_another(n: int) -> Callable[[], int]:
        def inner() -> int:
            return n

        inner.__module__ = "functools"
        return inner

    assert functions.digest_of(made_in_another(1)) != functions.digest_of(made_in_another(2))


def test_a_function_may_take_a_zone_from_outside() -> None:
    assert len(installed(lambda t: t.temporal_filter(lower=lambda row: datetime(2023, 1, row.a, tzinfo=UTC)))) == 2


@pytest.mark.usefixtures("repeated_calls")
def test_errors_name_the_function_of_the_user() -> None:
    made, count = {"x": int}, iter(range(1000))

    def uneven(row: Any) -> list[tuple[int, int]]:
        return [(row.a, row.b)]

    def drifting(row: Any) -> Iterator[tuple[int]]:
        yield from [(1,)] * (next(count) % 3)

    with pytest.raises(EvaluationError, match=r"the function test_python_functions\.test_errors.*uneven returned"):
        installed(lambda t: t.flat_map(uneven, schema={"x": int, "y": int, "z": int}))
    with pytest.raises(CircuitError, match="drifting"):  # takes an iterator from outside
        installed(lambda t: t.flat_map(drifting, schema=made))
    with pytest.raises(ImpureFunction, match=r"Drifting returned"):
        installed(lambda t: t.flat_map(Drifting(), schema=made))


class Drifting:
    """A function with a state."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, row: Any) -> list[tuple[int]]:
        self.calls += 1
        return [(1,)] * self.calls


def test_a_key_by_a_function_that_picks_columns_is_these_columns() -> None:
    assert installed(lambda t: t.index_with(lambda row: row.a).count()) == [{"a": 1, "count": 1}, {"a": 2, "count": 1}]
    with pytest.raises(CircuitError, match="the key and the row both have a column a"):
        installed(lambda t: t.index_with(lambda row: row.a + 1, schema={"a": int}).count())


def test_an_output_has_no_two_columns_of_one_name() -> None:
    with pytest.raises(CircuitError, match="two columns of out are called A"):
        installed(lambda t: t.index_with("a").count("A"))


def test_an_unknown_hint_is_refused() -> None:
    with pytest.raises(CircuitError, match="unknown hint 'hash'"):
        installed(lambda t: t.index_with("a").join(t.index_with("b"), hint="hash"))  # type: ignore[arg-type]


class Counted:
    """Some tuples of each row, and the number of its calls."""

    calls = 0

    def __call__(self, row: Any) -> list[tuple[int, int, int]]:
        type(self).calls += 1
        return [(row.a, row.b, n) for n in range(row.b * 10)]


def test_a_table_function_is_called_once_for_a_row_however_many_tuples_and_columns_it_makes() -> None:
    made = {"x": int, "y": int, "z": int}
    assert len(installed(lambda t: t.flat_map(Counted(), schema=made))) == 110
    assert Counted.calls == 2


@pytest.mark.parametrize("on_batches", [False, True])
@pytest.mark.parametrize("column", ["n", "s"])  # over one column of texts a function is called once for each text
def test_a_function_of_several_columns_is_called_once_for_a_row(column: str, on_batches: bool) -> None:
    noted: list[int] = []

    def each(row: Any) -> tuple[Any, ...]:
        _note(noted)
        return tuple(getattr(row, column) if isinstance(row, tuple) else row[column] for _ in range(4))

    circuit = deltic.Circuit()
    made = {name: str if column == "s" else int for name in "wxyz"}
    t = circuit.input("t", schema={"n": int, "s": str}).map({column: column})
    circuit.output("mapped", t.map(each, schema=made, on_batches=on_batches))
    circuit.output("joined", t.index_with(column).join(t.index_with(column), lambda key, one, other: each(one), schema=made))
    with deltic.Session() as session:
        session.install(circuit)
        session.apply({"t": [{"n": i, "s": f"{i}", "_weight": 1} for i in range(100)]})
        for view in ("mapped", "joined"):
            assert sorted(tuple(row.values()) for row in session.view(view).rows()) == sorted(
                (i,) * 4 for i in (map(str, range(100)) if column == "s" else range(100))
            )
    assert len(noted) == (1 if on_batches else 100) + 100


def test_a_function_is_called_once_for_a_row_though_keys_and_several_sums_are_made_of_it() -> None:
    noted: list[int] = []

    def each(row: Any) -> tuple[int, int]:
        _note(noted)
        return row.a % 3, row.a

    rows = installed(
        lambda t: t.map(each, schema={"x": int, "y": int}).index_with("x").aggregate(n="sum(y)", c="sum(x + y)", m="sum(y * y)")
    )
    assert rows == [{"x": 1, "n": 1, "c": 2, "m": 1}, {"x": 2, "n": 2, "c": 4, "m": 4}]
    assert len(noted) == 2


def test_a_function_of_a_string_is_called_again_if_it_reads_other_columns() -> None:
    def length(row: Any) -> int:
        return len(row.s)

    circuit = deltic.Circuit()
    t = circuit.input("t", schema={"n": int, "s": str})
    measured = t.map({"s": "s"}).map(length, schema={"x": int})
    circuit.output("out", measured.index_with("x").aggregate(n="sum(x)", m="sum(x + 1)"))
    with deltic.Session() as session:
        session.install(circuit)
        session.apply({"t": [{"n": i, "s": "a" * (i % 3), "_weight": 1} for i in range(9)]})
        assert [tuple(row.values()) for row in session.view("out").rows()] == [(0, 0, 3), (1, 3, 6), (2, 6, 9)]


def test_a_function_that_captures_a_loop_variable_is_refused() -> None:
    def looped(given: Callable[[int], Callable[[Any], int]]) -> list[int]:
        circuit = deltic.Circuit()
        t = circuit.input("t", schema={"a": int})
        for k in range(3):
            circuit.output(f"v{k}", t.map(given(k), schema={"x": int}))
        with deltic.Session() as session:
            session.install(circuit)
            session.apply({"t": [{"a": 5, "_weight": 1}]})
            return [row["x"] for k in range(3) for row in session.view(f"v{k}").rows()]

    assert looped(lambda k: lambda row, k=k: row.a * k) == [0, 5, 10]

    circuit = deltic.Circuit()
    t = circuit.input("t", schema={"a": int})
    for k in range(3):
        circuit.output(f"v{k}", t.map(lambda row: row.a * k, schema={"x": int}))  # noqa: B023  what it is about
    with deltic.Session() as session, pytest.raises(CircuitError, match=r"<lambda> .* captures has changed") as caught:
        session.install(circuit)
    assert "lambda row, k=k" in str(caught.value)


def test_getters_of_the_library_are_identified_by_their_keys() -> None:
    one, other = operator.itemgetter(0), operator.itemgetter(1)
    made = {"x": int}
    assert installed(lambda t: t.map(one, schema=made).plus(t.map(other, schema=made))) == [{"x": x} for x in (1, 2, 5, 6)]
    assert installed(lambda t: t.map(operator.attrgetter("b"), schema=made)) == [{"x": 5}, {"x": 6}]
    assert len({functions.digest_of(f) for f in (one, other, operator.attrgetter("a"), operator.methodcaller("index", 1))}) == 4
    assert functions.digest_of(operator.itemgetter(0)) == functions.digest_of(one)


def _note(noted: list[int]) -> None:
    noted.append(1)


def test_an_invalid_element_is_named_although_the_result_is_reused() -> None:
    with pytest.raises(EvaluationError, match="<lambda> returned None as value 2"):
        installed(lambda t: t.map(lambda row: (row.a + 1, None if row.a > 1 else 1, "x"), schema={"x": int, "y": int, "z": str}))


@pytest.mark.usefixtures("repeated_calls")
def test_a_function_that_makes_other_tuples_as_many_is_impure() -> None:
    class Wandering:
        def __init__(self) -> None:
            self.calls = 0

        def __call__(self, row: Any) -> list[tuple[int]]:
            self.calls += 1
            return [(self.calls,)]

    with pytest.raises(ImpureFunction, match="Wandering returned"):
        installed(lambda t: t.flat_map(Wandering(), schema={"x": int}))


def test_a_digest_covers_the_users_function_and_not_its_wrapper() -> None:
    def one(row: Any) -> list[Any]:
        return [(row.a, None, 1)]

    def other(row: Any) -> list[Any]:
        return [(row.b, None, 1)]

    def around(role: str, *logics: Callable[..., Any], change: int = 0) -> str:
        return functions.digest_of(functions.wrapper_of(role, *logics)(lambda row: change))

    assert around("role", one) == around("role", one, change=1)
    assert len({around("role", one), around("role", other), around("another", one), around("role", one, other)}) == 4

    made, circuit = {"x": int}, deltic.Circuit()
    t = circuit.input("t", schema={"a": int, "b": int})
    streams = t.flat_map(one, schema=made), t.explode(one, schema=made), t.join_function(one, schema=made)
    streams = *streams, t.followed_by(one, one, schema=made), t.index_with("a").aggregate(one, schema=made)
    called = [function for stream in streams for function in user_functions(stream.plan)]
    assert len(called) >= 5
    for function in called:
        assert isinstance(vars(function.call.function)[functions.WRAPPER], functions.Wrapper), function


class Counting:
    """A function that counts its calls."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.calls = function, 0

    def __call__(self, *arguments: Any) -> Any:
        self.calls += 1
        return self.function(*arguments)


Placed = Callable[[deltic.Stream, Any], deltic.Stream]
BY_ROW: dict[str, tuple[Callable[[Any], Any], Placed]] = {
    "map": (lambda row: row.a + 1, lambda t, f: t.map(f, schema={"x": int})),
    "filter": (lambda row: row.a > 1, lambda t, f: t.filter(f)),
    "index_with": (lambda row: row.a + 1, lambda t, f: t.index_with(f, schema={"x": int}).count()),
    "flat_map": (lambda row: [row.a, row.b], lambda t, f: t.flat_map(f, schema={"x": int})),
    "explode": (lambda row: [(row.a, 2)], lambda t, f: t.explode(f, schema={"x": int})),
    "join_function": (lambda row: [(row.a, None, 1)], lambda t, f: t.join_function(f, schema={"x": int})),
    "followed_by": (
        lambda row: [(row, None, 1)],
        lambda t, f: t.followed_by(f, lambda row: [(row.a, None, 1)], schema={"x": int}),
    ),
    "aggregate": (len, lambda t, f: t.index_with("a").aggregate(f, schema={"n": int})),
    "temporal_filter": (lambda row: datetime(2023, 1, 1, tzinfo=UTC), lambda t, f: t.temporal_filter(lower=f)),
}
BY_BATCH: dict[str, tuple[Callable[[Any], Any], Placed]] = {
    "map": (lambda b: pc.add(b["a"], 1), lambda t, f: t.map(f, schema={"x": int}, on_batches=True)),
    "filter": (lambda b: pc.greater(b["a"], 1), lambda t, f: t.filter(f, on_batches=True)),
    "flat_map": (
        lambda b: pa.record_batch({"_row": pa.array(range(b.num_rows), pa.int64()), "x": b["a"]}),
        lambda t, f: t.flat_map(f, schema={"x": int}, on_batches=True),
    ),
}


def calls_of(function: Callable[[Any], Any], place: Placed) -> int:
    """How many calls 10 new rows need."""
    counting = Counting(function)
    circuit = deltic.Circuit()
    circuit.output("out", place(circuit.input("t", schema={"a": int, "b": int}), counting))
    with deltic.Session() as session:
        session.advance_to(datetime(2024, 1, 1, tzinfo=UTC))
        session.install(circuit)
        assert counting.calls == 0
        session.apply({"t": [{"a": a, "b": 7, "_weight": 1} for a in range(10)]})
    return counting.calls


@pytest.mark.parametrize("name", BY_ROW)
def test_a_function_is_called_once_for_each_row(name: str) -> None:
    assert calls_of(*BY_ROW[name]) == 10


@pytest.mark.parametrize("name", BY_BATCH)
def test_a_function_on_batches_is_called_once(name: str) -> None:
    assert calls_of(*BY_BATCH[name]) == 1


@pytest.mark.usefixtures("repeated_calls")
def test_repeated_calls_are_two_for_each_row() -> None:
    assert calls_of(*BY_ROW["map"]) == 20
    assert calls_of(*BY_BATCH["map"]) == 2


@pytest.mark.parametrize(("on_batches", "calls"), [(False, 10), (True, 1)])
def test_a_function_in_sql_is_called_once_for_each_row(on_batches: bool, calls: int) -> None:
    counting = Counting(lambda value: pc.add(value, 1) if on_batches else value + 1)

    def next_one(value: Any) -> Any:
        return counting(value)

    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a BIGINT NOT NULL)")
        session.register("next_one", next_one, returns=int, on_batches=on_batches)
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT next_one(a) AS x, next_one(a) + 1 AS y FROM t WHERE next_one(a) > 0")
        counting.calls = 0
        session.apply({"t": [{"a": a, "_weight": 1} for a in range(10)]})
        assert counting.calls == calls
