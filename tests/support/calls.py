"""Counts of calls: a measure of work that other processes do not disturb."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any


def calls_of(work: Callable[[], object], events: tuple[str, ...] = ("call",)) -> int:
    """How many functions it calls. events: "c_call" counts those in C. The collector, which may call what other tests left, waits."""
    count = 0

    def seen(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event in events

    collects = gc.isenabled()
    gc.disable()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(None)
        if collects:
            gc.enable()
    return count
