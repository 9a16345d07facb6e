"""Random queries in EDN over random stores: views of a session after each transaction, against the oracle."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.errors import ConstraintViolation, QueryError
from deltic.frontends.edn.read import read
from deltic.session.edn import EdnStore
from deltic.session.edn_view import EdnView
from edn_oracle import Datoms, Facts, answer, typed
from edn_programs import COMPONENTS, MANY, REFS, RULES, SCHEMA, UNIQUE, QueryMaker, addition, operation
from parts import slow
from seeds import rotating


def shown(rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Rows of typed values as a bag; doubles have 9 digits and zeros no sign, the order of a set or vector does not count."""
    return Counter(tuple(_shown(value) for value in row) for row in rows)


def _shown(value: Any) -> Any:
    kind, bare = value
    if kind in ("set", "vector"):
        return "collection", tuple(sorted(map(repr, map(_shown, map(typed, bare)))))
    return (kind, float(f"{bare:.9g}") + 0.0) if kind == "double" else value


def contents(view: EdnView) -> Counter[tuple[Any, ...]]:
    """The rows of a view."""
    return shown([tuple(("vector", one) if isinstance(one, tuple) else typed(one) for one in row) for row in view.result()])


def stored(store: EdnStore) -> Datoms:
    return {(one.e, one.a.name, typed(one.v)) for one in store.datoms()}


def define(session: deltic.Session, seed: int, count: int) -> dict[str, tuple[EdnView, str, str | None]]:
    """Valid random queries as views."""
    maker, views = QueryMaker(random.Random(seed)), {}
    for i in range(400):
        query, takes_rules = maker.query()
        rules = RULES if takes_rules else None
        try:
            views[f"q{i}"] = session.edn(query, name=f"q{i}", rules=rules), query, rules
        except QueryError:
            continue
        if len(views) == count:
            break
    return views


def load(store: EdnStore, facts: Facts, rng: random.Random, count: int) -> None:
    """One transaction of additions that are permitted."""
    operations = [one for one in (addition(rng) for _ in range(count)) if facts.apply(parsed_operation(one))]
    store.transact(f"[{' '.join(map(written, operations))}]")
    assert stored(store) == facts.datoms


def written(operation: list[str]) -> str:
    return f"[{' '.join(operation)}]"


def parsed_operation(parts: list[str]) -> list[Any]:
    return [part if i in (0, 2) else read(part).value for i, part in enumerate(parts)]


def transact(store: EdnStore, facts: Facts, rng: random.Random, count: int) -> None:
    """One transaction of some operations; refused as a whole if one of them is."""
    operations = [operation(rng) for _ in range(count)]
    parsed = [parsed_operation(parts) for parts in operations]
    before, text = set(facts.datoms), " ".join(map(written, operations))
    if all([facts.apply(one) for one in parsed]):
        store.transact(f"[{text}]")
    else:
        facts.datoms = before
        with pytest.raises(ConstraintViolation):
            store.transact(f"[{text}]")
    assert stored(store) == facts.datoms


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
