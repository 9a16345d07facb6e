"""Soufflé's dialect: relations by hand, and plans equal to those of the same rules in DDlog's syntax."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.cli import main
from deltic.cli.exits import Exit
from deltic.errors import DelticError, SyntaxFailure, UnsafeRule, Unsupported
from deltic.frontends.datalog import bind_datalog
from deltic.plan.fingerprint import fingerprint
from deltic.session import Datalog
from deltic.session.catalog import Catalog
from deltic.session.datalog import datalog_statements
from deltic.session.draft import Draft

PROGRAM = """
.decl edge(x: number, y: number)
.input edge(IO=file, filename="edge.facts")
.type Node <: symbol
.type Shape = Circle {r: float} | Rect {w: float, h: float}
.type Pair = [a: number, b: Node]
/* closure */
.decl path(x: number, y: number) brie
.output path
.decl node(x: number)
node(x), node(y) :- edge(x, y).
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl degree(x: number, n: number, s: number, m: number)
.output degree
degree(x, c, s, m) :- m = max(c, s, 2), node(x), c = count : { edge(x, _) }, s = sum y + 1 : { edge(x, y) }.
.decl total(n: number, least: number, most: number, mean: float)
.output total
total(n, l, m, a) :- n = count : { node(_) }, l = min x : node(x), m = max x : { node(x), x < 4 }, a = mean x : node(x).
.decl text(x: number, t: symbol)
.output text
text(x, cat("n", to_string(x), "!")) :- (node(x), x > 1 ; edge(x, x)), !edge(x, x + 1).
.decl order(y: number, z: number)
.output order
order(y, z) :- y < 10, y = x * 2, z = y band 6, edge(x, x + 1), node(x).
.decl shape(n: symbol, a: Shape, p: Pair)
shape("c", $Circle(2.0), [1, "one"]).
shape("r", $Rect(1.0, 2.0), [2, "two"]).
.decl area(n: symbol, a: float, b: Node)
.output area
area(n, r * r, b) :- shape(n, $Circle(r), [_, b]).
area(n, w * h, b) :- shape(n, s, p), $Rect(w, h) = s, [2, b] = p.
.decl words(t: symbol, n: number, s: symbol, k: number)
.output words
words(t, strlen(t), substr(t, 1, 2), to_number("12") - -1) :- shape(_, _, [_, t]), contains("o", t), match("t.*", t).
"""
EXPECTED = {
    "path": [(1, 2), (1, 3), (2, 3), (4, 4)],
    "degree": [(1, 1, 3, 3), (2, 1, 4, 4), (3, 0, 0, 2), (4, 1, 5, 5)],
    "total": [(4, 1, 3, 2.5)],
    "text": [(3, "n3!"), (4, "n4!")],
    "order": [(2, 2), (4, 4)],
    "area": [("c", 4.0, "one"), ("r", 2.0, "two")],
    "words": [("two", 3, "wo", 13)],
}


def test_relations() -> None:
    with deltic.Session() as session:
        session.datalog(PROGRAM, dialect="souffle")
        with session.transaction() as tx:
            tx.insert("edge", [{"x": x, "y": y} for x, y in ((1, 2), (2, 3), (4, 4), (3, 9))])
        with session.transaction() as tx:
            tx.delete("edge", [{"x": 3, "y": 9}])
        found = {name: sorted(tuple(row.values()) for row in session.view(name).rows()) for name in session.views}
        assert found == EXPECTED


def test_functors_in_python_powers_and_conversions() -> None:
    program = """
    .decl n(x: number)
    .output n
    n(-2 ^ 2 + 3 * 2 ^ 3).
    n(y) :- n(x), x < 40, y = @twice(x).
    .functor twice(x: number): number stateful
    .decl f(x: float, n: number, u: unsigned)
    .output f
    f(itof(3), ftoi(-2.7), itou(4)).
    """
    with deltic.Session() as session:
        session.register("twice", lambda x: 2 * x, "BIGINT")
        session.datalog(program, dialect="souffle")
        assert sorted(row["x"] for row in session.view("n").rows()) == [20, 40]
        assert session.view("f").rows() == [{"x": 3.0, "n": -2, "u": 4}]


def test_souffle_in_the_default_dialect_is_named() -> None:
    with deltic.Session() as session, pytest.raises(SyntaxFailure, match='the dialect souffle: dialect="souffle"'):
        session.datalog(".decl edge(x: number)\n.input edge\n")


def test_escapes_are_read_from_the_left() -> None:
    with deltic.Session() as session:
        session.datalog(
            r""".decl t(x: symbol)
