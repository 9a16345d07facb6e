"""Waiting for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(holds: Callable[[], object], seconds: float = 60) -> None:
    """Returns once it holds. AssertionError after so many seconds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"it did not come about in {seconds:g} seconds"
        time.sleep(0.005)
