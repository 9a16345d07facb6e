"""What a Spark worker's Python says of itself. Sent to workers by value, so it may import nothing but the standard library at its top."""

from __future__ import annotations

import importlib
import sys


def introduce(_: object) -> tuple[str, str, str]:
    """The interpreter, its version of Deltic, and why a task cannot run there; "" for what there is not."""
    installed = ""
    try:
        installed = version()
        importlib.import_module("deltic.runtimes.spark.task")
    except ImportError as error:
        return sys.executable, installed, str(error)
    return sys.executable, installed, ""


def version() -> str:
    """The version of the Deltic that this Python imports."""
    return str(importlib.import_module("deltic").__version__)
