"""Compiles or loads all kernels at once."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable

from deltic.kernels.cache import FOLDER, complete, mark_complete, on_stderr
from deltic.kernels.compiler import KERNELS, seal

USUAL = (
    "table",
    "index",
    "sort",
    "merge",
    "read",
    "ordered",
    "vector",
    "text",
    "nested",
    "nested_words",
    "floats",
    "decimals",
    "evaluation",
    "level_digits",
    "level_extremes",
    "level_first_rows",
    "level",
    "intake",
    "export",
    "gather",
    "resolve",
    "checksums",
)
RARE = ("fixpoint", "level_loops", "level_recursions", "recursion", "extend", "ranked", "ranges")
"""Of recursions, multiway joins, percentiles and joins by ranges: half of the time that compiling takes, spent when they are first used."""


def warm_up() -> None:
    """Loads every kernel, or compiles it; afterwards none compiles again. About 90 CPU seconds, later a tenth of one."""
    seal_modules(*USUAL, *RARE)
    mark_complete()


def prepare(say: Callable[[str], None] | None = None) -> None:
    """Compiles the kernels that every session uses, unless that has been done on this machine, and says so, on stderr by default.

    If no folder can keep them, each kernel is compiled when it is first used.
    """
    if complete() or FOLDER is None:
        return
    say = say or on_stderr
    say("compiling kernels, once on this machine; this takes about a minute")
    start = time.perf_counter()
    seal_modules(*USUAL)
    mark_complete()
    say(f"kernels compiled in {time.perf_counter() - start:.0f} s, kept in {FOLDER}")


def seal_modules(*modules: str) -> None:
    """Compiles or loads the kernels of some modules."""
    names = {importlib.import_module(f"deltic.kernels.{module}").__name__ for module in modules}
    for dispatcher, signatures in KERNELS:
        if dispatcher.__module__ in names:
            seal(dispatcher, signatures)
