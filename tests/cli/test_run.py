"""`deltic run`: output, exit codes, and that it resumes where it left off."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Self

import pytest
from rich.console import Console

import deltic
from deltic.cli import main
from deltic.cli.exits import Exit
from deltic.cli.progress import Report
from deltic.pipeline import Pipeline, Progress
from shop import EXPECTED, FAILING, SCRIPT, Shop
from waiting import wait_until


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path)
    shop.fill()
    (tmp_path / "shop.sql").write_text(SCRIPT)
    shop.state = tmp_path / "shop.state"
    return shop


def arguments(shop: Shop, *options: str) -> list[str]:
    engine = [] if "--engine" in options else ["--engine", "embedded"]
    return ["run", str(shop.folder / "shop.sql"), *engine, *options]


def files(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}


def test_it_reads_everything_and_resumes_where_it_left_off(
    shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    assert main(arguments(shop)) == Exit.OK
    output = capsys.readouterr()
    assert output.out == ""
    first, last = output.err.splitlines()
    assert first == f"state {shop.state}: a new state"
    assert last.startswith(
        "up to date at epoch 4 after 1 ticks: 6 files, rows: orders 10, customers 4; to the dead letters: orders 2 (read "
    )
    assert shop.summed() == EXPECTED["spend"] and shop.snapshot() == EXPECTED["top"]
    assert main(arguments(shop, "--shards", "2")) == Exit.OK
    first, last = capsys.readouterr().err.splitlines()
    assert first.endswith("; views reused: spend, top")
    assert last.endswith(" after 0 ticks: no new files")
    assert shop.summed() == EXPECTED["spend"]


def test_without_pyspark_it_runs_in_this_process_and_says_so(
    shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    script = str(shop.folder / "shop.sql")
    assert main(["run", script]) == Exit.OK
    first = capsys.readouterr().err.splitlines()[0]
    assert first == 'deltic: running in this process; to run on Spark: pip install "deltic[spark]"'
    assert shop.summed() == EXPECTED["spend"]
    assert main(["run", script, "--master", "local[2]"]) == Exit.SETUP
    assert "PySpark is not installed" in capsys.readouterr().err


def test_a_changed_script_is_reported(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    main(arguments(shop))
    (shop.folder / "shop.sql").write_text(SCRIPT.replace("COUNT(*)", "2 * COUNT(*)").split("CREATE MATERIALIZED VIEW top")[0])
    capsys.readouterr()
    assert main(arguments(shop)) == Exit.OK
    assert capsys.readouterr().err.splitlines()[0].endswith("; views filled: spend; dropped: top")


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_a_table_without_a_source_is_reported(shop: Shop, capsys: pytest.CaptureFixture[str], options: Sequence[str]) -> None:
    (shop.folder / "shop.sql").write_text("CREATE TABLE countries (name STRING, PRIMARY KEY (name));\n" + SCRIPT)
    assert main(arguments(shop, *options)) == Exit.OK
    output = capsys.readouterr()
    assert (output.out or output.err).splitlines()[0] == f"state {shop.state}: a new state; tables without a source: countries"


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_a_folder_that_is_not_a_state_is_refused(shop: Shop, capsys: pytest.CaptureFixture[str], options: Sequence[str]) -> None:
    before = files(shop.folder)
    assert main(arguments(shop, "--state", str(shop.folder), *options)) == Exit.INPUT
    assert capsys.readouterr().err.splitlines() == [
        f"deltic: [DELTIC-5000] the state folder {shop.folder} already contains other files, such as in",
        "expected: a new or empty folder, or an existing state folder",
        "help: choose another folder",
    ]
    assert files(shop.folder) == before


def test_json_is_one_object_for_the_start_each_tick_and_the_end(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(shop, "--json", "--rows-per-tick", "4")) == Exit.OK
    start, *ticks, end = map(json.loads, capsys.readouterr().out.splitlines())
    views, tables = {"reused": [], "filled": [], "dropped": []}, {"dropped": [], "unfed": []}
    assert start == {"event": "start", "epoch": None, "views": views, "tables": tables}
    assert [tick["event"] for tick in ticks] == ["tick"] * 3
    assert ticks[0]["files"] == {"orders": ["a.csv"], "customers": ["a.parquet", "b.parquet", "c.parquet"]}
    assert set(ticks[0]) == {"event", "epoch", "files", "rows_in", "rows_out", "letters", "seconds", "sink_lag"}
    assert set(ticks[0]["seconds"]) == {"read", "tick", "sinks"}
    assert end["rows_in"] == {"orders": 10, "customers": 4} and end["letters"] == {"orders": 2} and not end["stopped"]


def test_a_dry_run_changes_nothing(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(shop.folder)
    assert main(arguments(shop, "--dry-run")) == Exit.OK
    assert files(shop.folder) == before
    assert capsys.readouterr().out.replace(str(shop.folder), "<folder>").splitlines() == [
        "state <folder>/shop.state: a new state",
        "table orders: 3 files to read with 10 rows, 2 of them to the dead letters, from <folder>/in/orders",
        "table customers: 3 files to read with 4 rows, from <folder>/in/customers",
        "sink spend_out: changes of spend, new, to <folder>/made/spend",
        "sink top_out: snapshot of top, new, to <folder>/made/top",
    ]
    main(arguments(shop, "--rows-per-tick", "3"))
    shop.orders("d.csv", "insert,7,1,70")
    (shop.folder / "shop.sql").write_text(SCRIPT.replace("COUNT(*)", "2 * COUNT(*)"))
    before = files(shop.folder)
    capsys.readouterr()
    assert main(arguments(shop, "--dry-run", "--json")) == Exit.OK
    assert files(shop.folder) == before
    report = json.loads(capsys.readouterr().out)
    assert report["start"]["views"] == {"reused": ["top"], "filled": ["spend"], "dropped": []}
    assert report["sources"]["orders"] == {"location": str(shop.folder / "in" / "orders"), "files": ["d.csv"], "rows": 1, "letters": 0}
    assert report["sources"]["customers"]["files"] == []
    assert report["sinks"]["spend_out"]["epoch"] == 5


@pytest.mark.parametrize(
    ("was", "is_now", "message"),
    [
        ("amount INT", "amount BIGINT", "[DELTIC-5000] table orders differs from the table in the state: column amount was INT"),
        ("made/spend", "in", "[DELTIC-6001] sink spend_out: the folder <folder>/in already holds something else: customers"),
        (
            "CREATE SINK spend_out",
            "CREATE SINK other",
            "[DELTIC-6001] sink other: the folder <folder>/made/spend belongs to sink spend_out",
        ),
    ],
)
def test_a_dry_run_refuses_what_a_run_would_and_neither_changes_the_program(
    was: str, is_now: str, message: str, shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    main(arguments(shop))
    assert was in SCRIPT
    (shop.folder / "shop.sql").write_text(SCRIPT.replace(was, is_now).replace("COUNT(*)", "2 * COUNT(*)"))
    capsys.readouterr()
    assert main(arguments(shop, "--dry-run")) == Exit.INPUT
    dry = capsys.readouterr().err
    assert dry.replace(str(shop.folder), "<folder>").startswith(f"deltic: {message}")
    assert main(arguments(shop)) == Exit.INPUT
    assert capsys.readouterr().err == dry
    (shop.folder / "shop.sql").write_text(SCRIPT)
    assert main(arguments(shop, "--dry-run", "--json")) == Exit.OK
    assert json.loads(capsys.readouterr().out)["start"]["views"] == {"reused": ["spend", "top"], "filled": [], "dropped": []}


def test_a_dry_run_refuses_a_dropped_sink_that_comes_back(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    main(arguments(shop))
    (shop.folder / "shop.sql").write_text("".join(line for line in SCRIPT.splitlines(True) if "SINK spend_out" not in line))
    assert main(arguments(shop)) == Exit.OK
    (shop.folder / "shop.sql").write_text(SCRIPT)
    capsys.readouterr()
    assert main(arguments(shop, "--dry-run")) == Exit.INPUT
    assert "contains changes from before a sink of this name was dropped" in capsys.readouterr().err
    shutil.rmtree(shop.folder / "made" / "spend")
    assert main(arguments(shop, "--dry-run", "--json")) == Exit.OK
    assert json.loads(capsys.readouterr().out)["sinks"]["spend_out"]["epoch"] is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--once", "--follow"], "Mutually exclusive"),
        (["--shards", "0"], "Must be >= 1"),
        (["--retain", "-1"], "Must be >= 0"),
        (["--master", "local[2]"], "--engine spark"),
    ],
)
def test_wrong_usage_ends_with_2(shop: Shop, options: Sequence[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(arguments(shop, *options))
    except SystemExit as error:
        code = int(error.code or 0)
    assert code == Exit.USAGE
    assert words in "".join(capsys.readouterr())


def test_retained_epochs_are_none_but_those_that_sinks_need(shop: Shop) -> None:
    assert main(arguments(shop, "--rows-per-tick", "4", "--retain", "0")) == Exit.OK
    with deltic.open(shop.folder / "shop.state") as state:
        assert state.epoch > 3 and state.epochs.start == state.epoch - 1, "the last offsets of sinks are committed after it"


def test_an_error_ends_with_1_and_keeps_what_was_committed(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    (shop.folder / "shop.sql").write_text(FAILING)
    assert main(arguments(shop)) == Exit.INPUT
    err = capsys.readouterr().err
    path = shop.folder / "in" / "orders" / "a.csv"
    assert f"deltic: [DELTIC-2001] table orders, file {path}, row 3, column amount: 'x' does not parse as INT" in err
    assert "Traceback" not in err
    (shop.folder / "shop.sql").write_text(SCRIPT)
    assert main(arguments(shop)) == Exit.OK
    assert shop.summed() == EXPECTED["spend"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.OK)])
def test_the_first_signal_ends_it_after_the_tick(
    shop: Shop, number: signal.Signals, code: Exit, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tick = Pipeline.tick

    def signalled(self: Pipeline) -> object:
        signal.raise_signal(number)
        return tick(self)

    handler = signal.getsignal(number)
    with monkeypatch.context() as patched:
        patched.setattr(Pipeline, "tick", signalled)
        assert main(arguments(shop, "--rows-per-tick", "4", "--follow")) == code
    assert signal.getsignal(number) is handler
    assert capsys.readouterr().err.splitlines()[-1].startswith("stopped at epoch 4 after 1 ticks")
    assert main(arguments(shop)) == Exit.OK
    assert shop.summed() == EXPECTED["spend"] and shop.snapshot() == EXPECTED["top"]


class Running:
    """The command as a process; what it says goes to files."""

    def __init__(self, shop: Shop, *options: str) -> None:
        self.out, self.err = shop.folder / "stdout", shop.folder / "stderr"
        source = str(Path(deltic.__file__).parents[1])
        command = [sys.executable, "-m", "deltic.cli", *arguments(shop, *options)]
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = _started(command, {**os.environ, "PYTHONPATH": source}, out, err)

    def until(self, holds: Callable[[], bool]) -> None:
        """Waits for it, as long as the process lives."""
        wait_until(lambda: holds() or self.process.poll() is not None)
        assert self.process.poll() is None, self.err.read_text()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """However the test ends, the process has ended."""
        self.process.kill()
        self.process.wait(60)

    def ticks(self) -> int:
        return self.out.read_text().count('"event": "tick"')


def _started(command: list[str], environment: dict[str, str], out: IO[bytes], err: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, env=environment, stdout=out, stderr=err)


def many(shop: Shop, rows: int) -> None:
    """A file of so many orders of ann's, of 1 each."""
    for path in (shop.folder / "in" / "orders").iterdir():
        path.unlink()
    shop.orders("many.csv", *(f"insert,{i},2,1" for i in range(rows)))


