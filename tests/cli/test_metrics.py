"""`deltic run --metrics`: the counts of a run, as Prometheus reads them."""

from __future__ import annotations

import re
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from deltic.cli import main
from deltic.cli.exits import Exit
from deltic.cli.metrics import address, served
from deltic.errors import SetupError
from deltic.pipeline import Progress
from deltic.pipeline.metrics import Metrics
from prometheus import samples
from shop import SCRIPT, Shop


def test_ticks_add_up() -> None:
    metrics = Metrics(4, lambda: 1_700_000_000.5)
    assert samples(metrics.text()) == {("deltic_epoch", ""): 4, ("deltic_ticks_total", ""): 0, ("deltic_files_total", ""): 0}
    metrics.add(Progress(5, {"t": ("a.csv",)}, {"t": 3}, {'a"b': 2}, {}, {"read": 0.5, "tick": 0.25}, {"v": 7}, {"feed": 0}))
    metrics.add(Progress(6, {"t": ("b.csv",)}, {"t": 4}, {'a"b': 1}, {"t": 1}, {"read": 0.5, "tick": 0.5}, {}, {"feed": 2}))
    found = samples(metrics.text())
    assert found["deltic_epoch", ""] == 6 and found["deltic_ticks_total", ""] == 2 and found["deltic_files_total", ""] == 2
    assert found["deltic_rows_in_total", "t"] == 7 and found["deltic_rows_out_total", 'a\\"b'] == 3
    assert found["deltic_dead_letters_total", "t"] == 1
    assert found["deltic_stage_seconds_total", "tick"] == 0.75 and found["deltic_last_tick_seconds", "tick"] == 0.5
    assert found["deltic_last_tick_timestamp_seconds", ""] == 1_700_000_000.5
    assert found["deltic_sink_lag_epochs", "feed"] == 2
    assert not any(name == "deltic_failing_rows" for name, _ in found), "no view fails any more"


def test_they_are_served_at_one_path() -> None:
    with served(Metrics(0), "127.0.0.1", 0) as url:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/metrics", url)
        with urllib.request.urlopen(url) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert samples(answer.read().decode())["deltic_epoch", ""] == 0
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(url.replace("/metrics", "/"))
        port = int(url.split(":")[2].split("/")[0])
        with pytest.raises(SetupError, match="cannot listen"), served(Metrics(0), "127.0.0.1", port):
            pass
    assert not [thread for thread in threading.enumerate() if thread.name == "deltic-metrics"]


@pytest.mark.parametrize("given", ["", "x", "70000", "a b:1", ":9100", "1:2:3"])
def test_other_addresses_are_refused(given: str) -> None:
    with pytest.raises(ValueError, match="Must be PORT"):
        address(given)


def test_the_command_serves_the_counts_of_its_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path)
    shop.fill()
    (tmp_path / "shop.sql").write_text(SCRIPT)
    read: list[dict[tuple[str, str], float]] = []

    def seen(metrics: Metrics, progress: Progress) -> None:
        added(metrics, progress)
        url = next(line for line in capsys.readouterr().err.splitlines() if line.startswith("metrics at")).split()[2]
        with urllib.request.urlopen(url) as answer:
            read.append(samples(answer.read().decode()))

    added = Metrics.add
    monkeypatch.setattr(Metrics, "add", seen)
    assert main(["run", str(tmp_path / "shop.sql"), "--engine", "embedded", "--metrics", "0"]) == Exit.OK
    (found,) = read
    assert (found["deltic_rows_in_total", "orders"], found["deltic_rows_in_total", "customers"]) == (10, 4)
    assert found["deltic_dead_letters_total", "orders"] == 2 and found["deltic_ticks_total", ""] == 1
    assert {label for name, label in found if name == "deltic_stage_seconds_total"} == {"read", "tick", "sinks"}
    assert {found[key] for key in found if key[0] == "deltic_sink_lag_epochs"} == {0}


@pytest.mark.parametrize("command", [["run", "shop.sql"], ["pipelines", "run"]], ids=lambda command: command[0])
def test_another_address_is_wrong_usage(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.sql").write_text(SCRIPT)
    with pytest.raises(SystemExit) as ended:
        main([*command, "--metrics", "nowhere"])
    assert ended.value.code == Exit.USAGE
    assert 'Invalid value "nowhere" for --metrics. Must be PORT' in "".join(capsys.readouterr())
    assert [path.name for path in tmp_path.iterdir()] == ["shop.sql"]
