"""Recursive SQL in a session: after every tick every view and its change equal those of the oracle."""

from __future__ import annotations

import random

import pytest

import deltic
from checked import Checked, Draft, edges
from deltic.errors import CatalogError, Divergence, TypeMismatch, Unsupported
from deltic.plan.nodes import Recursion
from deltic.plan.walk import nodes
from recursive_scripts import CLOSURE, EDGES, NON_LINEAR, PARITY, REACHABLE, SAME_GENERATION, SHORTEST


@pytest.mark.parametrize("script", [CLOSURE, NON_LINEAR])
def test_a_path_disappears_with_an_edge_that_it_needs(script: str) -> None:
    checked = Checked(script)
    assert len(checked.tick({"edges": edges((0, 2), (2, 0), (2, 1))})["paths"]) == 6
    assert set(checked.tick({"edges": edges((2, 1), weight=-1)})["paths"]) == {(0, 2), (2, 0), (0, 0), (2, 2)}


@pytest.mark.parametrize("script", [CLOSURE, NON_LINEAR])
def test_a_cycle_disappears_with_its_last_edge_from_the_rest(script: str) -> None:
    checked = Checked(script)
    checked.tick({"edges": edges((0, 1), (1, 2), (2, 3), (3, 1), (3, 4))})
    checked.tick({"edges": edges((0, 1), weight=-1)})
    checked.tick({"edges": edges((3, 1), weight=-1) | edges((0, 1))})


def test_a_cycle_does_not_support_itself() -> None:
    checked = Checked(REACHABLE)
    assert len(checked.tick({"edges": edges((0, 1), (1, 2), (2, 3), (3, 1))})["reached"]) == 4
    assert set(checked.tick({"edges": edges((0, 1), weight=-1)})["reached"]) == {(0,)}
    assert len(checked.tick({"edges": edges((0, 2))})["reached"]) == 4


def test_row_by_row_equals_all_at_once() -> None:
    """0→1→2→3 and 0→3: nodes first reached by the short way must stay when its edge is deleted, at later iterations."""
    changes = [
        edges((0, 1)),
        edges((1, 2)),
        edges((2, 3)),
        edges((0, 3)),
        edges((3, 4)),
        edges((0, 3), weight=-1),
        edges((1, 2), weight=-1),
    ]
    slow, fast = Checked(CLOSURE), Checked(CLOSURE)
    for change in changes:
        slow.tick({"edges": change})
    together: dict[tuple[int, ...], int] = {}
    for change in changes:
        together = {row: together.get(row, 0) + change.get(row, 0) for row in {**together, **change}}
    fast.tick({"edges": {row: weight for row, weight in together.items() if weight}})
    assert slow.session.view("paths").rows() == fast.session.view("paths").rows()


def test_same_generation() -> None:
    checked = Checked(SAME_GENERATION)
    family = edges(("b", "a"), ("c", "a"), ("d", "b"), ("e", "c"), ("f", "d"), ("g", "e"))
    assert {("d", "e"), ("f", "g")} <= set(checked.tick({"parents": family})["generation"])
    assert ("f", "g") not in checked.tick({"parents": edges(("c", "a"), weight=-1)})["generation"]
    checked.tick({"parents": edges(("c", "a"), ("e", "b"))})


def test_mutual_recursion_with_negation_between_strata() -> None:
    checked = Checked(PARITY)
    checked.tick({"steps": edges((0, 1), (1, 2), (2, 3), (3, 4), (7, 8), (8, 9))})
    checked.tick({"blocked": edges((2,))})
    checked.tick({"steps": edges((1, 2), weight=-1) | edges((0, 7))})
    checked.tick({"blocked": edges((2,), weight=-1) | edges((8,))})


def test_shortest_paths_lengthen_again_when_a_road_closes() -> None:
    checked = Checked(SHORTEST)
    assert checked.tick({"roads": edges((0, 1, 1), (1, 2, 1), (0, 2, 5), (2, 1, 1), (2, 3, 1))})["distances"][(3, 3)] == 1
    assert checked.tick({"roads": edges((0, 1, 1), weight=-1)})["distances"][(3, 6)] == 1
    assert len(checked.tick({"roads": edges((0, 2, 5), weight=-1)})["distances"]) == 1
    checked.tick({"roads": edges((0, 3, 1), (3, 2, 1))})


