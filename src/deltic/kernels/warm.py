"""Compiling or loading all kernels at once, and telling whether that has been done on this machine."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable

from deltic.kernels.cache import FOLDER, complete, mark_complete
from deltic.kernels.compiler import KERNELS, seal

MODULES = ("index", "sort", "merge", "read", "ordered", "vector", "text", "floats", "decimals", "fixpoint", "extend")


def _import_all() -> None:
    for module in MODULES:
        importlib.import_module(f"deltic.kernels.{module}")


def warm_up() -> None:
    """Loads every kernel from the cache, or compiles it; afterwards none compiles again. About 15 s, later 1 s."""
    _import_all()
    for dispatcher, signatures in KERNELS:
        seal(dispatcher, signatures)
    mark_complete()


def prepare(say: Callable[[str], None] | None = None) -> None:
    """Compiles all kernels if that has not been done on this machine, and says so, on stderr by default. Else it does nothing.

    Where no folder can keep them, each kernel is compiled when it is first used.
    """
    if FOLDER is None or complete():
        return
    say = say or _on_stderr
    say("compiling kernels, once on this machine; this takes about 15 seconds")
    start = time.perf_counter()
    warm_up()
    say(f"kernels compiled in {time.perf_counter() - start:.0f} s, kept in {FOLDER}")


def _on_stderr(line: str) -> None:
    print(f"deltic: {line}", file=sys.stderr, flush=True)
