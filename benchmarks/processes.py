"""The CPU and the memory of this process and of all below it: Python's memory (PSS, as workers share pages) apart from the JVM's."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.harness import process_peak_mb, proportional_mb

RESOLUTION_MS: Final = 1e3 / os.sysconf("SC_CLK_TCK")
"""The resolution of `cpu_s`: shorter work may count as 0."""


class Memory:
    """The highest sums seen by `sample`, in MB."""

    def __init__(self) -> None:
        self.python_mb = self.jvm_mb = 0.0

    def sample(self) -> None:
        """Looks at all processes below this one; those that end meanwhile do not count."""
        python = jvm = 0.0
        for pid in (os.getpid(), *descendants(os.getpid())):
            try:
                name = process_name(pid)
                if name == "java":
                    jvm += process_peak_mb(pid)
                elif name.startswith("python"):
                    python += proportional_mb(pid)
            except (FileNotFoundError, ProcessLookupError):
                continue
        self.python_mb, self.jvm_mb = max(self.python_mb, round(python, 1)), max(self.jvm_mb, round(jvm, 1))


def cpu_s() -> float:
    """The CPU seconds of this process and of all below it, with those that have ended and that a parent has waited for."""
    ticks = 0
    for pid in (os.getpid(), *descendants(os.getpid())):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        ticks += sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime
    return ticks / os.sysconf("SC_CLK_TCK")


def process_name(pid: int) -> str:
    """The system's name of a process; "" if it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def descendants(pid: int) -> Iterator[int]:
    """The processes that a process started, and theirs."""
    children = defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_text().rpartition(")")[2].split()[1]
        except (FileNotFoundError, ProcessLookupError):
            continue
        children[int(parent)].append(int(stat.parent.name))
    generation = children[pid]
    while generation:
        yield from generation
        generation = [grandchild for child in generation for grandchild in children[child]]
