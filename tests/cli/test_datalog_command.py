"""`deltic datalog`: facts, commands and what they print, as DDlog does."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from deltic.cli import main
from deltic.cli.exits import Exit

PROGRAM = """
typedef Color = Red | Green{shade: u8}
input relation Person(id: u32, name: string, color: Color) primary key (p) p.id
input relation Likes(a: u32, b: u32)
input multiset Visit(x: s64)
output relation Friends(a: string, b: string)
output relation Colors(c: Color, t: (u32, Vec<string>))
output relation Visits(n: usize)
index ByName(n: string) on Person(_, n, _)
index ByB(b: u32) on Likes(_, b)
index All() on Visits(_)
Friends(n, m) :- Person(a, n, _), Likes(a, b), Person(b, m, _).
Colors(c, (i, [n])) :- Person(i, n, c).
Visits(n) :- Visit(x), var n = x.group_by(()).count().
"""
COMMANDS = """
start;
insert Person(1, "Ann", Red), insert Person(2, "B\\"ob", Green{7});
insert Likes(.a = 1, .b = 2), insert Likes(1, 2), insert Likes(2, 2), insert Visit(5), insert Visit(5);
commit dump_changes;
timestamp;
echo hello world;
dump Friends;
query_index ByB(2); query_index All();
start; modify Person 2 <- Person{.name = "Bo"}; delete Visit(5); commit dump_changes;
query_index ByName("Bo");
start; insert Likes(2, 1); clear Likes; insert Likes(1, 1); commit dump_changes;
start; delete_key Person 1; rollback;
start; insert_or_update Person(1, "Al", Green{.shade = 3}); modify Person 1 <- Person{.color = Red}; commit;
dump;
exit;
echo not reached;
"""
OUTPUT = """\
Friends:
Friends{.a = "Ann", .b = "B\\"ob"}: +1
Friends{.a = "B\\"ob", .b = "B\\"ob"}: +1
Colors:
Colors{.c = Green{.shade = 7}, .t = (2, ["B\\"ob"])}: +1
Colors{.c = Red{}, .t = (1, ["Ann"])}: +1
Visits:
Visits{.n = 2}: +1
2
hello world
Friends{.a = "Ann", .b = "B\\"ob"}
Friends{.a = "B\\"ob", .b = "B\\"ob"}
Likes{.a = 1, .b = 2}
Likes{.a = 2, .b = 2}
Visits{.n = 2}
Friends:
Friends{.a = "Ann", .b = "B\\"ob"}: -1
Friends{.a = "Ann", .b = "Bo"}: +1
Friends{.a = "B\\"ob", .b = "B\\"ob"}: -1
Friends{.a = "Bo", .b = "Bo"}: +1
Colors:
Colors{.c = Green{.shade = 7}, .t = (2, ["B\\"ob"])}: -1
Colors{.c = Green{.shade = 7}, .t = (2, ["Bo"])}: +1
Visits:
Visits{.n = 1}: +1
Visits{.n = 2}: -1
Person{.id = 2, .name = "Bo", .color = Green{.shade = 7}}
Friends:
Friends{.a = "Ann", .b = "Ann"}: +1
Friends{.a = "Ann", .b = "Bo"}: -1
Friends{.a = "Bo", .b = "Bo"}: -1
Friends:
Friends{.a = "Al", .b = "Al"}

Colors:
Colors{.c = Green{.shade = 7}, .t = (2, ["Bo"])}
Colors{.c = Red{}, .t = (1, ["Al"])}

Visits:
Visits{.n = 1}

"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.dl").write_text(PROGRAM)
    (tmp_path / "p.dat").write_text(COMMANDS)
    return tmp_path


def test_commands_print_what_ddlog_prints(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["datalog", str(folder / "p.dl"), "--script", str(folder / "p.dat")]) == Exit.OK
    assert capsys.readouterr().out == OUTPUT


def test_commands_come_from_standard_input(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(COMMANDS))
    assert main(["datalog", str(folder / "p.dl"), "--state", str(folder / "state"), "--shards", "2"]) == Exit.OK
    assert capsys.readouterr().out == OUTPUT
    monkeypatch.setattr("sys.stdin", io.StringIO("dump Visits;\nstart;\ninsert\n  Visit(1);\ncommit dump_changes;\n"))
    assert main(["datalog", str(folder / "p.dl"), "--state", str(folder / "state")]) == Exit.OK
    assert capsys.readouterr().out == "Visits{.n = 1}\nVisits:\nVisits{.n = 1}: -1\nVisits{.n = 2}: +1\n"


PROFILE = """\
view Reach
  Project x#0
    Join inner on y#1 = y#0
      Table Edge (x, y)
      Table Goal (y)

circuit: 6 operators in 1 levels, 0 exchanges, 1 shards
  level 0
      0 source             [x, y] source; key (x, y); by hash (x, y); state table-ID: 4 rows, 224 bytes
      1 source             [y] source; key (y); by hash (y); state table-ID: 1 rows, 72 bytes
      2 map                [k0, p0] linear; from 0; by hash (p0, k0)
      3 trace_append       [k0, p0] integral; key (k0); from 2; by hash (k0); state trace-ID: 4 rows, 216 bytes
      4 join_trace → map   [x] bilinear; key (k0); from 3, 1; any shard; reads trace-ID; reads table-ID
      5 trace_append       [x] integral; key (x); from 4; any shard; state view-ID: 3 rows, 168 bytes
rows of Edge are held in 2 arrangements
  table-ID (x, y): 4 rows, 224 bytes, read by 0
  trace-ID (y, x): 4 rows, 216 bytes, read by 1

last tick               rows in   rows out    touched        ms
  0 source                    1          1          2 MS
  2 map                       1          1          1 MS
  3 trace_append              1          1          1 MS
  4 join_trace → map          1          1          3 MS
  5 trace_append              1          1          1 MS
"""


def test_modify_may_change_the_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.dl").write_text(
        "input relation P(id: s64, n: string) primary key (p) p.id\noutput relation O(id: s64, n: string)\nO(i, n) :- P(i, n).\n"
    )
    (tmp_path / "p.dat").write_text(
        'start; insert P(1, "a"), insert P(2, "b"); commit;\n'
        'start; modify P 1 <- P{.id = 3}; modify P 3 <- P{.n = "c"}; commit dump_changes;\n'
        "start; modify P 2 <- P{.id = 3}; commit;"
    )
    assert main(["datalog", str(tmp_path / "p.dl"), "--script", str(tmp_path / "p.dat")]) == Exit.INPUT
    shown = capsys.readouterr()
    assert shown.out == 'O:\nO{.id = 1, .n = "a"}: -1\nO{.id = 3, .n = "c"}: +1\n'
    assert "p.dat:3:8: table P already has a row with primary key id=3" in shown.err


def test_profile_prints_plans_the_circuit_and_the_work_of_the_last_transaction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.dl").write_text(
        "input relation Edge(x: s64, y: s64)\ninput relation Goal(y: s64)\n"
        "output multiset Reach(x: s64)\nReach(x) :- Edge(x, y), Goal(y).\n"
    )
    (tmp_path / "p.dat").write_text(
        "start; insert Goal(7); insert Edge(1, 7), insert Edge(2, 7), insert Edge(3, 8); commit;\n"
        "start; insert Edge(4, 7); commit; start; insert Edge(5, 7); rollback; profile;"
    )
    assert main(["datalog", str(tmp_path / "p.dl"), "--script", str(tmp_path / "p.dat")]) == Exit.OK
    printed = re.sub(r"-[0-9a-f]{8}\b", "-ID", capsys.readouterr().out)
    assert re.sub(r" +\d+\.\d{3}$", " MS", printed, flags=re.MULTILINE) == PROFILE


def test_facts_and_relations_are_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.dl").write_text(
        "input relation Edge(x: s64, label: string, y: s64)\ninput relation Start(x: s64, on: bool, when: date)\n"
        "output relation Reach(x: s64, label: string)\n"
        'Reach(x, "") :- Start(x, true, _).\nReach(y, l) :- Reach(x, _), Edge(x, l, y).\n'
    )
    facts = tmp_path / "facts"
    facts.mkdir()
    (facts / "Edge.facts").write_text('1\ta "b"\t2\n2\tc\t3\n2\tc\t3\n4\td\t5\n')
    (facts / "Start.csv").write_text("1,true,2024-01-31\n4,false,2024-01-31\n")
    out = tmp_path / "out"
    assert main(["datalog", str(tmp_path / "p.dl"), "--facts", str(facts), "--output", str(out)]) == Exit.OK
    assert (out / "Reach.csv").read_text() == '1\t\n2\ta "b"\n3\tc\n'
    (facts / "Edge.facts").write_text("1\ta\n")
    assert main(["datalog", str(tmp_path / "p.dl"), "--facts", str(facts)]) == Exit.INPUT
    assert "Edge.facts, line 1: 2 columns\nexpected: x, label, y" in capsys.readouterr().err
    (facts / "Edge.facts").write_text("1\ta\tb\n")
    assert main(["datalog", str(tmp_path / "p.dl"), "--facts", str(facts)]) == Exit.INPUT
    assert "Edge.facts, line 1: column y: invalid value 'b'\nexpected: s64" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("commands", "error"),
    [
        ("insert Likes(1, 2);", "p.dat:1:1: no transaction is open\n  insert Likes(1, 2);\n  ^^^^^^^^^^^^^^^^^^\nhelp: start;"),
        ("start; start;", "p.dat:1:8: a transaction is open"),
        ("start; insert Lykes(1, 2);", "p.dat:1:15: there is no relation Lykes"),
        ("start; insert Friends(1, 2);", "p.dat:1:15: Friends is not an input relation"),
        ("start; insert Likes(1);", "p.dat:1:15: relation Likes takes 2 arguments (a, b), found 1"),
        ("start; insert Likes(1, -2);", "p.dat:1:24: -2 is not a value of u32"),
        ("start; insert Likes(1, x);", "p.dat:1:24: the variable x is not bound"),
        ("start; delete_key Likes 1;", "p.dat:1:25: Likes has no primary key"),
        ("start; modify Person 7 <- Person{.name = \"x\"};", "p.dat:1:8: Person has no row with the key (7)"),
        ("start; delete Visit(9); # of none\ncommit;", "p.dat:1:8: table Visit has no row x=9"),
        ("start; insert Visit(5), delete Likes(1, 2); commit;", "help: delete a row that the relation has"),
        ("start; insert Visit(5), insert Likes(1, 2), insert Visit(6), delete Visit(7); commit;", "p.dat:1:62: table Visit has no row x=7"),
        ("start; insert Person(1, \"a\", Red);\ncommit; start;\ninsert Person(2, \"b\", Red), insert Person(1, \"b\", Red); commit;",
         "p.dat:3:29: table Person already has a row with primary key id=1"),
        ("start; insert Person(1, \"a\", Red); insert Person(1, \"b\", Red); commit;",
         "help: insert_or_update Person(…) replaces the row with the same primary key"),
        ("query_index ByC(1);", "p.dat:1:13: there is no index ByC"),
        ("dump Likes;", "p.dat:1:6: Likes is not an output relation"),
        ("start insert Likes(1, 2);", "p.dat:1:7: unexpected 'insert'"),
        ("start; insert Person(1, \"a\", Red), insert Person(1, \"b\", Red); commit;", "p.dat:1:36: table Person already"),
    ],
)  # fmt: skip
def test_errors_of_commands(folder: Path, capsys: pytest.CaptureFixture[str], commands: str, error: str) -> None:
    (folder / "p.dat").write_text(commands)
    assert main(["datalog", str(folder / "p.dl"), "--script", str(folder / "p.dat")]) == Exit.INPUT
    assert error in capsys.readouterr().err


def test_views_that_a_program_drops_from_its_state_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, script, state = tmp_path / "p.dl", tmp_path / "commands", str(tmp_path / "state")
    for relation, reported in (("B", ""), ("B", ""), ("C", f"deltic: state {state}: views dropped: B\n")):
        program.write_text(f"input relation A(x: s64)\noutput relation {relation}(x: s64)\n{relation}(x) :- A(x).\n")
        script.write_text(f"dump {relation};")
        assert main(["datalog", str(program), "--script", str(script), "--state", state]) == Exit.OK
        assert capsys.readouterr().err == reported
