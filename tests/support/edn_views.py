"""Random queries as views, and what they have as the oracle says it."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import deltic
from deltic.errors import QueryError
from deltic.frontends.edn.values import digits
from deltic.session.edn_view import EdnView
from edn_oracle import typed
from edn_programs import RULES, QueryMaker


def shown(rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Rows of typed values as a bag; doubles have 9 digits, zeros no sign, NaN is itself, 1.50M is 1.5M.

    The order of a set or vector does not count.
    """
    return Counter(tuple(_shown(value) for value in row) for row in rows)


def _shown(value: Any) -> Any:
    kind, bare = value
    if kind == "tuple":
        return "collection", tuple(sorted(map(repr, map(_shown, bare))))
    if kind in ("set", "vector"):
        return "collection", tuple(sorted(map(repr, map(_shown, map(typed, bare)))))
    if kind == "double":
        return kind, "NaN" if bare != bare else float(f"{bare:.9g}") + 0.0
    return (kind, digits(bare)) if kind == "bigdec" else value


def contents(view: EdnView) -> Counter[tuple[Any, ...]]:
    """The rows of a view."""
    return shown([tuple(("vector", one) if isinstance(one, tuple) else typed(one) for one in row) for row in view.result()])


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
