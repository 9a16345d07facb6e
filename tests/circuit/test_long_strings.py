"""MIN, MAX, MIN_BY, MAX_BY and top-k over strings whose first bytes are equal: their bytes decide, also after deletions of extremes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deltic

STEM = "the first twenty-four bytes are equal "
TEXTS = [STEM + end for end in ("", "a", "b", "c", "d", "e")] + ["short", "zebra"]
LIMIT = 2


@settings(max_examples=15, deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(TEXTS), st.integers(0, 2)), max_size=4), min_size=2, max_size=12))
def test_the_bytes_decide(ticks: list[list[tuple[int, str, int]]]) -> None:
    with deltic.Session() as session:
        session.sql(f"""
            CREATE TABLE t (id INT PRIMARY KEY, s STRING NOT NULL, b INT NOT NULL);
            CREATE MATERIALIZED VIEW extremes AS SELECT min(s) AS least, max(s) AS greatest FROM t;
            CREATE MATERIALIZED VIEW beside AS SELECT min_by(s, b) AS s, max_by(b, s) AS b, min_by(id, s) AS id FROM t;
            CREATE MATERIALIZED VIEW first AS SELECT s, b, id FROM t ORDER BY s, b, id LIMIT {LIMIT};
            CREATE MATERIALIZED VIEW last AS SELECT s, b, id FROM t ORDER BY s DESC, b, id LIMIT {LIMIT};
            CREATE MATERIALIZED VIEW of_groups AS
                SELECT s, b, id FROM t QUALIFY row_number() OVER (PARTITION BY b ORDER BY s, id) <= {LIMIT};
        """)
        content: dict[int, tuple[str, int, int]] = {}
        for tick in ticks:
            with session.transaction() as tx:
                for key, text, b in tick:
                    if content.get(key) == (text, b, key):
                        tx.delete("t", [key])
                        del content[key]
                    else:
                        tx.upsert("t", [{"id": key, "s": text, "b": b}])
                        content[key] = (text, b, key)
            ascending = sorted(content.values())
            descending = sorted(ascending, key=lambda row: row[0], reverse=True)
            ends = (ascending[0][0], ascending[-1][0]) if ascending else (None, None)
            assert [tuple(row.values()) for row in session.view("extremes").rows()] == [ends]
            by_b, by_s = sorted((b, text) for text, b, _ in ascending), sorted((text, b, key) for text, b, key in ascending)
            beside = (by_b[0][1], by_s[-1][1], min((text, key) for text, _, key in ascending)[1]) if ascending else (None, None, None)
            assert [tuple(row.values()) for row in session.view("beside").rows()] == [beside]
            of_groups = [row for b in range(3) for row in [row for row in ascending if row[1] == b][:LIMIT]]
            assert sorted(tuple(row.values()) for row in session.view("of_groups").rows()) == sorted(of_groups)
            for view, expected in (("first", ascending), ("last", descending)):
                assert sorted(tuple(row.values()) for row in session.view(view).rows()) == sorted(expected[:LIMIT])


@pytest.mark.parametrize("end", [0, -1])
def test_the_extreme_is_deleted_again_and_again(end: int) -> None:
    texts = sorted(STEM + str(i) for i in range(8))
    with deltic.Session() as session:
        session.sql("""
            CREATE TABLE t (s STRING NOT NULL);
            CREATE MATERIALIZED VIEW extremes AS SELECT min(s) AS least, max(s) AS greatest FROM t;
        """)
        with session.transaction() as tx:
            tx.insert("t", [{"s": text} for text in texts])
        while len(texts) > 1:
            with session.transaction() as tx:
                tx.delete("t", [{"s": texts.pop(end)}])
            assert session.view("extremes").rows() == [{"least": texts[0], "greatest": texts[-1]}]


def test_a_long_literal_costs_its_length() -> None:
    """Time quadratic in it would be hours."""
    text = "x" * 1_000_000
    with deltic.Session() as session:
        session.sql(
            f"CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT a, '{text}' AS b FROM t; INSERT INTO t VALUES (length('{text}'))"
        )
        assert session.view("v").rows() == [{"a": len(text), "b": text}]
        assert session.query(f"SELECT count(*) AS n FROM v WHERE b = '{text}'").rows() == [{"n": 1}]
