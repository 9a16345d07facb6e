"""What a Spark worker's Python says of itself. Sent to workers by value, so it may import nothing of Deltic at its top."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator

import pyarrow as pa


def introduce(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row: the interpreter, its version of Deltic, and why that cannot be imported; the one or the other is the empty string."""
    for _ in batches:
        pass
    installed = problem = ""
    try:
        installed = version()
    except ImportError as error:
        problem = str(error)
    yield pa.record_batch([pa.array([sys.executable]), pa.array([installed]), pa.array([problem])], ["python", "version", "problem"])


def version() -> str:
    """The version of the Deltic that this Python imports."""
    return str(importlib.import_module("deltic").__version__)
