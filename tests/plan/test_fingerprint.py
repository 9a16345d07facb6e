"""Fingerprints: what counts, what does not, and equality across processes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

from deltic.errors import Span
from deltic.expr.nodes import Column, Expr, Literal
from deltic.plan.fingerprint import fingerprint
from deltic.plan.nodes import Filter, Join, Order, Plan, Project, Table, TopK, Values
from deltic.plan.walk import nodes
from deltic.schema import BIGINT, BOOLEAN, DOUBLE, INT, Field, Schema, TableSchema
from programs import case

T = Table(TableSchema("t", Schema((Field("a", BIGINT), Field("b", BOOLEAN)))))
SPAN = Span("SELECT", 0, 6)


def one(expr: Expr, name: str = "x") -> Plan:
    return Project(T, ((name, expr),))


def test_names_and_places_do_not_count() -> None:
    plain, placed = Column(0, BIGINT, True), Column(0, BIGINT, True, "a", SPAN)
    assert fingerprint(one(plain)) == fingerprint(one(placed, "y"))
    assert fingerprint(T) == fingerprint(Table(replace(T.table, name="T"), SPAN))


def test_what_counts() -> None:
    different: list[Plan] = [
        T,
        Table(replace(T.table, name="u")),
        Table(replace(T.table, key=(0,))),
        Table(replace(T.table, schema=Schema((Field("a", BIGINT, False), Field("b", BOOLEAN))))),
        *(one(Literal(value, type)) for value, type in ((1, INT), (1, BIGINT), (1.0, DOUBLE), (0.0, DOUBLE), (-0.0, DOUBLE), (None, INT))),
        one(Literal(True, BOOLEAN)),
        Filter(T, Column(1, BOOLEAN, True)),
        TopK(T, (Order(Column(0, BIGINT, True)),), 1),
        TopK(T, (Order(Column(0, BIGINT, True)),), 2),
        TopK(T, (Order(Column(0, BIGINT, True), True, False),), 1),
        Join(T, T, "inner"),
        Join(T, T, "left"),
        Join(T, T, "left", residual=Column(1, BOOLEAN, True)),
        Values((), T.schema),
        Values(((1, True),), T.schema),
        Values(((1, True), (1, True)), T.schema),
    ]
    assert len({fingerprint(plan) for plan in different}) == len(different)


def test_different_random_plans_have_different_fingerprints() -> None:
    seen: dict[str, Plan] = {}
    for seed in range(150):
        for plan in case(seed).views.values():
            for node in nodes(plan):
                other = seen.setdefault(fingerprint(node), node)
                assert other == node or node.schema.names != other.schema.names
    assert len(seen) > 500


def test_another_process_finds_the_same() -> None:
    """State outlives processes, in which strings hash differently."""
    code = "from programs import case; from deltic.plan.fingerprint import fingerprint; print(fingerprint(case(7).views['view0']))"
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path)), "PYTHONHASHSEED": "1"}
    actual = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert actual.stdout.strip() == fingerprint(case(7).views["view0"])
