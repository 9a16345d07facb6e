"""Test support: the same recursion by kernels and operator by operator, and all state of an engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from deltic.circuit import stage
from deltic.circuit.operators.child import Child
from deltic.circuit.operators.loop import Loop
from deltic.circuit.operators.recursion import RecursiveScope
from deltic.trace.counters import Counters
from engines import Engine

State = dict[str, list[list[int]]]


@contextmanager
def by_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs every operator by its step, scopes by their kernels."""
    with monkeypatch.context() as patch:
        patch.setattr(stage, "CORE", "python")
        yield


@contextmanager
def operator_by_operator(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs every scope operator by operator."""
    with by_steps(monkeypatch), monkeypatch.context() as patch:
        for kind in (Loop, RecursiveScope):
            patch.setattr(kind, "applies", lambda self, context: False)
        yield


def kept(engine: Engine) -> State:
    """All state, row by row."""
    state = {}
    for name in engine.circuit.arrangements:
        (spine,) = engine.runtime.snapshot(name)
        whole = spine.scan(Counters())
        state[name] = [column.tolist() for column in (*whole.columns, *whole.weights)]
    return state


def scopes(engine: Engine, kind: type[Loop] | type[RecursiveScope]) -> int:
    """How many scopes are run by a kernel of this kind."""
    return sum(isinstance(n.operator, Child) and isinstance(n.operator.loop, kind) for n in engine.circuit.nodes)
