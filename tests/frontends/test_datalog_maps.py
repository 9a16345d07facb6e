"""Maps as values of Datalog: literals, functions, aggregates and FlatMap, as MAPs of SQL."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import deltic
from deltic.cli import main
from deltic.cli.exits import Exit
from deltic.errors import EvaluationError
from seeds import rotating

PROGRAM = """
typedef W<'V> = W{m: Map<string, 'V>, t: string}
function put(m: Map<'K, 'V>, k: 'K, v: 'V): Map<'K, 'V> = m.insert_imm(k, v)
input relation A(id: s64, m: Map<string, u8>) primary key (a) a.id
input relation B(k: s64, a: string, n: s64)
input relation C(id: s64, w: W<s64>) primary key (c) c.id
output multiset Functions(id: s64, m: Map<string, u8>, v: Option<u8>, ks: Vec<string>, n: usize, e: bool, c: bool)
Functions(id, m.put("x", 7).remove_imm("a"), m.get("a"), m.keys(), m.size(), m.is_empty(), contains(m, "b")) :- A(id, m).
output relation Entries(id: s64, k: string, v: u8)
Entries(id, k, v) :- A(id, m), (var k, var v) = FlatMap(m).
output multiset Groups(k: s64, m: Map<string, s64>)
Groups(k, m) :- B(k, a, n), var m = (a, n).group_by(k).to_map().
output multiset Nested(m: Map<s64, Map<string, bool>>)
Nested([id -> ["a" -> true, t -> false]]) :- C(id, W{_, t}).
Nested(if (id > 1) map_empty() else [1 -> map_empty()]) :- C(id, _).
output relation Sum(k: s64, n: s64)
Sum(k, unwrap_or(m.get("q"), 0) + w.m.size() as s64) :- Groups(k, m), C(_, w).
"""
ABSENT = {"tag": "None", "x": None}


def content(session: deltic.Session) -> dict[str, list[tuple[Any, ...]]]:
    return {name: sorted((tuple(row.values()) for row in session.view(name).rows()), key=repr) for name in session.views}


def test_maps_are_values() -> None:
    with deltic.Session() as session:
        session.datalog(PROGRAM)
        with session.transaction() as tx:
            tx.insert("A", [{"id": 1, "m": {"b": 2, "a": 1}}, {"id": 2, "m": {}}])
            tx.insert("B", [{"k": 1, "a": a, "n": n} for a, n in (("q", 4), ("p", 4), ("q", 9))])
            tx.insert("C", [{"id": 1, "w": {"m": {"z": 1}, "t": "u"}}])
        assert content(session) == {
            "Functions": [
                (1, [("b", 2), ("x", 7)], {"tag": "Some", "x": 1}, ["a", "b"], 2, False, True),
                (2, [("x", 7)], ABSENT, [], 0, True, False),
            ],
            "Entries": [(1, "a", 1), (1, "b", 2)],
            "Groups": [(1, [("p", 4), ("q", 9)])],
            "Nested": [([(1, [("a", True), ("u", False)])],), ([(1, [])],)],
            "Sum": [(1, 10)],
        }
        with session.transaction() as tx:
            tx.delete("A", [2])
            tx.upsert("A", [{"id": 1, "m": {"x": 2}}])
            tx.delete("B", [{"k": 1, "a": "q", "n": 9}])
        found = content(session)
        assert found["Functions"] == [(1, [("x", 7)], ABSENT, ["x"], 1, False, False)]
        assert (found["Groups"], found["Sum"]) == ([(1, [("p", 4), ("q", 4)])], [(1, 5)])
        with pytest.raises(EvaluationError, match="comes twice in a MAP"), session.transaction() as tx:
            tx.insert("C", [{"id": 3, "w": {"m": {}, "t": "a"}}])


def test_values_of_inputs_are_of_their_types() -> None:
    with deltic.Session() as session:
        session.datalog("input multiset A(m: Map<u8, Option<s64>>)\noutput multiset R(n: usize)\nR(m.size()) :- A(m).")
        with session.transaction() as tx:
            tx.insert("A", [{"m": {255: ABSENT, 0: {"tag": "Some", "x": 1}}}])
        for bad in ({256: ABSENT}, {1: None}, {1: {"tag": "Some", "x": None}}):
            with pytest.raises(EvaluationError, match=r"A\.m is not of type Map<u8, Option<s64>>"), session.transaction() as tx:
                tx.insert("A", [{"m": bad}])
        assert content(session) == {"R": [(2,)]}


def test_maps_of_sql_and_of_accumulators() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id BIGINT NOT NULL, m MAP<STRING, BIGINT> NOT NULL, o MAP<STRING, INT>)")
        session.datalog("""
            output relation Found(id: s64, v: Option<s64>, o: bool)
            Found(id, m.get("a"), o.is_some()) :- T(id, m, o).
            input stream Seen(user: string, page: string)
            output multiset Pages(user: string, counts: Map<string, s64>)
            Pages(u, c) :-
                Seen(u, p),
                var c = p.stream_aggregate(u, |m: Map<string, s64>, p, w| m.insert_imm(p, unwrap_or(m.get(p), 0) + w), map_empty()).
        """)
        session.sql("CREATE MATERIALIZED VIEW total AS SELECT user, counts['x'] AS x FROM pages")
        for pages in ("xy", "xx"):
            with session.transaction() as tx:
                tx.insert("Seen", [{"user": "ann", "page": page} for page in pages])
        with session.transaction() as tx:
            tx.insert("t", [{"id": 1, "m": {"a": 3}, "o": None}, {"id": 2, "m": {}, "o": {}}])
        assert content(session) == {
            "Found": [(1, {"tag": "Some", "x": 3}, False), (2, ABSENT, True)],
            "Pages": [("ann", [("y", 1), ("x", 3)])],
            "total": [("ann", 3)],
        }


def test_commands_read_and_print_maps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.dl").write_text(
        "typedef P = P{x: s64, m: Map<string, Vec<u8>>}\ninput multiset A(p: P, k: Map<(s64, bool), s64>)\n"
        "output multiset R(p: P, k: Map<(s64, bool), s64>)\nR(p, k) :- A(p, k)."
    )
    (tmp_path / "p.dat").write_text(
        'start; insert A(P{1, ["b" -> [2], "a" -> []]}, map_empty());\n'
        "insert A(P{2, map_empty()}, [(2, true) -> 1, (1, true) -> 0]); commit; dump R;\n"
        'start; delete A(P{1, ["b" -> [2], "a" -> []]}, map_empty()); commit dump_changes;'
    )
    assert main(["datalog", str(tmp_path / "p.dl"), "--script", str(tmp_path / "p.dat")]) == Exit.OK
    first = 'R{.p = P{.x = 1, .m = ["a" -> [], "b" -> [2]]}, .k = map_empty()}'
    second = "R{.p = P{.x = 2, .m = map_empty()}, .k = [(1, true) -> 0, (2, true) -> 1]}"
    assert capsys.readouterr().out == f"{first}\n{second}\nR:\n{first}: -1\n"


def check_groups(seed: int, folder: Path, spark: Any = None) -> None:
    """Maps of groups and the sums over their entries, under random changes, reopened halfway."""
    random, held = Random(seed), dict.fromkeys([(1, "a", 1)])
    program = PROGRAM + 'output multiset Back(k: s64, v: s64)\nBack(k, v) :- Groups(k, m), (_, var v) = FlatMap(m.insert_imm("z", k)).'
    session = deltic.Session(spark=spark, state=folder, shards=1 + seed % 3)
    session.datalog(program)
    for tick in range(4):
        if tick == 2:
            session.close()
            session = deltic.Session(spark=spark, state=folder)
            session.datalog(program)
        deleted = random.sample(list(held), len(held) // 2) if tick else []
        inserted = {(random.randrange(3), random.choice("abc"), random.randrange(4)) for _ in range(6)} - held.keys()
        inserted |= held.keys() if not tick else set()
        with session.transaction() as tx:
            tx.delete("B", deleted)
            tx.insert("B", [dict(zip("kan", row, strict=True)) for row in inserted])
        held = dict.fromkeys([*(row for row in held if row not in deleted), *sorted(inserted)])
        maps: dict[int, dict[str, int]] = {}
        for k, a, n in sorted(held):
            maps.setdefault(k, {})[a] = n
        found = content(session)
        assert found["Groups"] == [(k, list(m.items())) for k, m in sorted(maps.items())]
        assert found["Back"] == sorted(((k, v) for k, m in maps.items() for v in (*m.values(), k)), key=repr)
    session.close()


def test_maps_of_groups_follow_changes(tmp_path: Path) -> None:
    for seed in range(2):
        check_groups(seed, tmp_path / f"state{seed}")


@pytest.mark.slow
def test_maps_of_groups_follow_many_changes(tmp_path: Path) -> None:
    for seed in rotating(40):
        check_groups(seed, tmp_path / f"state{seed}")


@pytest.mark.slow
@pytest.mark.spark
def test_maps_of_groups_on_spark(spark: Any, tmp_path: Path) -> None:
    check_groups(1, tmp_path / "state", spark)
