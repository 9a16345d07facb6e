"""An event that a signal handler sets at any step of the wait for it."""

from __future__ import annotations

import signal
import subprocess
import sys
from threading import Thread

import pytest

from deltic.reentrant import ReentrantEvent
from interruptions import interrupted_everywhere

PROGRAM = """
import signal, sys, time
from deltic.reentrant import ReentrantEvent

def interrupted(at):
    request, steps = ReentrantEvent(), 0

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


def test_an_interrupt_at_any_step_makes_no_thread_wait_for_ever() -> None:
    event = ReentrantEvent()

    def use() -> None:
        event.clear()
        event.wait(0.001)
        event.set()

    def check() -> None:
        event.clear()
        threads = [Thread(target=event.wait, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        event.set()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()

    assert interrupted_everywhere(use, check) > 5


def test_to_set_it_again_and_again_takes_no_memory() -> None:
    event = ReentrantEvent()
    for _ in range(1000):
        event.set()
        assert event.wait()
    assert event._wake.qsize() == 1
