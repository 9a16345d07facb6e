"""The kernels' cache: filled once, found again, writable wherever the package lies."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deltic.kernels import compiled, compiler, warm_up

SCRIPT = """
from deltic.kernels import compiled, compiler, warm_up
lines = []
print(compiled(), compiler.CACHE)
"""


def test_warm_up_fills_the_cache_and_forbids_other_signatures() -> None:
    warm_up()
    assert compiled()
    lines: list[str] = []
    warm_up(lines.append)
    assert lines == []
    for dispatcher, signatures in compiler.KERNELS:
        assert len(dispatcher.signatures) == len(signatures), dispatcher.__name__
    assert len(compiler.KERNELS) <= 26


def run_in(environment: dict[str, str]) -> list[str]:
    full = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=full, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_users_choice_of_a_cache_folder_is_respected(tmp_path: Path) -> None:
    fresh, folder = run_in({"NUMBA_CACHE_DIR": str(tmp_path)})
    assert fresh == "False" and Path(folder).parent == tmp_path


def test_a_folder_that_cannot_be_written_is_passed_over(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    _, folder = run_in({"NUMBA_CACHE_DIR": str(blocked)})
    assert not folder.startswith(str(blocked))


def test_first_candidate_that_can_be_written_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(compiler, "_writable", lambda folder: str(folder).startswith(str(tmp_path)))
    assert compiler._cache_root() == tmp_path / "deltic"