.output t
t("a\\n\n\t\"").""",
            dialect="souffle",
        )
        assert session.view("t").rows() == [{"x": 'a\\n\n\t"'}]


def test_an_input_may_have_rules() -> None:
    program = ".decl a(x: number)\n.input a\n.output a\na(7).\na(x + 1) :- a(x), x < 3."
    with deltic.Session() as session:
        session.datalog(program, dialect="souffle")
        with session.transaction() as tx:
            tx.insert("a_input", [{"x": 1}])
        assert [row["x"] for row in session.view("a").rows()] == [1, 2, 3, 7]


def test_the_same_rules_are_the_same_plans_in_both_dialects() -> None:
    souffle = ".decl E(x: number, y: symbol)\n.input E\n.decl P(x: number, y: symbol)\n.output P\nP(x, y) :- E(x, y), !E(1, y), x > 2."
    ddlog = "input relation E(x: s64, y: string)\noutput relation P(x: s64, y: string)\nP(x, y) :- E(x, y), not E(1, y), x > 2."

    def plan(text: str, dialect: Any) -> str:
        draft = Draft(Catalog())
        for statement in datalog_statements(Datalog(text, dialect=dialect), draft):
            draft.apply(statement)
        return fingerprint(draft.catalog.plans()["P"])

    reordered = souffle.replace("E(x, y), !E(1, y), x > 2", "x > 2, !E(1, y), E(x, y)")
    assert plan(souffle, "souffle") == plan(ddlog, "ddlog")
    assert plan(reordered, "souffle") == plan(ddlog.replace("not E(1, y), x > 2", "x > 2, not E(1, y)"), "ddlog")


def test_the_command_reads_facts(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM)
    (tmp_path / "edge.facts").write_text("1\t2\n2\t3\n4\t4\n")
    out = tmp_path / "out"
    assert main(["datalog", str(tmp_path / "p.dl"), "--dialect", "souffle", "--facts", str(tmp_path), "--output", str(out)]) == Exit.OK
    assert (out / "path.csv").read_text() == "1\t2\n1\t3\n2\t3\n4\t4\n"


FILES = """
.decl edge(x: number, l: symbol)
.input edge
.input edge(filename="more/edges.csv", rfc4180=true, headers=true)
.input edge(IO=file, filename="semi.txt", delimiter=";")
.decl far(l: symbol, x: number)
.output far(filename="out/far.csv", rfc4180=true, headers=true)
.output far(delimiter="|")
.output far(IO=stdout, headers=true)
far(l, x) :- edge(x, l), x > 1.
"""
OUT = '---------------\nfar\nl\tx\n===============\na b\t2\nc, "d"\t3\n===============\n'


def written(folder: Path) -> tuple[str, str]:
    return (folder / "out" / "far.csv").read_text(), (folder / "far.csv").read_text()


def test_aggregates_of_several_programs_in_a_session() -> None:
    with deltic.Session() as session:
        session.sql("CREATE TABLE paid (id BIGINT PRIMARY KEY, who BIGINT NOT NULL, amount BIGINT NOT NULL)")
        direct = ".decl p(s: number)\n.output p\np(s) :- s = sum x : { paid(_, _, x) }."
        with pytest.raises(Unsupported, match=r"help: the program does not declare paid; read it by a relation that it declares: r\(x\)"):
            session.datalog(direct, dialect="souffle")
        for name in ("p", "q"):
            session.datalog(
                f"""
                .decl {name}(w: number, s: number)
                .decl {name}_paid(id: number, w: number, x: number)
                .output {name}
                {name}_paid(i, w, x) :- paid(i, w, x).
                {name}(w, s) :- paid(_, w, _), s = sum x : {{ {name}_paid(_, w, x) }}.
                """,
                dialect="souffle",
            )
        session.insert("paid", [{"id": id, "who": id % 2, "amount": id} for id in range(4)])
        assert session.view("p").rows() == session.view("q").rows() == [{"w": 0, "s": 2}, {"w": 1, "s": 4}]


def test_files_are_those_that_the_program_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "p.dl").write_text(FILES)
    (tmp_path / "edge.facts").write_text("1\tx\r\n2\ta b\n")
    (tmp_path / "more" / "edges.csv").write_text('x,l\n3,"c, ""d"""\n')
    (tmp_path / "semi.txt").write_text("2;a b\n")
    run = ["run", str(tmp_path / "p.dl"), "--dialect", "souffle", "--engine", "embedded", "--state", str(tmp_path / "state")]
    assert main(run) == Exit.OK
    assert capsys.readouterr().out == OUT
    assert written(tmp_path) == ('l,x\na b,2\n"c, ""d""",3\n', 'a b|2\nc, "d"|3\n')
    (tmp_path / "semi.txt").write_text("5;e\n")
    (tmp_path / "edge.facts").write_text("1\tx\n")
    assert main(run) == Exit.OK
    assert written(tmp_path)[1] == 'c, "d"|3\ne|5\n'
    out = tmp_path / "elsewhere"
    command = ["datalog", str(tmp_path / "p.dl"), "--dialect", "souffle", "--facts", str(tmp_path), "--output", str(out)]
    assert main(command) == Exit.OK
    assert written(out) == written(tmp_path)
    assert main([*run, "--json"]) == Exit.USAGE
    assert "--json does not apply to --dialect souffle" in capsys.readouterr().err
    (tmp_path / "semi.txt").unlink()
    assert main(run) == Exit.INPUT
    assert "p.dl:5:8: cannot read" in (error := capsys.readouterr().err) and "semi.txt: No such file" in error
    (tmp_path / "semi.txt").write_bytes(b"1;\xff\n")
    assert main(run) == Exit.INPUT
    assert "semi.txt: 'utf-8' codec" in capsys.readouterr().err


