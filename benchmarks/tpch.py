"""TPC-H's queries as views: `python -m benchmarks.tpch [--sf 1] [--engine embedded|spark] [--queries q1 …] [--ticks N] [--no-peers]`.

Each query is a view in a process of its own; the case `all` is the 22 of them in one session. After the load come ticks of a refresh of
0.1 % of the orders and their items: half are deleted by key, half are new. Figures are by wall and by CPU; the peer computes the same query
again after each tick: DuckDB, or Spark for the engine spark, whose driver computes ticks as small as these without a Spark job. `faster` is
its median over that of a tick; `load_ratio` the load's time over that of the peer's tables and first answers. All answers are compared.

The data are those of tpchgen-cli, which is generated once into a temporary folder, or into --data.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from benchmarks import harness
from benchmarks.harness import Figures
from benchmarks.queries import texts

ALL: Final = "all"
TICKS = 10
TIMEOUT_S = 3600.0
TABLES: Final = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")


def generate(folder: Path, scale: float) -> None:
    """Writes FOLDER/table.parquet, unless they are there."""
    if all((folder / f"{table}.parquet").exists() for table in TABLES):
        return
    program = shutil.which("tpchgen-cli", path=str(Path(sys.executable).parent)) or shutil.which("tpchgen-cli")
    if program is None:
        raise SystemExit("benchmarks.tpch requires tpchgen-cli, which `pip install deltic[bench]` installs")
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([program, "parquet", "-s", str(scale), "--output-dir", str(folder)], check=True, stdout=subprocess.DEVNULL)


def measure(names: Iterable[str], folder: Path, engine: str, ticks: int, peers: bool) -> dict[str, Figures]:
    """The figures of each query, from a process of its own."""
    cases: dict[str, Figures] = {}
    for name in names:
        command = [sys.executable, "-m", "benchmarks.tpch_case", str(folder), name, engine, str(ticks), *(["--peers"] if peers else [])]
        figure = cases[name] = harness.run(command, TIMEOUT_S)
        ratio = f", {figure['faster']['wall']} x by wall, {figure['faster']['cpu']} x by CPU" if "faster" in figure else ""
        harness.progress(harness.describe(name, figure) + ratio)
    return cases


def summary(cases: dict[str, Figures]) -> Figures:
    """The geometric means and the least of the ratios, over single queries."""
    ratios = [case["faster"] for name, case in cases.items() if name != ALL and "faster" in case]
    if not ratios:
        return {}
    kinds = ("wall", "cpu")
    means = {kind: round(statistics.geometric_mean([ratio[kind] for ratio in ratios]), 1) for kind in kinds}
    return {"faster": means, "least": {kind: min(ratio[kind] for ratio in ratios) for kind in kinds}}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpch", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sf", type=float, default=1.0, help="the scale factor")
    parser.add_argument("--engine", choices=("embedded", "spark"), default="embedded")
    parser.add_argument("--queries", nargs="+", choices=[*texts("tpch"), ALL], default=[*texts("tpch"), ALL])
    parser.add_argument("--ticks", type=int, default=TICKS)
    parser.add_argument("--data", type=Path, help="a folder of the tables as Parquet, which is filled if it is empty")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="measure the peer too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="deltic-bench-") as made:
        folder = options.data or Path(made)
        generate(folder, options.sf)
        cases = measure(options.queries, folder, options.engine, options.ticks, options.peers)
    params: dict[str, Any] = {"sf": options.sf, "engine": options.engine, "ticks": options.ticks, "refresh": 0.001}
    correct = all(case.get("correct", False) for case in cases.values())
    harness.emit({"benchmark": "tpch", "engine": "deltic", "correct": correct, **summary(cases), "params": params, "cases": cases})


if __name__ == "__main__":
    main()