@pytest.mark.parametrize("script", [CLOSURE, NON_LINEAR, REACHABLE])
@pytest.mark.parametrize("shards", [1, 3])
def test_random_changes_of_a_graph(script: str, shards: int) -> None:
    rng, checked = random.Random(f"{script}{shards}"), Checked(script, shards)
    for _ in range(12):
        present = sorted(checked.tables["edges"])
        deleted = rng.sample(present, min(len(present), rng.randrange(4)))
        inserted = {(rng.randrange(7), rng.randrange(7)) for _ in range(rng.randrange(4))} - set(present)
        if deleted or inserted:
            checked.tick({"edges": edges(*deleted, weight=-1) | edges(*inserted)})


def test_random_changes_of_roads() -> None:
    rng, checked = random.Random(5), Checked(SHORTEST)
    for _ in range(25):
        present = sorted(checked.tables["roads"])
        deleted = rng.sample(present, min(len(present), rng.randrange(3)))
        inserted = {(rng.randrange(6), rng.randrange(6), rng.randrange(1, 9)) for _ in range(rng.randrange(3))} - set(present)
        if deleted or inserted:
            checked.tick({"roads": edges(*deleted, weight=-1) | edges(*inserted)})


def test_union_all_counts_derivations() -> None:
    checked = Checked(
        EDGES
        + """
        CREATE MATERIALIZED VIEW ways AS
            WITH RECURSIVE p AS (SELECT src, dst FROM edges UNION ALL SELECT p.src, e.dst FROM p JOIN edges e ON p.dst = e.src)
            SELECT src, dst FROM p;
        CREATE MATERIALIZED VIEW ways_by_halves AS
            WITH RECURSIVE p AS (SELECT src, dst FROM edges UNION ALL SELECT a.src, b.dst FROM p a JOIN p b ON a.dst = b.src)
            SELECT src, dst FROM p;
        """
    )
    views = checked.tick({"edges": edges((0, 1), (0, 2), (1, 3), (2, 3), (3, 4))})
    assert views["ways"][(0, 4)] == 2
    assert views["ways_by_halves"][(0, 4)] == 4  # each of two paths of three edges, split in two ways
    checked.tick({"edges": edges((1, 3), weight=-1)})


def test_divergence_rolls_back_and_names_the_relation() -> None:
    checked = Checked(
        EDGES
        + """
        CREATE MATERIALIZED VIEW ways AS
            WITH RECURSIVE p MAX RECURSION LEVEL 20 AS (
                SELECT src, dst FROM edges UNION ALL SELECT p.src, e.dst FROM p JOIN edges e ON p.dst = e.src
            )
            SELECT src, dst FROM p;
        """
    )
    checked.tick({"edges": edges((0, 1), (1, 2))})
    message = r"recursive relation p has not converged after 20 iterations: the last ones changed \d+, \d+, \d+ rows, such as \(\d, \d\)"
    checked.failing({"edges": edges((2, 0))}, Divergence, message)
    checked.tick({"edges": edges((2, 3))})


def test_limits_are_counted_as_in_spark() -> None:
    count = """
        CREATE TABLE top (n INT NOT NULL);
        CREATE MATERIALIZED VIEW numbers AS
            WITH RECURSIVE c (n) MAX RECURSION LEVEL 5 AS (SELECT 1 UNION ALL SELECT c.n + 1 FROM c JOIN top ON c.n < top.n)
            SELECT n FROM c;
    """
    checked = Checked(count)
    assert len(checked.tick({"top": edges((5,))})["numbers"]) == 5
    checked.failing({"top": edges((6,)) | edges((5,), weight=-1)}, Divergence, "after 5 iterations")


def test_recursion_inside_recursion() -> None:
    checked = Checked(
        EDGES
        + """
        CREATE TABLE lifts (src BIGINT NOT NULL, dst BIGINT NOT NULL);
        CREATE MATERIALIZED VIEW reached AS
            WITH RECURSIVE r (node) AS (
                SELECT 0L
                UNION
                SELECT l.dst FROM lifts l JOIN (
                    WITH RECURSIVE walk (node) AS (SELECT node FROM r UNION SELECT e.dst FROM walk JOIN edges e ON e.src = walk.node)
                    SELECT node FROM walk
                ) w ON l.src = w.node
            )
            SELECT node FROM r;
        """
    )
    checked.tick({"edges": edges((0, 1), (1, 2), (5, 6), (6, 5)), "lifts": edges((2, 5), (6, 9))})
    checked.tick({"edges": edges((1, 2), weight=-1)})
    checked.tick({"edges": edges((0, 2)), "lifts": edges((9, 0))})
    checked.tick({"lifts": edges((2, 5), weight=-1)})


def test_declared_views_are_one_recursion_and_sets() -> None:
    plans = Draft(PARITY).plans()
    recursion = plans["even"]
    assert isinstance(recursion, Recursion)
    assert [name for name, _ in recursion.relations] == ["even", "odd"]
    assert {node.result for node in nodes(plans["neither"]) if isinstance(node, Recursion)} == {"even"}  # odd is one step from it


