"""What a state takes over of circuits made in Python: recursions under other names, and functions that the program supplies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.errors import DataError, Divergence, SetupError, StateError
from deltic.plan.fingerprint import fingerprint

PAIR = {"src": int, "dst": int}


def joined(key: int, path: Any, edge: Any) -> Any:
    return (path.src, edge.dst)


def closure(name: str, limit: int = 100, column: str = "dst", inner: str = "") -> deltic.Circuit:
    """inner: the name of a recursion in the recursion, which is the same."""
    circuit = deltic.Circuit()
    edges = circuit.input("edges", schema=PAIR)

    @circuit.recursive(name, schema={"src": int, column: int}, limit=limit)
    def paths(paths: deltic.Stream) -> deltic.Stream:
        step = paths.index_with(column).join(edges.index_with("src"), lambda key, path, edge: (path.src, edge.dst))
        if not inner:
            return edges.plus(step).distinct()

        @circuit.recursive(inner, schema=PAIR, limit=limit)
        def more(more: deltic.Stream) -> deltic.Stream:
            return step.plus(more.index_with("dst").join(paths.index_with("src"), joined)).distinct()

        return edges.plus(more).distinct()

    circuit.output("paths", paths)
    return circuit


def rows(session: deltic.Session, view: str = "paths") -> set[tuple[Any, ...]]:
    return {tuple(row.values()) for row in session.view(view).rows()}


@pytest.mark.parametrize("inner", ["", "one"])
def test_a_recursion_of_another_name_or_limit_keeps_its_state(tmp_path: Path, inner: str) -> None:
    before = closure("paths", inner=inner)
    after = closure("ways", limit=50, inner=inner and "other")
    assert fingerprint(before.outputs["paths"]) == fingerprint(after.outputs["paths"])
    with deltic.Session(state=str(tmp_path)) as session:
        session.install(before)
        session.apply({"edges": [{"src": a, "dst": b, "_weight": 1} for a, b in ((1, 2), (2, 3), (3, 4))]})
        content = rows(session)
    with deltic.Session(state=str(tmp_path)) as session:
        epoch = session.epoch
        session.install(after)
        assert session.epoch == epoch and rows(session) == content == {(a, b) for a in range(1, 5) for b in range(a + 1, 5)}
        session.apply({"edges": [{"src": 2, "dst": 3, "_weight": -1}]})
        assert rows(session) == {(1, 2), (3, 4)}
    with deltic.Session(state=str(tmp_path)) as session:
        session.install(closure("ways", column="dst" if inner else "end", inner=inner))
        assert rows(session) == {(1, 2), (3, 4)}


def test_recursions_that_differ_only_in_names_and_limits_coexist() -> None:
    """Each with its own limit: the one that has too few iterations fails, until it goes."""
    with deltic.Session() as session:
        for name, circuit in (("a", closure("a")), ("b", closure("b")), ("c", closure("a", 3)), ("d", closure("a", column="end"))):
            circuit.outputs[name] = circuit.outputs.pop("paths")
            session.install(circuit)
        session.apply({"edges": [{"src": n, "dst": n + 1, "_weight": 1} for n in range(3)]})
        assert rows(session, "a") == rows(session, "b") == rows(session, "c") == rows(session, "d") and len(rows(session, "a")) == 6
        with pytest.raises(Divergence, match=r"relation a has not converged after 3 iterations"):
            session.apply({"edges": [{"src": n, "dst": n + 1, "_weight": 1} for n in range(3, 6)]})
        session.sql("DROP VIEW c")
        session.apply({"edges": [{"src": n, "dst": n + 1, "_weight": 1} for n in range(3, 6)]})
        assert len(rows(session, "a")) == len(rows(session, "d")) == 21


def counting(limit: int) -> deltic.Circuit:
    circuit = deltic.Circuit()
    start = circuit.input("start", schema={"n": int})
    count = circuit.recursive("count", schema={"n": int}, limit=limit)(lambda count: start.plus(count.map({"n": "n + 1"})))
    circuit.output("all", count)
    return circuit


def test_the_limit_of_a_session_is_one_of_each_recursion() -> None:
    with pytest.raises(SetupError, match="iteration_limit=-1"):
        deltic.Session(iteration_limit=-1)
    for limit, most, expected in ((5, None, 5), (5, 7, 5), (50, 7, 7)):
        with deltic.Session(iteration_limit=most) as session:
            session.install(counting(limit))
            with pytest.raises(
                Divergence, match=rf"count has not .* after {expected} iterations: the last ones changed 1, 1, 1 rows, such"
            ):
                session.apply({"start": [{"n": 0, "_weight": 1}]})
            assert session.view("all").rows() == []
    with deltic.Session(iteration_limit=4) as session:
        session.sql("CREATE TABLE t (n INT NOT NULL)")
        counted = "WITH RECURSIVE c (n) AS (SELECT n FROM t UNION ALL SELECT n + 1 FROM c WHERE n < 9) SELECT * FROM c"
        session.sql(f"CREATE MATERIALIZED VIEW v AS {counted}")
        session.apply({"t": [{"n": 6, "_weight": 1}]})
        with pytest.raises(Divergence, match="after 4 iterations"):
            session.apply({"t": [{"n": 1, "_weight": 1}]})


def mapped(function: Callable[[Any], Any], view: str = "out") -> deltic.Circuit:
    circuit = deltic.Circuit()
    edges = circuit.input("edges", schema=PAIR)
    circuit.output(view, edges.inspect(lambda change: None).map(function, schema={"n": int}))
    return circuit


def twice(row: Any) -> int:
    return int(row.src * 2)


def unnamed(n: int) -> Callable[[Any], Any]:
    return lambda row: row.src * n


def thrice(row: Any) -> int:
    return int(row.src * 3)


def test_a_state_names_its_functions_and_a_program_must_supply_them(tmp_path: Path) -> None:
    other = lambda row: row.src * 5  # noqa: E731
    other.__qualname__, other.__module__ = twice.__qualname__, twice.__module__
    name = f"{twice.__module__}.twice"
    with deltic.Session(state=str(tmp_path)) as session:
        session.install(mapped(twice))
        session.apply({"edges": [{"src": 1, "dst": 2, "_weight": 1}]})
        assert list(session.notes["functions"]) == [name] and "src" not in str(session.notes["functions"])
    with deltic.Session(state=str(tmp_path)) as session:
        before = (session.epoch, session.notes)
        for wrong, match in ((thrice, f"that use the function {name}, which the program lacks"), (other, f"{name} has changed since")):
            with pytest.raises(StateError, match=match):
                session.install(mapped(wrong))
        with pytest.raises(StateError, match=name):
            session.sql("CREATE TABLE t (n INT)")
        assert (session.epoch, session.notes) == before
        session.install(mapped(twice))
        assert session.epoch == before[0] and rows(session, "out") == {(2,)}
        session.install(mapped(thrice, "more"))
        session.sql("DROP VIEW out")
        assert rows(session, "more") == {(3,)} and list(session.notes["functions"]) == [f"{thrice.__module__}.thrice"]
    with deltic.Session(state=str(tmp_path)) as session:
        session.install(mapped(twice), replace=True)
        assert rows(session, "out") == {(2,)} and list(session.notes["functions"]) == [name]
        with pytest.raises(DataError, match="is reserved"):
            session.apply({}, notes={"functions": {}})
        session.sql("DROP VIEW out")
        assert "functions" not in session.notes


def test_a_lambda_has_no_name_and_may_become_another(tmp_path: Path) -> None:
    for n in (2, 3):
        with deltic.Session(state=str(tmp_path)) as session:
            session.install(mapped(unnamed(n)))
            if n == 2:
                session.apply({"edges": [{"src": 1, "dst": 2, "_weight": 1}]})
            assert rows(session, "out") == {(n,)}