VALUES = """
.type Pair = [a: number, t: symbol]
.type Nested = [p: Pair, x: float, n: unsigned]
.type Shape = Circle {r: float, t: symbol} | Point {p: Pair} | Empty {}
.type Box = Box {t: symbol, n: number}
.decl given(p: Pair, n: Nested, s: Shape, b: Box)
.input given
.decl same(p: Pair, n: Nested, s: Shape, b: Box)
.output same
.decl first(a: number, t: symbol)
.output first
same(p, n, s, b) :- given(p, n, s, b).
first(a, u) :- given([a, _], [[_, u], _, _], _, _).
"""


def test_records_and_adts_are_in_files_as_souffle_has_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.dl").write_text(VALUES)
    facts = tmp_path / "given.facts"
    lines = [
        "[-1, one]\t[[2, two words], 2.5, 3]\t$Circle(0.5, a])\t$Box([b, -4)",
        '[5, ]\t[[6, "a, \\"b\\" \\\\"], 1.0, 0]\t$Point([7, )])\t$Box(" x)", 0)',
        "[8, nil]\t[[9, $E], 0.0, 1]\t$Empty\t$Box(b, 1)",
    ]
    facts.write_text("".join(f"{line}\n" for line in lines))
    command = ["datalog", str(tmp_path / "p.dl"), "--dialect", "souffle", "--facts", str(tmp_path), "--output", str(tmp_path)]
    assert main(command) == Exit.OK
    assert (tmp_path / "same.csv").read_text().splitlines() == lines
    assert (tmp_path / "first.csv").read_text() == '-1\ttwo words\n5\ta, "b" \\\n8\t$E\n'
    facts.write_text(' [ 8 ,"x" ]\t[[9, a ], 0.0, 1]\t$ Empty\t$Box(b, 1) \n')
    assert main(command) == Exit.OK
    assert (tmp_path / "same.csv").read_text() == "[8, x]\t[[9, a ], 0.0, 1]\t$Empty\t$Box(b, 1)\n"
    for value, message in (
        ("(1, a)", "given.facts, line 1: column p:1:1: unexpected '('"),
        ("[1 2, a]", "column p:1:2: invalid value '1 2'"),
        ("[1, a", "column p:1:6: unexpected end of the value"),
        ("[1, a] x", "column p:1:8: unexpected 'x'"),
        ("nil", "column p:1:1: unexpected 'n'"),
    ):
        facts.write_text(f"{value}\t[[9, a], 0.0, 1]\t$Empty\t$Box(b, 1)\n")
        assert main(command) == Exit.INPUT
        assert message in capsys.readouterr().err
    facts.write_text("[1, a]\t[[9, a], 0.0, 1]\t$Square(1)\t$Box(b, 1)\n")
    assert main(command) == Exit.INPUT
    assert "column s:1:2: Shape has no branch Square" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rule", "error", "text"),
    [
        ("b(x) :- a(y).", UnsafeRule, "test:3:3: the variable x is not bound"),
        ("b(x) :- x = y + 1, a(z).", UnsafeRule, "test:3:9: the variable x is not bound"),
        ("b(x) :- a(x), !c(x).", DelticError, "test:3:16: there is no relation c"),
        ("b(x) :- a(x), !b(x).", Unsupported, "b depends on itself through negation: b → not b"),
        ("b(n) :- n = count : { b(_) }.", Unsupported, "depends on itself through"),
        ("b(n) :- a(_), n = mean x : { b(x) }.", Unsupported, "help: more rows replace the value of count, sum or mean"),
        ("b(x) :- a(x), x = ord(\"a\").", Unsupported, "test:3:19: the functor ord is not supported"),
        ("b(2 ^ x) :- a(x).", Unsupported, "test:3:3: this ^ is not supported"),
        ("b(x) <= b(y) :- y < x.", Unsupported, "test:3:6: subsumption is not supported"),
        (".decl e(x: number) choice-domain x", Unsupported, "test:3:20: choice-domain is not supported"),
        (".decl e(x: number, y: number) choice-domain (x, y), x", Unsupported, "test:3:31: choice-domain is not supported"),
        ("b(@f(x)) :- a(x).", DelticError, "test:3:4: there is no functor f"),
        (".functor f(number): number\nb(@f(x)) :- a(x).", DelticError, "test:4:3: the extern function f is not registered"),
        ("b(x) :- a(x), !a(range(x, 3)).", Unsupported, "test:3:18: range in a negated atom is not supported"),
        ("b(x) :- a(x), x = range(0, 5, x).", Unsupported, "test:3:31: this step of range is not supported"),
        ("b(x) :- a(x), x = range(0, 5, 0).", Unsupported, "expected: a whole number that is not 0"),
        ("b(x) :- x = range(0, y), a(_).", UnsafeRule, "test:3:22: the variable y is not bound"),
        ("b(range(0, y)) :- a(_).", UnsafeRule, "test:3:12: the variable y is not bound"),
        ("b(x) :- a(_), x = range(0, range(y, 3)).", UnsafeRule, "test:3:34: the variable y is not bound"),
        ("b(n) :- n = count : { a(range(0, y)) }.", UnsafeRule, "test:3:34: the variable y is not bound"),
        (".decl s(x: symbol)\ns(range(0, 3)).", DelticError, "test:4:3: the value is s64, not string"),
        ("b(x) :- a(x), x = range(1).", DelticError, "test:3:19: the functor range does not have 1 arguments"),
        (".pragma \"legacy\"", Unsupported, "help: leave it out"),
        ("input relation E(x: s64)", SyntaxFailure, "help: DDlog's syntax is the dialect ddlog"),
        ("b(x) :- a(x)", SyntaxFailure, "unexpected end of the text"),
        (".comp C { }\n.init c = D", DelticError, "test:4:11: there is no component D"),
        (".comp C<T> { }\n.init c = C", DelticError, "test:4:11: component C does not have 0 parameters"),
        (".comp C { .init c = C }\n.init c = C", Unsupported, "test:3:21: component C contains itself: C → C"),
        (".comp C : D { }\n.comp D : C { }\n.init c = C", Unsupported, "test:4:11: component C contains itself: C → D → C"),
        (".comp C { .override r }\n.init c = C", DelticError, "test:3:21: no relation r is inherited"),
        (".comp B { .decl r(x: number) }\n.comp C : B { .override r }\n.init c = C", Unsupported, "4:25: relation r is not overridable"),
        (".override a", Unsupported, "test:3:1: .override is not in a component"),
        (".comp C { }\n.comp C { }", DelticError, "test:4:7: component C is declared twice"),
        (".comp C { }\n.init c = C\n.init c = C", DelticError, "test:5:7: instance c is declared twice"),
        (".comp C { b(y) :- a(x). }\n.init c = C", UnsafeRule, "test:3:13: the variable y is not bound"),
        (".comp C { .decl r(x: number) }\n.init c = C\nb(x) :- c.s(x).", DelticError, "help: did you mean 'c.r'?"),
        ("b(x) :- d.r(x).", SyntaxFailure, "help: d.… requires an instance: .init d = …"),
        (".comp C { .functor f(number): number }", SyntaxFailure, "test:3:11: unexpected '.functor'"),
        (".printsize b", Unsupported, ".printsize is not supported"),
        (".input a(filenam=\"x\")", DelticError, "test:3:10: there is no option filenam here"),
        (".input a(filename=\"../x\")", Unsupported, "test:3:19: the file is outside the folder"),
        (".output b(filename=\"/tmp/x\")", Unsupported, "test:3:20: the file is outside the folder"),
        (".input a(filename=\"\")", SyntaxFailure, "test:3:19: invalid file name"),
        (".input a(IO=sqlite)", Unsupported, "test:3:13: IO=sqlite is not supported here"),
        (".input a(IO=stdout)", Unsupported, "test:3:13: IO=stdout is not supported here"),
        (".input a(headers=yes)", SyntaxFailure, "test:3:18: invalid value 'yes' of headers"),
        (".input a(headers=true, headers=true)", SyntaxFailure, "test:3:24: the option headers is given twice"),
        (".input a(delimiter=\"::\")", Unsupported, "test:3:20: invalid delimiter '::'"),
        (".output a\n.output b(filename=\"A.csv\")", DelticError, "test:4:9: the file A.csv is written for another relation"),
        (".input a(filename=\"b.csv\")\n.output b", DelticError, "test:4:9: the file b.csv is read for another relation"),
        (".decl e(x: number) eqrel", DelticError, "test:3:7: the columns of eqrel e are not a pair"),
        (".decl e() eqrel", DelticError, "expected: two columns of one type, found none"),
        (".decl e(x: number, y: symbol) eqrel", DelticError, "expected: two columns of one type, found number, symbol"),
        (".decl e(x: number, y: number) eqrel\ne(x, y) :- a(x), a(y), !e(x, y).", Unsupported, "depends on itself through negation"),
        (".decl a(x: number)", SyntaxFailure, "relation a is declared twice"),
        (".decl d(x: nmber)", DelticError, "there is no type nmber"),
    ],
)  # fmt: skip
def test_errors(rule: str, error: type[DelticError], text: str) -> None:
    program = f".decl a(x: number)\n.decl b(x: number)\n{rule}"
    with pytest.raises(error) as caught:
        draft = Draft(Catalog())
        for statement in bind_datalog(program, "test", "souffle").statements(draft):
            draft.apply(statement)
    assert text in str(caught.value)
    assert caught.value.span is not None


