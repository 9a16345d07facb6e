"""The file that a command is given: a SQL script, or a Python module that defines a program."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from deltic.cli.module import ProgramFile, imported
from deltic.errors import PlanWarning
from deltic.session import Program

PYTHON: Final = ".py"


@contextmanager
def opened_program(script: Path) -> Iterator[ProgramFile]:
    """Its program; a module stays imported for the block, in which warnings about plans are lines on standard error.

    Raises QueryError and CircuitError, with the place in the file.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("always", PlanWarning)
        warnings.showwarning = _printed(warnings.showwarning)
        if script.suffix == PYTHON:
            with imported(script) as module:
                yield module
        else:
            yield ProgramFile(Program(script), ())


def _printed(otherwise: Callable[..., None]) -> Callable[..., None]:
    """Prints a PlanWarning; shows another warning as `otherwise` does."""

    def show(message: Warning | str, *details: Any, **more: Any) -> None:
        if isinstance(message, PlanWarning):
            print(f"deltic: {message.place}: warning: {message.text}", file=sys.stderr)
        else:
            otherwise(message, *details, **more)

    return show
