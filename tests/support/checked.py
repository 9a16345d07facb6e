"""Test support: a session whose views are compared with the oracle after every tick, by content and by change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random

import pytest

import deltic
from deltic.errors import EvaluationError
from deltic.expr.nodes import Value
from deltic.frontends.sql import parse_script
from deltic.frontends.statements import DefinedFunction
from deltic.plan.evaluate import evaluate
from deltic.plan.nodes import Plan
from deltic.plan.relation import Relation, Row
from deltic.schema import TableSchema
from deltic.session.catalog import Catalog
from deltic.types import frozen

Changes = Mapping[str, Mapping[Row, int]]


class Draft:
    """The catalog of a script, as in a session."""

    def __init__(self, script: str) -> None:
        self.catalog = Catalog()
        self.add(script)

    def add(self, script: str) -> Draft:
        for statement in parse_script(script, "test", self):
            self.catalog = self.catalog.apply(statement)
        return self

    def plans(self) -> dict[str, Plan]:
        return self.catalog.plans()

    def relation(self, name: str) -> TableSchema | Plan | None:
        return self.catalog.relation(name)

    def names(self) -> Iterable[str]:
        return self.catalog.names()

    def functions(self) -> Mapping[str, DefinedFunction]:
        return self.catalog.functions()


class Checked:
    """A session of the script and the content of its tables; by default an embedded session."""

    def __init__(self, script: str, shards: int = 1, session: deltic.Session | None = None) -> None:
        self.script = script
        self.open(session or deltic.Session(shards=shards))
        draft = Draft(script)
        self.plans = draft.plans()
        self.schemas = draft.catalog.tables
        self.tables = {table.name: Relation() for table in self.schemas.values()}

    def open(self, session: deltic.Session) -> None:
        """Runs the script in a session that resumes from its state."""
        self.session = session
        self.session.sql(self.script)

    def tick(self, changes: Changes) -> dict[str, Relation]:
        """One tick of weighted rows; asserts that the views and their changes equal the oracle's, and returns the views."""
        after = {name: relation + Relation(changes.get(name, {}).items()) for name, relation in self.tables.items()}
        before, expected = self._views(self.tables), self._views(after)
        self.session.apply({name: self._frame(name, rows) for name, rows in changes.items()})
        self.tables = after
        for name, relation in expected.items():
            view = self.session.view(name)
            assert _relation(view.rows()) == relation, name
            changed = [({k: v for k, v in row.items() if k != "_weight"}, row["_weight"]) for row in view.changes().to_pylist()]
            assert Relation((frozen(row), w) for row, w in changed) == relation - before[name], name
        return expected

    def failing(self, changes: Changes, error: type[EvaluationError], match: str) -> None:
        """Asserts that a tick fails, and changes nothing."""
        before = {name: self.session.view(name).rows() for name in self.plans}
        with pytest.raises(error, match=match):
            self.session.apply({name: self._frame(name, rows) for name, rows in changes.items()})
        assert {name: self.session.view(name).rows() for name in self.plans} == before

    def _views(self, tables: Mapping[str, Relation]) -> dict[str, Relation]:
        return {name: evaluate(plan, tables) for name, plan in self.plans.items()}

    def _frame(self, name: str, rows: Mapping[Row, int]) -> list[dict[str, Value]]:
        columns = self.schemas[name.lower()].schema.names
        return [{**dict(zip(columns, row, strict=True)), "_weight": weight} for row, weight in rows.items()]


def check_replaced_rows(
    script: str, row: Callable[[Random, int], Row], rng: Random, *, ticks: int, ids: int, shards: int, state: Path
) -> None:
    """Checks ticks that remove rows of the table `t`, add them and replace them by others, with a restart after the third.

    row: a random row with this id. A tick changes half of the ids.
    """
    checked = Checked(script, session=deltic.Session(shards=shards, state=state))
    rows: dict[int, Row] = {}
    for tick in range(ticks):
        changes: dict[Row, int] = {}
        for id_ in rng.sample(range(ids), (ids + 1) // 2):
            if (old := rows.pop(id_, None)) is not None:
                changes[old] = changes.get(old, 0) - 1
            if old is None or rng.random() < 0.6:
                rows[id_] = row(rng, id_)
                changes[rows[id_]] = changes.get(rows[id_], 0) + 1
        checked.tick({"t": {row: n for row, n in changes.items() if n}})
        if tick == 2:
            checked.session.close()
            checked.open(deltic.Session(shards=shards, state=state))
    checked.session.close()


def _relation(rows: Iterable[Mapping[str, Value]]) -> Relation:
    return Relation((frozen(row), 1) for row in rows)


def edges(*pairs: tuple[Value, ...], weight: int = 1) -> dict[Row, int]:
    """The rows, each with the weight."""
    return {tuple(pair): weight for pair in pairs}