COMPONENTS = """
.type Node <: symbol
.decl most(n: number)
most(2).
.comp Graph<T> {
  .type Mark = Near { at: T } | Far {}
  .decl edge(a: T, b: T)
  .input edge
  .decl path(a: T, b: T) overridable
  .output path
  path(x, y) :- edge(x, y).
  path(x, z), mark(x, $Near(z)) :- path(x, y), edge(y, z).
  .decl mark(a: T, m: Mark)
  .comp Degrees<U> {
    .decl degree(x: U, n: number)
    degree(x, n) :- edge(x, _), n = count : { edge(x, _) }, most(m), n <= m.
  }
  .init d = Degrees<T>
}
.comp Symmetric<T> : Graph<T> {
  .override path
  path(x, y), path(y, x) :- edge(x, y).
  path(x, z) :- path(x, y), path(y, z).
}
.init g = Graph<Node>
.init s = Symmetric<number>
.output s.d.degree
.decl out(x: Node, n: number, m: g.Mark)
.output out
out(x, n, m) :- g.path("a", x), g.d.degree(x, n), g.mark(_, m), m = $g.Near(x).
g.path("d", "e").
"""


def test_components() -> None:
    with deltic.Session() as session:
        session.datalog(COMPONENTS, dialect="souffle")
        edges = [("a", "b"), ("b", "c"), ("c", "a")]
        with session.transaction() as tx:
            tx.insert("g.edge", [{"a": a, "b": b} for a, b in (*edges, *(("c", x) for x in "xyz"))])
            tx.insert("s.edge", [{"a": a, "b": b} for a, b in ((1, 2), (2, 3))])
        assert set(session.views) == {"g.path", "s.path", "s.d.degree", "out"}

        def rows(name: str) -> list[tuple[Any, ...]]:
            return sorted(tuple(row.values()) for row in session.view(name).rows())

        assert rows("s.path") == [(a, b) for a in (1, 2, 3) for b in (1, 2, 3)]
        assert rows("s.d.degree") == [(1, 1), (2, 1)]
        assert ("d", "e") in rows("g.path") and len(rows("g.path")) == 3 * 6 + 1
        assert [row[:2] for row in rows("out")] == [("a", 1), ("b", 1)]
        session.delete("s.edge", [{"a": 2, "b": 3}])
        assert rows("s.path") == [(1, 1), (1, 2), (2, 1), (2, 2)]
        assert len(session.query("SELECT * FROM `s.path` WHERE a < b").rows()) == 1