def test_ctrl_c_during_a_tick(shop: Shop) -> None:
    many(shop, 20_000)
    with Running(shop, "--json", "--rows-per-tick", "50") as running:
        running.until(lambda: running.ticks() >= 2)
        running.process.send_signal(signal.SIGINT)
        running.until(lambda: b"stopping after this tick" in running.err.read_bytes())
        assert running.process.wait(60) == Exit.INTERRUPTED
    end = json.loads(running.out.read_text().splitlines()[-1])
    assert end["stopped"] and end["rows_in"]["orders"] == 50 * end["ticks"] < 20_000
    assert shop.summed() == Counter({("bob", end["rows_in"]["orders"], end["rows_in"]["orders"]): 1})
    assert main(arguments(shop)) == Exit.OK
    assert shop.summed() == Counter({("bob", 20_000, 20_000): 1})


def test_ctrl_c_while_the_state_is_opened_ends_it_before_the_first_tick(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    class Lossy:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)  # an exception that comes here is lost

    def opened(self: Pipeline, *args: object, **options: object) -> None:
        Lossy()
        opening(self, *args, **options)  # type: ignore[arg-type]

    opening = Pipeline._open
    monkeypatch.setattr(Pipeline, "_open", opened)
    assert main(arguments(shop, "--follow")) == Exit.INTERRUPTED
    monkeypatch.undo()
    assert not shop.summed()
    assert main(arguments(shop)) == Exit.OK
    assert shop.summed() == EXPECTED["spend"]


