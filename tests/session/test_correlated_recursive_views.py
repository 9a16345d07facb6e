"""Recursions that read columns of the queries around them: views are as the oracle after every tick, also from reopened state."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import deltic
from checked import Checked, edges

SCRIPT = """
CREATE TABLE nodes (id INT NOT NULL, bound INT);
CREATE TABLE edges (src INT NOT NULL, dst INT NOT NULL, cost INT NOT NULL);
CREATE MATERIALIZED VIEW reached AS SELECT id, bound, (
    SELECT count(*) FROM (WITH RECURSIVE r (x) AS (
        SELECT dst FROM edges WHERE src = n.id UNION SELECT dst FROM r JOIN edges ON src = x WHERE cost <= n.bound
    ) SELECT x FROM r) AS q
) AS n FROM nodes AS n;
CREATE MATERIALIZED VIEW nearest AS SELECT n.id, q.x, q.k FROM nodes AS n LEFT JOIN LATERAL (
    WITH RECURSIVE r (x, k) AS (SELECT x, min(k) FROM (
        SELECT n.id AS x, 0 AS k UNION ALL SELECT dst, k + cost FROM r JOIN edges ON src = x WHERE dst <> n.bound
    ) GROUP BY x) SELECT x, k FROM r WHERE k > 0
) AS q ON TRUE;
CREATE MATERIALIZED VIEW closed AS WITH RECURSIVE c (a, b) AS (
    SELECT src, dst FROM edges WHERE cost = 1
    UNION SELECT c.a, q.x FROM c, LATERAL (
        WITH RECURSIVE s (x) AS (SELECT c.b UNION SELECT dst FROM s JOIN edges ON src = x AND cost > c.a) SELECT x FROM s
    ) AS q
) SELECT a, b FROM c;
"""


@pytest.mark.parametrize("shards", [1, 3])
def test_random_changes(shards: int, tmp_path: Path) -> None:
    rng, checked = Random(f"correlated {shards}"), Checked(SCRIPT, session=deltic.Session(shards=shards, state=tmp_path))
    seen = set()
    for tick in range(8):
        changes = {}
        for name, row in (
            ("edges", lambda: (rng.randrange(6), rng.randrange(6), rng.randrange(1, 4))),
            ("nodes", lambda: (rng.randrange(6), rng.choice((None, 1, 2)))),
        ):
            present = sorted(checked.tables[name], key=str)
            deleted = rng.sample(present, min(len(present), rng.randrange(3)))
            changes[name] = edges(*deleted, weight=-1) | edges(*{row() for _ in range(3)} - set(present))
        seen.add(tuple(len(view) for view in checked.tick(changes).values()))
        if tick == 3:
            checked.session.close()
            checked.open(deltic.Session(shards=shards, state=tmp_path))
    assert len(seen) > 4
    checked.session.close()


def test_a_recursion_without_an_end_for_other_values_is_not_evaluated_for_them() -> None:
    checked = Checked(
        "CREATE TABLE nodes (id INT); CREATE TABLE edges (src INT, dst INT); CREATE MATERIALIZED VIEW v AS SELECT id, ("
        "SELECT count(*) FROM (WITH RECURSIVE r (x) AS (SELECT dst FROM edges WHERE src = nodes.id "
        "UNION ALL SELECT dst FROM r JOIN edges ON src = x) SELECT x FROM r) AS q) AS n FROM nodes"
    )
    cycle = edges((1, 2), (2, 1))
    view = checked.tick({"nodes": edges((3,), (None,)), "edges": edges((3, 4), (3, 5), (4, 6), (5, 6)) | cycle})["v"]
    assert dict(view.pairs()) == {(3, 4): 1, (None, 0): 1}
    checked.failing({"nodes": edges((1,))}, deltic.errors.Divergence, "r has not converged")
    checked.session.close()
