"""Kùzu: a graph database, a peer for the workloads on graphs; it has no views over joins to keep."""

from __future__ import annotations

from benchmarks.engine import Absent, Engine


def engine() -> Engine:
    raise Absent("a graph database: compared in the workloads on graphs")
