"""Connectors of other packages: the one of docs/extending.md, registered by an entry point, killed and resumed; and broken ones."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import deltic
from crashes import PowerLoss, watching
from deltic.errors import DelticError, QueryError, SetupError, SinkError, SourceError
from deltic.pipeline import Pipeline
from deltic.pipeline.dry_run import dry_run

GUIDE = Path(__file__).parents[2] / "docs" / "extending.md"
SAMPLE = re.findall(r"## A connector.*?```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)[0]
TABLE = "CREATE TABLE t (k BIGINT NOT NULL, v INT) USING Sample OPTIONS (path 'in.jsonl');\n"
SCRIPT = (
    TABLE
    + "CREATE MATERIALIZED VIEW sums AS SELECT k, sum(v) AS total FROM t GROUP BY k;\n"
    + "CREATE SINK out FROM sums USING sample OPTIONS (path 'out.jsonl');\n"
)
ROWS = [(1, 10), (2, 20), (1, 5), (3, 30), (2, -20), (1, 1)]
EXPECTED = Counter({(1, 16): 1, (2, 0): 1, (3, 30): 1})

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a package with one module on sys.path, whose entry point `name` is `value`."""

    def put(name: str, value: str, module: str = "", package: str = "sample") -> None:
        site = tmp_path / f"site_{package}"
        info = site / f"{package}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[deltic.connectors]\n{name} = {value}\n")
        if module:
            (site / f"{value.split(':', maxsplit=1)[0]}.py").write_text(module)
        monkeypatch.syspath_prepend(str(site))

    return put


@pytest.fixture
def folder(tmp_path: Path, install: Install) -> Iterator[Path]:
    install("sample", "deltic_sample_connector", SAMPLE)
    work = tmp_path / "work"
    work.mkdir()
    write(work, ROWS)
    yield work


def write(folder: Path, rows: list[tuple[int, int]]) -> None:
    (folder / "in.jsonl").write_text("".join(json.dumps({"k": k, "v": v}) + "\n" for k, v in rows))


def pipeline(folder: Path, script: str = SCRIPT, **options: Any) -> Pipeline:
    return Pipeline(script, **{"state": str(folder / "state"), "base": folder, "rows_per_tick": 2, **options})


def run(folder: Path, script: str = SCRIPT) -> Counter[tuple[Any, ...]]:
    with pipeline(folder, script) as running:
        running.run_once()
        return Counter((row["k"], row["total"]) for row in running.session.view("sums").rows())


def delivered(folder: Path) -> Counter[tuple[Any, ...]]:
    """What the epochs that the sink holds add up to."""
    entries = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()][1:]
    summed: Counter[tuple[Any, ...]] = Counter()
    for row in (row for entry in entries for row in entry["rows"]):
        summed[(row["k"], row["total"])] += row["_weight"]
    return Counter({row: weight for row, weight in summed.items() if weight})


def test_a_registered_connector_feeds_a_table_and_takes_a_view(folder: Path) -> None:
    assert run(folder) == delivered(folder) == EXPECTED
    write(folder, [*ROWS, (4, 40)])
    with pipeline(folder) as running:
        assert str(running.start).startswith("resumes after epoch")
        assert running.run_once().rows_in == {"t": 1}
    assert delivered(folder) == EXPECTED + Counter({(4, 40): 1})


def wrong_after_a_kill(folder: Path, number: int, script: str = SCRIPT) -> bool:
    """Whether a pipeline that is stopped at a step, and run again, has another answer than one that is not."""
    folder.mkdir()
    write(folder, ROWS)
    left = iter(range(number))

    def stop(step: str, path: str) -> None:
        if next(left, None) is None:
            raise PowerLoss

    with watching(stop), pytest.raises(PowerLoss):
        run(folder, script)
    return not (run(folder, script) == delivered(folder) == EXPECTED)


def steps_of(folder: Path) -> int:
    steps: list[str] = []
    with watching(lambda step, path: steps.append(step)):
        run(folder)
    assert len(steps) > 60
    return len(steps)


