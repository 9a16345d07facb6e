"""Compiled kernels over int64 columns: consolidate, merge, read, extend, partition. Nothing else in Deltic is compiled.

Kernels are called only by the thin wrappers of the rooms above, which hand in tables of addresses made by `table.addresses`.
They are compiled at their first use, or all at once by `warm_up`, and kept on disk (see `compiler.py`).
"""

from __future__ import annotations

from deltic.kernels.warm import compiled, warm_up

__all__ = ["compiled", "warm_up"]
