"""Declarative Pipelines projects on a real Spark: after every run each table has the rows that Spark itself computes from its query."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.connect import connect_server
from deltic.cli import main
from pipelines_projects import shop

pytestmark = [pytest.mark.slow, pytest.mark.spark]


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Spark Connect server, which outlives the runs of a project."""
    pytest.importorskip("pyspark.sql.connect.proto")
    with connect_server(tmp_path_factory.mktemp("server")) as url:
        yield url


def rows_of(frame: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in frame.collect())


def check(spec: Path, remote: str) -> dict[str, int]:
    """Compares each materialized view with its query, run by Spark; returns how many rows each has."""
    from deltic.frontends.dataframes import Frames  # noqa: PLC0415  needs the extra
    from deltic.projects import load, plan_project  # noqa: PLC0415  needs the extra
    from deltic.projects.server import Server  # noqa: PLC0415  needs the extra

    opened: list[Server] = []

    def opening(project: Any) -> Server:
        opened.append(Server(project.names, {}, remote))
        return opened[0]

    project = load(spec, Frames(lambda: None), opening)  # type: ignore[arg-type, return-value]
    (server,), counts = opened, {}
    try:
        for key, one in plan_project(project, server).datasets.items():
            if one.dataset.kind == "materialized view":
                table, own = server.table(one.dataset.identifier), server.frame(one.flows[0].message)
                assert rows_of(table.select(*own.columns)) == rows_of(own), key
                assert {(f.name, f.dataType) for f in table.schema} == {(f.name, f.dataType) for f in own.schema}, key
                counts[key] = table.count()
    finally:
        server.close()
    return counts


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(row) for row in rows))


def customers(folder: Path, names: list[str]) -> None:
    write(folder / "customers" / "all.json", [{"id": i, "name": n, "region": "north" if i % 2 else "south"} for i, n in enumerate(names)])


def orders(folder: Path, first: int, count: int) -> None:
    rows = [{"id": i, "customer": i % 5, "amount": f"{i % 7 * 20}.50", "day": f"2024-01-0{1 + i % 3}"} for i in range(first, first + count)]
    write(folder / "orders" / f"{first}.json", rows)


def test_a_project_is_refreshed_run_by_run(remote: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = shop(tmp_path)

    def run(*options: str) -> list[str]:
        assert main(["pipelines", "run", "--spec", str(spec), "--remote", remote, *options]) == 0
        return capsys.readouterr().out.splitlines()

    orders(tmp_path, 0, 20)
    customers(tmp_path, ["ann", "bob", "bob", "cleo"])
    told = run()
    assert "daily_orders: incremental, 3 rows" in told
    counts = check(spec, remote)
    assert counts["customers"] == 4 and counts["daily_orders"] == 3 and counts["top_customers"] == 3
    assert any(line == "spend_by_region: unchanged" for line in run())
    orders(tmp_path, 20, 9)
    run()
    assert check(spec, remote)["origins"] == 2
    customers(tmp_path, ["ann", "bob", "cleo"])  # one of two equal names is gone, and all that follows it has another id
    run()
    check(spec, remote)
    orders(tmp_path, 42, 1)
    assert "daily_orders: incremental, 1 partitions written" in run("--refresh", "raw_orders,daily_orders")
    run()
    check(spec, remote)
    run("--full-refresh", "raw_orders,customers")
    run()
    check(spec, remote)
    run("--full-refresh-all")
    assert check(spec, remote)["customers"] == 3
