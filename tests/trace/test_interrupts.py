"""Ctrl-C that arrives while a kernel runs: KeyboardInterrupt, whatever numba makes of it, and the session stays usable."""

import os
import signal
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import deltic
from deltic.kernels import extend, fixpoint, recursion
from deltic.trace import interrupts

ATTEMPTS = 40
"""On a busy machine the signal may come after the kernel has returned, or not at all."""
LONG_S = 0.01

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


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX threads")
@pytest.mark.parametrize(
    ("script", "module", "edges"),
    [
        (PATHS, fixpoint, [(i, i + 1) for i in range(450)]),
        (DOUBLED, recursion, [(i, i + 1) for i in range(200)]),
        (TRIANGLES, extend, [(a, b) for a in range(150) for b in range(a % 2, 150, 2)]),
    ],
    ids=["linear", "recursion", "multiway"],
)
def test_ctrl_c_in_a_kernel(script: str, module: ModuleType, edges: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    name = module.__name__.rpartition(".")[2]
    kernel: Callable[..., Any] = getattr(module, name)
    rows = [{"a": a, "b": b, "_weight": 1} for a, b in edges]
    with deltic.Session(threads=1) as session:  # several threads divide a linear recursion, and the kernel runs in none that gets signals
        session.sql(script)
        session.apply({"t": [{"a": -1, "b": -1, "_weight": 1}]})  # compiles the kernels
        before = session.view("v").rows()
        for _ in range(ATTEMPTS):
            watched = Watched(kernel)
            monkeypatch.setattr(module, name, watched)
            watched.thread.start()
            interrupted = False
            try:
                session.apply({"t": rows})
                watched.over.set()
                watched.thread.join()
            except KeyboardInterrupt:
                interrupted = True
            watched.over.set()
            watched.thread.join()
            if watched.hit:
                assert interrupted and session.view("v").rows() == before
                break
            if session.view("v").rows() != before:
                session.apply({"t": [{**row, "_weight": -1} for row in rows]})
        assert watched.hit, "no signal came while the kernel ran"
        monkeypatch.undo()
        session.apply({"t": rows})
        assert session.view("v").rows() != before


class Watched:
    """A kernel, one long call of which is interrupted: another thread sends SIGINT once the call has lasted LONG_S."""

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self.kernel = kernel
        self.entered: float | None = None
        self.hit = False
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.send, args=(threading.get_ident(),))

    def __call__(self, *arguments: Any) -> Any:
        self.entered = time.perf_counter()
        try:
            return self.kernel(*arguments)
        finally:
            self.entered = None

    def send(self, main: int) -> None:
        while not self.over.wait(0.001):
            if (entered := self.entered) is not None and time.perf_counter() - entered > LONG_S:
                signal.pthread_kill(main, signal.SIGINT)
                self.hit = self.entered == entered
                return


def test_other_system_errors_pass() -> None:
    def broken() -> None:
        raise SystemError("of the interpreter")

    with pytest.raises(SystemError, match="of the interpreter"):
        interrupts.run(broken)
