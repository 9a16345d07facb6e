"""The flights pipeline on a standalone Spark cluster that loses executors and its driver: `python -m benchmarks.cluster [--quick]`.

A master and two workers on loopback, 127.0.0.1 and 127.0.0.2, each a process of its own, with speculation on; the state in a folder that
all reach. While the year is replayed, two executors and then the driver are killed; the driver is started again. At the end every view
and every sink must be that of a run which nothing disturbed, and DuckDB confirms the views.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark

from benchmarks import flights_pipeline as flights
from benchmarks import harness
from deltic.runtimes.spark.java import find_java
from deltic.runtimes.spark.runtime import DRIVER_ROWS

HOSTS: Final = ("127.0.0.1", "127.0.0.2")
EVERY_S: Final = 12 * 3_600
ROWS_PER_TICK: Final = 2_000
"""About as many as a file has."""
QUICK: Final = 20_000
EXECUTORS_KILLED, DRIVERS_KILLED = 2, 1
TIMEOUT_S: Final = 3_600.0
EXECUTOR: Final = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
SPECULATION: Final = {"": "true", ".interval": "50ms", ".multiplier": "2", ".quantile": "0.5"}


class Cluster:
    """A standalone master and a worker of one core on each host."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        (folder / "conf").mkdir()
        lines = [f"spark.speculation{name} {value}\n" for name, value in SPECULATION.items()]
        lines.append(f"{DRIVER_ROWS} 0\n")  # every tick is a job, since executors are killed
        (folder / "conf" / "spark-defaults.conf").write_text("".join(lines))
        home = Path(pyspark.__file__).parent
        self._environment = os.environ | {
            "SPARK_HOME": str(home),
            "JAVA_HOME": str(find_java().home),
            "SPARK_CONF_DIR": str(folder / "conf"),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(harness.ROOT), os.environ.get("PYTHONPATH")])),
        }
        self._processes: list[subprocess.Popen[bytes]] = []
        port = _free_port()
        self.url = f"spark://{HOSTS[0]}:{port}"
        self._start("master", HOSTS[0], "master.Master", "--host", HOSTS[0], "--port", str(port), "--webui-port", "0")
        _until(lambda: _listens(HOSTS[0], port), 60)
        for host in HOSTS:
            work = ("--cores", "1", "--memory", "2g", "--work-dir", str(folder / f"work-{host}"), "--webui-port", "0")
            self._start(f"worker-{host}", host, "worker.Worker", "--host", host, *work, self.url)

    @property
    def environment(self) -> dict[str, str]:
        """For drivers."""
        return {name: self._environment[name] for name in ("SPARK_CONF_DIR", "JAVA_HOME")}

    def executors(self) -> list[int]:
        """The processes that run tasks now."""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if EXECUTOR in _arguments(pid) and self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        """Whether an executor belongs to this cluster: it works in a folder of ours."""
        try:
            return os.readlink(f"/proc/{pid}/cwd").startswith(str(self._folder))
        except OSError:
            return False

    def stop(self) -> None:
        """Ends all of it."""
        for pid in self.executors():
            os.kill(pid, signal.SIGKILL)
        for process in self._processes:
            process.kill()
            process.wait()

    def _start(self, name: str, host: str, kind: str, *arguments: str) -> None:
        script = Path(self._environment["SPARK_HOME"]) / "bin" / "spark-class"
        with (self._folder / f"{name}.log").open("wb") as log:
            command = [str(script), f"org.apache.spark.deploy.{kind}", *arguments]
            environment = self._environment | {"SPARK_LOCAL_IP": host}
            self._processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL))


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A running cluster that is stopped at the end."""
    running = Cluster(folder)
    try:
        yield running
    finally:
        running.stop()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((HOSTS[0], 0))
        return int(free.getsockname()[1])


def _listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def _arguments(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"the expected event did not occur within {seconds:.0f} s")
        time.sleep(0.05)


def committed(state: Path) -> int:
    """The last committed epoch, as the folder's names tell; -1 before the first."""
    try:
        return max((int(name.removesuffix(".json")) for name in os.listdir(state / "manifests") if name.endswith(".json")), default=-1)
    except FileNotFoundError:
        return -1


def disturbed(spark: Cluster, inputs: flights.Inputs, folder: Path, ticks: int) -> dict[str, int]:
    """Runs the pipeline with kills at thirds of its length; returns what was killed at which epoch."""
    flights.link(inputs, folder)
    options = ["--master", spark.url, "--shared-state", "--shards", "2", "--rows-per-tick", str(ROWS_PER_TICK)]
    command = flights.command(folder, "spark", options)
    state, killed = folder / "state", dict[str, int]()
    run = flights.Run(command, folder / "log", spark.environment)
    for number in range(EXECUTORS_KILLED):
        _await(run, folder, state, ticks * (number + 1) // 5)
        os.kill(spark.executors()[number % len(spark.executors())], signal.SIGKILL)
        killed[f"executor {number + 1}"] = committed(state)
        harness.progress(f"executor killed at epoch {committed(state)}")
    for number in range(DRIVERS_KILLED):
        _await(run, folder, state, ticks * 3 // 5)
        run.kill()
        killed[f"driver {number + 1}"] = committed(state)
        harness.progress(f"driver killed at epoch {committed(state)}")
        run = flights.Run(command, folder / "log", spark.environment)
    if code := run.wait(TIMEOUT_S):
        sys.exit(f"the pipeline ended with exit code {code}:\n{_last(folder)}")
    return killed


def _await(run: flights.Run, folder: Path, state: Path, epoch: int) -> None:
    """Waits for an epoch of a pipeline that runs."""

    def there() -> bool:
        if run.ended:
            sys.exit(f"the pipeline ended before it was killed:\n{_last(folder)}")
        return committed(state) >= epoch

    _until(there, TIMEOUT_S)


def _last(folder: Path) -> str:
    return (folder / "log").read_text(errors="replace")[-4_000:]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:,} changes instead of the whole year")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="deltic-cluster-") as name:
        root = Path(name)
        feed = flights.feed()
        inputs = flights.write_inputs(feed, root / "feed", QUICK if options.quick else None, EVERY_S)
        ticks = len(list((inputs.folder / "in" / "flights").iterdir()))
        expected = flights.undisturbed(inputs, root / "undisturbed")
        confirmed = flights.confirmed(feed, inputs, flights.views(root / "undisturbed" / "state"))
        harness.progress(f"{inputs.changes:,} changes in {ticks} ticks; the cluster starts")
        with cluster(root / "cluster") as spark:
            started = time.perf_counter()
            killed = disturbed(spark, inputs, root / "disturbed", ticks)
            seconds = time.perf_counter() - started
        lost, doubled = flights.difference(flights.everything(root / "disturbed"), expected)
    result = {
        "benchmark": "cluster",
        "engine": "deltic",
        "params": {"changes": inputs.changes, "ticks": ticks, "hosts": list(HOSTS), "speculation": True},
        "killed": killed,
        "seconds": round(seconds, 1),
        "tick_ms": harness.summary([1e3 * seconds / ticks]),
        "lost": lost,
        "doubled": doubled,
        "correct": confirmed and not lost and not doubled and len(killed) == EXECUTORS_KILLED + DRIVERS_KILLED,
    }
    harness.emit(result)


if __name__ == "__main__":
    main()
