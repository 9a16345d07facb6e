"""A Spark Connect server in a separate process, on the loopback address."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

WAIT_S = 300.0
CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
SETTINGS = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:-UsePerfData",
    "spark.ui.enabled": "false",
    "spark.default.parallelism": "2",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}

DELTA = {
    "spark.jars.packages": "io.delta:delta-spark_4.2_2.13:4.4.0",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
}
"""The settings of a server with Delta, whose jars it fetches from Maven Central."""


@contextmanager
def connect_server(folder: Path, also: Mapping[str, str] | None = None) -> Iterator[str]:
    """The server's URL. folder: its working folder, with its output in server.txt. It ends with the block, with all its processes.

    also: more settings.
    """
    import pyspark  # noqa: PLC0415  the extra may not be there

    from deltic.runtimes.spark.java import prepare_environment  # noqa: PLC0415

    prepare_environment()
    home = Path(pyspark.__file__).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {**SETTINGS, "spark.connect.grpc.binding.port": str(port), **(also or {})}
    given = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2,4]", *given, "--class", CLASS, "spark-internal"]
    with (folder / "server.txt").open("w") as output:
        environment = {**os.environ, "SPARK_HOME": str(home)}
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output, start_new_session=True)
    try:
        _await(port, process, folder / "server.txt")
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(WAIT_S)


def _await(port: int, process: subprocess.Popen[bytes], output: Path) -> None:
    until = time.monotonic() + WAIT_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert process.poll() is None and time.monotonic() < until, output.read_text()[-4000:]
            time.sleep(0.1)