def test_ranges() -> None:
    program = """
    .decl a(x: number, y: number)
    .input a
    .decl up(x: number, y: number, z: number)
    .output up
    up(x, y, z) :- a(x, y), z = range(x, y).
    .decl by3(x: number, y: number, z: number)
    .output by3
    by3(x, y, range(x, y, 3)) :- a(x, y).
    .decl down(x: number, y: number, z: number)
    .output down
    down(x, y, z) :- z = 1 + range(x, y, -2) * 2, a(x, y).
    .decl total(x: number, n: number)
    .output total
    total(x, n) :- a(x, y), n = sum z : { a(x, y), z = range(0, y) }.
    .decl few(x: number)
    .output few
    few(x) :- a(x, _), x = range(0, 3), x < range(1, 3).
    .decl square(x: number, y: number)
    .output square
    square(range(0, 2), range(0, 2)).
    .decl chain(x: number)
    .output chain
    chain(0).
    chain(y) :- chain(x), x < 4, y = range(x, x + 3).
    """
    rows = [(0, 3), (3, 0), (2, 2), (1, 8), (8, 1), (5, 6)]
    with deltic.Session() as session:
        session.datalog(program, dialect="souffle")
        session.insert("a", [{"x": x, "y": y} for x, y in [*rows, (9, 11)]])
        session.delete("a", [{"x": 9, "y": 11}])
        found = {name: sorted(tuple(row.values()) for row in session.view(name).rows()) for name in session.views}
    assert found == {
        "up": sorted((x, y, z) for x, y in rows for z in range(x, y, 1 if x < y else -1)),
        "by3": sorted((x, y, z) for x, y in rows for z in range(x, y, 3)),
        "down": sorted((x, y, 1 + 2 * z) for x, y in rows for z in range(x, y, -2)),
        "total": sorted((x, sum(range(y))) for x, y in rows),
        "few": [(0,), (1,)],
        "square": [(0, 0), (0, 1), (1, 0), (1, 1)],
        "chain": [(x,) for x in range(6)],
    }


