"""Structs, tuples, Vecs and Maps in files of facts: what is written can be read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltic.cli import main
from deltic.cli.exits import Exit

PROGRAM = """
typedef Shape = Circle{r: double} | Rect{w: double, h: double} | Point
input relation In(id: s64, s: Shape, t: (s64, string), v: Vec<Option<u8>>)
output relation Out(id: s64, s: Shape, t: (s64, string), v: Vec<Option<u8>>)
Out(i, s, t, v) :- In(i, s, t, v).
input multiset Labels(names: Map<string, s64>)
output relation Named(name: string, n: s64)
Named(name, n) :- Labels(m), (var name, var n) = FlatMap(m).
"""
FACTS = """\
1\tCircle{.r = 2.5}\t(1, "a b")\t[Some{.x = 1}, None{}]
2\tRect{.w = 1.0, .h = 2.0}\t(-2, "")\t[]
3\tPoint{}\t(3, "x")\t[Some{.x = 255}]
"""

RECORDS = """
.type P = [x: number, y: number]
.decl in(p: P)
.input in
.decl out(p: P, n: number)
.output out
out(p, x) :- in(p), p = [x, _].
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.dl").write_text(PROGRAM)
    (tmp_path / "In.facts").write_text(FACTS)
    (tmp_path / "Labels.facts").write_text('["a" -> 1, "b" -> 1 + 1]\n')
    return tmp_path


def run(folder: Path) -> int:
    return main(["datalog", str(folder / "p.dl"), "--facts", str(folder), "--output", str(folder / "out")])


def test_what_is_written_can_be_read(folder: Path) -> None:
    assert run(folder) == Exit.OK
    assert (folder / "out" / "Out.csv").read_text() == FACTS
    assert (folder / "out" / "Named.csv").read_text() == "a\t1\nb\t2\n"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ('1\tCircle{.r = "x"}\t(1, "a")\t[]', 'In.facts, line 1: column s:1:13: the value is string, not double\n  Circle{.r = "x"}\n'),
        ("1\tSquare{}\t(1, \"a\")\t[]", "In.facts, line 1: column s:1:1: there is no constructor Square"),
        ('1\tPoint\t(1, "a"\t[]', "In.facts, line 1: column t:1:8: unexpected end of the text"),
        ("1\tPoint\t(1, y)\t[]", "In.facts, line 1: column t:1:5: the variable y is not bound"),
        ('1\tPoint\t(1, "a")\t[Some{256}]', "In.facts, line 1: column v:1:7: 256 is not a value of u8"),
    ],
)  # fmt: skip
def test_errors(folder: Path, capsys: pytest.CaptureFixture[str], line: str, error: str) -> None:
    (folder / "In.facts").write_text(f"{line}\n")
    assert run(folder) == Exit.INPUT
    assert error in capsys.readouterr().err


def test_records_of_souffle_resume(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(RECORDS)
    command = ["run", str(tmp_path / "p.dl"), "--dialect", "souffle", "--engine", "embedded", "--state", str(tmp_path / "state")]
    for facts in ("[1, 2]\n", "[1, 2]\n[3, 4]\n", "[3, 4]\n"):
        (tmp_path / "in.facts").write_text(facts)
        assert main(command) == Exit.OK
        assert (tmp_path / "out.csv").read_text() == "".join(f"{line}\t{line[1]}\n" for line in facts.splitlines())
