"""The bare job: what Spark asks for as many exchanges of as many bytes between Python stages that do nothing.

The driver hands in one row for each shard, as Deltic's first level gets its changes; each stage passes on the bytes that arrive, one row
for each shard, and the last one says how many they were. Nothing is computed, kept or written.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

SCHEMA = "shard int, stream string, data binary"
ARROW = pa.schema([("shard", pa.int32()), ("stream", pa.string()), ("data", pa.binary())])


def identity(batches: Iterator[pa.RecordBatch], shards: int) -> Iterator[pa.RecordBatch]:
    """Passes on all bytes that arrive, cut into a row for each shard."""
    data = _arrived(batches)
    cuts = [len(data) * shard // shards for shard in range(shards + 1)]
    yield _rows([data[start:stop] for start, stop in pairwise(cuts)])


def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The number of bytes that arrived."""
    yield _rows([len(_arrived(batches)).to_bytes(8, "little")])


def _arrived(batches: Iterator[pa.RecordBatch]) -> bytes:
    return b"".join(value for batch in batches for value in batch.column("data").to_pylist())


def _rows(parts: list[bytes]) -> pa.RecordBatch:
    shards = pa.array(range(len(parts)), pa.int32())
    return pa.record_batch([shards, pa.array(["rows"] * len(parts)), pa.array(parts, pa.binary())], schema=ARROW)


def run(spark: SparkSession, shards: int, exchanges: int, size_bytes: int) -> int:
    """One job of `exchanges` exchanges, each of about `size_bytes` that do not compress; gives how many bytes came out."""
    payload = np.random.default_rng(size_bytes).bytes(size_bytes // shards)
    rows = pa.Table.from_batches([_rows([payload] * shards)])
    frame = spark.createDataFrame(rows, SCHEMA)
    for _ in range(exchanges):
        frame = frame.mapInArrow(partial(identity, shards=shards), SCHEMA).repartitionById(shards, "shard")
    done = frame.mapInArrow(count, SCHEMA).toArrow()
    return sum(int.from_bytes(value, "little") for value in done["data"].to_pylist())