def test_ranges_of_long_steps() -> None:
    most = 2**63 - 1
    program = f"""
    .decl a(x: number)
    .input a
    .decl up(x: number, y: number) .output up
    up(x, range(x, {most}, {2**62})) :- a(x).
    .decl down(x: number, y: number) .output down
    down(x, range(9, x, -{most})) :- a(x).
    .decl u(x: unsigned) .output u
    u(range(y, 12, 5)) :- a(x), y = itou(x).
    """
    with deltic.Session() as session:
        session.datalog(program, dialect="souffle")
        session.insert("a", [{"x": x} for x in (1, 2, 9)])
        for name, values in (("up", lambda x: range(x, most, 2**62)), ("down", lambda x: range(9, x, -most))):
            found = sorted(tuple(row.values()) for row in session.view(name).rows())
            assert found == [(x, y) for x in (1, 2, 9) for y in values(x)]
        assert sorted(row["x"] for row in session.view("u").rows()) == [1, 2, 6, 7, 9, 11]


@pytest.mark.parametrize("name", ["aggregate_2", "range4", "range5", "arg6", "agg7"])
def test_every_name_is_the_programs(name: str) -> None:
    program = f"""
    .decl a(x: number)
    .input a
    .decl {name}(x: number)
    .output {name}
    {name}(n) :- n = sum x : {{ a(x) }}.
    .decl c(x: number, y: number, n: number)
    .output c
    c({name}, range(0, {name}), n) :- a({name}), a({name} + 1), n = count : {{ a(_) }}.
    """
    with deltic.Session() as session:
        session.datalog(program, dialect="souffle")
        session.insert("a", [{"x": x} for x in (1, 2, 3)])
        assert [tuple(row.values()) for row in session.view(name).rows()] == [(6,)]
        assert sorted(tuple(row.values()) for row in session.view("c").rows()) == [(1, 0, 3), (2, 0, 3), (2, 1, 3)]


