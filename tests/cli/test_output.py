"""Standard output that cannot be written, and that nobody reads any more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import deltic
from deltic.cli.exits import Exit
from deltic.cli.output import OutputFailure, StandardOutput, emit, standard_output
from parts import slow
from waiting import wait_until

DEFINITIONS = "CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT a FROM t;"
SUBSCRIBED = f"{DEFINITIONS} SUBSCRIBE v; INSERT INTO t VALUES (1)"
NO_SPACE = "deltic: standard output cannot be written: No space left on device"
COMMANDS = {
    "version": ["--version"],
    "help": ["--help"],
    "doctor": ["doctor"],
    "explain": ["explain", "v.sql"],
    "query": ["sql", "-c", "SELECT explode(sequence(1, 900)) AS x"],
    "subscribe": ["sql", "-c", SUBSCRIBED],
    "run": ["run", "v.sql", "--engine", "embedded", "--json"],
    "read": ["state", "read", "state", "v"],
}

QUICK = ("version",)
CASES = [*QUICK, *slow(*(name for name in COMMANDS if name not in QUICK))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a script and a state."""
    (tmp_path / "v.sql").write_text(DEFINITIONS)
    with deltic.Session(state=tmp_path / "state") as session:
        session.sql(f"{DEFINITIONS} INSERT INTO t VALUES (1)")
    return tmp_path


def started(folder: Path, arguments: list[str], output: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(deltic.__file__).parents[1])}
    command = [sys.executable, "-m", "deltic.cli", *arguments]
    return subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE, text=True, env=environment, cwd=folder)


def closed_pipe() -> int:
    """The end to write to, of a pipe whose reader has closed it."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.mark.parametrize("command", CASES)
def test_output_that_cannot_be_written_is_an_error_of_one_line(command: str, folder: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    process = started(folder, COMMANDS[command], full)
    os.close(full)
    lines = process.communicate(timeout=120)[1].splitlines()
    assert process.returncode == Exit.INPUT
    assert [line for line in lines if not line.startswith("state ")] == [NO_SPACE]  # `deltic run` reports its start too


@pytest.mark.parametrize("command", CASES)
def test_a_reader_that_closes_the_pipe_is_no_error(command: str, folder: Path) -> None:
    writer = closed_pipe()
    process = started(folder, COMMANDS[command], writer)
    os.close(writer)
    errors = process.communicate(timeout=120)[1]
    assert process.returncode == Exit.OK
    assert "deltic:" not in errors and "Error" not in errors


@pytest.mark.slow
def test_a_subscription_to_a_state_ends_when_nobody_reads_it(folder: Path) -> None:
    writer = closed_pipe()
    with deltic.Session(state=folder / "state") as session:
        session.sql(DEFINITIONS)
        process = started(folder, ["sql", "state", "-c", "SUBSCRIBE v"], writer)
        os.close(writer)

        def has_ended() -> bool:
            session.sql("INSERT INTO t VALUES (2)")
            return process.poll() is not None

        try:
            wait_until(has_ended)
        finally:
            process.kill()
            errors = process.communicate()[1]
    assert process.returncode == Exit.OK and errors == ""


def test_a_failure_is_raised_once(tmp_path: Path) -> None:
    output = StandardOutput("/dev/full", "w")
    with pytest.raises(OutputFailure, match="No space left on device"):
        output.write(b"lost")
    assert output.write(b"discarded") == len(b"discarded") and output.failure == "No space left on device"
    output.close()


def test_only_the_stream_of_the_interpreter_is_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    with standard_output() as output:
        assert output is None
        emit("printed")
    assert capsys.readouterr().out == "printed\n"
