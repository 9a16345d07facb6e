"""Imports of modules, and transformers applied to relations."""

from __future__ import annotations

from pathlib import Path

import pytest

import deltic
from deltic.errors import CatalogError, DelticError, QueryError, TypeMismatch, UnknownName, Unsupported
from deltic.frontends.datalog import bind_datalog

GEOMETRY = """
import base
typedef Shape = Circle{r: double} | Square{s: double}
function area(s: Shape): double { match (s) { Circle{r} -> base::pi() * r * r, Square{s} -> s * s } }
relation Unit(s: Shape)
Unit(Square{1.0}).
"""
MAIN = """
import lib::geometry as geo
import base
input relation In(id: s64, s: geo::Shape)
output relation Area(id: s64, a: double)
Area(i, geo::area(s)) :- In(i, s).
Area(i, s.twice()) :- In(i, _), geo::Unit(s).
Area(7, geo::area(geo::Circle{1.0}) + base::pi()).
function twice(s: geo::Shape): double = 2.0 * geo::area(s)
"""
CLOSURE = """
transformer Closure(E: relation(x: s64, y: s64)) -> (T: relation(x: s64, y: s64)) {
    relation Step(x: s64, y: s64)
    Step(x, y) :- E(x, y).
    T(x, y) :- Step(x, y).
    T(x, z) :- T(x, y), Step(y, z).
}
input relation A(x: s64, y: s64)
input relation B(x: s64, y: s64)
output relation P(x: s64, y: s64)
output relation Q(x: s64, y: s64)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "geometry.dl").write_text(GEOMETRY)
    (tmp_path / "base.dl").write_text("function pi(): double = 3.0\n")
    (tmp_path / "main.dl").write_text(MAIN)
    return tmp_path


def test_modules(folder: Path) -> None:
    with deltic.Session() as session:
        session.program(deltic.Program(folder / "main.dl"))
        with session.transaction() as tx:
            tx.insert("In", [{"id": 1, "s": {"tag": "lib::geometry::Square", "r": None, "s": 4.0}}])
        assert [tuple(row.values()) for row in session.view("Area").rows()] == [(1, 2.0), (1, 16.0), (7, 6.0)]


def test_an_error_in_a_module_has_its_place_there(folder: Path) -> None:
    (folder / "base.dl").write_text("\nfunction pi(): double = x\n")
    with pytest.raises(DelticError, match=r"base\.dl:2:25: the variable x is not bound"), deltic.Session() as session:
        session.datalog(folder / "main.dl")


def test_a_module_that_does_not_exist(folder: Path) -> None:
    (folder / "base.dl").unlink()
    with pytest.raises(QueryError, match=r"main\.dl:3:8: cannot read .*base\.dl: No such file"):
        deltic.Datalog.read(folder / "main.dl")
    with pytest.raises(UnknownName, match="<datalog>:1:8: there is no module base"), deltic.Session() as session:
        session.datalog("import base")


def test_modules_may_import_one_another(tmp_path: Path) -> None:
    (tmp_path / "a.dl").write_text("import b\nrelation R(x: s64)\nR(x + 1) :- b::R(x), x < 5.\n")
    (tmp_path / "b.dl").write_text("import a\nrelation R(x: s64)\nR(0).\nR(x + 1) :- a::R(x), x < 5.\n")
    (tmp_path / "c.dl").write_text("import a\nimport b as other\noutput relation S(x: s64)\nS(x) :- a::R(x), not other::R(x).\n")
    with deltic.Session() as session:
        session.datalog(tmp_path / "c.dl")
        assert [row["x"] for row in session.view("S").rows()] == [1, 3, 5]
        session.sql("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM `a::R`")
        assert session.view("n").rows() == [{"n": 3}]


def test_transformers_are_applied_several_times() -> None:
    with deltic.Session() as session:
        session.datalog(f"{CLOSURE}\napply Closure(A) -> (P)\napply Closure(B) -> (Q)")
        with session.transaction() as tx:
            tx.insert("A", [{"x": 1, "y": 2}, {"x": 2, "y": 3}])
            tx.insert("B", [{"x": 1, "y": 2}])
        assert [tuple(row.values()) for row in session.view("P").rows()] == [(1, 2), (1, 3), (2, 3)]
        assert [tuple(row.values()) for row in session.view("Q").rows()] == [(1, 2)]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("apply Closer(A) -> (P)", UnknownName, "there is no transformer Closer"),
        ("apply Closure(A, B) -> (P)", TypeMismatch, "Closure has 1 input relations, found 2"),
        ("apply Closure(C) -> (P)", UnknownName, "there is no relation C"),
        ("relation C(x: s64)\napply Closure(C) -> (P)", TypeMismatch, "relation C has 1 columns"),
        ("relation C(x: s64, t: string)\napply Closure(C) -> (P)",
         TypeMismatch, "^.DELTIC-1004. test:14:15: the column t of C is string, and y of E of the transformer is s64"),
        ("relation C(x: s64, y: u8)\napply Closure(A) -> (C)", TypeMismatch, "test:14:22: the column y of C is u8, and y of T of"),
        ("relation C(x: s64, y: s64, z: s64)\napply Closure(A) -> (C)", TypeMismatch, "test:14:22: relation C has 3 columns"),
        ("input stream C(x: s64, y: s64)\napply Closure(C) -> (P)", TypeMismatch, "test:14:15: C is a stream, and E of the transf"),
        ("transformer T(E: relation(x: 'A, y: 'A)) -> (F: relation(x: 'A)) { F(x) :- E(x, x). }\n"
         "relation C(x: s64, y: u8)\nrelation D(x: s64)\napply T(C) -> (D)",
         TypeMismatch, "test:16:9: the column y of C is u8, and y of E of the transformer is s64"),
        ("apply Closure(A) -> (B)", Unsupported, "the input relation B is the head of a rule"),
        ("transformer T(E: relation(x: s64)) -> (F: relation(x: s64)) { input relation G(x: s64) }\nrelation C(x: s64)\napply T(C) -> (C)",
         Unsupported, "a transformer has relations and rules"),
    ],
)  # fmt: skip
def test_errors_of_transformers(text: str, error: type[DelticError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        bind_datalog(f"{CLOSURE}\n{text}", "test")
    assert caught.value.span is not None


def test_functions_of_modules_are_steps() -> None:
    module = """
        function add(a: s64, v: s64, _w: s64): s64 = a + v
        input stream S(v: s64)
        relation Sum(v: s64)
        Sum(a) :- S(v), var a = v.stream_aggregate((), add, 0).
    """
    program = """
        import m
        output relation R(v: s64)
        output relation T(v: s64)
        R(b) :- m::Sum(b).
        T(a) :- m::S(v), var a = v.stream_aggregate((), m::add, 1).
    """
    with deltic.Session() as session:
        session.datalog(deltic.Datalog(program, modules=(("m", module, "m.dl"),)))
        session.apply({"m::S": [{"v": 2, "_weight": 1}, {"v": 3, "_weight": 1}]})
        assert [session.view(name).rows() for name in "RT"] == [[{"v": 5}], [{"v": 6}]]


def test_types_of_transformers() -> None:
    """Type variables, and structs in place of columns."""
    program = """
        typedef Pair = Pair{x: s64, y: string}
        input relation A(name: string, n: u8)
        input relation B[Pair]
        output relation C(n: u8)
        output relation D[Pair]
        output relation E(y: string)
        transformer Second(E: relation(x: 'A, y: 'B)) -> (F: relation(y: 'B)) { F(y) :- E(_, y). }
        transformer Same(E: relation[Pair]) -> (F: relation[Pair]) { F(x, y) :- E(x, y). }
        apply Second(A) -> (C)
        apply Same(B) -> (D)
        apply Second(D) -> (E)
    """
    with deltic.Session() as session:
        session.datalog(program)
        session.apply({"A": [{"name": "a", "n": 7, "_weight": 1}], "B": [{"x": 1, "y": "b", "_weight": 1}]})
        assert [session.view(name).rows() for name in "CDE"] == [[{"n": 7}], [{"x": 1, "y": "b"}], [{"y": "b"}]]


def test_a_module_is_a_namespace() -> None:
    module = ("relation R(x: s64)\nR(1).", "m.dl")
    with pytest.raises(CatalogError, match="declared twice"):
        bind_datalog("relation R(x: s64)\nrelation R(x: s64)", "test")
    bound = bind_datalog("import m\nrelation R(x: s64)\nR(x) :- m::R(x).", "test", modules={"m": module})
    assert list(bound.declarations.relations) == ["m::R", "R"]
