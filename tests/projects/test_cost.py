"""When recomputing a view is cheaper than applying changes to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltic.schema import BIGINT, Field
from pipelines_projects import SPEC, NoSpark, planned, written

pytest.importorskip("pyspark.sql.connect.proto")

VIEWS = """
CREATE MATERIALIZED VIEW sums AS SELECT k, sum(v) AS s FROM t GROUP BY k;
CREATE MATERIALIZED VIEW ranks REFRESH POLICY auto AS SELECT k, row_number() OVER (PARTITION BY k ORDER BY v) AS r FROM t;
CREATE MATERIALIZED VIEW kept REFRESH POLICY incremental AS SELECT k, max(v) AS s FROM t GROUP BY k;
CREATE MATERIALIZED VIEW live TBLPROPERTIES (deltic.table = 'live') AS SELECT k, min(v) AS s FROM t GROUP BY k;
"""


def test_a_view_is_recomputed_if_many_rows_of_its_tables_change(tmp_path: Path) -> None:
    from deltic.projects.cost import LEAST_ROWS, recomputation  # noqa: PLC0415  needs the extra

    spec = written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.sql": VIEWS})
    plan = planned(spec, NoSpark(Field("k", BIGINT), Field("v", BIGINT)))

    def chosen(changed: int, rows: int) -> list[str]:
        return [one.dataset.key for one in plan.incremental if recomputation(one, {"t": changed}, {"t": rows}) is not None]

    assert chosen(0, LEAST_ROWS) == chosen(1_000, 1_000_000) == []
    assert chosen(50_000, 1_000_000) == ["ranks"]
    assert chosen(400_000, 1_000_000) == ["sums", "ranks"]
    assert chosen(LEAST_ROWS - 1, LEAST_ROWS - 1) == [], "small tables are not worth it"
    assert chosen(5_000, 0) == [], "a first fill is no refresh"
    why = recomputation(plan.datasets["sums"], {"t": 400_000}, {"t": 1_000_000})
    assert str(why) == "sums: recomputed by Deltic, which is cheaper: 400,000 changes to 1,000,000 rows"
