"""Real votes under churn: degrees, top users, and those who never vote, compared with Arrow's group-by of the remaining rows."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltic

FOLDER = os.environ.get("DELTIC_DATA")


@pytest.mark.skipif(FOLDER is None, reason="DELTIC_DATA does not name the folder of real data")
def test_votes_under_churn() -> None:
    votes = (
        pq.read_table(Path(FOLDER or "") / "wiki_vote.parquet")
        .select(["src", "dst"])
        .cast(pa.schema([("src", pa.int64()), ("dst", pa.int64())]))
    )
    rng = np.random.default_rng(7)
    with deltic.Session() as session:
        session.sql("""
            CREATE TABLE votes (src BIGINT, dst BIGINT, PRIMARY KEY (src, dst));
            CREATE MATERIALIZED VIEW received AS SELECT dst, count(*) AS votes FROM votes GROUP BY dst;
            CREATE MATERIALIZED VIEW busiest AS SELECT src, count(*) AS votes FROM votes GROUP BY src ORDER BY votes DESC, src LIMIT 10;
            CREATE MATERIALIZED VIEW silent AS
                SELECT DISTINCT dst FROM votes v WHERE NOT EXISTS (SELECT 1 FROM votes w WHERE w.src = v.dst);
        """)
        with session.transaction() as tx:
            tx.insert("votes", votes)
        out = np.zeros(0, np.int64)
        for _ in range(5):
            with session.transaction() as tx:
                tx.insert("votes", votes.take(out))
                out = rng.choice(votes.num_rows, 10_000, replace=False)
                tx.delete("votes", votes.take(out))
            check(session, votes.take(np.setdiff1d(np.arange(votes.num_rows), out)))


def check(session: deltic.Session, left: pa.Table) -> None:
    received = left.group_by("dst").aggregate([([], "count_all")]).rename_columns(["dst", "votes"])
    assert sorted(map(tuple, received.to_pandas().to_numpy().tolist())) == sorted(
        (r["dst"], r["votes"]) for r in session.view("received").rows()
    )
    sent = (
        left.group_by("src")
        .aggregate([([], "count_all")])
        .rename_columns(["src", "votes"])
        .sort_by([("votes", "descending"), ("src", "ascending")])
    )
    assert {(r["src"], r["votes"]) for r in session.view("busiest").rows()} == {
        (r["src"], r["votes"]) for r in sent.slice(0, 10).to_pylist()
    }
    silent = set(left["dst"].to_pylist()) - set(left["src"].to_pylist())
    assert {r["dst"] for r in session.view("silent").rows()} == silent
