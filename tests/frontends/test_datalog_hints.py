"""Hints before rules: the order and the kind of joins, and the most iterations, as plans and explain show them."""

from __future__ import annotations

import pytest

import deltic
from deltic.errors import Divergence, Unsupported

EDGES = """
input relation Edge(x: s64, y: s64)
input relation Node(x: s64, t: string)
"""
ROWS = [(1, 2), (2, 3), (3, 1), (3, 4)]


def explained(rules: str) -> tuple[str, list[dict[str, object]]]:
    with deltic.Session() as session:
        session.datalog(EDGES + rules, warn=False)
        with session.transaction() as tx:
            tx.insert("Edge", [{"x": x, "y": y} for x, y in ROWS])
            tx.insert("Node", [{"x": x, "t": "n" * x} for x in (1, 2)])
        return str(session.explain("R")), sorted(session.view("R").rows(), key=repr)


def tables(text: str) -> list[str]:
    plan = text.split("\n\n", maxsplit=1)[0]
    return [line.split("Table ")[1].split()[0] for line in plan.splitlines() if "Table " in line]


def test_atoms_are_joined_in_the_order_of_the_hint() -> None:
    rule = "R(t, z) :- Edge(x, y), n in Node(.x = y), Edge(y, z), var t = n.t, z > 1."
    plain, rows = explained(f"output relation R(t: string, z: s64)\n{rule}")
    ordered, same = explained(f'output relation R(t: string, z: s64)\n#[join_order = "Node, Edge, Edge"]\n{rule}')
    assert rows == same == [{"t": "n", "z": 2}, {"t": "nn", "z": 3}]
    assert tables(plain)[0] == "Edge" and tables(ordered)[0] == "Node"
    assert "hinted" not in plain and ordered.count("hinted binary") == 2


TRIANGLES = "R(x, y, z) :- Edge(x, y), Edge(y, z), Edge(z, x)."


@pytest.mark.parametrize(("hint", "multiway"), [("", True), ('#[join = "multiway"]', True), ('#[join = "binary"]', False)])
def test_a_hint_chooses_between_multiway_and_binary_joins(hint: str, multiway: bool) -> None:
    text, rows = explained(f"output relation R(x: s64, y: s64, z: s64)\n{hint} {TRIANGLES}")
    assert rows == [{"x": x, "y": y, "z": z} for x, y, z in ((1, 2, 3), (2, 3, 1), (3, 1, 2))]
    assert ("MultiwayJoin" in text) is multiway


def test_a_hint_that_cannot_be_followed_is_an_error() -> None:
    with pytest.raises(Unsupported, match=r"<datalog>:5:10: this cannot be one multiway join"):
        explained('output relation R(x: s64)\n#[join = "multiway"] R(x) :- Edge(x, _), Node(_, _).')


def test_a_hint_limits_iterations() -> None:
    rules = "output relation R(x: s64)\nR(x) :- Edge(x, _).\n#[iterations = 3] R(x + 1) :- R(x), Edge(_, y), x < {}."
    assert len(explained(rules.format(3))[1]) == 3
    with pytest.raises(Divergence, match=r"<datalog>:6:31: the recursive relation R has not converged after 3 iterations") as caught:
        explained(rules.format(30))
    assert caught.value.span is not None and caught.value.span.written == "R"
    assert caught.value.remedy == "add a condition that ends it, such as n < 100, or raise the limit"


def test_a_relation_that_diverges_has_a_place_in_its_own_rule() -> None:
    """The first reference is in a rule of P, which does not diverge by itself."""
    rules = """
        relation P(x: s64)
        output relation R(x: s64)
        P(x) :- Edge(x, _).
        P(x) :- R(x), x < 5.
        #[iterations = 20]
        R(x + 1) :- P(x).
        R(x + 1) :- R(x), x > 1.
    """
    with pytest.raises(Divergence, match=r"<datalog>:11:21: the recursive relation R has not converged"):
        explained(rules)


def test_hints_hold_where_transformers_are_applied() -> None:
    rules = """
        transformer Two(E: relation(x: s64, y: s64), N: relation(x: s64, t: string)) -> (T: relation(t: string, y: s64)) {
            #[join_order = "N, E"] T(t, y) :- E(x, y), N(x, t).
        }
        output relation R(t: string, y: s64)
        apply Two(Edge, Node) -> (R)
    """
    text, rows = explained(rules)
    assert tables(text) == ["Node", "Edge"] and "hinted binary" in text
    assert rows == [{"t": "n", "y": 2}, {"t": "nn", "y": 3}]
