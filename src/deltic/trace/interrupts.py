"""Ctrl-C while a kernel runs that returns arrays.

numba runs Python code to make an array of a kernel's result. The handler of a signal that arrived in the kernel runs there first. What it
raises is the cause of a SystemError, which is the cause of the next one if the kernel returns several arrays. numba does not free the array
that it was making: an interrupted call costs its memory until the process ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def run(kernel: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
    """The result of a kernel that returns arrays. Raises what the handler of a signal raises, such as KeyboardInterrupt."""
    try:
        return kernel(*arguments, **named)
    except SystemError as error:
        cause: BaseException = error
        while isinstance(cause, SystemError) and cause.__cause__ is not None:
            cause = cause.__cause__
        raise cause from None