def test_the_dot_of_a_name_follows_an_instance() -> None:
    program = """
    // .init x = C
    .comp C { .decl r(x: number) r(1). }
    .init /* of */ i = C
    .decl a(x: number)
    a(i) :- i.r(i).
    .decl b(x: number)
    .output b
    b(y) :- a(x), y = x.b(3) :- a(_).b(xi) :- i.r(x), xi = x + 3, true.b(x) :- i.r(y), x = y + 4, "\\".init x" != "".b(6).
    """
    with deltic.Session() as session:
        session.datalog(program, dialect="souffle")
        assert sorted(row["x"] for row in session.view("b").rows()) == [1, 3, 4, 5, 6]


def test_functors_in_components_are_not_relations() -> None:
    program = """
    .comp C {
        .decl cat(x: symbol) .output cat
        cat(cat("a", "b")). cat("d") :- cat("ab"), (cat(x), x = (cat("a", "b")); cat("z")).
        .decl strlen(x: number) .output strlen
        strlen(n) :- n = sum strlen(x) : { cat(x), strlen(x) != 7 }, 1 < count : cat(_).
    }
    .init c = C
    """
    with deltic.Session() as session:
        session.datalog(program, dialect="souffle")
        assert sorted(row["x"] for row in session.view("c.cat").rows()) == ["ab", "d"]
        assert [tuple(row.values()) for row in session.view("c.strlen").rows()] == [(3,)]


