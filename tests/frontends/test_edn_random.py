"""Random queries in EDN over random stores: views of a session after each transaction, against the oracle."""

from __future__ import annotations

import random
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

import deltic
from deltic.session.edn_view import EdnView
from edn_oracle import Datoms, Facts, answer
from edn_programs import COMPONENTS, MANY, REFS, SCHEMA, UNIQUE
from edn_stores import load, transact
from edn_views import contents, define, shown
from seeds import rotating

GROUPS, STORES, QUERIES = 10, 17, 30
"""In all 5,100 queries, each after several transactions."""
ON_SPARK = 10
"""Stores of ten queries each."""


def check(views: dict[str, tuple[EdnView, str, str | None]], datoms: Datoms) -> None:
    for name, (view, query, rules) in views.items():
        assert contents(view) == shown(answer(query, datoms, rules=rules)), (name, query)


def run(seed: int, folder: Path | None, shards: int, count: int, ticks: int, spark: Any = None) -> None:
    """A random store, queries and transactions; with a folder, then a session that resumes from its state."""
    rng, facts = random.Random(seed), Facts(MANY, REFS, UNIQUE, COMPONENTS)
    with deltic.Session(spark=spark, state=folder, shards=shards) as session:
        store = session.edn_store("facts", schema=SCHEMA)
        load(store, facts, rng, 60)
        views = define(session, seed, count)
        check(views, facts.datoms)
        for _ in range(ticks):
            transact(store, facts, rng, rng.choice([1, 1, 5]))
            check(views, facts.datoms)
    if folder is None:
        return
    with deltic.Session(spark=spark, state=folder) as session:
        store = session.edn_store("facts", schema=SCHEMA)
        again = {name: (session.edn(query, name=name, rules=rules), query, rules) for name, (_, query, rules) in views.items()}
        check(again, facts.datoms)
        transact(store, facts, rng, 4)
        check(again, facts.datoms)
    rmtree(folder)


@pytest.mark.parametrize(("seed", "shards"), [(0, 1), (1, 3)])
def test_views_follow_transactions(seed: int, shards: int, tmp_path: Path) -> None:
    run(seed, tmp_path / "state", shards, 4, 2)


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
def test_views_of_many_queries_follow_transactions(group: int, tmp_path: Path) -> None:
    for seed in rotating(GROUPS * STORES)[group::GROUPS]:
        run(seed, tmp_path / f"state{seed}" if seed % 4 == 0 else None, 1 + seed % 3, QUERIES, 4)


@pytest.mark.slow
@pytest.mark.spark
def test_views_follow_transactions_on_spark(spark: Any, tmp_path: Path) -> None:
    for seed in rotating(ON_SPARK):
        run(seed, tmp_path / f"state{seed}", 2, 10, 1, spark)
