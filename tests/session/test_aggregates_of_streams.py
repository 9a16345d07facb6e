"""Sums, extremes and first rows of all rows so far of a stream: equal to the oracle, in a state of a few rows for each group."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import deltic
from deltic.plan.evaluate import Moment, evaluate
from deltic.plan.relation import Relation
from parts import slow
from seeds import rotating
from session_rows import rows_of_view, touched_rows

TABLES = """
    CREATE STREAM clicks (user BIGINT, amount BIGINT, share DOUBLE, page STRING);
    CREATE TABLE names (id BIGINT PRIMARY KEY, name STRING);
    CREATE VIEW named AS SELECT name, amount FROM clicks JOIN names ON id = user;
"""
FOLDED = {
    "sums": """SELECT user, sum(amount) AS total, count(*) AS n, count(share) AS shares, avg(share) AS mean, sum(share) AS whole,
        stddev(share) AS spread, bool_or(amount > 7) AS big_one, count(*) FILTER (WHERE amount > 3) AS big_ones
        FROM integrate(clicks) GROUP BY user""",
    "extremes": """SELECT user % 2 AS half, max(amount) AS most, min(page) AS low, max(page) AS high, max_by(page, amount) AS top,
        min(share) AS share FROM integrate(clicks) WHERE amount <> 4 GROUP BY 1""",
    "whole": "SELECT max(page) AS high, min(amount) AS low, sum(share) AS shares, count(*) AS n FROM integrate(clicks)",
    "ever_named": "SELECT name, max(amount) AS most, count(*) AS n FROM integrate(named) GROUP BY name",
    "both": """SELECT k, sum(v) AS total FROM
        (SELECT user AS k, amount AS v FROM integrate(clicks) UNION ALL SELECT amount, user FROM integrate(clicks)) GROUP BY k""",
    "greatest": "SELECT user, max(amount) AS most FROM (SELECT DISTINCT user, amount FROM integrate(clicks)) GROUP BY user",
    "users": "SELECT user FROM integrate(clicks) GROUP BY user",
}
RANKED = (
    "SELECT user, amount, page FROM (SELECT *, row_number() OVER (PARTITION BY {} ORDER BY {}) AS r FROM integrate(clicks)) WHERE r <= {}"
)
FIRST = {
    "highest": RANKED.format("user", "amount DESC NULLS LAST, page", 1),
    "two_pages": RANKED.format("user % 2", "page DESC NULLS FIRST, share", 2),
    "ever_first": """SELECT name, amount FROM
        (SELECT *, row_number() OVER (PARTITION BY name ORDER BY amount) AS r FROM integrate(named) WHERE amount > 2) WHERE r <= 3""",
}
KEPT = {
    "distinct_amounts": "SELECT user, count(DISTINCT amount) AS n FROM integrate(clicks) GROUP BY user",
    "pages": "SELECT user, max(amount) AS most, collect_set(page) AS pages FROM integrate(clicks) GROUP BY user",
    "now": "SELECT user, max(amount) AS most FROM current(clicks) GROUP BY user",
    "with_names": "SELECT name, max(amount) AS most FROM integrate(clicks) JOIN names ON id = user GROUP BY name",
    "copies": "SELECT sum(amount) AS total FROM (SELECT DISTINCT user, amount FROM integrate(clicks))",
}
LONG = "a page whose name has more than twenty-four bytes "
PAGES = (None, "", "a", LONG + "a", LONG + "b", LONG + "ä")


def script(views: dict[str, str]) -> str:
    return TABLES + "".join(f"CREATE MATERIALIZED VIEW {name} AS {query};" for name, query in views.items())


def click(user: int | None, amount: int | None, share: float | None = None, page: str | None = None) -> dict[str, Any]:
    return {"user": user, "amount": amount, "share": share, "page": page, "_weight": 1}


def random_click(rng: Random) -> dict[str, Any]:
    return click(rng.choice((None, 1, 2, 3)), rng.choice((None, *range(12))), rng.choice((None, -0.0, 0.1, 1e30, -7.5)), rng.choice(PAGES))


@pytest.mark.parametrize("seed", [0, *slow(*rotating(39))])
def test_random_ticks_equal_the_oracle(seed: int, tmp_path: Path) -> None:
    run(seed, [{"shards": 3, "state": tmp_path / "s"}, {}, {"shards": 3}, {"state": tmp_path / "s"}][seed % 4])


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("seed", [0, 1])
def test_random_ticks_on_spark_equal_the_oracle(seed: int, spark: Any, tmp_path: Path) -> None:
    run(seed, {"spark": spark, "shards": 2, "state": tmp_path / "s"})


def run(seed: int, options: dict[str, Any]) -> None:
    rng = Random(seed)
    views, tables, moments = (
        {**FOLDED, **FIRST, **(KEPT if seed % 3 == 1 else {})},
        {"clicks": Relation(), "names": Relation()},
        list[Moment](),
    )
    session = deltic.Session(**options)
    session.sql(script(views))
    try:
        for number in range(4):
            if "state" in options and number % 2:
                session.close()
                session = deltic.Session(**{**options, **({"shards": rng.choice((1, 2, 3))} if "shards" in options else {})})
                session.sql(script(views))
            clicks = [random_click(rng) for _ in range(rng.randrange(6))]
            name = {"id": rng.randrange(1, 4), "name": rng.choice("ab")}
            session.apply({"clicks": clicks})
            tables = {**tables, "clicks": Relation((tuple(row.values())[:-1], 1) for row in clicks)}
            moments.append(Moment(tables))
            compare(session, moments)
            with session.transaction() as tx:
                tx.upsert("names", [name])
            others = ((row, weight) for row, weight in tables["names"].pairs() if row[0] != name["id"])
            tables = {"clicks": Relation(), "names": Relation([*others, (tuple(name.values()), 1)])}
            moments.append(Moment(tables))
        compare(session, moments)
    finally:
        session.close()


def compare(session: deltic.Session, moments: list[Moment]) -> None:
    for name, plan in session._definitions.catalog.plans().items():
        expected = evaluate(plan, moments[-1].tables, past=moments[:-1])
        contents = ((tuple(tuple(one) if isinstance(one, list) else one for one in row), 1) for row in rows_of_view(session, name))
        assert Relation(contents) == expected, (len(moments), name)


@pytest.mark.parametrize("shards", [1, *slow(3)])
def test_the_state_is_that_of_the_groups(shards: int) -> None:
    with deltic.Session(shards=shards) as session:
        session.sql(script({name: FOLDED[name] for name in ("extremes", "ever_named", "both", "greatest", "users")} | FIRST))
        kept = []
        for number in range(40):
            session.apply({"clicks": [click(user, number % 10 * user, page=f"{LONG}{user}{number}") for user in range(4)]})
            kept.append(sum(count for count, _ in session._runtime.statistics().values()))
        assert kept[-1] <= max(kept[:20])


def test_a_tick_reads_its_own_rows() -> None:
    """Also where all rows so far are kept."""
    with deltic.Session() as session:
        session.sql(script({"every": "SELECT user FROM integrate(clicks)", "sums": FOLDED["sums"], "pages": KEPT["pages"]}))
        session.apply({"clicks": [click(user, user % 7, page="a") for user in range(2_000)]})
        session.apply({"clicks": [click(5, 1, page="b")]})
        assert session.last_tick is not None
        assert touched_rows(session) < 200


def test_what_is_kept_is_shown() -> None:
    bounds = {}
    for views in (FOLDED, KEPT):
        with deltic.Session() as session:
            session.sql(script(views))
            bounds.update({view: {bound.name: bound for bound in session.explain(view).bounds} for view in views})
    assert {view for view in bounds if "fold_sums" in bounds[view]} == set(FOLDED)
    assert {view for view in bounds if "integrate" in bounds[view]} == set(KEPT) - {"now"}
    assert "fold_extremes" in bounds["extremes"]
    with deltic.Session() as session:
        session.sql(script({**FIRST, "after": RANKED.format("user", "amount", 3).replace("<= 3", "BETWEEN 2 AND 3")}))
        for view in FIRST:
            names = {bound.name for bound in session.explain(view).bounds}
            assert "fold_top_k" in names and not names & {"integrate", "top_k"}, view
    assert str(bounds["sums"]["fold_sums"]).endswith("fold_sums grows with every new key of stream clicks")
    assert str(bounds["whole"]["fold_extremes"]).endswith("fold_extremes is bounded by one group of stream clicks")


def test_first_rows_over_a_view_that_keeps_all_rows_begin_with_them() -> None:
    with deltic.Session() as session:
        session.sql(script({"every": "SELECT * FROM integrate(clicks)"}))
        session.apply({"clicks": [click(1, 5), click(1, 3), click(2, None)]})
        session.sql(f"CREATE MATERIALIZED VIEW least AS {RANKED.format('user', 'amount', 1)}")
        assert rows_of_view(session, "least") == [(1, 3, None), (2, None, None)]
        session.sql("DROP VIEW every")
        session.apply({"clicks": [click(1, 4), click(1, 2), click(1, 2)]})
        assert rows_of_view(session, "least") == [(1, 2, None), (2, None, None)]
        changed = session.view("least").changes().to_pylist()
        assert sorted((row["amount"], row["_weight"]) for row in changed) == [(2, 1), (3, -1)]


def test_a_view_over_one_that_keeps_all_rows_begins_with_them() -> None:
    top = "SELECT user, max(amount) AS most, count(*) AS n FROM {} GROUP BY user"
    with deltic.Session() as session:
        session.sql(TABLES + "CREATE MATERIALIZED VIEW replaced AS SELECT user FROM clicks;")
        session.sql("CREATE MATERIALIZED VIEW every AS SELECT * FROM integrate(clicks)")
        session.apply({"clicks": [click(1, 5), click(1, 3)]})
        session.sql(f"CREATE MATERIALIZED VIEW over_it AS {top.format('every')}")
        session.sql(f"CREATE OR REPLACE MATERIALIZED VIEW replaced AS {top.format('every')}")  # it stands before what it reads
        session.sql("CREATE MATERIALIZED VIEW beside AS SELECT user, min(amount) AS least FROM integrate(clicks) GROUP BY user")
        assert rows_of_view(session, "over_it") == rows_of_view(session, "replaced") == [(1, 5, 2)]
        assert rows_of_view(session, "beside") == [(1, 3)]
        session.sql("DROP VIEW over_it; DROP VIEW replaced; DROP VIEW every")
        assert rows_of_view(session, "beside") == [(1, 3)], "the state does not depend on the view that filled it"
        session.apply({"clicks": [click(1, 2), click(2, 9)]})
        assert rows_of_view(session, "beside") == [(1, 2), (2, 9)]
        session.sql(f"CREATE MATERIALIZED VIEW later AS {top.format('integrate(clicks)')}")
        assert rows_of_view(session, "later") == [], "a stream that no view keeps begins with the next tick"


def test_aggregates_of_datalog_over_all_rows_of_a_stream() -> None:
    with deltic.Session() as session:
        session.sql("CREATE STREAM q (k BIGINT NOT NULL, v BIGINT NOT NULL); CREATE VIEW w AS SELECT k, v FROM integrate(q)")
        session.datalog("""
            relation Seen(k: s64, v: s64)
            Seen(k, v) :- W(k, v), v != 7.
            output relation Top(k: s64, m: s64)
            Top(k, m) :- Seen(k, v), var m = v.group_by(k).max().
            output relation Total(k: s64, s: s64)
            Total(k, s) :- W(k, v), var s = v.group_by(k).sum().
        """)
        for values in ((3, 9, 7), (9, 5)):
            session.apply({"q": [{"k": 1, "v": value, "_weight": 1} for value in values]})
        assert (rows_of_view(session, "Top"), rows_of_view(session, "Total")) == ([(1, 9)], [(1, 33)])
        for view, fold in (("Top", "fold_extremes"), ("Total", "fold_sums")):
            shown = str(session.explain(view))
            assert fold in shown and "integrate grows" not in shown


def test_a_sum_out_of_range_fails_the_tick_and_leaves_nothing() -> None:
    with deltic.Session() as session:
        session.sql(script({"sums": "SELECT user, sum(amount) AS total, max(page) AS last FROM integrate(clicks) GROUP BY user"}))
        session.apply({"clicks": [click(1, 2**62, page="a")]})
        with pytest.raises(deltic.errors.DelticError):
            session.apply({"clicks": [click(1, 2**62, page="b")]})
        session.apply({"clicks": [click(1, 1, page="")]})
        assert rows_of_view(session, "sums") == [(1, 2**62 + 1, "a")]
