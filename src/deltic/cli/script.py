"""The file that a command is given: a SQL script, or a Python module that defines a program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from deltic.cli.module import ProgramFile, imported
from deltic.session import Program

PYTHON: Final = ".py"


@contextmanager
def opened_program(script: Path) -> Iterator[ProgramFile]:
    """Its program; a module stays imported for the block. Raises QueryError and CircuitError, with the place in the file."""
    if script.suffix == PYTHON:
        with imported(script) as module:
            yield module
    else:
        yield ProgramFile(Program(script), ())
