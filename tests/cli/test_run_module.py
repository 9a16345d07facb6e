"""`deltic run` and `deltic explain` of Python modules: what they define, and errors with their place in the module."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import deltic
from deltic.cli import main
from deltic.cli.exits import Exit
from deltic.cli.module import _is_beside, imported
from shop import CUSTOMERS, EXPECTED, LETTERS, ORDERS, SPEND, SPEND_OUT, Shop

MODULE = f'''
"""A shop."""

import deltic
from bands import band_of

tables = deltic.Program("""{ORDERS.format(letters=LETTERS) + CUSTOMERS + SPEND}""")
circuit = deltic.Circuit(tables)


def band(order):
    return band_of(order.amount)


known = circuit.input("orders").filter("amount IS NOT NULL")
circuit.output("bands", known.map(band, schema={{"band": int}}).index_with("band").count("orders"))
program = deltic.Program(tables, circuit, """{SPEND_OUT}
CREATE SINK bands_out FROM bands USING parquet OPTIONS (path 'made/bands', mode 'changes');""")

if __name__ == "__main__":
    raise AssertionError("not imported")
'''
BANDS = "def band_of(amount):\n    return 1 if amount <= 50 else 2\n"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path)
    shop.fill()
    (tmp_path / "store.py").write_text(MODULE)
    (tmp_path / "bands.py").write_text(BANDS)
    shop.state = tmp_path / "store.state"
    return shop


def run(shop: Shop, *options: str, engine: str = "embedded") -> int:
    return main(["run", str(shop.folder / "store.py"), "--engine", engine, *options])


def test_a_module_runs_and_resumes_where_it_left_off(
    shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    before = set(sys.modules), list(sys.path)
    assert run(shop, "--dry-run") == Exit.OK
    assert capsys.readouterr().out.splitlines()[:2] == [
        f"state {shop.state}: a new state",
        f"table orders: 3 files to read with 10 rows, 2 of them to the dead letters, from {shop.folder}/in/orders",
    ]
    assert run(shop) == Exit.OK
    assert shop.summed() == EXPECTED["spend"] and shop.summed("bands") == Counter({(1, 2): 1, (2, 1): 1})
    capsys.readouterr()
    assert run(shop) == Exit.OK
    first, last = capsys.readouterr().err.splitlines()
    assert first.endswith("; views reused: spend, bands") and last.endswith(" after 0 ticks: no new files")
    assert not {"shop", "bands"} & (set(sys.modules) - before[0]) and sys.path == before[1]


def test_a_function_that_changed_in_another_module_of_the_folder_is_noticed(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shop) == Exit.OK
    (shop.folder / "bands.py").write_text(BANDS.replace("50", "25.0"))
    capsys.readouterr()
    assert run(shop) == Exit.OK
    assert capsys.readouterr().err.splitlines()[0].endswith("; views reused: spend; filled: bands")
    assert shop.summed("bands") == Counter({(1, 1): 1, (2, 2): 1})


@pytest.mark.slow
@pytest.mark.spark
def test_a_module_and_its_helpers_travel_to_sparks_workers(shop: Shop) -> None:
    """In a process of its own, since `deltic run` makes and stops a Spark session."""
    command = [
        sys.executable,
        "-m",
        "deltic.cli",
        "run",
        str(shop.folder / "store.py"),
        "--engine",
        "spark",
        "--master",
        "local[2]",
        "--json",
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == Exit.OK, result.stderr
    assert json.loads(result.stdout.splitlines()[-1])["event"] == "end"
    assert shop.summed("bands") == Counter({(1, 2): 1, (2, 1): 1})
    assert run(shop) == Exit.OK
    assert shop.summed() == EXPECTED["spend"]


def test_only_modules_of_the_folder_itself_are_helpers(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a package installed below it, and not what Deltic itself imports late, though the folder is that of its sources."""
    for name in ("pack", "venv/site/installed"):
        (shop.folder / name).mkdir(parents=True)
        (shop.folder / name / "__init__.py").write_text("")
        (shop.folder / name / "part.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(shop.folder / "venv/site"))
    (shop.folder / "store.py").write_text(MODULE + "\nimport installed.part, pack.part\n")
    with imported(shop.folder / "store.py") as module:
        assert {helper.__name__ for helper in module.helpers} == {"store", "bands", "pack", "pack.part"}
        assert "installed.part" in sys.modules
    assert not {"store", "bands", "pack", "pack.part"} & set(sys.modules) and "installed.part" in sys.modules
    assert not _is_beside("deltic.cli.module", str(Path(deltic.__file__).parents[1]))


def test_explain_shows_the_views_of_a_module(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(shop.folder / "store.py"), "bands"]) == Exit.OK
    shown = capsys.readouterr().out
    assert "sink bands_out: bands to parquet" in shown and "sink spend_out" not in shown


