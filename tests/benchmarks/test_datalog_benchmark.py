"""The benchmark of Datalog: its evaluation from scratch is naive evaluation, the engines agree with it, and a wrong answer is seen."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from benchmarks import datalog, derivation, drive, harness, programs
from benchmarks.engine import Absent
from benchmarks.peers import duckdb_datalog, rust
from benchmarks.programs import Facts, Program

SMALL = {"points_to": 300, "same_generation": 120, "dataflow": 300, "classes": 300}
Rows = dict[str, set[tuple[int, ...]]]


def facts(case: str, ticks: int = 4) -> Facts:
    make, _ = datalog.CASES[case]
    return make(SMALL[case], ticks)


def naive(program: Program, content: Rows) -> Rows:
    """All rules over all rows, until nothing is new."""
    known: Rows = {**content, **{name: set() for name in program.derived}}
    while True:
        before = sum(map(len, known.values()))
        for head, body in program.rules:
            bound: list[dict[str, int]] = [{}]
            for name, terms in body:
                shared = [i for i, term in enumerate(terms) if bound and term in bound[0]]
                rows = defaultdict(list)
                for row in known[name]:
                    rows[tuple(row[i] for i in shared)].append(row)
                bound = [one | dict(zip(terms, row, strict=True)) for one in bound for row in rows[tuple(one[terms[i]] for i in shared)]]
            if program.differ(body):
                assert program.unequal is not None
                one, other = program.unequal
                bound = [names for names in bound if names[one] != names[other]]
            known[head[0]] = known[head[0]] | {tuple(names[term] for term in head[1]) for names in bound}
        if sum(map(len, known.values())) == before:
            return known


@pytest.mark.parametrize("case", datalog.CASES)
def test_the_evaluation_from_scratch_is_naive_evaluation(case: str) -> None:
    make, _ = datalog.CASES[case]
    made = make(100, 2)
    feeds = made.feeds()
    for tick, columns in derivation.outputs(made.program, feeds):
        content: Rows = {name: set() for name in feeds}
        for name, feed in feeds.items():
            for at, weight, *row in feed.tolist():
                if at <= tick:
                    (content[name].add if weight > 0 else content[name].remove)(tuple(row))
        expected = naive(made.program, content)[made.program.output]
        assert set(zip(*(column.tolist() for column in columns), strict=True)) == expected
        assert expected


@pytest.mark.parametrize("case", datalog.CASES)
def test_the_engine_and_duckdb_are_right_after_every_tick(case: str, tmp_path: Path) -> None:
    params = datalog.write(tmp_path, case, facts(case), 4, 1)
    assert params["ticks"] == 4 and params["changes"] == 10 and params["rows"] > 100
    arguments = drive.script(tmp_path)["arguments"]
    assert drive.run(datalog.engine(**arguments), tmp_path)["correct"]
    if case in duckdb_datalog.QUERIES:
        assert drive.run(duckdb_datalog.engine(**arguments), tmp_path)["correct"]
    else:
        with pytest.raises(Absent, match="read twice"):
            duckdb_datalog.engine(**arguments)


@pytest.mark.slow
def test_a_peer_that_differs_where_nothing_is_computed_from_scratch_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    params = datalog.write(tmp_path, "dataflow", facts("dataflow"), 4, 3)
    assert params["rows"] > 100
    monkeypatch.setattr(rust, "datalog", lambda *_: {"absent": "not built"})
    sums = harness.drive("benchmarks.datalog", tmp_path, 300)["sums"]
    assert len(sums) == 5
    assert datalog.measure_peers(tmp_path, "dataflow", sums)["duckdb"]["correct"]
    sums[1] += 1
    assert not datalog.measure_peers(tmp_path, "dataflow", sums)["duckdb"]["correct"]


def test_the_result_says_how_answers_were_checked() -> None:
    alone = datalog.checked(1, {"souffle": {"absent": "no package"}})
    assert alone == "by checksums with all rows derived from scratch with NumPy after the load and after every tick"
    beside = datalog.checked(10, {"differential": {"correct": True}, "souffle": {"absent": "no package"}})
    assert beside.endswith("after every 10th tick; after every tick with the answers of differential, by checksums")


def test_facts_are_deleted_and_added() -> None:
    feeds = programs.points_to(500, 6).feeds()
    for tick in range(1, 7):
        weights = [weight for feed in feeds.values() for weight in feed[feed[:, 0] == tick][:, 1].tolist()]
        assert sorted(weights) == [-1] * 5 + [1] * 5


@pytest.mark.slow
def test_the_benchmark_small(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With the peers that there are."""
    monkeypatch.setattr("sys.argv", ["datalog", "--quick"])
    datalog.main()
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["cases"].keys() == datalog.CASES.keys()
    for case in result["cases"].values():
        assert case["correct"] and case["params"]["ticks"] == 10
        assert all(peer.get("correct", "absent" in peer) for peer in case["peers"].values())