@pytest.mark.slow
def test_a_second_ctrl_c_ends_it_at_once(shop: Shop) -> None:
    many(shop, 400_000)
    with Running(shop, "--json", "--rows-per-tick", "200000") as running:
        running.until(lambda: running.ticks() >= 1)
        running.process.send_signal(signal.SIGINT)
        running.until(lambda: b"stopping after this tick" in running.err.read_bytes())
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(60) == Exit.INTERRUPTED
    assert running.err.read_text().splitlines()[-1] == "deltic: interrupted"
    assert main(arguments(shop)) == Exit.OK
    assert shop.summed() == Counter({("bob", 400_000, 400_000): 1})


@pytest.mark.slow
def test_follow_reads_new_files_until_it_is_stopped(shop: Shop) -> None:
    with Running(shop, "--follow") as running:
        running.until(lambda: shop.summed() == EXPECTED["spend"])
        shop.orders("d.csv", "insert,7,3,25")
        running.until(lambda: ("eve", 100, 3) in shop.summed())
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(60) == Exit.OK
    assert "stopped at epoch" in running.err.read_text()


@pytest.mark.slow
def test_it_resumes_after_a_kill(shop: Shop) -> None:
    many(shop, 20_000)
    with Running(shop, "--json", "--rows-per-tick", "50") as running:
        running.until(lambda: running.ticks() >= 2)
    assert running.process.returncode == -signal.SIGKILL
    assert main(arguments(shop)) == Exit.OK
    assert shop.summed() == Counter({("bob", 20_000, 20_000): 1})


