"""Recursions that are deeper than Python's stack: their results, their errors, and their end."""

from __future__ import annotations

import doctest
import threading
import time
from decimal import Context, getcontext, localcontext

import pytest

from deltic import stacks
from deltic.plan.evaluate import evaluate
from deltic.plan.fingerprint import fingerprint
from deltic.plan.nodes import Distinct, Plan, Table, references
from deltic.plan.relation import Relation
from deltic.plan.show import show
from deltic.plan.walk import transform
from deltic.schema import BIGINT, Field, Schema, TableSchema
from deltic.stacks import unbounded
from interruptions import interrupted_everywhere

DEPTH = 3_000


def test_the_example() -> None:
    result = doctest.testmod(stacks)
    assert result.attempted and not result.failed


def test_an_error_reaches_the_caller_and_no_thread_stays() -> None:
    @unbounded
    def fail(n: int) -> int:
        if n == 0:
            raise KeyError(getcontext().prec)
        return fail(n - 1)

    before = threading.active_count()
    with localcontext(Context(prec=7)), pytest.raises(KeyError, match="7"):
        fail(DEPTH)
    assert threading.active_count() == before


def test_an_interrupt_at_any_step_is_raised() -> None:
    assert interrupted_everywhere(lambda: stacks._on_another_stack(lambda: time.sleep(0.001)), lambda: None) > 20


def test_an_endless_recursion_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    @unbounded
    def endless() -> int:
        return endless()

    monkeypatch.setattr(stacks, "STACKS", 5)
    with pytest.raises(RecursionError, match="more than 5 stacks"):
        endless()


def same(plan: Plan) -> Plan:
    return plan


def test_passes_over_a_plan_deeper_than_the_stack() -> None:
    plan: Plan = Table(TableSchema("t", Schema((Field("a", BIGINT),))))
    again = plan
    for _ in range(DEPTH):
        plan, again = Distinct(plan), Distinct(again)
    assert plan == again and hash(plan) == hash(again)
    assert not references(plan) and plan.schema == again.schema
    assert transform(plan, same) is plan
    assert fingerprint(plan) == fingerprint(again)
    assert show(plan).count("Distinct") == DEPTH
    assert evaluate(plan, {"t": {(1,): 2}}) == Relation([((1,), 1)])
