"""Compiled kernels over int64 columns: consolidate, merge, read, extend, partition. Nothing else in Deltic is compiled.

Kernels are called only by thin wrappers in the rooms above, which pass tables of addresses from `table.addresses`.
They are compiled once on a machine, by the first session or by `prepare`, and kept on disk (see `cache.py`).
"""

from __future__ import annotations

from deltic.kernels.cache import FOLDER, complete, damaged
from deltic.kernels.warm import prepare, warm_up

__all__ = ["FOLDER", "complete", "damaged", "prepare", "warm_up"]
