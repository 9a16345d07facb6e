"""A request to stop, made by a signal handler at any step of the wait for it."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import signal, sys, time
from deltic.pipeline.stopping import StopRequest

def interrupted(at):
    request, steps = StopRequest(), 0

    def step(frame, event, argument):
        nonlocal steps
        if frame.f_code.co_name in ("wait", "set", "__enter__", "__exit__"):
            steps += 1
            if steps == at:
                signal.raise_signal(signal.SIGUSR1)
        return step

    signal.signal(signal.SIGUSR1, lambda number, frame: request.set())
    signal.alarm(20)  # the default handler ends a process that waits for itself
    sys.settrace(step)
    request.wait(0.01)
    sys.settrace(None)
    assert request.is_set() == (steps >= at)
    return steps >= at

at = 1
while interrupted(at):
    at += 1
print(at)
"""


@pytest.mark.skipif(not hasattr(signal, "alarm"), reason="this system has no alarms")
def test_a_handler_may_stop_at_any_step_of_the_wait() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 4
