"""The cache of kernels: filled once, read again, damaged files never loaded, and kept wherever the package is installed."""

from __future__ import annotations

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
from deltic.kernels import FOLDER, cache, compiler, complete, damaged, prepare, warm_up

SOURCE = Path(deltic.__file__).parent
SESSION = """
import deltic
with deltic.Session() as session:
    session.sql("CREATE TABLE t (k STRING, v BIGINT); CREATE MATERIALIZED VIEW s AS SELECT k, sum(v) AS v FROM t GROUP BY k")
    with session.transaction() as tx:
        tx.insert("t", [{"k": "a", "v": 1}, {"k": "a", "v": 2}])
    print(session.view("s").rows(), deltic.__file__)
"""


INTERRUPTED = """
from numba.core.registry import cpu_target
engine = cpu_target.target_context.codegen()._engine._ee
fetch, interrupts = engine._object_cache_getbuffer, [KeyboardInterrupt]

def interrupted(module):
    if "consolidate" in module.name and interrupts:
        raise interrupts.pop()
    return fetch(module)

engine._object_cache_getbuffer = interrupted
import deltic
session = deltic.Session()
session.sql("CREATE TABLE t (k STRING, v BIGINT); CREATE MATERIALIZED VIEW s AS SELECT k, sum(v) AS v FROM t GROUP BY k")
for v in (1, 2):
    try:
        session.sql(f"INSERT INTO t VALUES ('a', {v})")
    except KeyboardInterrupt as error:
        print(error)
print(session.view("s").rows())
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    full = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    return subprocess.run([sys.executable, "-c", code], env=full, capture_output=True, text=True, check=True)


def test_warm_up_fills_the_cache_and_forbids_other_signatures() -> None:
    warm_up()
    assert complete() and not damaged()
    lines: list[str] = []
    prepare(lines.append)
    assert lines == []
    for dispatcher, signatures in compiler.KERNELS:
        assert len(dispatcher.signatures) == len(signatures), dispatcher.__name__
    assert len(compiler.KERNELS) <= 57


def test_damaged_files_are_named_and_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert FOLDER is not None
    warm_up()
    copy = tmp_path / FOLDER.name
    shutil.copytree(FOLDER, copy)
    monkeypatch.setattr(cache, "FOLDER", copy)
    files = sorted(copy.glob("*.kernel"))
    assert len(files) >= 20 and not damaged()
    torn, flipped, empty = (
        next(path for path in files if path.name.startswith(name)) for name in ("table.start", "sort.consolidate", "text.hash_strings")
    )
    whole = {path: path.read_bytes() for path in (torn, flipped, empty)}
    torn.write_bytes(whole[torn][:-100])
    flipped.write_bytes(whole[flipped][:-1] + bytes([whole[flipped][-1] ^ 1]))
    empty.write_bytes(b"")
    assert damaged() == sorted(whole)
    assert "'v': 3" in run(SESSION, NUMBA_CACHE_DIR=str(tmp_path)).stdout
    assert not damaged()


@pytest.mark.slow
def test_a_kernel_that_is_compiled_later_is_named(tmp_path: Path) -> None:
    assert FOLDER is not None
    warm_up()
    shutil.copytree(FOLDER, tmp_path / FOLDER.name)
    for path in (tmp_path / FOLDER.name).glob("vector.add-*"):
        path.unlink()
    code = "from deltic.kernels import warm_up; warm_up()"
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)).stderr == "deltic: compiling the kernel vector.add, once on this machine\n"
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)).stderr == ""


def test_an_interrupt_while_llvm_fetches_a_kernel_is_one_of_the_tick() -> None:
    warm_up()
    assert run(INTERRUPTED).stdout == "while a kernel was loaded\n[{'k': 'a', 'v': 2}]\n"


def test_doctor_names_damaged_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sort.consolidate-0.kernel").write_bytes(b"half a file")
    monkeypatch.setattr(cache, "FOLDER", tmp_path)
    assert main(["doctor"]) in (Exit.OK, Exit.SETUP)
    assert "1 damaged" in capsys.readouterr().out


def test_the_command_warm_up_says_where_the_kernels_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warm-up"]) == Exit.OK
    assert str(FOLDER) in capsys.readouterr().out.replace("\n", "")
    assert complete()


@pytest.mark.slow
def test_a_package_in_a_zip_file_says_once_that_it_compiles_and_keeps_its_kernels(tmp_path: Path) -> None:
    wheel = tmp_path / "deltic.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in SOURCE.rglob("*.py"):
            archive.write(path, path.relative_to(SOURCE.parent))
    elsewhere = [part for part in sys.path if Path(part).resolve() != SOURCE.parent]
    environment = {
        "PYTHONPATH": os.pathsep.join([str(wheel), *elsewhere]),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "NUMBA_CACHE_DIR": "",
    }
    first, second = (run(SESSION, **environment) for _ in range(2))
    assert str(wheel) in first.stdout and "'v': 3" in first.stdout
    assert [line.split(" in ")[0] for line in first.stderr.splitlines()] == [
        "deltic: compiling kernels, once on this machine; this takes about a minute",
        "deltic: kernels compiled",
    ]
    assert second.stderr == ""


def test_folders_that_are_not_writable_or_that_others_can_write_to_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked, open_to_all, own = tmp_path / "file", tmp_path / "open", tmp_path / "own"
    blocked.write_text("not a folder")
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(blocked))
    monkeypatch.setattr(cache, "_candidates", lambda: iter((blocked / "below", open_to_all, own)))
    assert cache._root("kernels") == own
    monkeypatch.setattr(cache, "_candidates", lambda: iter((blocked, open_to_all)))
    assert cache._root("kernels") is None


def test_kernels_of_an_image_serve_although_nothing_can_be_written_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert FOLDER is not None
    warm_up()
    image, home = tmp_path / "image", tmp_path / "home"
    shutil.copytree(FOLDER, image / FOLDER.name)
    home.mkdir()
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(cache, "_candidates", lambda: iter((image, home)))
    monkeypatch.setattr(cache, "_usable", lambda folder: folder == home)
    assert cache._folder() == image / FOLDER.name
    monkeypatch.setattr(cache, "FOLDER", image / FOLDER.name)
    monkeypatch.setattr(Path, "touch", lambda path: pytest.fail(f"{path} is written"))
    cache.mark_complete()
    (image / FOLDER.name / cache.COMPLETE).unlink()
    assert cache._folder() == home / FOLDER.name


def test_a_user_without_a_home_has_a_folder_that_outlives_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert [str(folder) for folder in cache._candidates()][1:] == [f"/var/tmp/deltic-{os.geteuid()}"]


def test_compiling_changes_no_option_of_other_users_of_llvm() -> None:
    assert not any("set_option" in path.read_text() for path in (SOURCE / "kernels").glob("*.py"))
