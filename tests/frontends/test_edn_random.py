"""Random queries in EDN over random stores: views of a session after each transaction, against the oracle."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import deltic
from deltic.session.edn_view import EdnView
from edn_oracle import Datoms, Facts, answer
from edn_programs import COMPONENTS, MANY, REFS, SCHEMA, UNIQUE
from edn_stores import load, transact
from edn_views import contents, define, shown
from parts import slow
from seeds import rotating


def check(views: dict[str, tuple[EdnView, str, str | None]], datoms: Datoms) -> None:
    for name, (view, query, rules) in views.items():
        assert contents(view) == shown(answer(query, datoms, rules=rules)), (name, query)


@pytest.mark.parametrize(("seed", "shards"), [(0, 1), (1, 3), *slow(*((seed, 1 + seed % 3) for seed in rotating(30)))])
def test_views_follow_transactions(seed: int, shards: int, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    few = request.node.get_closest_marker("slow") is None
    rng, facts = random.Random(seed), Facts(MANY, REFS, UNIQUE, COMPONENTS)
    with deltic.Session(state=tmp_path / "state", shards=shards) as session:
        store = session.edn_store("facts", schema=SCHEMA)
        load(store, facts, rng, 60)
        views = define(session, seed, 4 if few else 40)
        check(views, facts.datoms)
        for _ in range(2 if few else 6):
            transact(store, facts, rng, rng.choice([1, 1, 5]))
            check(views, facts.datoms)
    with deltic.Session(state=tmp_path / "state") as session:
        store = session.edn_store("facts", schema=SCHEMA)
        again = {name: (session.edn(query, name=name, rules=rules), query, rules) for name, (_, query, rules) in views.items()}
        check(again, facts.datoms)
        transact(store, facts, rng, 4)
        check(again, facts.datoms)
