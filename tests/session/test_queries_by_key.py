"""Queries and statements that name keys: the answers of those that read all rows, from the rows of these keys alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

import deltic
from deltic.runtimes.once import content_of
from deltic.session.state_query import StateQueries
from deltic.trace.encoding import decode_rows
from deltic.trace.spine import Spine

SCRIPT = """
CREATE TABLE sales (shop STRING NOT NULL, id INT NOT NULL, amount BIGINT, note CHAR(3), share DOUBLE, PRIMARY KEY (id, shop));
CREATE TABLE plain (id BIGINT, shop STRING);
CREATE VIEW every AS SELECT * FROM sales;
CREATE MATERIALIZED VIEW totals AS SELECT shop, count(*) AS n, sum(amount) AS total FROM sales GROUP BY shop;
"""
QUERIES = [
    "SELECT * FROM sales WHERE id = 7",
    "SELECT amount FROM sales WHERE shop = 'b' AND id = 7 AND amount > 3",
    "SELECT shop, amount FROM sales WHERE id IN (3, 5, 900) AND shop IN ('a', 'c')",
    "SELECT shop FROM sales WHERE id = 7 OR shop = 'a'",
    "SELECT shop FROM sales WHERE shop = 'a'",
    "SELECT shop FROM sales WHERE id = 7 AND id = 8",
    "SELECT count(*) AS n FROM sales WHERE id = 7",
    "SELECT count(*) AS n FROM sales WHERE id = CAST(NULL AS INT)",
    "SELECT s.shop, n FROM sales s JOIN totals t ON s.shop = t.shop WHERE s.id = 4",
    "SELECT s.amount, o.amount AS other FROM sales s JOIN sales o ON s.shop = o.shop WHERE s.id = 4 AND o.id = 5",
    "SELECT * FROM totals WHERE shop = 'b'",
    "SELECT * FROM totals WHERE shop = 'missing'",
    "SELECT shop FROM sales WHERE id = 7 AND note = 'x'",
    "SELECT id FROM plain WHERE id = 3",
    "SELECT id FROM plain WHERE id IS NULL",
    "WITH c AS (SELECT * FROM sales) SELECT * FROM c WHERE id = 3 UNION ALL SELECT * FROM c WHERE id = 4",
    "WITH c AS (SELECT * FROM sales) SELECT a.id, b.id AS next FROM c a JOIN c b ON b.id = a.id + 1 WHERE a.id = 3",
    "SELECT a.shop, b.id FROM every a JOIN every b ON b.id = a.id + 1 WHERE a.id = 3",
    "SELECT (SELECT max(amount) FROM every WHERE id = 1) AS one, (SELECT max(amount) FROM every WHERE id = 2) AS two",
    "SELECT id, (SELECT max(amount) FROM sales WHERE id = 4) AS most FROM plain WHERE id = 2",
]
CHANGES = [
    "UPDATE sales SET amount = amount + 1 WHERE id = 7",
    "DELETE FROM sales WHERE id IN (1, 2) AND shop = 'a'",
    "BEGIN; INSERT INTO sales VALUES ('d', 7, 5, 'x', 0.5); UPDATE sales SET amount = 100 WHERE id = 7; "
    "DELETE FROM sales WHERE id = 7 AND amount = 100 AND shop = 'a'; COMMIT",
    "UPDATE plain SET shop = 'z' WHERE id = 3",
    "DELETE FROM plain WHERE id NOT IN (SELECT b.id FROM every a, every b WHERE a.id = 3)",
    "UPDATE plain SET id = (SELECT max(id) FROM every WHERE id = 1) + (SELECT max(id) FROM every WHERE id = 2) WHERE id = 0",
]


def _filled(session: deltic.Session) -> None:
    rng = Random(1)
    session.sql(SCRIPT)
    for start in (0, 20):  # a spine of several batches
        with session.transaction() as tx:
            tx.insert(
                "sales",
                [
                    {"shop": shop, "id": id, "amount": rng.choice([None, rng.randrange(9)]), "note": rng.choice("xy"), "share": -0.0}
                    for id in range(start, start + 20)
                    for shop in "abc"
                ],
            )
            tx.insert("plain", [{"id": rng.choice([None, rng.randrange(5)]), "shop": "a"} for _ in range(20)])


def _answers(source: deltic.Session | StateQueries) -> list[list[str]]:
    return [
        sorted(map(repr, source.query(query).rows())) for query in QUERIES if "every" not in query or isinstance(source, deltic.Session)
    ]


def _answers_of_state(folder: Path) -> list[list[str]]:
    """Views that are not materialized are not in a state."""
    with StateQueries(folder) as state:
        return _answers(state)


@pytest.mark.parametrize(("shards", "stored"), [(1, False), (3, False), (1, True)])
def test_answers_are_those_of_all_rows(shards: int, stored: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = []
    for sought in (True, False):
        if not sought:
            monkeypatch.setattr("deltic.session.query.keys_of", lambda plan: {})
        with deltic.Session(shards=shards, state=tmp_path / str(sought) if stored else None) as session:
            _filled(session)
            answers.append([_answers(session)])
            for change in CHANGES:
                session.sql(change)
                answers[-1].append(_answers(session))
                if stored:
                    answers[-1].append(_answers_of_state(tmp_path / str(sought)))
                    assert answers[-1][-1] == [rows for query, rows in zip(QUERIES, answers[-1][-2], strict=True) if "every" not in query]
        if stored:
            with deltic.Session(shards=3, state=tmp_path / str(sought)) as session:  # whose files have rows of several shards
                session.sql(SCRIPT)
                answers[-1] += [_answers(session), _answers_of_state(tmp_path / str(sought))]
    assert answers[0] == answers[1]
    assert all(any(answer[i] for answer in answers[0]) for i in (0, 1, 2, 3, 6, 8, 9, 10, 13, 15, 16, 17, 18)), "the queries find rows"


@pytest.mark.parametrize("n", [2_000, 40_000])
def test_the_rows_of_the_keys_alone_are_read(n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def counted(circuit: Any, view: str, tables: Mapping[str, Sequence[Spine]], *others: Any) -> Any:
        read.append(sum(spine.rows for spines in tables.values() for spine in spines))
        return content_of(circuit, view, tables, *others)

    def decoded(words: Any, schema: Any, strings: Any, rows: int) -> Any:
        read.append(rows)
        return decode_rows(words, schema, strings, rows)

    monkeypatch.setattr("deltic.session.query.content_of", counted)
    monkeypatch.setattr("deltic.session.single_row.decode_rows", decoded)
    with deltic.Session(state=tmp_path) as session:
        session.sql(SCRIPT)
        with session.transaction() as tx:
            tx.insert("sales", [{"shop": f"shop {i % 7}", "id": i, "amount": i, "note": None, "share": 1.0} for i in range(n)])
        session.query("SELECT * FROM sales WHERE id = 5")
        session.query("SELECT * FROM sales WHERE id IN (5, 6, 7)")
        session.sql("UPDATE sales SET amount = 0 WHERE id = 5")
        session.sql("DELETE FROM sales WHERE id = 6 AND shop = 'shop 6'")
        session.query("SELECT * FROM totals WHERE shop = 'shop 1'")
        assert read == [1, 3, 1, 1, 1]
        assert session.query("SELECT amount FROM sales WHERE id IN (5, 6)").rows() == [{"amount": 0}]
        del read[:]
        with StateQueries(tmp_path) as state:
            assert state.query("SELECT amount FROM sales WHERE id IN (5, 6)").rows() == [{"amount": 0}]
            state.query("SELECT * FROM totals WHERE shop = 'shop 1'")
        assert read == [1, 1]