@pytest.mark.parametrize(
    "heir",
    [
        ".comp H : G<T> { .type T = symbol }",
        ".comp M : G<T> { } .comp H : M { .type T = symbol }",
        ".comp B { .type T = symbol } .comp H : G<T>, B { }",
        ".comp M<N, P> : P<N> { } .comp H : M<T, G> { .type T = symbol }",
    ],
)
def test_an_argument_of_a_base_is_a_type_of_the_instance(heir: str) -> None:
    program = f""".type T = number .comp G<N> {{ .decl e(x: N) .output e e("a"). }} {heir} .init h = H"""
    with deltic.Session() as session:
        session.datalog(program, dialect="souffle")
        assert [row["x"] for row in session.view("h.e").rows()] == ["a"]


def test_files_of_components(tmp_path: Path) -> None:
    program = ".comp C { .decl r(x: number)\n.input r\n.decl s(x: number)\n.output s\ns(x + 1) :- r(x). }\n.init a = C\n.init b = C"
    (tmp_path / "p.dl").write_text(program)
    (tmp_path / "a.r.facts").write_text("1\n")
    (tmp_path / "b.r.facts").write_text("2\n")
    assert main(["run", str(tmp_path / "p.dl"), "--dialect", "souffle", "--engine", "embedded"]) == Exit.OK
    assert [(tmp_path / f"{name}.s.csv").read_text() for name in "ab"] == ["2\n", "3\n"]


def _equivalent(pairs: set[tuple[int, int]], links: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """The relation by union-find, of pairs and what the links of equivalent numbers add."""
    parents: dict[int, int] = {}

    def root(number: int) -> int:
        while parents.setdefault(number, number) != number:
            number = parents[number]
        return number

    added = set(pairs)
    while added:
        for a, b in added:
            parents[root(a)] = root(b)
        related = {(a, b) for a in parents for b in parents if root(a) == root(b)}
        added = {(a + 10, b + 10) for a, b in links & related} - related
    return sorted((a, b) for a in parents for b in parents if root(a) == root(b))


@pytest.mark.parametrize("seed", range(6))
def test_equivalence_relations(seed: int) -> None:
    program = """
    .decl same(x: number, y: number) eqrel
    .input same
    .output same
    .decl link(x: number, y: number)
    .input link
    same(x + 10, y + 10) :- link(x, y), same(x, y).
    """
    draw = random.Random(seed)
    content: dict[str, set[tuple[int, int]]] = {"same_input": set(), "link": set()}
    with deltic.Session(shards=1 + 2 * (seed % 2)) as session:
        session.datalog(program, dialect="souffle")
        for _ in range(5):
            with session.transaction() as tx:
                for name, rows in content.items():
                    gone = {row for row in rows if draw.random() < 0.3}
                    new = {(draw.randrange(18), draw.randrange(18)) for _ in range(4)} - rows
                    tx.delete(name, [{"x": x, "y": y} for x, y in gone])
                    tx.insert(name, [{"x": x, "y": y} for x, y in new])
                    content[name] = (rows - gone) | new
            found = sorted(tuple(row.values()) for row in session.view("same").rows())
            assert found == _equivalent(content["same_input"], content["link"])
