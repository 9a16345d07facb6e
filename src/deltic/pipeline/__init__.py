"""Pipelines: programs that read sources, keep views exact and write sinks, and resume where they left off."""

from __future__ import annotations

from deltic.pipeline.pipeline import ROWS_PER_TICK, Pipeline
from deltic.pipeline.progress import Progress, Start, Summary

__all__ = ["ROWS_PER_TICK", "Pipeline", "Progress", "Start", "Summary"]
