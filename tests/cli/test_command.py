"""The command line: output on stdout and stderr, and exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import deltic
from deltic.cli import main
from deltic.cli.exits import HELP, Exit
from deltic.errors import SetupError

SCRIPT = """CREATE TABLE orders (id BIGINT NOT NULL, customer BIGINT, amount BIGINT, PRIMARY KEY (id));
CREATE MATERIALIZED VIEW spend AS SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer;
CREATE MATERIALIZED VIEW large AS SELECT id FROM orders WHERE amount > 100;
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "orders.sql"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "deltic.cli", *arguments]
    source = str(Path(deltic.__file__).parents[1])
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": source}, check=False, timeout=120)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == Exit.OK
    assert capsys.readouterr().out == f"deltic {deltic.__version__}\n"


def test_version_loads_no_engine() -> None:
    """Start-up is quick because nothing heavy is imported, which a busy machine cannot blur."""
    heavy = ("numba", "pyarrow", "deltic.frontends")
    code = f"import sys; from deltic.cli import main; main(['--version']); print([m for m in {heavy} if m in sys.modules])"
    source = str(Path(deltic.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": source}, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
def test_version_is_quick() -> None:
    """In processor time, which other programs on the machine hardly change."""
    times = [_processor_s()]
    for _ in range(5):
        assert run("--version").returncode == 0
        times.append(_processor_s())
    assert min(after - before for before, after in pairwise(times)) < 0.3


def _processor_s() -> float:
    """The processor seconds of all child processes that have ended."""
    children = os.times()
    return children.children_user + children.children_system


def test_help_has_the_commands_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == Exit.OK
    out = capsys.readouterr().out
    assert all(name in out for name in ("explain", "doctor", "demo"))
    assert {int(code) for code in re.findall(r"^ *(\d+) ", HELP, re.MULTILINE)} == {int(code) for code in Exit}
    assert "130  interrupted" in out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["explian"], "explian"),
        (["explain"], "SCRIPT"),
        (["explain", "no-such-file.sql"], "no-such-file.sql"),
        (["demo", "flights", "--every", "13h"], "at most 12h"),
        (["demo", "flights", "--every", "soon"], "invalid length of time"),
        (["demo", "flights", "--engine", "flink"], "flink"),
        (["demo", "flights", "--limit", "0"], "limit"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_is_wrong(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == Exit.USAGE
    captured = capsys.readouterr()
    assert text.lower() in (captured.err + captured.out).lower()


def test_explain_shows_the_plan_and_circuit_of_all_views_or_one(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(script)]) == Exit.OK
    both = capsys.readouterr().out
    assert "view spend" in both and "view large" in both and "circuit: " in both
    assert main(["explain", str(script), "spend"]) == Exit.OK
    assert "view large" not in capsys.readouterr().out


def test_explain_as_json(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(script), "SPEND", "--json"]) == Exit.OK
    parsed = json.loads(capsys.readouterr().out)
    assert list(parsed["plans"]) == ["spend"]


def test_explain_draws_the_circuit(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recursive = """CREATE TABLE edges (src BIGINT, dst BIGINT);
    CREATE MATERIALIZED VIEW reached AS WITH RECURSIVE paths AS (
        SELECT src, dst FROM edges UNION SELECT p.src, e.dst FROM paths p JOIN edges e ON p.dst = e.src) SELECT * FROM paths"""
    script.write_text(recursive, encoding="utf-8")
    drawn = {}
    for format in ("text", "mermaid", "dot", "json"):
        assert main(["explain", str(script), "--format", format]) == Exit.OK
        drawn[format] = capsys.readouterr().out
    assert drawn["text"].startswith("view reached") and json.loads(drawn["json"])["operators"]
    assert drawn["mermaid"].startswith("flowchart TD") and "subgraph sn" in drawn["mermaid"] and "-.->" in drawn["mermaid"]
    assert drawn["dot"].startswith("digraph circuit {") and "subgraph cluster_n" in drawn["dot"] and "[style=dashed]" in drawn["dot"]


def test_a_wrong_script_ends_with_1_and_shows_the_place(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.write_text(SCRIPT.replace("WHERE amount", "WHERE amuont"), encoding="utf-8")
    assert main(["explain", str(script)]) == Exit.INPUT
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"deltic: [DELTIC-1002] {script}:3:")
    assert "amuont" in captured.err and "^^^^^^" in captured.err and "Traceback" not in captured.err


def test_an_unknown_view_ends_with_1(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(script), "spent"]) == Exit.INPUT
    assert "there is no view spent" in capsys.readouterr().err


def test_a_script_that_is_not_text_ends_with_1(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.write_bytes(b"\xff\xfe")
    assert main(["explain", str(script)]) == Exit.INPUT
    assert "UTF-8" in capsys.readouterr().err


def test_a_missing_requirement_ends_with_3(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(*_: object) -> None:
        raise SetupError("no Java", remedy="install one")

    monkeypatch.setattr("deltic.cli.app", refuse_call(refuse))
    assert main([]) == Exit.SETUP
    assert capsys.readouterr().err == "deltic: [DELTIC-7000] no Java\nhelp: install one\n"


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("deltic.cli.app", refuse_call(interrupt))
    assert main([]) == Exit.INTERRUPTED
    assert capsys.readouterr().err == "deltic: interrupted\n"


def refuse_call(action: object) -> object:
    return lambda *_, **__: action()  # type: ignore[operator]


def test_as_a_process() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"deltic {deltic.__version__}\n")
