"""Deltic on Spark: pipelines fed by streams, the data source, and sessions that are tuned for ticks."""

from __future__ import annotations

from deltic.runtimes.spark import SparkChanges, local_session
from deltic.runtimes.spark.advice import advice
from deltic.runtimes.spark.datasource import register
from deltic.spark.pipeline import StreamingPipeline
from deltic.spark.running import Running

__all__ = ["Running", "SparkChanges", "StreamingPipeline", "advice", "local_session", "register"]
