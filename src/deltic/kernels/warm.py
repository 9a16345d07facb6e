"""Compiling or loading all kernels at once, and telling whether that has been done on this machine."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from deltic.kernels.compiler import CACHE, KERNELS, seal

MODULES = ("index", "sort", "merge", "read", "ordered", "vector", "text", "floats", "decimals", "fixpoint", "extend")


def _import_all() -> None:
    for module in MODULES:
        importlib.import_module(f"deltic.kernels.{module}")


def warm_up(progress: Callable[[str], None] | None = None) -> None:
    """Loads every kernel from the cache, or compiles it (about ten seconds for all, once per machine); afterwards none compiles again.

    progress: told one line for each kernel that has to be compiled.
    """
    fresh = compiled()
    _import_all()
    for number, (dispatcher, signatures) in enumerate(KERNELS, 1):
        if progress is not None and not fresh:
            progress(f"compiling kernels, once on this machine: {number} of {len(KERNELS)}, {dispatcher.__name__}")
        seal(dispatcher, signatures)
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / "complete").touch()


def compiled() -> bool:
    """Whether all kernels are in the cache, so that `warm_up` only loads them."""
    return (CACHE / "complete").exists()