def test_killed_at_any_step_and_resumed_each_change_counts_once(folder: Path, tmp_path: Path) -> None:
    assert not [number for number in range(0, steps_of(folder), 17) if wrong_after_a_kill(tmp_path / f"killed_{number}", number)]


def test_a_sink_that_does_not_recognise_an_epoch_is_detected(folder: Path, tmp_path: Path, install: Install) -> None:
    forgetful = SAMPLE.replace('if one["epoch"] == epoch]', "if False]")
    assert forgetful != SAMPLE
    install("forgetful", "deltic_forgetful_connector", forgetful, "forgetful")
    script = SCRIPT.replace("USING sample", "USING forgetful")
    steps = reversed(range(steps_of(folder)))
    assert any(wrong_after_a_kill(tmp_path / f"killed_{number}", number, script) for number in steps)


def test_a_dry_run_and_explain_show_it(folder: Path) -> None:
    actual = dry_run(SCRIPT, name="s", state=str(folder / "state"), base=folder).json()
    assert actual["sources"] == {"t": {"location": str(folder / "in.jsonl"), "files": ["in.jsonl"], "rows": 6, "letters": 0}}
    assert actual["sinks"]["out"] == {"view": "sums", "location": str(folder / "out.jsonl"), "mode": "changes", "epoch": None}
    with deltic.Session() as session:
        session.sql(SCRIPT)
        assert str(session.explain()).splitlines()[:2] == ["source t: lines of in.jsonl", "sink out: sums to lines of out.jsonl"]


def test_a_row_that_the_engine_refuses_is_named_by_the_source(folder: Path) -> None:
    write(folder, [(1, 1), (2, 2), (1, 3)])
    with pipeline(folder, SCRIPT.replace("v INT)", "v INT, PRIMARY KEY (k))")) as running, pytest.raises(DelticError) as caught:
        running.run_once()
    assert str(caught.value).startswith(f"[DELTIC-2003] {folder / 'in.jsonl'}, line 3: table t already has a row with primary key k=1")


def test_offsets_of_another_connector_are_refused(folder: Path) -> None:
    run(folder)
    (folder / "files").mkdir()
    with pytest.raises(SourceError, match="the state's offset 6 is not an offset of files"):
        pipeline(folder, SCRIPT.replace("USING Sample OPTIONS (path 'in.jsonl')", "USING json OPTIONS (path 'files')"))


def test_another_owner_is_refused(folder: Path) -> None:
    run(folder)
    with pytest.raises(SinkError, match="belongs to another sink"):
        pipeline(folder, SCRIPT.replace("SINK out", "SINK other"))


def test_its_options_are_refused_at_their_place(folder: Path) -> None:
    with deltic.Session() as session, pytest.raises(QueryError) as caught:
        session.sql("CREATE TABLE t (k BIGINT) USING sample OPTIONS (path 'x', paht 'y')")
    assert str(caught.value).splitlines() == [
        "[DELTIC-1000] <sql>:1:59: there is no option paht here",
        "  CREATE TABLE t (k BIGINT) USING sample OPTIONS (path 'x', paht 'y')",
        "                                                            ^^^^",
        "expected: one of path, watermark, watermark_delay",
        "help: did you mean 'path'?",
    ]


