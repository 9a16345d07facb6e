"""A program that grows and shrinks has the dataflow of one that is lowered at once, and lowers only what has changed."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import deltic
from deltic.circuit.nodes import Dataflow
from deltic.lowering import GrowingProgram, lower
from deltic.optimizer import optimize
from deltic.plan.nodes import Plan, Table, references
from deltic.plan.walk import nodes
from deltic.schema import TableSchema
from programs import mixed
from seeds import rotating


def content(circuit: Dataflow) -> tuple[object, ...]:
    """What determines a dataflow: not the order of its nodes, nor the names of columns in it, which are those of the first view."""
    numbers = {node.id: node.fingerprint for node in circuit.nodes}
    nodes = Counter(
        (n.kind, n.shape.kinds, n.partition, n.level, n.fingerprint, n.content, n.owned, n.reads, tuple(numbers[i] for i in n.inputs))
        for n in circuit.nodes
    )
    specs = {
        name: (s.shape.kinds, s.level, s.view, s.table, s.order, s.partition, s.replicated) for name, s in circuit.arrangements.items()
    }
    return nodes, specs, list(circuit.tables.items()), list(circuit.views.items()), circuit.routes, circuit.rests


def parts(rng: random.Random) -> tuple[dict[str, TableSchema], dict[str, Plan]]:
    """Tables, and as views the views of a program and relations in them, which share much."""
    program = mixed(rng.randrange(10**6))
    relations = [node for plan in program.views.values() for node in nodes(optimize(plan)) if not references(node)]
    views = [optimize(plan) for plan in program.views.values()] + rng.sample(relations, min(6, len(relations)))
    return dict(program.tables), {f"v{i}": plan for i, plan in enumerate(views)}


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("seed", rotating(12))
def test_a_program_that_changes_is_that_which_is_lowered_at_once(seed: int, shards: int) -> None:
    rng = random.Random(seed)
    tables, plans = parts(rng)
    growing, views, kept = GrowingProgram(shards), dict[str, Plan](), 0
    for _ in range(12):
        for name in rng.sample(list(plans), rng.randint(1, 2)):
            if views.pop(name, None) is None or rng.random() < 0.3:
                views[name] = plans[rng.choice(list(plans))]
        read = {node.table.name for plan in views.values() for node in nodes(plan) if isinstance(node, Table)}
        present = {name: table for name, table in tables.items() if table.name in read or rng.random() < 0.5}
        before, lowered = growing._last, growing.circuit(views, present)
        kept += growing._last is before
        assert content(lowered) == content(lower(views, present, shards))
    assert kept


TABLES = ";".join(f"CREATE TABLE t{i} (a BIGINT NOT NULL PRIMARY KEY, b BIGINT)" for i in range(4))
SUMS = "CREATE OR REPLACE MATERIALIZED VIEW v{0} AS SELECT b, sum(a) AS s FROM t{0} WHERE a > {1} GROUP BY b"


@pytest.mark.parametrize("statement", ["DROP VIEW v1", SUMS.format(1, 5), "ALTER TABLE t1 ADD COLUMN c BIGINT"])
@pytest.mark.parametrize("shards", [1, 2])
def test_what_a_statement_does_not_change_is_not_lowered_again(statement: str, shards: int) -> None:
    with deltic.Session(shards=shards) as session:
        session.sql(TABLES)
        counts = []
        for i in range(4):
            session.sql(SUMS.format(i, 0))
            counts.append(session._commits.compiler.lowered)
        own = 2 + max(counts[1:])  # a table that was altered shows the rows of its form before
        session.insert("t1", [{"a": 1, "b": 2}, {"a": 7, "b": 2}])
        session.sql(statement)
        assert session._commits.compiler.lowered <= own
        session.insert("t2", [{"a": 3, "b": 2}])
        assert session.view("v2").rows() == [{"b": 2, "s": 3}]
        if not statement.startswith("DROP"):
            assert session.view("v1").rows() == [{"b": 2, "s": 7 if "> 5" in statement else 8}]


def test_a_view_that_shares_what_it_added_can_be_dropped_and_made_again() -> None:
    with deltic.Session() as session:
        session.sql(TABLES + ";" + SUMS.format(1, 0))
        session.insert("t1", [{"a": 1, "b": 2}])
        session.sql("CREATE MATERIALIZED VIEW same AS SELECT b, sum(a) AS s FROM t1 WHERE a > 0 GROUP BY b")
        session.sql("DROP VIEW v1")
        session.insert("t1", [{"a": 2, "b": 2}])
        session.sql(SUMS.format(1, 0))
        session.insert("t1", [{"a": 3, "b": 2}])
        assert session.view("same").rows() == session.view("v1").rows() == [{"b": 2, "s": 6}]
