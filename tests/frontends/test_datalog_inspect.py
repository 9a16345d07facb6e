"""Inspect in the bodies of rules: what is printed, where and when, and that relations are not altered."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.cli import main
from deltic.cli.exits import Exit
from deltic.errors import ArithmeticOverflow

PROGRAM = """
input relation Edge(x: s64, y: s64)
output relation Path(x: s64, y: s64)
output relation Degree(x: s64, n: usize)
relation Fact(x: u8)
Path(x, y) :- Edge(x, y), Inspect "edge ${x} ${y}".
Path(x, z) :- Path(x, y), Inspect (x, y), Edge(y, z), Inspect Some{z}.
Degree(x, n) :- Edge(x, y), var g = y.group_by(x), Inspect x / 2, var n = g.count(), Inspect {x, n}.
Fact(7) :- Inspect 1.
Fact(x as u8) :- Edge(x, _).
output multiset Big(x: u8)
Big(x), Big(x + 1) :- Fact(x), x > 7, Inspect ["x" -> x].
""".replace("{x, n}", "(x, n)")


def edges(session: deltic.Session, deleted: list[tuple[int, int]], inserted: list[tuple[int, int]]) -> None:
    with session.transaction() as tx:
        tx.delete("Edge", deleted)
        tx.insert("Edge", [{"x": x, "y": y} for x, y in inserted])


@pytest.mark.parametrize("shards", [1, 3])
def test_changes_are_printed_with_weight_and_transaction(shards: int) -> None:
    lines: list[str] = []
    with deltic.Session(shards=shards) as session:
        session.datalog(PROGRAM, name="p.dl", warn=False, inspect=lines.append)
        before = session.epoch
        assert lines == []
        edges(session, [], [(1, 2), (2, 3), (8, 9)])
        at = f"@{before + 1}"
        assert sorted(lines) == sorted(
            [
                *(f"p.dl:6: edge {edge}: +1 {at}" for edge in ("1 2", "2 3", "8 9")),
                *(f"p.dl:7: ({pair}): +1 {at}" for pair in ("1, 2", "1, 3", "2, 3", "8, 9")),
                f"p.dl:7: Some{{.x = 3}}: +1 {at}",
                *(f"p.dl:8: {half}: +1 {at}" for half in (0, 1, 4)),
                *(f"p.dl:8: ({x}, 1): +1 {at}" for x in (1, 2, 8)),
                f'p.dl:12: ["x" -> 8]: +1 {at}',
            ]
        )
        places = [line[: line.index(": ")] for line in lines]
        assert places.index("p.dl:6") < places.index("p.dl:7")
        assert [line for line in lines if line.startswith("p.dl:7: (")] == [
            f"p.dl:7: ({pair}): +1 {at}" for pair in ("1, 2", "1, 3", "2, 3", "8, 9")
        ]
        lines.clear()
        with pytest.raises(ArithmeticOverflow):
            edges(session, [], [(300, 1)])
        assert lines == []
        edges(session, [(2, 3)], [(1, 3)])
        at = f"@{session.epoch}"
        found = {"edge 2 3": -1, "edge 1 3": 1, "(2, 3)": -1, "Some{.x = 3}": -1, "(1, 1)": -1, "(1, 2)": 1, "(2, 1)": -1, "1": -1}
        assert {line.partition(": ")[2] for line in lines} == {f"{text}: {weight:+} {at}" for text, weight in found.items()}
        assert sorted(tuple(row["value"].values()) for row in session.view("inspect Path 2").rows()) == [(1, 2), (1, 3), (8, 9)]


def relations(program: str) -> dict[str, list[Any]]:
    with deltic.Session() as session:
        session.datalog(program, warn=False, inspect=lambda line: None)
        edges(session, [], [(1, 2), (2, 3), (3, 1), (8, 8)])
        edges(session, [(2, 3)], [(2, 4)])
        return {name: sorted(map(repr, session.view(name).rows())) for name in ("Path", "Degree", "Big")}


def test_relations_are_not_altered() -> None:
    bare = re.sub(r', Inspect ("edge.*?"|Some{z}|x / 2|\(x, n\)|\["x" -> x\]|\(x, y\))', "", PROGRAM)
    bare = bare.replace("Fact(7) :- Inspect 1.", "Fact(7).")
    assert "Inspect" not in bare
    assert relations(PROGRAM) == relations(bare)


def test_streams_print_what_comes_in(capsys: pytest.CaptureFixture[str]) -> None:
    with deltic.Session() as session:
        session.datalog("input stream S(x: s64)\noutput stream T(x: s64)\nT(x) :- S(x), Inspect x, x > 1.")
        for values in ([2, 1, 1], [2]):
            with session.transaction() as tx:
                tx.insert("S", [{"x": x} for x in values])
        first = session.epoch - 1
    lines = [f"<datalog>:3: 1: +2 @{first}", f"<datalog>:3: 2: +1 @{first}", f"<datalog>:3: 2: +1 @{first + 1}"]
    assert capsys.readouterr().err.splitlines() == lines


def test_programs_print_on_standard_error_and_commands_on_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "input relation A(x: s64)\noutput relation B(x: s64)\nB(x) :- A(x), Inspect x * 2."
    program = deltic.Program(deltic.Datalog(text))
    for x in (1, 2):
        with deltic.Session(state=tmp_path / "state") as session:
            session.program(program)
            session.program(program)
            with session.transaction() as tx:
                tx.insert("A", [{"x": x}])
            assert capsys.readouterr().err == f"<datalog>:3: {2 * x}: +1 @{session.epoch}\n"
    (tmp_path / "p.dl").write_text(text)
    (tmp_path / "p.dat").write_text("start; insert A(3); commit dump_changes; timestamp;")
    assert main(["datalog", str(tmp_path / "p.dl"), "--script", str(tmp_path / "p.dat")]) == Exit.OK
    epoch = (lines := capsys.readouterr().out.splitlines())[-1]
    assert lines == [f"{tmp_path / 'p.dl'}:3: 6: +1 @{epoch}", "B:", "B{.x = 3}: +1", epoch]


def test_a_view_of_sql_may_be_replaced_below_an_inspect() -> None:
    lines: list[str] = []
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a BIGINT NOT NULL); CREATE VIEW v AS SELECT a FROM t")
        session.datalog("output relation R(n: usize)\nR(n) :- V(a), Inspect a, var n = a.group_by(()).count().", inspect=lines.append)
        session.sql("CREATE OR REPLACE VIEW v AS SELECT named_struct('b', a) AS a FROM t")
        session.apply({"t": [{"a": 1, "_weight": 1}]})
        assert [line.partition(" @")[0] for line in lines] == ["<datalog>:2: Record{.b = 1}: +1"]
