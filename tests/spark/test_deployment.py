"""Deltic by spark-submit on a standalone cluster: from a zip file, or a packed environment, that is sent to the executors."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltic
from deltic.kernels.cache import PRECOMPILED
from deltic.kernels.precompile import precompile

if TYPE_CHECKING:
    from benchmarks.cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow]
APP = Path(__file__).with_name("deployed_app.py")
FILES_APP = Path(__file__).with_name("files_app.py")
PACKAGE = Path(deltic.__file__).parent
MIB = 1 << 20
ROWS = [[1, 3], [2, 2], [3, 1]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers, whose Python does not see this checkout."""
    pytest.importorskip("pyspark")
    from benchmarks.cluster import cluster as running  # noqa: PLC0415  needs the extra

    with pytest.MonkeyPatch.context() as patched:
        patched.delenv("PYTHONPATH", raising=False)
        with running(tmp_path_factory.mktemp("cluster") / "spark") as started:
            yield started


def submit(cluster: Cluster, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    import pyspark  # noqa: PLC0415  needs the extra

    home = Path(pyspark.__file__).parent
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    full = {**own, **cluster.environment, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", **environment}
    command = [str(home / "bin" / "spark-submit"), "--master", cluster.url, "--conf", "spark.log.level=ERROR", *options]
    return subprocess.run(command, env=full, capture_output=True, text=True, timeout=500, check=False)


def answer(run: subprocess.CompletedProcess[str]) -> dict[str, list[object]]:
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    found: dict[str, list[object]] = json.loads(run.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def zipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a wheel contains, with precompiled kernels, under a name that ends as Spark requires."""
    folder = tmp_path_factory.mktemp("zip")
    kernels = precompile(folder)
    archive = folder / "deltic.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in PACKAGE.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                file.write(path, path.relative_to(PACKAGE.parent))
        for path in kernels.iterdir():
            file.write(path, Path("deltic", "kernels", PRECOMPILED, kernels.name, path.name))
    return archive


def test_from_a_zip_file(cluster: Cluster, zipped: Path, tmp_path: Path) -> None:
    run = submit(cluster, "--py-files", str(zipped), str(APP), str(tmp_path / "state"), PYSPARK_PYTHON=sys.executable)
    found = answer(run)
    assert found["rows"] == ROWS
    assert found["driver"] == f"{zipped}/deltic/__init__.py"
    assert found["workers"] and all(str(file).endswith("/deltic.zip/deltic/__init__.py") for file in found["workers"])
    assert str(zipped) not in map(str, found["workers"]), "each executor has a copy of its own"
    assert all(f"deltic.zip/deltic/kernels/{PRECOMPILED}/kernels-" in str(folder) for folder in found["kernels"])
    assert "compiling" not in run.stderr


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory, zipped: Path) -> Path:
    """An environment with Deltic, packed by venv-pack. Its other packages, hundreds of MB, are those of this environment."""
    pytest.importorskip("venv_pack")
    folder = tmp_path_factory.mktemp("packed")
    venv.create(folder / "made", symlinks=False)
    (packages,) = (folder / "made").glob("lib/python*/site-packages")
    with zipfile.ZipFile(zipped) as file:
        file.extractall(packages)
    (packages / "sitecustomize.py").write_text(f"import sys\n\nsys.path.append({sysconfig.get_path('purelib')!r})\n")
    archive = folder / "environment.tar.gz"
    subprocess.run([sys.executable, "-m", "venv_pack", "-q", "-p", str(folder / "made"), "-o", str(archive)], check=True)
    shutil.rmtree(folder / "made")
    return archive


def test_in_a_packed_environment(cluster: Cluster, packed: Path, tmp_path: Path) -> None:
    python = {"PYSPARK_DRIVER_PYTHON": sys.executable, "PYSPARK_PYTHON": "./environment/bin/python"}
    run = submit(cluster, "--archives", f"{packed}#environment", str(APP), str(tmp_path / "state"), **python)
    found = answer(run)
    assert found["rows"] == ROWS
    assert found["driver"] == deltic.__file__
    assert found["workers"] and all("/environment/lib/python" in str(file) for file in found["workers"])
    assert all(f"/environment/lib/python{sys.version_info[0]}.{sys.version_info[1]}/" in str(folder) for folder in found["kernels"])
    assert "compiling" not in run.stderr


def test_executors_read_large_files(cluster: Cluster, zipped: Path, tmp_path: Path) -> None:
    """In two runs, between which a file is added."""
    (tmp_path / "in").mkdir()
    draw, numbers = random.Random(5), list[int]()
    for name, first in (("a", 0), ("b", 150_000)):
        values = array("q", draw.randbytes(8 * 150_000))  # which do not get smaller
        table = pa.table({"id": pa.array(range(first, first + len(values)), pa.int64()), "v": pa.array(values, pa.int64())})
        pq.write_table(table, tmp_path / "in" / f"{name}.parquet", row_group_size=20_000)
        assert (tmp_path / "in" / f"{name}.parquet").stat().st_size > MIB
        numbers += (math.copysign(abs(v) % 1000, v) for v in values)
        sums = [[g, len(numbers[g::3]), sum(numbers[g::3])] for g in range(3)]
        run = submit(cluster, "--py-files", str(zipped), str(FILES_APP), str(tmp_path), str(MIB), PYSPARK_PYTHON=sys.executable)
        assert answer(run)["rows"] == sums


def test_spark_has_no_cluster_mode_for_python_on_a_standalone_cluster(cluster: Cluster, zipped: Path, tmp_path: Path) -> None:
    run = submit(cluster, "--deploy-mode", "cluster", "--py-files", str(zipped), str(APP), str(tmp_path / "state"))
    assert run.returncode != 0
    assert "Cluster deploy mode is currently not supported for python applications on standalone clusters" in run.stderr
