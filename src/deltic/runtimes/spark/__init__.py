"""The Spark runtime: ticks as Spark jobs, state in a folder."""

from __future__ import annotations

from deltic.runtimes.spark.changes import SparkChanges
from deltic.runtimes.spark.runtime import SparkRuntime
from deltic.runtimes.spark.session import local_session

__all__ = ["SparkChanges", "SparkRuntime", "local_session"]
