"""Accumulators of Datalog with Sets and Maps: their elements are rows, changed in place, and what rules read of them."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import deltic
from deltic.errors import EvaluationError, QueryError
from deltic.plan.accumulators import AccumulateElements
from deltic.plan.evaluate import Moment, evaluate
from deltic.plan.relation import Relation
from deltic.plan.walk import nodes
from deltic.session import Datalog
from deltic.session.catalog import Catalog
from deltic.session.datalog import datalog_statements
from deltic.session.draft import Draft
from parts import slow
from seeds import rotating
from session_rows import touched_rows

STREAM = "input stream S(k: s64, v: s64)\n"
FOLD = "S(k, v), var a = v.stream_aggregate(k, "
STEPS = {
    "Set<s64>": (
        "|a: Set<s64>, v, _w| a.insert_imm(v), []",
        "|a: Set<s64>, v, w| if (a.contains(v)) a.remove_imm(v) else a.insert_imm(v).insert_imm(v * w + 1), set_empty()",
        "|a: Set<s64>, v, _w| if (v == 0) None else if (a.insert_imm(v).len() > 4) Some{set_singleton(v)} else Some{a.insert_imm(v)}, []",
        "|a: Set<s64>, v, _w| if (v == 1) a.union(set_singleton(7)) else { var b = a.remove_imm(v - 1); b.insert_imm(v) }, []",
    ),
    "(s64, Set<s64>)": (
        "|a: (s64, Set<s64>), v, w| (a.0 + w, a.1.insert_imm(v)), (0, [])",
        "|a: (s64, Set<s64>), v, w| if (a.1.contains(v)) a else ((a.1.len() as s64) * 10 + v, a.1.insert_imm(v)), (0, [])",
        "|a: (s64, Set<s64>), v, w| (a.0 + 1, if (a.0 % 3 == 2) set_empty() else a.1.insert_imm(v + w)), (0, [])",
        "|a: (s64, Set<s64>), v, _w| { var b = a.1.insert_imm(v); (if (b.len() > 2) 1 else a.0, b) }, (0, [])",
    ),
    "Map<s64, s64>": (
        "|m: Map<s64, s64>, v, w| m.insert_imm(v, unwrap_or(m.get(v), 0) + w), map_empty()",
        "|m: Map<s64, s64>, v, _w| if (m.contains_key(v)) m.remove_imm(v) else m.insert_imm(v, m.size() as s64), [1 -> 1]",
        "|m: Map<s64, s64>, v, w| if (m.size() > 2) None else Some{m.insert_imm(v, w).insert_imm(v + 1, v)}, map_empty()",
    ),
    "Vec<s64>": (
        "|a: Vec<s64>, v, _w| a.push_imm(v), []",
        "|a: Vec<s64>, v, w| if (a.len() > 3) [v, w] else a.push_imm(v).push_imm(a.len() as s64), [7]",
        "|a: Vec<s64>, v, _w| if (a.push_imm(v).contains(4)) None else Some{a.push_imm(unwrap_or(a.nth(1), v))}, []",
    ),
    "(Vec<s64>, Set<s64>)": (
        "|a: (Vec<s64>, Set<s64>), v, _w| (if (a.1.contains(v)) a.0.push_imm(v) else a.0,"
        " a.1.union(set_singleton(v).insert_imm(v + 1))), ([], [])",
        "|a: (Vec<s64>, Set<s64>), v, _w| (a.0.push_imm(a.0.len() as s64), if (a.0.len() > 2) [] else a.1.insert_imm(v)), ([5, 5], [])",
    ),
    "(Map<s64, s64>, Set<s64>)": (
        "|a: (Map<s64, s64>, Set<s64>), v, w| (a.0.insert_imm(v, a.1.len() as s64), if (a.0.contains_key(v)) a.1.insert_imm(v) else a.1),"
        " (map_empty(), [])",
        "|a: (Map<s64, s64>, Set<s64>), v, _w| match (a.0.get(v)) { None -> (a.0.insert_imm(v, 0), a.1), Some{x} ->"
        " (a.0.insert_imm(v, x + 1), a.1.insert_imm(x)) }, (map_empty(), [])",
    ),
}


def rules(kind: str, step: str) -> str:
    """Relations of all that is used of the accumulator: of its elements, its sizes and columns, of both, and of the whole."""
    lines = [STREAM]
    whole = "a" if not kind.startswith("(") else None
    parts = [f"a.{i}" if whole is None else "a" for i, part in enumerate(_parts(kind)) if part != "s64"]
    plain = [f"a.{i}" for i, part in enumerate(_parts(kind)) if part == "s64" and whole is None]
    for i, part in enumerate(parts):
        is_map = "Map" in [one for one in _parts(kind) if one != "s64"][i]
        pattern, columns = ("(var x, var y)", "x, y") if is_map else ("var x", "x, 0")
        lines.append(f"output relation E{i}(k: s64, x: s64, y: s64)\nE{i}(k, {columns}) :- {FOLD}{step}), {pattern} = FlatMap({part}).")
        lines.append(f"output relation N{i}(k: s64, n: usize)\nN{i}(k, {part}.len()) :- {FOLD}{step}).")
        both = plain[0] if plain else f"{part}.len() as s64"
        lines.append(
            f"output multiset B{i}(k: s64, x: s64, n: s64)\nB{i}(k, x, {both}) :- {FOLD}{step}), {pattern} = FlatMap({part}), x > 0."
        )
    lines.append(f"output multiset W(k: s64, a: {kind})\nW(k, a) :- {FOLD}{step}).")
    return "\n".join(lines)


def _parts(kind: str) -> list[str]:
    return kind.strip("()").replace("Map<s64, s64>", "Map").split(", ")


def _distinct(part: str, values: list[Any]) -> list[Any]:
    """What a relation has of the elements."""
    return sorted({*values}) if part.startswith("Vec") else sorted(values)


def elements(value: Any) -> list[tuple[Any, Any]]:
    """Those of a Set or Map in W."""
    return [tuple(one) if isinstance(one, tuple) else (one, 0) for one in value]


def check(kind: str, step: str, seed: int, options: dict[str, Any]) -> int:
    """Equal to the oracle, in which W is folded as one value; and what is read of the parts to what W has. Returns how many rows E had."""
    text, random, total = rules(kind, step), Random(seed), 0
    draft = Draft(Catalog())
    for statement in datalog_statements(Datalog(text), draft, warn=False):
        draft.apply(statement)
    plans = draft.catalog.plans()
    copied = {name for name, plan in plans.items() if not any(isinstance(one, AccumulateElements) for one in nodes(plan))}
    assert copied == {"W"}
    moments: list[Moment] = [Moment({"S": Relation()})]
    session = deltic.Session(**options)
    session.datalog(text)
    try:
        for tick in range(6):
            if "state" in options and tick % 2:
                session.close()
                session = deltic.Session(**options)
                session.datalog(text)
            rows = [(random.randrange(2), random.randrange(6)) for _ in range(random.randrange(1, 5))]
            session.apply({"S": [{"k": k, "v": v, "_weight": 1} for k, v in rows]})
            tables = {"S": Relation((row, 1) for row in rows)}
            moments.append(Moment(tables))
            for name, plan in plans.items():
                kept = session.view(name).rows()
                if name != "W":
                    contents = Relation((tuple(row.values()), 1) for row in kept)
                    assert contents == evaluate(plan, tables, past=moments[:-1]), (tick, name, step)
            whole = {row["k"]: row["a"] for row in session.view("W").rows()}
            if isinstance(next(iter(whole.values()), None), dict):
                whole = {k: [value for value in a.values() if not isinstance(value, int)] for k, a in whole.items()}
            else:
                whole = {k: [a] for k, a in whole.items()}
            for i in range(len([one for one in _parts(kind) if one != "s64"])):
                part = [one for one in _parts(kind) if one != "s64"][i]
                expected = _distinct(part, [(k, *one) for k, values in whole.items() for one in elements(values[i])])
                assert sorted(tuple(row.values()) for row in session.view(f"E{i}").rows()) == expected, (tick, step)
                assert {row["k"]: row["n"] for row in session.view(f"N{i}").rows()} == {k: len(values[i]) for k, values in whole.items()}
                total += len(expected)
    finally:
        session.close()
    return total


CASES = [(kind, step) for kind, steps in STEPS.items() for step in steps]


@pytest.mark.parametrize("number", [1, 6, 11, *slow(*(i for i in range(len(CASES)) if i not in (1, 6, 11)))])
def test_steps(number: int, tmp_path: Path) -> None:
    options: list[dict[str, Any]] = [{}, {"shards": 3}, {"state": tmp_path / "state"}]
    assert check(*CASES[number], number, options[number % 3]) > 5


@pytest.mark.slow
def test_steps_on_many_rows(tmp_path: Path) -> None:
    for seed in rotating(10):
        for number, (kind, step) in enumerate(CASES):
            options: list[dict[str, Any]] = [{}, {"shards": 3}, {"state": tmp_path / f"s{seed} {number}"}]
            check(kind, step, seed, options[(seed + number) % 3])


@pytest.mark.slow
@pytest.mark.spark
def test_steps_on_spark(spark: Any, tmp_path: Path) -> None:
    for number in (1, 5, 8, 11):
        check(*CASES[number], number, {"spark": spark, "state": tmp_path / f"s{number}"})


@pytest.mark.parametrize(
    ("kind", "step", "read"),
    [
        ("Set<s64>", "if (a.contains(v)) a else a.insert_imm(v), []", "var x = FlatMap(a)"),
        (
            "(usize, Map<s64, s64>)",
            "(a.0 + 1, a.1.insert_imm(v, unwrap_or(a.1.get(v), 0) + 1)), (0, map_empty())",
            "(var x, _) = FlatMap(a.1)",
        ),
        ("Vec<s64>", "if (v == 5) a else a.push_imm(v), []", "var x = FlatMap(a)"),
    ],
)
def test_a_large_set_or_map_is_not_copied(kind: str, step: str, read: str) -> None:
    """One more value costs some rows, whatever there is."""
    text = f"{STREAM}output relation E(k: s64, x: s64)\nE(k, x) :- {FOLD}|a: {kind}, v, _w| {step}), {read}."
    with deltic.Session() as session:
        session.datalog(text)
        session.apply({"S": [{"k": 1, "v": value, "_weight": 1} for value in range(2_000)]})
        session.apply({"S": [{"k": 1, "v": -1, "_weight": 1}, {"k": 1, "v": 5, "_weight": 1}]})
        assert session.view("E").changes().to_pylist() == [{"k": 1, "x": -1, "_weight": 1}]
        assert session.last_tick is not None
        assert touched_rows(session) < 300


def test_a_step_that_fails_changes_nothing() -> None:
    text = (
        f"{STREAM}output relation E(k: s64, x: s64)\nE(k, x) :- {FOLD}|a: Set<s64>, v, _w| a.insert_imm(12 / v), []), var x = FlatMap(a)."
    )
    with deltic.Session() as session:
        session.datalog(text)
        session.apply({"S": [{"k": 1, "v": 4, "_weight": 1}]})
        with pytest.raises(EvaluationError):
            session.apply({"S": [{"k": 1, "v": 3, "_weight": 1}, {"k": 1, "v": 5, "_weight": 1}, {"k": 2, "v": 0, "_weight": 1}]})
        assert session.view("E").rows() == [{"k": 1, "x": 3}]
        session.apply({"S": [{"k": 1, "v": 6, "_weight": 1}]})
        assert session.view("E").rows() == [{"k": 1, "x": 2}, {"k": 1, "x": 3}]


@pytest.mark.parametrize(
    ("step", "copied"),
    [
        ("a.insert_imm(if (size(array_intersect(a, a)) > 1) v else v + 1)", False),  # other functions read the whole set
        ("if (v < 3) a.insert_imm(v + 1) else set_singleton(v).union(a).remove_imm(1)", True),  # it becomes another one
        ("a.insert_imm(if ([0 -> 1].insert_imm(a.len() as s64, 2).size() > 1) v else v + 1)", True),  # a lambda reads it, row by row
    ],
)
def test_steps_that_read_the_whole_set(step: str, copied: bool) -> None:
    text = f"{STREAM}output relation N(k: s64, n: usize)\nN(k, a.len()) :- {FOLD}|a: Set<s64>, v, _w| {step}, [])."
    with deltic.Session() as session:
        session.datalog(text)
        assert any(isinstance(one, AccumulateElements) for one in nodes(session._relations.relation("N"))) is not copied  # type: ignore[arg-type]
        session.apply({"S": [{"k": 1, "v": value, "_weight": 1} for value in (1, 2, 3)]})
        assert session.view("N").rows() == [{"k": 1, "n": 2}]


def test_one_set_of_all_rows_every_second_transaction() -> None:
    """Without keys, its size and its elements are joined as they are."""
    text = f"""{STREAM}
        output relation E(x: s64, n: usize)
        E(x, a.1.len()) :- S(_, v), var a = v.stream_aggregate((), |a: (s64, Set<s64>), v, w| (a.0 + w, a.1.insert_imm(v)), (0, []), 2),
            var x = FlatMap(a.1), x != a.0.
    """
    with deltic.Session() as session:
        session.datalog(text)
        before: list[int] = []
        expected: list[tuple[int, int]] = []
        for values in ((1, 2), (2, 3), (3,), (4, 4)):
            session.apply({"S": [{"k": 1, "v": value, "_weight": 1} for value in values]})
            before += values
            if session.epoch % 2 == 0:
                expected = [(x, len({*before})) for x in sorted({*before}) if x != len(before)]
            assert sorted(tuple(row.values()) for row in session.view("E").rows()) == expected
        assert expected == [(1, 3), (2, 3), (3, 3)]


FUNCTIONS = """
    typedef Total = Total{sum: u64, values: Set<u32>}
    input stream S(k: s64, v: u32)
    output relation R(k: s64, sum: u64, n: usize)
    output relation Last(k: s64, v: u32)
    function add(t: Total, v: u32, w: s64): Option<Total> = {
        var sum = t.sum + (v as u64) * (w as u64);
        if (v == 0) None else Some{Total{sum, t.values.insert_imm(v)}}
    }
    function later(last: u32, v: u32, _w: s64): u32 = max(last, v)
    extern function doubled(a: s64, v: s64, w: s64): s64
    output relation D(k: s64, d: s64)
    output relation Near(k: s64, v: u32)
    function distance(p: (s64, u32)): s64 = if (p.1 > 5) 1 else 0
    R(k, t.sum, t.values.len()) :- S(k, v), var t = v.stream_aggregate(k, add, Total{0, []}).
    Last(k, last) :- S(k, v), var last = v.stream_aggregate(k, later, 0).
    D(k, d) :- S(k, v), var d = v.stream_aggregate(k, doubled, 1).
    Near(k, p.1) :- S'(k, v), var p = (k, v).group_by(k).arg_min(distance).
