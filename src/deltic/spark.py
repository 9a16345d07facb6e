"""Deltic on Spark: what `deltic.runtimes.spark` has for users, under a shorter name."""

from __future__ import annotations

from deltic.runtimes.spark import SparkChanges, local_session
from deltic.runtimes.spark.advice import advice
from deltic.runtimes.spark.datasource import register

__all__ = ["SparkChanges", "advice", "local_session", "register"]