BROKEN = {
    "a module that fails": ("raise ValueError('no driver')", "broken 1.0 cannot load it from 'deltic_broken_1': ValueError: no driver"),
    "no module": ("", "broken 1.0 cannot load it from 'deltic_broken_2': ModuleNotFoundError: No module named 'deltic_broken_2'"),
    "no sources": ("def sink(options): ...", "it has no sources"),
    "a spec that is none": ("def source(table, options): return 5", "its source() returned int"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_connector_is_an_error_that_names_it_only_where_it_is_used(name: str, install: Install) -> None:
    module, message = BROKEN[name]
    install("broken", f"deltic_broken_{list(BROKEN).index(name) + 1}", module, "broken")
    with deltic.Session() as session:
        session.sql("CREATE TABLE a (k BIGINT) USING csv OPTIONS (path 'in')")
        with pytest.raises(SetupError) as caught:
            session.sql("CREATE TABLE b (k BIGINT) USING broken OPTIONS (path 'in')")
        assert caught.value.message == f"connector broken: {message}"
        assert caught.value.span is not None and caught.value.span.column == 33
        assert session.tables == ("a",)


def test_two_packages_with_one_name_are_refused_by_name(install: Install) -> None:
    install("twice", "deltic_first", SAMPLE, "first")
    install("twice", "deltic_second", SAMPLE, "second")
    with deltic.Session() as session, pytest.raises(SetupError, match=r"several packages register it: first 1\.0 and second 1\.0"):
        session.sql("CREATE TABLE t (k BIGINT) USING twice OPTIONS (path 'x')")


FAULTS = {
    "open": ("class LineSourceSpec(Lines):\n    def open(self, table, base: Path):\n", "cannot open in.jsonl: ZeroDivisionError"),
    "restore": (
        "    def restore(self, offsets):  # continue after what the state has committed\n",
        "cannot resume in.jsonl at the committed",
    ),
    "refresh": (
        "    def refresh(self, *, force):  # look for what is new; a line without its end is not there yet\n",
        "cannot look for new",
    ),
    "pending": ("    def pending(self):\n", "cannot list the new data in in.jsonl"),
    "read": ("    def read(self, limit_rows):  # the next range as changes, with the offsets after it\n", "cannot read in.jsonl"),
    "committed": (
        "    def committed(self, batch):  # nothing to do: the offsets are in the state\n",
        "cannot note that rows of in.jsonl are",
    ),
    "epoch": ("    def epoch(self):\n", "cannot read the last epoch of out.jsonl"),
    "check": ("    def check(self):\n", "cannot c"),
    "claim": ("    def claim(self):\n", "cannot claim out.jsonl"),
    "deliver": (
        "    def deliver(self, epoch, rows):  # an epoch that is there already changes nothing\n",
        "cannot deliver epoch 3 to out.jsonl",
    ),
    "describe": ("    def describe(self):\n", "cannot describe itself"),
    "source": ("def source(table, options):\n", "cannot validate its options"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_exception_of_a_connector_is_an_error_that_names_it(name: str, folder: Path, install: Install) -> None:
    """Which connector, of which package, for which table or sink, and what it was doing; the exception itself is the cause."""
    line, message = FAULTS[name]
    assert SAMPLE.count(line) == 1
    indent = "    " if line.startswith("def ") else "        "
    install("faulty", f"deltic_faulty_{name}", SAMPLE.replace(line, f"{line}{indent}1 / 0\n"), f"faulty_{name}")
    of_sink = name in ("epoch", "check", "claim", "deliver")
    with pytest.raises(SinkError if of_sink else SourceError) as caught:
        script = SCRIPT.replace("USING sample", "USING faulty").replace("USING Sample", "USING faulty")
        dry_run(script, name="s", state=str(folder / "state"), base=folder) if name == "pending" else run(folder, script)
        with deltic.Session() as session:
            session.sql(script)
            str(session.explain())
    assert caught.value.message.startswith(f"{'sink out' if of_sink else 'table t'}: connector faulty {message}")
    assert f"faulty_{name} 1.0" in str(caught.value.remedy) and isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.span is not None and "faulty" in caught.value.span.picture()


def test_a_batch_of_another_class_is_refused(folder: Path, install: Install) -> None:
    line = "    def read(self, limit_rows):  # the next range as changes, with the offsets after it\n"
    install("faulty", "deltic_faulty_batch", SAMPLE.replace(line, f"{line}        return 5\n"), "faulty_batch")
    with pytest.raises(SourceError, match=r"connector faulty returned int from read\(\)"):
        run(folder, SCRIPT.replace("USING Sample", "USING faulty"))
