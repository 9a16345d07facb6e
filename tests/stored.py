"""Small batches and dictionaries for the tests of storage."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from deltic.storage.dictionary import Dictionary
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.rows import Rows


def batch_of(*rows: tuple[int, ...], weights: int = 1) -> Batch:
    """A batch of rows whose last `weights` values are the weights."""
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    return consolidate(Rows(columns[:-weights], columns[-weights:]))


def dictionary_of(**strings: int) -> Dictionary:
    """From bytes to ids, as keywords."""
    ids = pa.array(list(strings.values()), pa.int64())
    return Dictionary.of(pa.record_batch([ids, pa.array([s.encode() for s in strings], pa.binary())], ["id", "bytes"]))


def as_rows(batch: Rows) -> list[tuple[int, ...]]:
    return list(zip(*(c.tolist() for c in (*batch.columns, *batch.weights)), strict=True))
