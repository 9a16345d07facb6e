"""Recursion of any depth: after some levels a function continues on the stack of another thread, while its caller waits.

Plans and queries can be deeper than Python's stack: a view over a thousand views is one plan. Functions over them are written as recursions
with `unbounded`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import wraps
from queue import SimpleQueue
from typing import Final, ParamSpec, TypeVar

from deltic.reentrant import start

P = ParamSpec("P")
T = TypeVar("T")

LEVELS: Final = 20
"""The least number of nested calls on one stack. A level takes up to 20 frames of Python's 1,000, beside those of expressions."""
FULL: Final = 400
"""A stack with more frames takes no further levels."""
FRAMES: Final = 150
"""A recursion that starts above this many frames gets a stack of its own."""
STACKS: Final = 1_000
"""The maximum number of stacks. Beyond them the recursion is refused like one that is endless."""


class _Place(threading.local):
    """levels: the nested calls on this thread's stack. stacks: the number of stacks below it."""

    levels = 0
    stacks = 0


_place = _Place()


def unbounded(function: Callable[P, T]) -> Callable[P, T]:
    """The function, whose nested calls may be deeper than Python's stack. It must not hold a lock that its nested calls need.

    Raises RecursionError after STACKS stacks.

    >>> @unbounded
    ... def total(n: int) -> int:
    ...     return n + total(n - 1) if n else 0
    >>> total(5_000)
    12502500
    """

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> T:
        level = _place.levels
        if (level >= LEVELS and _is_deep(FULL)) or (level == 0 and _is_deep(FRAMES)):
            return _on_another_stack(lambda: function(*args, **options))
        _place.levels = level + 1
        try:
            return function(*args, **options)
        finally:
            _place.levels = level

    return call


def roomy(function: Callable[P, T]) -> Callable[P, T]:
    """The function with at least 1,000 - FRAMES frames for a recursion of limited depth, however many its caller has used."""

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> T:
        return _on_another_stack(lambda: function(*args, **options)) if _is_deep(FRAMES) else function(*args, **options)

    return call


def _is_deep(frames: int) -> bool:
    """Whether more frames than these are on the stack."""
    try:
        sys._getframe(frames)
    except ValueError:
        return False
    return True


def _on_another_stack(run: Callable[[], T]) -> T:
    stacks = _place.stacks + 1
    if stacks > STACKS:
        raise RecursionError(f"a recursion of more than {STACKS:,} stacks")
    results: list[T] = []
    errors: list[BaseException] = []
    ended: SimpleQueue[None] = SimpleQueue()  # not a Future, whose lock an interrupt could leave held

    def work() -> None:
        _place.stacks = stacks
        try:
            results.append(run())
        except BaseException as error:  # the caller raises it
            errors.append(error)
        finally:
            ended.put(None)

    start(threading.Thread(target=copy_context().run, args=(work,), name="deltic-stack", daemon=True))
    ended.get()
    if errors:
        raise errors.pop()
    return results.pop()
