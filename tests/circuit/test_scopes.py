"""Nested scopes: imports, feedback, the fixed point, clocks and their hooks."""

from __future__ import annotations

import numpy as np
import pytest

from deltic.circuit.clock import Clock
from deltic.circuit.nodes import Node, NodeKind, Shape
from deltic.circuit.operator import Context, Tick
from deltic.circuit.operators.child import Child
from deltic.circuit.operators.feedback import Feedback, Import
from deltic.circuit.operators.linear import Plus
from deltic.circuit.operators.map import Map
from deltic.errors import EvaluationError
from deltic.expr import Column, Literal, resolve
from deltic.schema import BIGINT, Field, Schema
from deltic.trace.rows import Rows
from deltic.trace.time import join, less_equal, meet
from tests.support.strings import string_table

SCHEMA = Schema((Field("n", BIGINT, False),))
N = Column(0, BIGINT, False, "n")


def node(at: int, kind: NodeKind, operator: object, *inputs: int, parent: tuple[int, ...] = (7,)) -> Node:
    return Node((*parent, at), kind, operator, inputs, Shape(SCHEMA), None, 0, str(at), str(at))  # type: ignore[arg-type]


def counting_down(step: int, *, parent: tuple[int, ...] = (7,)) -> tuple[Node, ...]:
    """out = in + (out − step where out > step): every number of the countdown."""
    smaller = Map(SCHEMA, SCHEMA, (resolve("-", [N, Literal(step, BIGINT)], None),), resolve(">", [N, Literal(step, BIGINT)], None))
    return (
        node(0, NodeKind.IMPORT, Import(0), parent=parent),
        node(1, NodeKind.FEEDBACK, Feedback(3), parent=parent),
        node(2, NodeKind.OPERATOR, smaller, 1, parent=parent),
        node(3, NodeKind.OPERATOR, Plus(), 0, 2, parent=parent),
    )


def numbers(*values: int, weight: int = 1) -> Rows:
    return Rows((np.array(values, np.int64),), (np.full(len(values), weight, np.int64),))


def context() -> Context:
    return Context(0, 1, Tick(4), {}, string_table(1))


def content(rows: object) -> dict[int, int]:
    return dict(zip(rows.columns[0].tolist(), rows.weights[0].tolist(), strict=True))  # type: ignore[attr-defined]


def test_a_child_runs_to_its_fixed_point() -> None:
    assert content(Child(counting_down(2), 3).step([numbers(7)], context())) == {7: 1, 5: 1, 3: 1, 1: 1}


def test_a_retraction_removes_derived_rows() -> None:
    assert content(Child(counting_down(2), 3).step([numbers(7, weight=-1)], context())) == {7: -1, 5: -1, 3: -1, 1: -1}


def test_changes_that_cancel_stop_the_scope() -> None:
    both = Rows((np.array([7, 7]),), (np.array([1, -1]),))
    assert content(Child(counting_down(2), 3, limit=1).step([both], context())) == {}


def test_a_scope_that_diverges_is_an_error() -> None:
    with pytest.raises(EvaluationError, match=r"not converged after 3 iterations: the last ones changed 1, 1, 1 rows, such as \(94\)"):
        Child(counting_down(2), 3, limit=3).step([numbers(100)], context())


def test_scopes_nest() -> None:
    """An inner scope counts down by one within each step of an outer scope that counts down by two."""
    inner = Child(counting_down(1, parent=(7, 2)), 3)
    outer = (*counting_down(2)[:2], node(2, NodeKind.CHILD, inner, 0), node(3, NodeKind.OPERATOR, Plus(), 2, 2))
    assert content(Child(outer, 2).step([numbers(3)], context())) == {3: 1, 2: 1, 1: 1}


def test_hooks_observe_every_clock() -> None:
    heard: list[tuple[str, int, tuple[int, ...]]] = []
    clock = Clock((4,), [lambda event, scope, time: heard.append((event, scope, time))])
    Child(counting_down(2), 3).run([numbers(3)], context(), clock)
    assert heard == [
        ("clock_start", 0, (4, 0)),
        ("clock_end", 0, (4, 0)),
        ("clock_start", 0, (4, 1)),
        ("clock_end", 0, (4, 1)),
        ("clock_start", 0, (4, 2)),
        ("clock_end", 0, (4, 2)),
    ]


def test_global_ids_are_paths() -> None:
    assert [n.name for n in counting_down(1, parent=(7, 2))] == ["7.2.0", "7.2.1", "7.2.2", "7.2.3"]


def test_times_are_a_lattice() -> None:
    times = [(e, i) for e in range(3) for i in range(3)]
    for a in times:
        for b in times:
            assert less_equal(a, join(a, b)) and less_equal(meet(a, b), a)
            assert less_equal(a, b) == (join(a, b) == b) == (meet(a, b) == a)
    assert not less_equal((0, 2), (1, 1)) and not less_equal((1, 1), (0, 2))
