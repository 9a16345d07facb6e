"""Datalog programs in a session: their relations by hand, and their place among SQL's tables and views."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.errors import (
    AbsentRow,
    ArithmeticOverflow,
    CastFailure,
    CatalogError,
    DatalogWarning,
    DivisionByZero,
    DuplicateKey,
    EvaluationError,
    TypeMismatch,
    Unsupported,
)
from deltic.frontends.datalog import bind_datalog
from deltic.frontends.datalog.facts import text_of, value_of
from deltic.frontends.datalog.kinds import TIME_KIND
from deltic.frontends.datalog.shown_values import shown_value
from session_rows import rows_of_view

GRAPH = """
input relation Edge(from: u32, to: u32)
output relation Path(from: u32, to: u32)
relation Node(x: u32)
output relation Unreachable(from: u32, to: u32)

Node(x), Node(y) :- Edge(x, y).
Path(x, y) :- Edge(x, y).
Path(x, z) :- Path(x, y), Edge(y, z).
Unreachable(x, y) :- Node(x), Node(y), not Path(x, y).
"""


def dicts(session: deltic.Session, table: str, content: list[Any]) -> list[dict[str, Any]]:
    names = [field.name for field in session.table(table).schema]
    return [dict(zip(names, row, strict=True)) for row in content]


def relation(program: str, name: str = "R", **tables: list[Any]) -> list[tuple[Any, ...]]:
    """The rows of a relation over these tables."""
    with deltic.Session() as session:
        session.datalog(program)
        with session.transaction() as tx:
            for table, content in tables.items():
                tx.insert(table, dicts(session, table, content))
        return rows_of_view(session, name)


def test_recursion_and_negation_follow_deletions() -> None:
    with deltic.Session() as session:
        session.datalog(GRAPH)
        with session.transaction() as tx:
            tx.insert("Edge", dicts(session, "Edge", [(1, 2), (2, 3), (3, 1)]))
        assert rows_of_view(session, "Path") == [(x, y) for x in (1, 2, 3) for y in (1, 2, 3)]
        assert rows_of_view(session, "Unreachable") == []
        with session.transaction() as tx:
            tx.delete("Edge", [(3, 1)])
        assert rows_of_view(session, "Path") == [(1, 2), (1, 3), (2, 3)]
        assert rows_of_view(session, "Unreachable") == [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)]


def test_the_input_of_a_set_is_a_set() -> None:
    with deltic.Session() as session:
        session.datalog(GRAPH)
        with pytest.raises(DuplicateKey), session.transaction() as tx:
            tx.insert("Edge", dicts(session, "Edge", [(1, 2), (1, 2)]))
        with pytest.raises(AbsentRow), session.transaction() as tx:
            tx.delete("Edge", [(1, 2)])


def test_sql_reads_datalog_and_datalog_reads_sql() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE links (a BIGINT, b BIGINT NOT NULL); CREATE VIEW loops AS SELECT a FROM links WHERE a = b")
        session.datalog("output relation Known(a: s64)\nKnown(a) :- Links(Some{a}, _), not Loops(Some{a}).")
        session.sql("CREATE MATERIALIZED VIEW total AS SELECT sum(a) AS s FROM known")
        session.datalog("output relation Big(s: s64)\nBig(s) :- Total(Some{s}), s > 3.")
        with session.transaction() as tx:
            tx.insert("links", dicts(session, "links", [(1, 2), (2, 2), (None, 3), (4, 1)]))
        assert rows_of_view(session, "known") == [(1,), (4,)]
        assert rows_of_view(session, "Big") == [(5,)]


def test_replacing_a_view_binds_the_program_again() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a BIGINT NOT NULL); CREATE VIEW v AS SELECT a FROM t")
        session.datalog("output relation R(a: s64)\nrelation S(a: s64)\nS(a) :- V(a).\nR(a + 1) :- S(a).")
        with session.transaction() as tx:
            tx.insert("t", dicts(session, "t", [(1,)]))
        session.sql("CREATE OR REPLACE VIEW v AS SELECT a * 10 AS a FROM t")
        assert rows_of_view(session, "R") == [(11,)]
        with pytest.raises(CatalogError, match="is read by view R"):
            session.sql("DROP VIEW s")


def test_a_program_is_part_of_a_pipeline_and_of_a_state(tmp_path: Path) -> None:
    (tmp_path / "graph.dl").write_text(GRAPH)
    program = deltic.Program(tmp_path / "graph.dl", "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM path")
    for edges, count in (([(1, 2)], 1), ([(2, 3)], 3)):
        with deltic.Session(state=tmp_path / "state", shards=2) as session:
            session.program(program)
            with session.transaction() as tx:
                tx.insert("Edge", dicts(session, "Edge", edges))
            assert rows_of_view(session, "n") == [(count,)]


def test_a_program_is_installed_whole_or_not_at_all() -> None:
    with deltic.Session() as session:
        with pytest.raises(deltic.errors.UnsafeRule):
            session.datalog("input relation A(x: s64)\noutput relation B(x: s64)\nB(x) :- A(x).\nB(y) :- A(x).")
        assert session.tables == session.views == ()


def test_terms() -> None:
    program = """
    typedef Shape = Circle{r: double} | Rect{w: double, h: double}
    typedef Pair<'A, 'B> = Pair{first: 'A, second: 'B}
    input relation A(id: s64, shape: Shape, pair: Pair<string, (s64, bool)>)
    output relation R(id: s64, area: double, text: string, flag: bool, n: s64)
    function area(s: Shape): double { match (s) { Circle{r} -> 3.0 * r * r, Rect{w, h} -> w * h } }
    function twice(x: 'A): ('A, 'A) = (x, x)
    function label(p: Pair<string, 'B>): string { var name = p.first; if (name == "x") "ex" else name ++ "!" }
    R(id, area(s), "${id}: ${label(p)} \\"", flag, t.1 - 1) :-
        A(id, s, p@Pair{_, (n, flag)}), var t = twice(n), var (one, two) = t, one == two, Circle{_} != s or n < 0.
    """.replace("Circle{_} != s or n < 0", "n > -5")
    content = [
        (1, {"tag": "Circle", "r": 2.0, "w": None, "h": None}, {"first": "x", "second": {"_0": 5, "_1": True}}),
        (2, {"tag": "Rect", "r": None, "w": 2.0, "h": 4.0}, {"first": "y", "second": {"_0": -4, "_1": False}}),
        (3, {"tag": "Rect", "r": None, "w": 2.0, "h": 4.0}, {"first": "y", "second": {"_0": -5, "_1": False}}),
    ]
    assert relation(program, A=content) == [(1, 12.0, '1: ex "', True, 4), (2, 8.0, '2: y! "', False, -5)]


_SHIFTED = {"s8": 8, "u8": 8, "s16": 16, "signed<5>": 5, "bit<4>": 4, "s32": 32, "u32": 32, "s64": 64, "bit<63>": 63, "u64": 64}


@pytest.mark.parametrize(
    ("kind", "term", "value"),
    [
        ("s64", "7 / -2", -3),
        ("s64", "-7 % 4", -3),
        ("u8", "(200 + 100) / 2", None),
        ("u8", "200 + 55", 255),
        ("u8", "0 - 1", None),
        ("s8", "-128", -128),
        ("u64", "18446744073709551615", Decimal(18446744073709551615)),
        ("u64", "18446744073709551615 / 2", Decimal(9223372036854775807)),
        ("bigint", "10000000000000000000 * 10000000000", Decimal(10) ** 29),
        ("bigint", "-7 / 2", Decimal(-3)),
        ("bit<4>", "15 & 6 | 8", 14),
        ("bit<4>", "~5", 10),
        ("bit<4>", "9 << 1", 2),
        ("s32", "1 << 31", -(2**31)),
        ("u8", "200 << 1", 144),
        ("s8", "1 << 7", -128),
        ("s8", "(1 as s8) << 7 >> 7", -1),
        ("signed<5>", "(5 as signed<5>) << 2", -12),
        ("signed<5>", "(-15 as signed<5>) >> 2", -4),
        ("s16", "(-3 as s16) << 1", -6),
        ("u32", "(3000000000 as u32) << 1", 1705032704),
        ("u64", "(1 as u64) << 63 >> 62", Decimal(2)),
        *((kind, f"(1 as {kind}) << {by}", 0) for kind in _SHIFTED for by in ("64", "100000000000", "(0 - 1)")),
        *((kind, f"({'-1' if kind[0] == 's' else '1'} as {kind}) >> 64", -1 if kind[0] == "s" else 0) for kind in _SHIFTED),
        *((kind, f"(1 as {kind}) << {bits}", 0) for kind, bits in _SHIFTED.items()),
        ("u16", "0xff as u16 + 1", 256),
        ("s64", "2.9 as s64", 2),
        *((kind, f"2.5 as {kind}", 2) for kind in ("s64", "u8", "u32", "s32", "u64", "bigint", "bit<4>")),
        *((kind, f"-2.75 as {kind}", -2) for kind in ("s8", "s64", "bigint")),
        ("u64", "-0.9 as u64", 0),
        ("u64", "-1.5 as u64", None),
        ("bigint", "2.5 as float as bigint", 2),
        ("bigint", "18446744073709551615 as u64 as bigint", Decimal(18446744073709551615)),
        ("u8", "300 as u8", None),
        ("double", "1 as s64 as double / 4.0", 0.25),
        ("float", "0.5", 0.5),
        ("bool", "true and not (1 > 2 or false) => 3 <= 3", True),
        ("string", '"a" ++ to_string(1) ++ "${1.5}"', "a11.5"),
        ("string", '"Ab".to_uppercase().string_substr(0, 1)', "A"),
        ("usize", '"abc".len()', 3),
        ("s64", "max(3, 4) + min(1, 2)", 5),
        ("s64", "if (1 == 2) 3 else { var x = 4; var y = x * 2; y + x }", 12),
        ("date", '"2024-02-29"', datetime.date(2024, 2, 29)),
        ("time", '"12:34:56.5"', datetime.time(12, 34, 56, 500_000)),
        ("time", '"24:00"', None),
        ("s64", 'unwrap_or("12".parse_dec_i64(), 0) + unwrap_or("x".parse_dec_i64(), 5)', 17),
        ("bool", "is_none([1, 2].nth(2)) and [1, 2].nth(1) == Some{2}", True),
        ("s64", "if let Some{x} = nth([4], 0) { x } else { 0 }", 4),
        ("Vec<s64>", "[]", []),
        ("(s64, string)", '(1, "a")', {"_0": 1, "_1": "a"}),
        ("Option<string>", "None", {"tag": "None", "x": None}),
        ("s64", "match ((1, true)) { (x, true) -> x, (_, false) -> 0 }", 1),
        ("s64", "32'd5 as s64", 5),
        ("double", "sqrt(16.0)", 4.0),
    ],
)
def test_values(kind: str, term: str, value: object) -> None:
    program = f"output relation R(x: {kind})\nrelation One(b: bool)\nOne(true).\nR({term}) :- One(_)."
    if value is None:
        with pytest.raises((ArithmeticOverflow, TypeMismatch)):
            relation(program)
    else:
        assert relation(program) == [(value,)]


def test_times_of_day() -> None:
    """They come in and go out as values and as text, and are compared with constants."""
    with deltic.Session() as session:
        session.datalog("""
            input relation A(t: time)
            output relation B(t: time, text: string, h: s32, early: bool)
            B(t, "at ${t}", hour(t), t < "10:00") :- A(t).
        """)
        with session.transaction() as tx:
            tx.insert("A", [{"t": datetime.time(9, 5)}, {"t": datetime.time(23, 59, 59, 1)}])
        assert sorted(tuple(row.values()) for row in session.view("B").rows()) == [
            (datetime.time(9, 5), "at 09:05:00", 9, True),
            (datetime.time(23, 59, 59, 1), "at 23:59:59.000001", 23, False),
        ]
    assert value_of(TIME_KIND, "1:02 PM") == datetime.time(13, 2) and value_of(TIME_KIND, "24:00") is None
    assert text_of(TIME_KIND, datetime.time(1, 2, 3)) == "01:02:03"
    assert shown_value(TIME_KIND, datetime.time(1, 2, 3)) == '"01:02:03"'


def test_numbers_out_of_range_fail_the_tick() -> None:
    with deltic.Session() as session:
        session.datalog(
            "input relation A(x: u8)\noutput relation B(x: u8)\nB(x + 1) :- A(x).\noutput relation C(x: u8)\nC(10 / x) :- A(x)."
        )
        with session.transaction() as tx:
            tx.insert("A", dicts(session, "A", [(1,)]))
        for bad, error in ((255, ArithmeticOverflow), (256, ArithmeticOverflow), (0, DivisionByZero)):
            with pytest.raises(error), session.transaction() as tx:
                tx.insert("A", dicts(session, "A", [(bad,)]))
        assert rows_of_view(session, "B") == [(2,)]


CIRCLE = {"tag": "Circle", "r": 3, "w": None, "h": None}
RECT = {"tag": "Rect", "r": None, "w": 1.0, "h": 2.0}
NONE = {"tag": "None", "x": None}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("s", {**RECT, "tag": "Square"}),
        ("s", {**RECT, "tag": None}),
        ("s", {**RECT, "r": 1}),
        ("s", {**RECT, "w": None}),
        ("s", {**CIRCLE, "r": 256}),
        ("o", {"tag": "Some", "x": None}),
        ("o", {"tag": "None", "x": {"x": 1, "y": 1}}),
        ("o", {"tag": "Some", "x": {"x": 1, "y": 16}}),
        ("v", [{"_0": 256, "_1": NONE}]),
        ("v", [{"_0": 1, "_1": NONE}, {"_0": 1, "_1": None}]),
        ("v", [None]),
    ],
)
def test_values_of_inputs_are_of_their_types(column: str, value: object) -> None:
    with deltic.Session() as session:
        session.datalog("""
            typedef Shape = Circle{r: u8} | Rect{w: double, h: double}
            typedef P = P{x: s64, y: bit<4>}
            input relation A(id: s64, s: Shape, o: Option<P>, v: Vec<(u8, Option<string>)>)
            output relation R(id: s64, s: Shape, o: Option<P>, v: Vec<(u8, Option<string>)>)
            R(i, s, o, v) :- A(i, s, o, v).
        """)
        some = {"tag": "Some", "x": {"x": 1, "y": 15}}
        good = [
            {"id": 1, "s": CIRCLE, "o": NONE, "v": []},
            {"id": 2, "s": RECT, "o": some, "v": [{"_0": 255, "_1": {"tag": "Some", "x": ""}}, {"_0": 0, "_1": NONE}]},
        ]
        with session.transaction() as tx:
            tx.insert("A", good)
        with pytest.raises(EvaluationError, match=rf"a value of the column A\.{column} is not of type"), session.transaction() as tx:
            tx.insert("A", [{**good[0], "id": 3}, {**good[1], "id": 4, column: value}])
        assert sorted(session.view("R").rows(), key=lambda row: row["id"]) == good


def test_aggregates() -> None:
    program = """
    input relation A(k: string, id: s64, v: u8)
    output relation R(k: string, n: usize, s: u8, least: u8, most: u8, kinds: usize, mean: double, first: s64, last: s64)
    R(k, n, s, least, most, kinds, mean, first.0, last.0) :-
        A(k, id, v), var g = v.group_by(k), var n = g.count(), var s = g.sum(), var least = g.min(), var most = g.max(),
        var kinds = g.count_distinct(), var mean = g.avg(), First(k, first), Last(k, last).
    relation First(k: string, p: (s64, u8))
    relation Last(k: string, p: (s64, u8))
    First(k, p) :- A(k, id, v), var p = (id, v).group_by(k).arg_min(|x| x.1).
    Last(k, p) :- A(k, id, v), var p = (id, v).group_by(k).arg_max(|x| x.1).
    """
    content = [("a", 1, 5), ("a", 2, 5), ("a", 3, 9), ("b", 4, 1)]
    expected = [("a", 3, 19, 5, 9, 2, 19 / 3, 1, 3), ("b", 1, 1, 1, 1, 1, 1.0, 4, 4)]
    assert relation(program, A=content) == expected


def test_groups_without_a_key_are_empty_without_rows() -> None:
    program = "input relation A(x: s64)\noutput relation R(n: usize)\nR(n) :- A(x), var n = x.group_by(()).count()."
    assert relation(program) == []
    assert relation(program, A=[(1,), (7,)]) == [(2,)]


def test_collections() -> None:
    program = """
    input relation A(k: s64, xs: Vec<string>)
    output relation R(k: s64, all: Vec<string>, set: Set<string>, n: usize)
    relation X(k: s64, i: s64, x: string)
    X(k, i, x) :- A(k, xs), var i = FlatMap(range_vec(0, 2, 1)), var x = FlatMap(xs).
    relation All(k: s64, v: Vec<string>)
    relation Some2(k: s64, v: Set<string>)
    All(k, v) :- X(k, _, x), var v = x.group_by(k).to_vec().
    Some2(k, v) :- X(k, _, x), var v = x.group_by(k).to_set().
    R(k, v, s, v.len()) :- All(k, v), Some2(k, s).
    """
    assert relation(program, A=[(1, ["b", "a"])]) == [(1, ["a", "a", "b", "b"], ["a", "b"], 4)]


def test_a_group_has_collections_beside_aggregates_and_functions() -> None:
    program = """
    input relation A(k: s64, x: s64)
    output relation R(k: s64, v: Vec<s64>, s: Set<s64>, n: usize, least: s64, last: s64)
    output relation Whole(v: Vec<s64>, n: usize)
    function last(v: Vec<s64>): s64 = v.nth(v.len() - 1).unwrap_or(0)
    R(k, g.to_vec(), s, g.count(), m, l) :-
        A(k, x), var y = x / 2, var g = y.group_by(k), var s = g.to_set(), var m = g.min(), m > 0, var l = g.last().
    Whole(g.to_vec(), g.count()) :- A(_, x), var g = x.group_by(()).
    """
    with deltic.Session() as session:
        session.datalog(program)
        assert rows_of_view(session, "Whole") == []
        with session.transaction() as tx:
            tx.insert("A", dicts(session, "A", [(1, 4), (1, 5), (1, 9), (2, 1), (3, 6)]))
        assert rows_of_view(session, "R") == [(1, [2, 2, 4], [2, 4], 3, 2, 4), (3, [3], [3], 1, 3, 3)]
        with session.transaction() as tx:
            tx.delete("A", dicts(session, "A", [(1, 4), (2, 1), (3, 6)]))
        assert rows_of_view(session, "R") == [(1, [2, 4], [2, 4], 2, 2, 4)]
        assert rows_of_view(session, "Whole") == [([5, 9], 2)]


def test_a_range_has_the_type_of_its_ends() -> None:
    program = """
    input relation A(x: s32, y: u8)
    output relation R(x: s32, y: u8, z: s64)
    R(x, y, z) :-
        A(n, m), var x = FlatMap(range_vec(0, n, 1)), var y = FlatMap(range_vec(m - 1, m, 1)), var z = FlatMap(range_vec(0, 1, 1)).
    output relation Below(y: u8)
    Below(y) :- A(_, m), var y = FlatMap(range_vec(0, m, 1)).
    output relation Wide(y: s32)
    Wide(y) :- A(n, m), var y = FlatMap(range_vec(m, n, 1)).
    """
    with deltic.Session() as session:
        session.datalog(program)
        with session.transaction() as tx:
            tx.insert("A", dicts(session, "A", [(3, 2)]))
        assert rows_of_view(session, "R") == [(x, 1, 0) for x in range(3)]
        assert rows_of_view(session, "Below") == [(0,), (1,)]
        assert rows_of_view(session, "Wide") == [(2,)]
        with session.transaction() as tx:
            tx.delete("A", dicts(session, "A", [(3, 2)]))
            tx.insert("A", dicts(session, "A", [(2, 255)]))
        assert len(rows_of_view(session, "Below")) == 255
        assert rows_of_view(session, "Wide") == []
    below = "input relation A(m: u8) output relation R(y: u8) R(y) :- A(m), var y = FlatMap(range_vec(0, m, 1))."
    assert relation(below, A=[(0,)]) == []


def test_a_list_is_a_set_where_one_is_expected() -> None:
    program = """
    output relation R(s: Set<s64>, v: Vec<s64>, o: Option<Set<string>>)
    R([3, 1, 3], [3, 1, 3], Some{["b", "a", "b"]}).
    """
    assert relation(program) == [([1, 3], [3, 1, 3], {"tag": "Some", "x": ["a", "b"]})]


def test_multisets_keep_derivations() -> None:
    program = """
    input multiset A(x: s64)
    output multiset B(y: s64)
    output relation C(y: s64)
    output relation N(n: usize)
    B(y) :- A(x), var y = x / 2.
    C(y) :- B(y).
    N(n) :- B(y), var n = y.group_by(()).count().
    """
    with deltic.Session() as session:
        session.datalog(program)
        with session.transaction() as tx:
            tx.insert("A", dicts(session, "A", [(2,), (2,), (3,)]))
        assert [rows_of_view(session, name) for name in "BCN"] == [[(1,)] * 3, [(1,)], [(3,)]]


def test_mutual_recursion_and_min_in_a_recursion() -> None:
    program = """
    output relation Even(x: s64)
    output relation Odd(x: s64)
    Even(0).
    Odd(x + 1) :- Even(x), x < 6.
    Even(x + 1) :- Odd(x), x < 6.
    input relation Edge(x: string, y: string, cost: s64)
    output relation Best(x: string, cost: s64)
    Best(x, d) :- Way(x, c), var d = c.group_by(x).min().
    relation Way(x: string, cost: s64)
    Way("a", 0).
    Way(y, d + c) :- Best(x, d), Edge(x, y, c).
    """
    edges = [("a", "b", 4), ("a", "c", 1), ("c", "b", 2), ("b", "a", 1)]
    assert relation(program, "Best", Edge=edges) == [("a", 0), ("b", 3), ("c", 1)]
    assert relation(program, "Even") == [(0,), (2,), (4,), (6,)]


CONTROL = """
    input relation Owns(owner: string, of: string, percent: u8)
    relation Share(owner: string, through: string, of: string, percent: u8)
    output relation Controls(owner: string, of: string)
    Share(a, a, b, p) :- Owns(a, b, p).
    Share(a, b, c, p) :- Controls(a, b), Owns(b, c, p).
    Controls(a, b) :- Share(a, _, b, p), var sum = p.group_by((a, b)).sum(), sum > 50.

    input relation Friend(x: s64, y: s64)
    input relation Host(x: s64)
    output relation Comes(x: s64)
    Comes(x) :- Host(x).
    Comes(x) :- Friend(x, y), Comes(y), var n = y.group_by(x).count(), n >= 2.

    input relation Link(x: s64, y: s64, chance: double)
    output relation Likeliest(x: s64, y: s64, chance: double)
    relation Way(x: s64, y: s64, chance: double)
    Way(x, y, c) :- Link(x, y, c).
    Way(x, z, c * d) :- Likeliest(x, y, c), Link(y, z, d), d >= 0.0.
    Likeliest(x, y, c) :- Way(x, y, chance), var c = chance.group_by((x, y)).max().
    """


def test_counts_sums_and_products_in_a_recursion_follow_deletions() -> None:
    with deltic.Session() as session:
        session.datalog(CONTROL)
        with session.transaction() as tx:
            tx.insert("Owns", dicts(session, "Owns", [("a", "b", 60), ("b", "c", 30), ("a", "c", 30), ("c", "d", 51), ("d", "a", 10)]))
            tx.insert("Friend", dicts(session, "Friend", [(3, 1), (3, 2), (4, 3), (4, 1), (5, 4), (5, 5)]))
            tx.insert("Host", dicts(session, "Host", [(1,), (2,)]))
            tx.insert("Link", dicts(session, "Link", [(1, 2, 0.5), (2, 1, 0.5), (2, 3, 0.5), (1, 3, 0.125)]))
        assert rows_of_view(session, "Controls") == [("a", "b"), ("a", "c"), ("a", "d"), ("c", "d")]
        assert rows_of_view(session, "Comes") == [(1,), (2,), (3,), (4,)]
        assert rows_of_view(session, "Likeliest") == [(1, 1, 0.25), (1, 2, 0.5), (1, 3, 0.25), (2, 1, 0.5), (2, 2, 0.25), (2, 3, 0.5)]
        with session.transaction() as tx:
            tx.delete("Owns", dicts(session, "Owns", [("b", "c", 30)]))
            tx.delete("Host", [2])
            tx.delete("Link", dicts(session, "Link", [(2, 3, 0.5)]))
        assert rows_of_view(session, "Controls") == [("a", "b"), ("c", "d")]
        assert rows_of_view(session, "Comes") == [(1,)]
        assert rows_of_view(session, "Likeliest") == [(1, 1, 0.25), (1, 2, 0.5), (1, 3, 0.125), (2, 1, 0.5), (2, 2, 0.25), (2, 3, 0.0625)]


def test_an_aggregate_of_souffle_in_a_cycle_is_refused_by_the_relations_of_the_text() -> None:
    program = """
    .decl edge(x: number, y: number)
    .input edge
    .decl p(x: number)
    .output p
    p(x) :- edge(x, _), n = count : { edge(x, y), p(y) }, n >= 1.
    """
    with deltic.Session() as session, pytest.raises(Unsupported, match="relation p depends on itself through an aggregate: p → p"):
        session.datalog(program, dialect="souffle")


def test_records_and_named_arguments() -> None:
    program = (
        """
    typedef Person = Person{id: s64, name: string}
    input relation People[Person] primary key (p) p.id
    output relation R[Person]
    output relation S(.x: s64)
    """.replace(".x", "x")
        + """
    R[p] :- p in People(.name = "a").
    R[Person{.id = 9, .name = p.name}] :- People[p], p.id > 1.
    S(.x = i) :- People(.id = i).
    """
    )
    assert relation(program, "R", People=[(1, "a"), (2, "b")]) == [(1, "a"), (9, "b")]
    assert relation(program, "S", People=[(1, "a"), (2, "b")]) == [(1,), (2,)]


def doubled(x: int) -> int:
    return 2 * x


def maybe(x: int) -> int | None:
    return x if x > 1 else None


def longest(texts: list[str]) -> str:
    return max(texts, key=len)


def test_functions_in_python() -> None:
    program = """
    extern function doubled(x: s64): s64
    extern function maybe(x: s64): Option<s64>
    input relation A(x: s64, t: string)
    output relation R(x: s64, y: Option<s64>)
    output relation L(t: string)
    R(doubled(x), maybe(x)) :- A(x, _).
    L(t) :- A(_, s), var t = s.group_by(()).longest2().
    function longest2(v: Vec<string>): string = unwrap_or(longest(v), "")
    """
    with deltic.Session() as session:
        for function, result in ((doubled, "BIGINT"), (maybe, "BIGINT"), (longest, "STRING")):
            session.register(function.__name__, function, result)
        session.datalog(program)
        with session.transaction() as tx:
            tx.insert("A", dicts(session, "A", [(1, "a"), (2, "bcd")]))
        assert rows_of_view(session, "R") == [(2, {"tag": "None", "x": None}), (4, {"tag": "Some", "x": 2})]
        assert rows_of_view(session, "L") == [("bcd",)]


def test_warnings() -> None:
    program = "input relation A(x: s64)\nrelation B(x: s64)\nrelation C(x: s64)\noutput relation D(x: s64)\nD(x) :- C(x).\nB(1)."
    assert [message for message, _ in bind_datalog(program, "p").warnings()] == [
        "nothing reads the input relation A",
        "nothing reads the relation B, and it is not an output",
        "the relation C is empty: no rule derives it",
        "the relation D is empty: every rule that derives it reads an empty relation",
    ]
    with deltic.Session() as session, pytest.warns(DatalogWarning) as caught:
        session.datalog(program)
    assert str(caught[0].message) == "<datalog>:1:16: nothing reads the input relation A"
    assert len(caught) == 4 and caught[0].filename == __file__


@pytest.mark.parametrize("kind", ["s64", "u8", "u64", "bigint", "bit<4>"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_no_integer_is_fails_to_become_one(kind: str, value: float) -> None:
    with deltic.Session() as session:
        session.datalog(f"input relation A(x: double) output relation B(y: {kind}) B(x as {kind}) :- A(x).")
        with pytest.raises(CastFailure, match="cannot be cast to BIGINT due to an overflow"):
            session.apply({"A": [{"x": value, "_weight": 1}]})
