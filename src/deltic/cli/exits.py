"""How a command ends."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Exit(IntEnum):
    """Exit codes; docs/cli.md lists them too."""

    OK = 0
    INPUT = 1
    USAGE = 2
    SETUP = 3
    DIFFERS = 4
    INTERRUPTED = 130


HELP: Final = """Exit codes:
  0  success
  1  an error in your script or data, or stdout cannot be written; reported on stderr
  2  wrong usage of the command
  3  the machine lacks a requirement, such as Java or an extra
  4  a view of the demo differs from its reference
130  interrupted
"""