"""


@pytest.mark.parametrize("shards", [1, 3])
def test_the_step_is_a_function_of_the_program_or_of_python(shards: int) -> None:
    with deltic.Session(shards=shards) as session:
        session.register("doubled", lambda a, v, w: 2 * a + v * w, "BIGINT")
        session.datalog(FUNCTIONS)
        assert any(isinstance(one, AccumulateElements) for one in nodes(session._relations.relation("R")))  # type: ignore[arg-type]
        contents = []
        for values in ((7, 3, 7), (3,), (0,), (9,)):
            session.apply({"S": [{"k": 1, "v": value, "_weight": 1} for value in values]})
            contents.append([[tuple(row.values())[1:] for row in session.view(name).rows()] for name in ("R", "Last", "D", "Near")])
        assert contents == [
            [[(17, 2)], [(7,)], [((2 + 3) * 2 + 14,)], [(3,)]],
            [[(20, 2)], [(7,)], [(51,)], [(3,)]],
            [[], [(7,)], [(102,)], [(0,)]],
            [[(9, 1)], [(9,)], [(213,)], [(9,)]],
        ]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("ad, 0", "4:51: there is no function ad\n"),
        ("two, 0", "4:51: two takes 2 arguments (a, v), found 3"),
        ('add, "x"', "4:56: the value is string, not s64"),
        ("7, 0", "4:51: the step is not a closure of the accumulator"),
    ],
)
def test_errors_of_functions_as_steps(step: str, message: str) -> None:
    functions = "function add(a: s64, v: s64, _w: s64): s64 = a + v function two(a: s64, v: s64): s64 = a + v"
    rule = f"R(k, a) :- S(k, v), var a = v.stream_aggregate(k, {step})."
    with deltic.Session() as session, pytest.raises(QueryError) as caught:
        session.datalog(f"{STREAM}{functions}\noutput relation R(k: s64, a: s64)\n{rule}")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("term", "message"),
    [
        ("set_empty().len() > 0", "4:18: the type of an empty Set is not known here"),
        ("insert_imm(x) > 0", "4:18: insert_imm takes 2 to 3 arguments, found 1"),
        ("x.insert_imm(1) == x", "4:18: insert_imm does not accept s64\n"),
        ("s.insert_imm(1, 2) == s", "4:18: insert_imm takes 2 arguments, found 3"),
        ('s.insert_imm("a") == s', "4:31: the value is string, not s64"),
    ],
)
def test_errors_of_functions_of_sets(term: str, message: str) -> None:
    with deltic.Session() as session, pytest.raises(QueryError) as caught:
        session.datalog(f"\ninput relation S(x: s64, s: Set<s64>)\noutput relation R(x: s64)\nR(x) :- S(x, s), {term}.")
    assert message in str(caught.value)
