"""Joins with few rows seek the rows of the other table by its key: MERGE, UPDATE, DELETE and queries give what a scan gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

import deltic
from deltic.errors import EvaluationError
from deltic.runtimes.once import content_of
from deltic.session.state_query import StateQueries
from deltic.trace.spine import Spine

SCRIPT = """
CREATE TABLE sales (shop STRING NOT NULL, id INT NOT NULL, amount BIGINT, PRIMARY KEY (id, shop));
CREATE TABLE stock (id BIGINT NOT NULL PRIMARY KEY, n INT);
CREATE TABLE news (id BIGINT, shop STRING, amount BIGINT);
CREATE MATERIALIZED VIEW totals AS SELECT shop, count(*) AS n, sum(amount) AS total FROM sales GROUP BY shop;
CREATE MATERIALIZED VIEW held AS SELECT * FROM stock;
CREATE MATERIALIZED VIEW loose AS SELECT id, n FROM stock WHERE n > 1;
"""
ROWS_OF_NEWS = "(VALUES (3, 'a', 10), (5, 'b', 20), (900, 'z', 30), (NULL, 'a', 40)) AS v(id, shop, amount)"
QUERIES = [
    "SELECT s.id, n, amount FROM stock s JOIN news USING (id)",
    "SELECT s.id, n, amount FROM news JOIN stock s USING (id) WHERE n > 2",
    "SELECT news.id, n FROM news LEFT JOIN stock ON news.id = stock.id",
    "SELECT stock.id, news.amount FROM news RIGHT JOIN stock ON news.id = stock.id",
    "SELECT stock.id, news.amount FROM stock RIGHT JOIN news ON news.id = stock.id",
    "SELECT stock.id, news.amount FROM stock LEFT JOIN news ON news.id = stock.id",
    "SELECT stock.id, news.amount FROM stock FULL JOIN news ON news.id = stock.id",
    "SELECT id FROM stock WHERE id IN (SELECT id FROM news)",
    "SELECT id FROM stock WHERE id NOT IN (SELECT id FROM news WHERE id IS NOT NULL)",
    "SELECT id FROM news WHERE id NOT IN (SELECT id FROM stock)",
    "SELECT id FROM news n WHERE NOT EXISTS (SELECT 1 FROM stock s WHERE s.id = n.id)",
    "SELECT id FROM news n WHERE EXISTS (SELECT 1 FROM stock s WHERE s.id = n.id AND s.n > n.amount)",
    f"SELECT s.*, v.amount AS new FROM sales s JOIN {ROWS_OF_NEWS} ON s.id = v.id AND s.shop = v.shop",
    f"SELECT s.*, v.amount AS new FROM sales s JOIN {ROWS_OF_NEWS} ON s.shop = v.shop",
    f"SELECT s.*, v.amount AS new FROM sales s JOIN {ROWS_OF_NEWS} ON s.id = v.id AND s.amount < v.amount",
    "SELECT t.*, amount FROM totals t JOIN news USING (shop)",
    "SELECT l.id FROM loose l JOIN news ON l.id = news.id",
    "SELECT a.id, b.id AS next FROM stock a JOIN stock b ON b.id = a.id + 1 JOIN news ON news.id = a.id",
    "WITH s AS (SELECT id, n + 1 AS n FROM stock WHERE n < 5) SELECT id FROM s JOIN news USING (id) UNION ALL SELECT id FROM s",
    "WITH s AS (SELECT id, n FROM stock) SELECT x.id FROM s x JOIN news ON x.id = news.id JOIN s y ON y.id = news.amount",
    "SELECT id FROM (SELECT id, 6 / n AS x FROM stock WHERE n > 0) JOIN news USING (id) WHERE x > 1",
    "SELECT id FROM stock JOIN (SELECT DISTINCT sales.id FROM sales JOIN news ON sales.id = news.id AND sales.shop = news.shop) USING (id)",
    "WITH RECURSIVE r AS (SELECT id FROM news UNION SELECT s.n AS id FROM r JOIN stock s ON s.id = r.id) SELECT id FROM r",
    "SELECT count(*) AS n FROM stock JOIN news ON stock.id = news.id GROUP BY news.shop",
    "SELECT id FROM stock JOIN (SELECT id FROM news WHERE false) USING (id)",
]
CHANGES = [
    "MERGE INTO stock USING (SELECT id, max(amount) AS most FROM news WHERE id IS NOT NULL GROUP BY id) AS v ON stock.id = v.id "
    "WHEN MATCHED AND most > 5 THEN UPDATE SET n = most WHEN NOT MATCHED THEN INSERT (id, n) VALUES (v.id, 1)",
    f"MERGE INTO sales s USING {ROWS_OF_NEWS} ON s.id = v.id AND s.shop = v.shop WHEN MATCHED AND s.amount > 4 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET amount = v.amount "
    "WHEN NOT MATCHED AND v.id IS NOT NULL THEN INSERT (shop, id, amount) VALUES (v.shop, v.id, 0)",
    "BEGIN; DELETE FROM stock WHERE id = 4; MERGE INTO stock USING (VALUES (4), (6)) AS v(id) ON stock.id = v.id "
    "WHEN MATCHED THEN UPDATE SET n = 9 WHEN NOT MATCHED THEN INSERT (id, n) VALUES (v.id, 8); COMMIT",
    "MERGE INTO stock USING (VALUES (7), (8)) AS v(id) ON stock.id = v.id WHEN MATCHED THEN DELETE",
    "MERGE INTO stock USING (VALUES (9)) AS v(id) ON stock.id = v.id WHEN NOT MATCHED BY SOURCE AND stock.id > 20 THEN DELETE",
    "UPDATE stock SET n = 0 WHERE id IN (SELECT id FROM news WHERE shop = 'b')",
    "DELETE FROM stock WHERE EXISTS (SELECT 1 FROM news WHERE news.id = stock.id AND shop = 'a')",
]


def _filled(session: deltic.Session) -> None:
    rng = Random(3)
    session.sql(SCRIPT)
    for start in (0, 20):  # a spine of several batches
        with session.transaction() as tx:
            ids = range(start, start + 20)
            tx.insert("sales", [{"shop": shop, "id": id, "amount": rng.choice([None, rng.randrange(9)])} for id in ids for shop in "abc"])
            tx.insert("stock", [{"id": id, "n": rng.choice([None, rng.randrange(9)])} for id in ids])
    with session.transaction() as tx:
        rows = [(3, "a", 1), (5, "b", 6), (5, "b", 7), (None, "a", 3), (-7, None, 8), (31, "c", None)]
        tx.insert("news", [dict(zip(("id", "shop", "amount"), row, strict=True)) for row in rows])


def _answers(source: deltic.Session | StateQueries) -> list[list[str]]:
    return [sorted(map(repr, source.query(query).rows())) for query in QUERIES]


@pytest.mark.parametrize(("shards", "stored"), [(1, True), (3, False)])
def test_answers_are_those_of_a_scan(shards: int, stored: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = []
    for least in (0, 1 << 17):
        monkeypatch.setattr("deltic.session.query.SCANNED_ROWS", least)
        folder = tmp_path / str(least)
        with deltic.Session(shards=shards, state=folder if stored else None) as session:
            _filled(session)
            answers.append([_answers(session)])
            for change in CHANGES:
                session.sql(change)
                answers[-1].append([sorted(map(repr, session.view(view).rows())) for view in ("totals", "held")])
            if stored:
                with StateQueries(folder) as state:
                    answers[-1].append(_answers(state))
    assert answers[0] == answers[1]
    assert all(answers[0][0][:-1]), "the queries find rows"
    assert all(before != after for before, after in pairwise(answers[0][1:8])), "the statements change rows"


def test_errors_are_those_of_a_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = "SELECT s.id FROM stock s JOIN (SELECT 6 DIV (id - 3) AS id FROM news) USING (id)"
    with deltic.Session() as session:
        _filled(session)
        errors = []
        for least in (0, 1 << 17):
            monkeypatch.setattr("deltic.session.query.SCANNED_ROWS", least)
            with pytest.raises(EvaluationError) as caught:
                session.query(f"SELECT CAST(shop AS INT) AS id FROM news UNION ALL {failing}")
            errors.append(str(caught.value))
        assert errors[0] == errors[1]
        monkeypatch.setattr("deltic.session.query.SCANNED_ROWS", 0)
        with pytest.raises(EvaluationError, match="by zero"):
            session.query(failing)
        with pytest.raises(EvaluationError, match="by zero"):  # of a row that no row of the source matches
            session.query("SELECT id FROM (SELECT id, 6 DIV (id - 4) AS x FROM stock) JOIN news USING (id) WHERE x > 0 OR x <= 0")


@pytest.mark.parametrize("n", [2_000, 40_000])
def test_the_rows_of_the_keys_alone_are_read(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def counted(circuit: Any, view: str, tables: Mapping[str, Sequence[Spine]], *others: Any) -> Any:
        read.append(sum(spine.rows for spines in tables.values() for spine in spines))
        return content_of(circuit, view, tables, *others)

    monkeypatch.setattr("deltic.session.query.SCANNED_ROWS", 1_000)
    monkeypatch.setattr("deltic.session.query.content_of", counted)
    with deltic.Session() as session:
        session.sql(SCRIPT)
        with session.transaction() as tx:
            tx.insert("stock", [{"id": i, "n": 1} for i in range(n)])
            tx.insert("sales", [{"id": i, "shop": "a", "amount": 1} for i in range(n)])
            tx.insert("news", [{"id": id, "shop": "a", "amount": 2} for id in (3, 4, -1)])
        for change in CHANGES[:2]:
            session.sql(change)
        session.sql("DELETE FROM stock WHERE id IN (SELECT id FROM news)")
        assert max(read) <= 6
        del read[:]
        assert session.query("SELECT count(*) AS n FROM stock a JOIN sales b ON a.id = b.id").rows() == [{"n": n}]
        assert max(read) >= 2 * n - 10, "both are large"
