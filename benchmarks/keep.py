"""Runs a benchmark and commits its figures to a file: `python -m benchmarks.keep NAME [options of the benchmark]`.

Writes benchmarks/results/NAME.json: the JSON object of the benchmark, with its command, the commit and the machine. A working tree with
changes is refused, since its figures belong to no commit. Then writes the table of docs/performance.md from all results; with `--table` in
place of NAME it writes only the table.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.harness import ROOT, Figures

RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "performance.md"
HEAD = "| benchmark | case | engine | load, s | tick, ms (median) | 95th percentile | peak, MB |\n|---|---|---|---:|---:|---:|---:|\n"
CHANGED = "commit first: figures of a working tree with changes belong to no commit"


def keep(name: str, options: Sequence[str]) -> None:
    """Measures, and writes the result. Ends the program if the working tree has changes or the benchmark fails."""
    if _git("status", "--porcelain"):
        sys.exit(CHANGED)
    command = ["python", "-m", f"benchmarks.{name}", *options]
    done = subprocess.run([sys.executable, *command[1:]], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with exit code {done.returncode}; nothing is written")
    kept = {
        "command": " ".join(command),
        "commit": _git("rev-parse", "--short", "HEAD"),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "result": json.loads(done.stdout.strip().splitlines()[-1]),
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def machine() -> str:
    """Processor, how many of them this process may use, memory, system and Python."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    processors = len(os.sched_getaffinity(0))
    return f"{_model()}, {processors} processors, {memory_gb:.0f} GiB, {platform.system()}, Python {platform.python_version()}"


def _model() -> str:
    models = (line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    return next(models, platform.machine())


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def tables(results: Path) -> str:
    """The results in a folder as Markdown: where each is from, then a row for each case and engine."""
    kept = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(results.glob("*.json"))}
    if not kept:
        return "No results are committed yet.\n"
    origins = "".join(f"- `{one['command']}` at commit {one['commit']}, {one['date']}: {one['machine']}\n" for one in kept.values())
    rows = "".join(f"| {' | '.join(row)} |\n" for name, one in kept.items() for row in _rows(name, one["result"]))
    return f"{origins}\n{HEAD}{rows}"


def _rows(name: str, result: Figures) -> Iterator[tuple[str, ...]]:
    """Of each case Deltic and its peers. The top of a result repeats one of its cases, or is a case without a name."""
    cases: dict[str, Figures] = result.get("cases", {})
    whole = {} if any(case.get("tick_ms") == result.get("tick_ms") for case in cases.values()) else {"": result}
    for case, figures in (whole | cases).items():
        for engine, figure in {"deltic": figures, **figures.get("peers", {})}.items():
            yield (name, case, engine, *_cells(figure))


def _cells(figure: Figures) -> tuple[str, str, str, str]:
    if "tick_ms" not in figure:
        return "", f"absent: {figure['absent']}", "", ""
    load, tick = figure["load_s"], figure["tick_ms"]
    return "" if load is None else f"{load:.2f}", f"{tick['median']:.3f}", f"{tick['p95']:.3f}", f"{figure['peak_mb']:.0f}"


def with_tables(page: str, table: str) -> str:
    """The page with the table between its two markers."""
    before, begin, rest = page.partition("<!-- results -->\n")
    _, end, after = rest.partition("<!-- end of results -->\n")
    assert begin and end, "the page has no markers for the results"
    return before + begin + table + end + after


def main(arguments: Sequence[str]) -> None:
    match arguments:
        case [name, *options] if name != "--table":
            keep(name, options)
        case ["--table"]:
            pass
        case _:
            sys.exit("usage: python -m benchmarks.keep NAME [options of the benchmark], or python -m benchmarks.keep --table")
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), tables(RESULTS)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
