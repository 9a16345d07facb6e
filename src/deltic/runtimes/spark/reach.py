"""Whether the tasks of a Spark session reach the state folder."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from deltic.errors import StateError
from deltic.storage.folder import open_folder
from deltic.storage.names import PROBE

_SHARE = "name a folder that every machine of the cluster has under one path and give shared_state=True, or an object store's URL"


def check_reach(spark: SparkSession, state: str | None, shared: bool) -> None:
    """Raises StateError if tasks run on other machines and the folder is local to this one, or is declared as shared and is not."""
    address = master(spark)
    if address.startswith("local") or (state is not None and not open_folder(state).local):
        return
    if state is None or not shared:
        folder = "a temporary folder" if state is None else f"the folder {state}"
        raise StateError(
            f"{folder} of this machine cannot keep the state of a Spark session on {address}",
            expected="a state folder that tasks can reach from every machine",
            remedy=_SHARE,
        )
    _probe(spark, state)


def master(spark: SparkSession) -> str:
    """Where the session's tasks run: spark.master."""
    return spark.conf.get("spark.master", "") or ""


def _probe(spark: SparkSession, state: str) -> None:
    """One job whose tasks look for a file that the driver has just created."""
    folder = open_folder(state)
    folder.make()
    name = f"{PROBE}/{secrets.token_hex(8)}"
    content = secrets.token_bytes(16)
    folder.put(name, content)
    try:
        tasks = 2 * max(1, int(spark.conf.get("spark.default.parallelism", "") or 8))
        frame = spark.range(tasks, numPartitions=tasks).mapInArrow(_Look(os.path.join(folder.root, name), content).__call__, "host string")
        blind = sorted({row.host for row in frame.collect()})
    finally:
        folder.delete([name])
    if blind:
        raise StateError(
            f"the folder {state} is not shared: tasks on {', '.join(blind)} do not see what the driver writes there",
            expected="a folder that every machine of the cluster has under one path",
            remedy=_SHARE,
        )


@dataclass(frozen=True, slots=True)
class _Look:
    """Returns the name of the task's machine if it cannot read the file, or cannot write to its folder."""

    path: str
    content: bytes

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        try:
            with open(self.path, "rb") as file:
                seen = file.read() == self.content and os.access(os.path.dirname(self.path), os.W_OK)
        except OSError:
            seen = False
        yield pa.record_batch([pa.array([] if seen else [socket.gethostname()], pa.string())], ["host"])
