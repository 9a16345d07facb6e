"""Ctrl-C that arrives while a kernel runs: KeyboardInterrupt, whatever numba makes of it, and the session stays usable."""

import ctypes
import inspect
from functools import partial
from operator import call
from types import ModuleType
from typing import Any

import pytest

import deltic
from deltic.circuit import stage
from deltic.kernels import extend, fixpoint, recursion
from deltic.kernels.compiler import KERNELS
from deltic.trace import interrupts

PATHS = """
CREATE TABLE t (a BIGINT NOT NULL, b BIGINT NOT NULL);
CREATE MATERIALIZED VIEW v AS WITH RECURSIVE p(a, b) AS (SELECT a, b FROM t UNION SELECT p.a, t.b FROM p JOIN t ON p.b = t.a)
  SELECT a, b FROM p
"""
DOUBLED = PATHS.replace("JOIN t ON", "JOIN p t ON")
TRIANGLES = """
CREATE TABLE t (a BIGINT, b BIGINT);
CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t x, t y, t z WHERE x.b = y.a AND y.b = z.a AND z.b = x.a
"""


@pytest.mark.parametrize(
    ("script", "module", "edges"),
    [
        (PATHS, fixpoint, [(i, i + 1) for i in range(9)]),
        (DOUBLED, recursion, [(i, i + 1) for i in range(9)]),
        (TRIANGLES, extend, [(a, b) for a in range(9) for b in range(9)]),
    ],
    ids=["linear", "recursion", "multiway"],
)
def test_ctrl_c_in_a_kernel(script: str, module: ModuleType, edges: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "CORE", "python")  # an instruction that calls such a kernel makes no arrays of Python's
    name = module.__name__.rpartition(".")[2]
    rows = [{"a": a, "b": b, "_weight": 1} for a, b in edges]
    with deltic.Session(threads=1) as session:  # the kernel runs in the thread that gets signals
        session.sql(script)
        session.apply({"t": [{"a": -1, "b": -1, "_weight": 1}]})
        before = session.view("v").rows()
        interrupted = Interrupted(getattr(module, name))
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(module, name, interrupted)
            session.apply({"t": rows})
        assert interrupted.errors == ["SystemError"]
        assert session.view("v").rows() == before
        session.apply({"t": rows})
        assert session.view("v").rows() != before


class Interrupted:
    """A kernel during which SIGINT arrives. errors: the class of what each call raised.

    `map` calls PyErr_SetInterrupt and then the kernel, with no bytecode in between. So Python calls the handler after the kernel's code at
    the earliest, as for a signal that comes while that code runs.
    """

    def __init__(self, kernel: Any) -> None:
        self.dispatcher = next(dispatcher for dispatcher, _ in KERNELS if dispatcher.py_func is inspect.unwrap(kernel))
        self.errors: list[str] = []

    def __call__(self, *arguments: Any) -> Any:
        try:
            _, result = map(call, (ctypes.pythonapi.PyErr_SetInterrupt, partial(self.dispatcher, *arguments)))
        except BaseException as error:
            self.errors.append(type(error).__name__)
            raise
        return result


def test_other_system_errors_pass() -> None:
    def broken() -> None:
        raise SystemError("of the interpreter")

    with pytest.raises(SystemError, match="of the interpreter"):
        interrupts.run(broken)