def test_a_declared_view_that_reads_nothing_recursive_is_its_query() -> None:
    plans = Draft(EDGES + "DECLARE RECURSIVE VIEW a (n BIGINT); CREATE MATERIALIZED VIEW a AS SELECT src AS n FROM edges").plans()
    assert not any(isinstance(node, Recursion) for node in nodes(plans["a"]))


def test_views_between_declared_views_are_inlined() -> None:
    script = (
        EDGES
        + """
        DECLARE RECURSIVE VIEW r (n BIGINT) MAX RECURSION LEVEL 50;
        CREATE VIEW ahead AS SELECT e.dst AS n FROM r JOIN edges e ON e.src = r.n;
        CREATE MATERIALIZED VIEW r AS SELECT 0 AS n UNION ALL SELECT n FROM ahead;
        """
    )
    checked = Checked(script)
    checked.tick({"edges": edges((0, 1), (1, 2), (2, 1))})
    checked.tick({"edges": edges((0, 1), weight=-1)})
    assert checked.plans["r"].limit == 50
    checked.session.sql("CREATE OR REPLACE VIEW ahead AS SELECT e.src AS n FROM r JOIN edges e ON e.dst = r.n")
    assert checked.session.view("r").rows() == [{"n": 0}]


def test_a_declared_view_is_replaced_and_its_readers_follow() -> None:
    session = deltic.Session()
    session.sql(PARITY)
    with session.transaction() as tx:
        tx.insert("steps", [{"a": 0, "b": 1}, {"a": 1, "b": 2}])
    session.sql("CREATE OR REPLACE MATERIALIZED VIEW odd AS SELECT a AS n FROM steps WHERE a = 1")
    assert sorted(row["n"] for row in session.view("even").rows()) == [0, 2]
    assert session.view("neither").rows() == []


def test_views_that_read_one_another_are_dropped_together() -> None:
    session = deltic.Session()
    session.sql(PARITY)
    with pytest.raises(CatalogError, match="view even is read by view neither"):
        session.sql("DROP VIEW even")
    session.sql("DROP VIEW above; DROP VIEW neither")
    with pytest.raises(CatalogError, match="view odd reads even, which has been dropped"):
        session.sql("DROP VIEW even")
    session.sql("DROP VIEW even; DROP VIEW odd")
    session.sql("CREATE MATERIALIZED VIEW even AS SELECT a FROM steps")
    assert session.views == ("even",)


REFUSED = {
    "DECLARE RECURSIVE VIEW a (n INT)": (CatalogError, "view a is declared, but not created"),
    "DECLARE RECURSIVE VIEW edges (n INT)": (CatalogError, "table edges is defined already"),
    "DECLARE RECURSIVE VIEW a (n INT); DECLARE RECURSIVE VIEW A (n INT)": (CatalogError, "view A is defined already"),
    "DECLARE RECURSIVE VIEW a (n INT); CREATE TABLE a (n INT)": (CatalogError, "view a is defined already"),
    "DECLARE RECURSIVE VIEW a (n INT); CREATE VIEW a AS SELECT n + 1 AS n FROM a": (Unsupported, "relation a has no base"),
    "DECLARE RECURSIVE VIEW a (n INT); CREATE VIEW a AS SELECT src AS n FROM edges": (
        TypeMismatch,
        "declared as INT, and its query gives BIGINT",
    ),
    "DECLARE RECURSIVE VIEW a (n INT); CREATE VIEW a AS SELECT 1 AS m": (TypeMismatch, "does not have its declared columns"),
    "DECLARE RECURSIVE VIEW a (n INT NOT NULL); CREATE VIEW a AS SELECT CAST(NULL AS INT) AS n": (TypeMismatch, "declared NOT NULL"),
    """DECLARE RECURSIVE VIEW a (n BIGINT); DECLARE RECURSIVE VIEW b (n BIGINT);
    CREATE VIEW a AS SELECT src AS n FROM edges WHERE src NOT IN (SELECT n FROM b);
    CREATE VIEW b AS SELECT dst AS n FROM edges WHERE dst IN (SELECT n FROM a)""": (Unsupported, "relation b is read under NOT IN"),
}


@pytest.mark.parametrize("script", REFUSED)
def test_an_invalid_declaration_changes_nothing(script: str) -> None:
    kind, message = REFUSED[script]
    session = deltic.Session()
    session.sql(EDGES)
    with pytest.raises(kind, match=message) as caught:
        session.sql(script)
    assert caught.value.span is not None
    assert session.views == ()
