"""Sums as weights through several joins with nullable keys."""

from __future__ import annotations

import pytest

from checked import Checked

TABLE = "CREATE TABLE f (a BIGINT, b BIGINT NOT NULL, c STRING, d BIGINT);\n"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT y.c, count(*) AS n FROM f x JOIN f y ON x.b = y.b JOIN f z ON z.b = x.a GROUP BY y.c",
        "SELECT x.a, count(*) AS n, sum(y.b) AS s FROM f x JOIN f y ON x.b = y.a JOIN f z ON z.a = x.a GROUP BY x.a",
        "SELECT /*+ BINARY_JOIN */ x.d, sum(z.d) AS s FROM f x JOIN f y ON x.b = y.a JOIN f z ON z.b = x.a AND z.a = y.b GROUP BY x.d",
    ],
)
@pytest.mark.parametrize("shards", [1, 2])
def test_a_key_that_may_be_null_passes_through_the_join_below(query: str, shards: int) -> None:
    checked = Checked(f"{TABLE}CREATE MATERIALIZED VIEW v AS {query};", shards)
    rows = [(a, b, c, d) for a in (None, 1, 2) for b in (1, 2) for c in (None, "x") for d in (None, 5)]
    checked.tick({"f": dict.fromkeys(rows, 1)})
    checked.tick({"f": dict.fromkeys(rows[::3], 1)})
    assert checked.tick({"f": dict.fromkeys(rows[::2], -1)})["v"]
