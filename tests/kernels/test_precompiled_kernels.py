"""Precompiled kernels in the package: used where they fit, from a folder or a zip file, without compiling or writing anything."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import deltic
from deltic.cli import main
from deltic.cli.exits import Exit
from deltic.kernels import cache, processors
from deltic.kernels.precompile import precompile
from deltic.kernels.processors import Processor

SOURCE = Path(deltic.__file__).parent
ADD = """
import numpy as np
from deltic.kernels import vector, table, SHIPPED, FOLDER
left, right, out = np.array([1, 2]), np.array([3, 4]), np.zeros(2, np.int64)
assert vector.add(*(table.addresses([words], 2) for words in (left, right)), 2, table.addresses([out], 2)) == -1
assert out.tolist() == [4, 6]
print(SHIPPED is not None, FOLDER)
"""
SESSION = """
import deltic
with deltic.Session() as session:
    session.sql("CREATE TABLE t (k STRING, v BIGINT); CREATE MATERIALIZED VIEW s AS SELECT k, sum(v) AS v FROM t GROUP BY k")
    with session.transaction() as tx:
        tx.insert("t", [{"k": "a", "v": 1}, {"k": "a", "v": 2}])
    assert session.view("s").rows() == [{"k": "a", "v": 3}]
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small modules, precompiled."""
    return precompile(tmp_path_factory.mktemp("precompiled"), "table", "vector")


def site(folder: Path, kernels: Path, packed: bool) -> Path:
    """What is on the path where Deltic is installed with precompiled kernels: a folder, or a wheel."""
    unpacked = folder / "site"
    shutil.copytree(SOURCE, unpacked / "deltic", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(kernels, unpacked / "deltic" / "kernels" / cache.PRECOMPILED / kernels.name)
    if not packed:
        return unpacked
    wheel = folder / "deltic.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in unpacked.rglob("*"):
            archive.write(path, path.relative_to(unpacked))
    return wheel


def run(code: str, installed: Path, cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    elsewhere = [part for part in sys.path if Path(part).resolve() != SOURCE.parent]
    path = os.pathsep.join([str(installed), *elsewhere])
    full = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(cache), "DELTIC_CHECKED": "", **environment}
    return subprocess.run([sys.executable, "-c", code], env=full, capture_output=True, text=True, check=True)


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
def test_kernels_of_the_package_are_loaded_and_nothing_is_written(tmp_path: Path, kernels: Path, packed: bool) -> None:
    done = run(ADD, site(tmp_path, kernels, packed), tmp_path / "cache")
    assert (done.stdout, done.stderr) == ("True None\n", "")
    assert not (tmp_path / "cache").exists()


def test_a_zip_file_by_a_relative_path_serves_as_well(tmp_path: Path, kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on the path of Spark's executors."""
    site(tmp_path, kernels, packed=True)
    monkeypatch.chdir(tmp_path)
    done = run(f"import sys; sys.path.insert(0, './deltic.whl'){ADD}", tmp_path, tmp_path / "cache")
    assert (done.stdout, done.stderr) == ("True None\n", "")


def test_a_processor_that_is_asked_for_is_compiled_for(tmp_path: Path, kernels: Path) -> None:
    installed = site(tmp_path, kernels, packed=False)
    done = run(ADD, installed, tmp_path / "cache", NUMBA_CPU_NAME="generic")
    assert done.stdout.startswith(f"False {tmp_path / 'cache'}")
    assert len(list((tmp_path / "cache").glob("kernels-*/vector.add-*.kernel"))) == 1


def test_a_damaged_file_of_the_package_is_compiled_and_not_replaced(tmp_path: Path, kernels: Path) -> None:
    installed = site(tmp_path, kernels, packed=False)
    (torn,) = installed.glob("deltic/kernels/precompiled/*/vector.add-*.kernel")
    torn.write_bytes(torn.read_bytes()[:-1])
    done = run(ADD, installed, tmp_path / "cache")
    assert done.stdout == "True None\n"
    assert done.stderr == "deltic: compiling the kernel vector.add, since its precompiled file is damaged: install Deltic again\n"
    again = run("from deltic.kernels import damaged; print([path.name for path in damaged()])", installed, tmp_path / "cache")
    assert again.stdout == f"{[torn.name]}\n"


def test_other_sources_do_not_use_them(tmp_path: Path, kernels: Path) -> None:
    installed = site(tmp_path, kernels, packed=False)
    with (installed / "deltic" / "kernels" / "vector.py").open("a") as file:
        file.write("# changed\n")
    code = "from deltic.kernels import SHIPPED, unfit; print(SHIPPED, *unfit())"
    done = run(code, installed, tmp_path / "cache")
    assert done.stdout.startswith("None ") and f"cpython-3{sys.version_info.minor}, numba" in done.stdout


def test_a_machine_that_lacks_an_instruction_compiles(kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    portable = processors.portable()
    assert portable is not None
    monkeypatch.setattr(cache, "files", lambda package: kernels.parents[1])
    monkeypatch.setattr(cache, "PRECOMPILED", kernels.parent.name)
    monkeypatch.setattr(cache, "folder_name", lambda processor: kernels.name)
    assert cache._shipped() == kernels
    lacking = Processor(portable.name, needs=(*portable.needs, "an instruction of the future"))
    monkeypatch.setattr(processors, "portable", lambda: lacking)
    assert cache._shipped() is None


def test_doctor_and_warm_up_name_them(kernels: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    doctor = importlib.import_module("deltic.cli.doctor")
    monkeypatch.setattr(doctor, "SHIPPED", kernels)
    monkeypatch.setattr("deltic.kernels.SHIPPED", kernels)
    assert main(["doctor", "--json"]) in (Exit.OK, Exit.SETUP)
    assert f"precompiled, in {kernels}" in capsys.readouterr().out
    assert main(["warm-up"]) == Exit.OK
    assert "all kernels are precompiled" in capsys.readouterr().out


def test_a_kernel_that_calls_a_loaded_one_by_its_name_is_compiled(tmp_path: Path, kernels: Path) -> None:
    """With the bitcode of the other one, which is read only here."""
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np\n"
        "from deltic.kernels.compiler import kernel\n"
        "from deltic.kernels.table import start\n"
        '@kernel("int64(int64[::1])")\n'
        "def after(words):\n    return start(words) + 8\n"
        "words = np.zeros(1, np.int64)\n"
        "print(after(words) - words.ctypes.data)\n"
    )
    done = run(
        f"exec(compile(open({str(program)!r}).read(), {str(program)!r}, 'exec'))", site(tmp_path, kernels, False), tmp_path / "cache"
    )
    assert done.stdout == "8\n"


@pytest.mark.slow
def test_a_wheel_answers_at_once_without_a_folder_to_write_to(tmp_path: Path) -> None:
    root = SOURCE.parents[1]
    constraints = str(root / "constraints.txt")
    asked = {"HATCH_BUILD_HOOK_ENABLE_CUSTOM": "true", "PIP_CONSTRAINT": constraints, "PIP_BUILD_CONSTRAINT": constraints}
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(root)]
    subprocess.run(command, env={**os.environ, **asked}, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    homeless = {"HOME": str(blocked), "XDG_CACHE_HOME": str(blocked)}
    done = run(SESSION + "from deltic.kernels import SHIPPED; print(SHIPPED)", wheel, blocked, **homeless)
    assert str(wheel) in done.stdout and done.stderr == ""
