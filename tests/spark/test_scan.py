"""Reads of a state folder by the data source's code, in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deltic

pytest.importorskip("pyspark")

from pyspark.sql.datasource import EqualTo, Filter

from deltic.runtimes.spark.datasource import DelticSource

SCRIPT = """
    CREATE TABLE t (k BIGINT NOT NULL, g STRING NOT NULL, v DOUBLE, PRIMARY KEY (k));
    CREATE MATERIALIZED VIEW sums AS SELECT g, count(*) AS n FROM t GROUP BY g;
    CREATE MATERIALIZED VIEW counts AS SELECT v, count(*) AS n FROM t GROUP BY v;
    CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n FROM t;
    CREATE MATERIALIZED VIEW groups AS SELECT g FROM t;
"""


def reader(root: Path, view: str, **options: str) -> Any:
    source = DelticSource({"pushdown": "true", "path": str(root), "view": view, **options})
    return source.reader(source.schema())


def read(root: Path, view: str, *filters: Filter, **options: str) -> list[tuple[Any, ...]]:
    actual = reader(root, view, **options)
    if filters:
        actual.pushFilters([*filters])
    batches = [batch for part in actual.partitions() for batch in actual.read(part)]
    return sorted((tuple(row.values()) for batch in batches for row in batch.to_pylist()), key=repr)


@pytest.mark.parametrize(("before", "after"), [(1, 3), (2, 4), (4, 2), (3, 2)])
def test_a_state_whose_shards_were_split_or_joined_reads_as_before(tmp_path: Path, before: int, after: int) -> None:
    with deltic.Session(state=str(tmp_path), shards=before) as session:
        session.sql(SCRIPT)
        with session.transaction() as tx:
            tx.insert("t", [{"k": k, "g": f"g{k % 37}", "v": float(k % 5)} for k in range(500)])
        first = session.epoch
    with deltic.Session(state=str(tmp_path), shards=after) as session:
        session.program(SCRIPT)
        with session.transaction() as tx:
            tx.delete("t", [0])
        last = session.epoch
    assert read(tmp_path, "sums") == sorted((f"g{g}", len(range(g, 500, 37)) - (g == 0)) for g in range(37))
    assert read(tmp_path, "sums", EqualTo(("g",), "g5")) == [("g5", len(range(5, 500, 37)))]
    assert read(tmp_path, "total") == [(499,)]
    assert len(read(tmp_path, "groups")) == 499
    assert read(tmp_path, "sums", epoch=str(first)) == sorted((f"g{g}", len(range(g, 500, 37))) for g in range(37))
    assert read(tmp_path, "sums", startingEpoch=str(first + 1)) == [("g0", 13, 1, last), ("g0", 14, -1, last)]


def test_keys_that_are_zero_or_nan_match_as_in_spark(tmp_path: Path) -> None:
    with deltic.Session(state=str(tmp_path), shards=2) as session:
        session.sql(SCRIPT)
        with session.transaction() as tx:
            values = [-0.0, 0.0, float("nan"), 1.5, None]
            tx.insert("t", [{"k": k, "g": "a", "v": v} for k, v in enumerate(values)])
    assert read(tmp_path, "counts", EqualTo(("v",), 0.0)) == read(tmp_path, "counts", EqualTo(("v",), -0.0)) == [(0.0, 2)]
    assert [n for _, n in read(tmp_path, "counts", EqualTo(("v",), float("nan")))] == [1]


def test_a_key_is_looked_up_without_verifying_other_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from deltic.trace.spine import Spine  # noqa: PLC0415

    with deltic.Session(state=str(tmp_path), shards=2) as session:
        session.sql(SCRIPT)
        with session.transaction() as tx:
            tx.insert("t", [{"k": k, "g": f"g{k}", "v": None} for k in range(100)])

    def scanned(*_: object) -> None:
        raise AssertionError("a look-up must not scan")

    monkeypatch.setattr(Spine, "scan", scanned)
    assert read(tmp_path, "sums", EqualTo(("g",), "g7")) == [("g7", 1)]
    assert read(tmp_path, "sums", EqualTo(("g",), "nobody")) == []
    with pytest.raises(AssertionError, match="must not scan"):
        read(tmp_path, "sums")
