"""Random transactions of a store, beside the facts of the oracle."""

from __future__ import annotations

import random
from typing import Any

import pytest

from deltic.errors import ConstraintViolation
from deltic.frontends.edn.read import read
from deltic.session.edn import EdnStore
from edn_oracle import Datoms, Facts, typed
from edn_programs import addition, operation


def stored(store: EdnStore) -> Datoms:
    return {(one.e, one.a.name, typed(one.v)) for one in store.datoms()}


def facts(store: EdnStore) -> set[tuple[int, str, Any]]:
    return {(one.e, one.a.name, one.v) for one in store.datoms()}


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
    """One transaction of some operations, as a text or as values of Python; refused as a whole if one of them is."""
    operations = [operation(rng) for _ in range(count)]
    parsed = [parsed_operation(parts) for parts in operations]
    before, text = set(facts.datoms), f"[{' '.join(map(written, operations))}]"
    given = text if len(text) % 2 else parsed
    if all([facts.apply(one) for one in parsed]):
        store.transact(given)
    else:
        facts.datoms = before
        with pytest.raises(ConstraintViolation):
            store.transact(given)
    assert stored(store) == facts.datoms