TABLE = 'tables = deltic.Program("""CREATE TABLE t (a BIGINT);\nCREATE VIEW v AS SELECT b FROM t""")'
CASES = {
    "x = 1\n": "DELTIC-1007] {path} has no variable program\nexpected: a module-level variable: program = deltic.Program(…)",
    "import deltic\np = deltic.Program()\n": "help: rename p to program",
    "program = None\n": "program in {path} is None\n",
    "program = 'CREATE TABLE t (a INT)'\n": "program in {path} is of class str\n",
    "import deltic\nprogram = deltic.Circuit()\n": "is a deltic.Circuit\n",
    "x = 1\nx = = 2\n": "{path}:2:5: the module has a syntax error: invalid syntax\n  x = = 2\n      ^",
    "import deltic\n\n\nimport absent\n": (
        "{path}:4:1: importing the module raised ModuleNotFoundError: No module named 'absent'\n  import absent\n  ^^^^^^^^^^^^^"
    ),
    "import bands\n\nx = bands.band_of(None)\n": "{path}:3:1: importing the module raised TypeError: ",
    "import sys\nif True:\n    sys.exit(3)\n": "{path}:3:5: importing the module raised SystemExit: 3\n      sys.exit(3)\n",
    f"import deltic\n{TABLE}\n": 'DELTIC-1002] {path}:3:25: there is no column \'b\'\n  CREATE VIEW v AS SELECT b FROM t""")\n',
    "import deltic\ncircuit = deltic.Circuit()\ncircuit.input('a b', schema={})\n": "{path}:3:1: a schema without columns\n  circuit.input",
    "import deltic\nsql = 'CREATE VIEW ' + 'v AS SELECT 1 AS a, '\nprogram = deltic.Program(sql)\n": "DELTIC-1001] <sql>:1:31: ",
    "# coding: latin-1\nx = 'é'\n": "{path} has no variable program",
}


@pytest.mark.parametrize("command", [("explain",), ("run", "--dry-run")])
@pytest.mark.parametrize("source", CASES)
def test_errors_have_a_place_in_the_module(shop: Shop, capsys: pytest.CaptureFixture[str], source: str, command: tuple[str, ...]) -> None:
    path = shop.folder / "broken.py"
    path.write_text(source)
    assert main([command[0], str(path), *command[1:]]) == Exit.INPUT
    error = capsys.readouterr().err
    assert CASES[source].format(path=path) in error and "Traceback" not in error
    assert not shop.state.exists() and not (shop.folder / "broken.state").exists()


def test_an_error_that_a_helper_raises_names_its_place_too(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    (shop.folder / "store.py").write_text("import bands\n\nx = bands.band_of(None)\n")
    assert run(shop) == Exit.INPUT
    assert f", in {shop.folder}/bands.py:2\n  x = bands.band_of(None)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("json.py", "has the name of another module, "),
        ("my-store.py", "Python cannot import"),
        ("deltic.py", "has the name of another module, "),
    ],
)
def test_a_module_has_a_name_of_its_own(shop: Shop, capsys: pytest.CaptureFixture[str], name: str, match: str) -> None:
    (shop.folder / "store.py").rename(shop.folder / name)
    assert main(["explain", str(shop.folder / name)]) == Exit.INPUT
    error = capsys.readouterr().err
    assert match in error and "rename the file" in error
    assert sys.modules["deltic"] is deltic and sys.modules["json"] is json


def test_bytes_that_are_not_text_are_refused(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    (shop.folder / "store.py").write_bytes(b"x = '\xff'\n")
    assert run(shop) == Exit.INPUT
    assert "expected: a Python module in UTF-8, or with a declared encoding" in capsys.readouterr().err


def test_a_failing_sink_of_a_module_has_its_place_there(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    path = shop.folder / "store.py"
    path.write_text(MODULE.replace("mode 'changes');\"", "mode 'chances');\""))
    assert run(shop) == Exit.INPUT
    line = 1 + MODULE[: MODULE.index("bands_out")].count("\n")
    assert f"] {path}:{line}:" in capsys.readouterr().err
