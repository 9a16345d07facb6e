"""State larger than memory: `python -m benchmarks.larger_than_memory [--rows N] [--limit-mb N] [--ticks N] [--folder FOLDER] [--quick]`.

A table of 200M readings with a view of 1,000 groups over it, in a state folder, and ticks that update 1,000 readings anywhere; the same
with a hundredth of the rows. Each step is a process in a cgroup (of version 1 or 2) whose memory limit, 2 GB, counts anonymous pages and
the page cache alike, without swap: the kernel ends a process that needs more, so a case that is not absent was never over the limit. This
process must be allowed to create cgroups, as root is. `over_small` is the median tick over that of a hundredth of the rows.

For machines that lack the disk (about 10 GB, and as much again while merges run) or the time: `--rows 20000000 --limit-mb 500`.
`--load-limit-mb` gives the load another limit than the ticks.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks import harness
from benchmarks.harness import Figures

ROWS, LIMIT_MB, TICKS = 200_000_000, 2_048, 50
CHUNK: Final = 250_000
"""Rows of a tick while the table is loaded."""
TIMEOUT_S: Final = 7_200.0
ROOT: Final = Path("/sys/fs/cgroup")
NO_GROUP: Final = "no cgroup with a memory limit"
IN_GROUP: Final = 'echo $$ > "$0" && exec "$@"'


class MemoryGroup:
    """A cgroup with a limit of memory. Raises OSError where this process may not create one."""

    def __init__(self, limit: int) -> None:
        second = (ROOT / "cgroup.controllers").exists()
        self._folder = (ROOT if second else ROOT / "memory") / f"deltic-{os.getpid()}"
        self._peak = "memory.peak" if second else "memory.max_usage_in_bytes"
        self._folder.mkdir()
        try:
            (self._folder / ("memory.max" if second else "memory.limit_in_bytes")).write_text(str(limit))
            self._without_swap(second)
        except OSError:
            self.close()
            raise

    def _without_swap(self, second: bool) -> None:
        """A limit of swap is not there where the kernel counts none."""
        name = "memory.swap.max" if second else "memory.swappiness"
        if (self._folder / name).exists():
            (self._folder / name).write_text("0")

    @property
    def procs(self) -> Path:
        """A process that writes its id into this file is in the group."""
        return self._folder / "cgroup.procs"

    @property
    def peak_mb(self) -> float | None:
        """The most memory that was counted so far, page cache included; None if the kernel does not say."""
        path = self._folder / self._peak
        return round(int(path.read_text()) / 2**20, 1) if path.exists() else None

    def close(self) -> None:
        self._folder.rmdir()


@contextmanager
def memory_group(limit: int) -> Iterator[MemoryGroup]:
    group = MemoryGroup(limit)
    try:
        yield group
    finally:
        group.close()


def step(name: str, folder: Path, rows: int, number: int, limit_mb: int) -> Figures:
    """Runs a step of benchmarks.larger_than_memory_case under the limit."""
    try:
        with memory_group(limit_mb << 20) as group:
            case = [sys.executable, "-m", "benchmarks.larger_than_memory_case", name, str(folder), str(rows), str(number)]
            answer = harness.run(["sh", "-c", IN_GROUP, str(group.procs), *case], TIMEOUT_S)
            time.sleep(0.1)  # until the kernel has taken the process out of the group
            return {**answer, "group_peak_mb": group.peak_mb}
    except OSError as error:
        return {"absent": f"{NO_GROUP}: {error}"}


def forget(state: Path) -> None:
    """Takes a state out of the page cache: pages that another group has read count in none that reads them now."""
    for path in (state / "data").iterdir():
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def measure(folder: Path, rows: int, ticks: int, limit_mb: int, load_limit_mb: int) -> Figures:
    """One size. A step that needs more than its limit is a wrong answer."""
    state = folder / f"state{rows}"
    built = step("build", state, rows, CHUNK, load_limit_mb)
    harness.progress(f"{rows:,} rows: {built}")
    if built.get("absent", "").startswith(NO_GROUP):
        return {"absent": built["absent"]}
    figures = {}
    if "absent" not in built:
        forget(state)
        figures = step("ticks", state, rows, ticks, limit_mb)
    harness.progress(f"{rows:,} rows: {figures}")
    return {"load": built, "ticks": figures, "correct": figures.get("correct", False)}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.larger_than_memory", description=__doc__.splitlines()[0] if __doc__ else None
    )
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--limit-mb", type=int, default=LIMIT_MB)
    parser.add_argument("--load-limit-mb", type=int, help="of the load; by default that of the ticks")
    parser.add_argument("--ticks", type=int, default=TICKS)
    parser.add_argument("--folder", type=Path, help="where the states are made: on a disk, not in memory")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the rows")
    options = parser.parse_args()
    rows = options.rows // 100 if options.quick else options.rows
    with tempfile.TemporaryDirectory(prefix="deltic-larger-", dir=options.folder) as name:
        load = options.load_limit_mb or options.limit_mb
        cases = {f"{size} rows": measure(Path(name), size, options.ticks, options.limit_mb, load) for size in (rows // 100, rows)}
    params = {"rows": rows, "limit_mb": options.limit_mb, "load_limit_mb": load, "ticks": options.ticks}
    result: Figures = {"benchmark": "larger_than_memory", "engine": "deltic", "params": params, "cases": cases}
    small, large = cases.values()
    medians = [case.get("ticks", {}).get("tick_ms", {}).get("median") for case in (small, large)]
    result["over_small"] = round(medians[1] / medians[0], 2) if all(medians) else None
    harness.emit({**result, "correct": all(case.get("correct", True) for case in cases.values())})


if __name__ == "__main__":
    main()
