"""LIKE ANY, SOME and ALL mean the conditions on each pattern, joined by OR or AND, NULL patterns included."""

from __future__ import annotations

import pytest

import deltic

MEANINGS = {
    "s LIKE ANY ('a%', '%c')": "s LIKE 'a%' OR s LIKE '%c'",
    "s LIKE SOME ('a%', NULL)": "s LIKE 'a%' OR s LIKE NULL",
    "s LIKE ALL ('a%', '%c')": "s LIKE 'a%' AND s LIKE '%c'",
    "s LIKE ALL ('a%')": "s LIKE 'a%'",
    "s NOT LIKE ANY ('a%', '%c')": "s NOT LIKE 'a%' OR s NOT LIKE '%c'",
    "s NOT LIKE ALL ('a%', p)": "s NOT LIKE 'a%' AND s NOT LIKE p",
    "NOT s LIKE ALL ('a%', p)": "NOT (s LIKE 'a%' AND s LIKE p)",
    "s ILIKE ANY ('A%', p) AND k > 2": "(s ILIKE 'A%' OR s ILIKE p) AND k > 2",
}


@pytest.mark.parametrize("written", MEANINGS)
def test_several_patterns(written: str) -> None:
    rows = [
        {"k": k, "s": s, "p": p} for k, (s, p) in enumerate((s, p) for s in ("abc", "ab", "xc", "A", None) for p in ("%b%", "A_C", None))
    ]
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (k INT, s STRING, p STRING, PRIMARY KEY (k))")
        with session.transaction() as tx:
            tx.insert("t", rows)
        session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT k, ({written}) AS x, ({MEANINGS[written]}) AS y FROM t")
        actual = session.view("v").rows()
        assert len(actual) == len(rows) and len({row["x"] for row in actual}) > 1
        assert [row["x"] for row in actual] == [row["y"] for row in actual]
