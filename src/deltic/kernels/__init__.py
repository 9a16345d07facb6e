"""Compiled kernels over int64 columns: consolidate, merge, read, extend, partition. Nothing else in Deltic is compiled.

Kernels are called only by thin wrappers in the rooms above, which pass tables of addresses from `table.addresses`.
They are precompiled in the package, or compiled once on a machine, by the first session or by `prepare`, and kept on disk (see `cache.py`).
"""

from __future__ import annotations

from deltic.kernels.cache import FOLDER, SHIPPED, complete, damaged, unfit
from deltic.kernels.warm import prepare, warm_up

__all__ = ["FOLDER", "SHIPPED", "complete", "damaged", "prepare", "unfit", "warm_up"]
