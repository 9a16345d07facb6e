"""Plans to dataflows: the only package that depends on both."""

from __future__ import annotations

from deltic.lowering.growing import GrowingProgram, lower, lower_prepared

__all__ = ["GrowingProgram", "lower", "lower_prepared"]
