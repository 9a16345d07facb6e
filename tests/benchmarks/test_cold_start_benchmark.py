"""The benchmark of the first answer runs README's example in a process that finds no caches."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import cold_start
from benchmarks.cold_start import TIMED, environment_of, example, hidden, process


def test_the_example_is_that_of_readme() -> None:
    assert "import deltic" in example() and "CREATE MATERIALIZED VIEW" in example()


def test_a_process_says_how_long_its_parts_take(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import deltic\nassert deltic.__version__\n")
    environment = environment_of(tmp_path) | {"PYTHONPATH": ":".join(sys.path)}
    answer = process([sys.executable, "-c", TIMED, str(script)], environment, tmp_path)
    assert set(answer["parts"]) == {"import_s", "example_s"} and answer["s"] >= sum(answer["parts"].values())
    script.write_text("raise ValueError('no answer')")
    assert process([sys.executable, "-c", TIMED, str(script)], environment, tmp_path) == {"absent": "ValueError: no answer"}


def test_nothing_leads_to_compiled_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (*cold_start.CACHES, "DELTIC_CHECKED"):
        monkeypatch.setenv(name, "set")
    monkeypatch.setenv("PATH", "kept")
    environment = environment_of(None)
    assert environment["PATH"] == "kept" and not {*cold_start.CACHES, "DELTIC_CHECKED"} & environment.keys()
    assert environment_of(tmp_path)["HOME"] == str(tmp_path)
    *unshare, steps = hidden(["exec true"], tmp_path)
    assert unshare == ["unshare", "--mount", "sh", "-ec"] and "ro" in steps and steps.endswith("exec true")
