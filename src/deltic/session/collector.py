"""Python's collector of cycles: definitions and small ticks without it, and long runs in which it does not walk the libraries."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
FEW: Final = 1_000
"""The most changes of a tick in which the collector is paused."""


def without_collector(function: Callable[P, T]) -> Callable[P, T]:
    """A function that collects no cycles while it runs, in any thread; afterwards the collector is as it was.

    For parsing and compiling, which allocate many nodes that live on and hardly any cycle: the collector walks those nodes again and again,
    in a third of the time that a view of 10,000 terms takes. For ticks of few changes, of which it takes a sixth over 200 views. Never for
    other ticks, such as those that fill a view: users' functions may leave many cycles in them. Calls in several threads may overlap:
    those that find the collector disabled leave it to the first one.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return uncollected(function, *args, **kwargs)

    return run


def uncollected(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a function, as `without_collector`."""
    enabled = gc.isenabled()
    try:
        gc.disable()  # within the `try`, since Ctrl-C may come right after it
        return function(*args, **kwargs)
    finally:
        if enabled:
            gc.enable()


@contextmanager
def set_aside() -> Iterator[None]:
    """While it is open, the collector leaves alone what the process holds now. For a process that only ticks, never for a user's own.

    With the objects of Arrow, NumPy and the compiled kernels a pass over all takes 0.1 s, every few thousand ticks.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
