"""Table functions inside recursions, and repeat_row around them: equal to the oracle after every tick."""

from __future__ import annotations

from random import Random

from checked import Checked, edges
from recursive_scripts import EDGES

SCRIPT = (
    EDGES
    + """
    CREATE MATERIALIZED VIEW halves AS
        WITH RECURSIVE r (n) AS (
            SELECT dst FROM edges UNION SELECT m FROM r LATERAL VIEW explode(array(n - 1, n div 2)) v AS m WHERE m >= 0
        )
        SELECT n FROM r;
    CREATE MATERIALIZED VIEW steps AS
        WITH RECURSIVE r (n, depth) AS (
            SELECT src, 0L FROM edges
            UNION ALL
            SELECT m, depth + 1 FROM r, LATERAL generate_series(n + 1, least(n + 2, 6)) AS v(m) JOIN edges ON src = m
        )
        SELECT n, depth, count(*) AS ways FROM r GROUP BY n, depth;
    CREATE MATERIALIZED VIEW weighed AS
        WITH RECURSIVE
            few AS (SELECT src, dst FROM edges UNION ALL SELECT src, dst FROM edges LATERAL VIEW repeat_row(-1) WHERE src > 2),
            r (n) AS (SELECT 0L UNION SELECT dst FROM r JOIN few ON src = n)
        SELECT n FROM r;
    """
)


def test_table_functions_run_in_every_iteration() -> None:
    for seed in range(3):
        rng = Random(seed)
        checked = Checked(SCRIPT)
        there: dict[tuple[int, int], int] = {}
        for _ in range(8):
            new = {(rng.randrange(6), rng.randrange(7)): 1 for _ in range(3)}
            deleted = {edge: -1 for edge in there if rng.random() < 0.3}
            changes = {edge: new.get(edge, 0) + deleted.get(edge, 0) for edge in new.keys() | deleted.keys()}
            changes = {edge: weight for edge, weight in changes.items() if weight}
            views = checked.tick({"edges": changes})
            there = {edge: w for edge in there.keys() | changes.keys() if (w := there.get(edge, 0) + changes.get(edge, 0))}
        assert views["halves"] and views["steps"] and views["weighed"]
        checked.session.close()


def test_rows_disappear_with_the_edge_that_supported_them() -> None:
    checked = Checked(SCRIPT)
    assert len(checked.tick({"edges": edges((0, 5), (1, 2))})["halves"]) == 6
    assert len(checked.tick({"edges": edges((0, 5), weight=-1)})["halves"]) == 3
    checked.session.close()
