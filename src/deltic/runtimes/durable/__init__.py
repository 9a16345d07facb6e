"""The part that all runtimes with a state folder share; they differ in how rows move between levels."""

from __future__ import annotations

from deltic.runtimes.durable.core import Durable

__all__ = ["Durable"]