@pytest.mark.slow
@pytest.mark.spark
def test_on_spark_it_is_the_same(shop: Shop) -> None:
    pytest.importorskip("pyspark")
    with Running(shop, "--json", "--engine", "spark", "--master", "local[2]", "--rows-per-tick", "5") as running:
        assert running.process.wait(180) == Exit.OK, running.err.read_text()
    assert running.ticks() == 2
    assert shop.summed() == EXPECTED["spend"] and shop.snapshot() == EXPECTED["top"]
    assert main(arguments(shop)) == Exit.OK
    assert shop.summed() == EXPECTED["spend"]


def test_sigterm_ends_it_with_0_while_it_loads(shop: Shop) -> None:
    """The signal comes in place of the command, which is loaded then."""
    loading = (
        "import sys, signal; from deltic import cli; cli.app = lambda *_, **__: signal.raise_signal(signal.SIGTERM); sys.exit(cli.main())"
    )
    source = str(Path(deltic.__file__).parents[1])
    command = [sys.executable, "-c", loading, *arguments(shop)]
    assert subprocess.run(command, check=False, env={**os.environ, "PYTHONPATH": source}, timeout=60).returncode == Exit.OK


def test_threads_are_those_of_this_process(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(shop, "--threads", "2", "--shards", "2")) == Exit.OK
    assert main(["run", str(shop.folder / "shop.sql"), "--engine", "spark", "--threads", "2"]) == Exit.USAGE
    assert "--threads requires --engine embedded" in capsys.readouterr().err


def test_ticks_are_on_stdout_though_stderr_is_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    report, drawn = Report(json=True), io.StringIO()
    report._err = Console(file=drawn, force_terminal=True, width=80)
    with report.ticks() as ticked:
        ticked(Progress(7, {}, {}, {}, {}, {}))
    assert json.loads(capsys.readouterr().out)["epoch"] == 7
    assert "looking for files" in drawn.getvalue() and "event" not in drawn.getvalue()
