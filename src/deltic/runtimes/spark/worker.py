"""What a Spark worker's Python says of itself. Sent to workers by value, so it may import nothing of Deltic at its top."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator

import pyarrow as pa


def introduce(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row: the interpreter, and why Deltic cannot be imported in it, or the empty string."""
    for _ in batches:
        pass
    try:
        importlib.import_module("deltic")
        problem = ""
    except ImportError as error:
        problem = str(error)
    yield pa.record_batch([pa.array([sys.executable]), pa.array([problem])], ["python", "problem"])
