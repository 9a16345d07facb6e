"""The benchmark of Declarative Pipelines: the project that each runs, and what it says of tables that differ."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql.connect.proto")

from benchmarks.sdp import COMPARED, project, result


def test_each_has_a_project_of_its_own(tmp_path: Path) -> None:
    spec = project(tmp_path / "one", "shop_one", for_spark=False)
    assert "database: shop_one" in spec.read_text()
    assert f"storage: file://{tmp_path / 'one'}" in spec.read_text()
    texts = "".join(path.read_text() for path in (spec.parent / "transformations").iterdir())
    assert "/tmp/shop_pipeline" not in texts
    assert "delta" in texts
    assert all(f"{name}(" in texts or f"VIEW {name} " in texts or f'"{name}"' in texts for name in COMPARED)


def test_spark_writes_parquet_and_has_no_auto_cdc(tmp_path: Path) -> None:
    project(tmp_path, "shop_two", for_spark=True)
    texts = "".join(path.read_text() for path in (tmp_path / "transformations").iterdir())
    assert "USING delta" not in texts
    assert 'format="delta"' not in texts
    assert "create_auto_cdc_flow" not in texts
    assert "visits_by_segment" not in texts
    assert all(f"{name}(" in texts or f"VIEW {name} " in texts or f'"{name}"' in texts for name in COMPARED)


@pytest.mark.parametrize("wrong", [{}, {"order_totals": 3}])
def test_figures(wrong: dict[str, int]) -> None:
    runs = {
        "deltic": [
            {"plan_s": 1.0, "streams_s": 3.0, "refresh_s": 8.0, "rows_read": 500},
            {"plan_s": 1.0, "streams_s": 4.0, "refresh_s": 2.0, "rows_read": 30},
        ],
        "spark": [{"plan_s": 2.0, "streams_s": 5.0, "refresh_s": 9.0}, {"plan_s": 2.0, "streams_s": 6.0, "refresh_s": 40.0}],
    }
    told = result(runs, [0, 10], wrong)
    assert (told["faster"], told["rows_read_per_change"], told["load_s"]) == (20.0, 3.0, 8.0)
    assert (told["streams_s"], told["peers"]["spark-pipelines"]["streams_s"]) == (4.0, 6.0)
    assert told["correct"] is not bool(wrong)
    assert told["differences"] == wrong
    assert told["peers"]["spark-pipelines"]["tick_ms"]["median"] == 40_000
