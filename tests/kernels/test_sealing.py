"""Kernels are sealed by the first thread that needs them, while others wait."""

from __future__ import annotations

import subprocess
import sys
from threading import Thread

import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock

from deltic.kernels import compiler
from waiting import wait_until

PROGRAM = """
import deltic
from deltic.trace import workers

workers.DIVIDED_ROWS = 1
with deltic.Session(shards=3, threads=3) as session:
    session.sql("CREATE TABLE t (id BIGINT, k BIGINT, PRIMARY KEY (id))")
    session.sql("CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS n FROM t GROUP BY k")
    session.apply({"t": [{"id": i, "k": i % 7, "_op": "insert"} for i in range(70)]})
    print(sorted((row["k"], row["n"]) for row in session.view("v").rows()))
"""


def test_the_first_tick_of_a_process_may_be_divided() -> None:
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", PROGRAM], check=False, capture_output=True, text=True)
        assert done.stdout.strip() == str([(k, 10) for k in range(7)]), done.stderr


def test_a_first_call_may_wait_while_another_thread_seals_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "SHIPPED", None)
    monkeypatch.setattr(compiler, "FOLDER", None)
    dispatcher = compiler._dispatcher(_twice, ("int64(int64)",))
    results: list[int] = []
    caller = Thread(target=lambda: results.append(dispatcher(21)))
    with global_compiler_lock:
        caller.start()
        wait_until(lambda: _waits_in_compile(caller))
        compiler.seal(dispatcher, ("int64(int64)",))
    caller.join()
    assert results == [42]
    with pytest.raises(TypeError, match="No matching definition"):
        dispatcher(np.zeros(1))


def _twice(number: int) -> int:
    return 2 * number


def _waits_in_compile(thread: Thread) -> bool:
    """Whether the thread compiles a kernel, or waits for numba's lock to do so."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and (frame.f_code.co_name, frame.f_globals["__name__"]) != ("_compile_for_args", "numba.core.dispatcher"):
        frame = frame.f_back
    return frame is not None
