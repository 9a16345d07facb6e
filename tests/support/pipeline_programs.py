"""Test support: random runs of pipelines, and a model of what each sink must have received.

A run interleaves files, commits of the session, ticks, views that are redefined, sinks that fail, kills after a delivery, and restarts with
other sinks and views, or after a session that drops views and creates them again. The model has the rows of two tables, and the content of
each view by its definition.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import deltic
from deltic.connectors.files.sinks import ChangesSink, SnapshotSink
from deltic.errors import SinkError
from deltic.pipeline import Pipeline

Row = tuple[int, int | None]
Rows = dict[int, Row]
Content = Counter[Row]
TABLES = """
CREATE TABLE t (id INT NOT NULL, k INT NOT NULL, a INT, PRIMARY KEY (id)) USING csv OPTIONS (path 'in', header true, op_column '_op');
CREATE TABLE u (id INT NOT NULL, k INT NOT NULL, a INT, PRIMARY KEY (id));
CREATE VIEW both AS SELECT k, a FROM t UNION ALL SELECT k, a FROM u;
"""


class Failing(Exception):
    """The model's view has errors."""


class Killed(BaseException):
    """The process ends."""


class Definition(NamedTuple):
    """A view's query, and what it means."""

    sql: str
    of: Callable[[Row], int | None] | None
    source: str

    def content(self, t: Rows, u: Rows) -> Content:
        """Raises Failing."""
        rows = [*(t.values() if self.source in ("t", "both") else ()), *(u.values() if self.source in ("u", "both") else ())]
        if self.of is None:
            return Counter((k, n) for k, n in Counter(k for k, _ in rows).items())
        return Counter((row[0], self.of(row)) for row in rows)


def _rest(dividend: int) -> Callable[[Row], int | None]:
    def rest(row: Row) -> int | None:
        if row[1] == 0:
            raise Failing
        return None if row[1] is None else dividend % row[1]

    return rest


EXPRESSIONS: dict[str, Callable[[Row], int | None]] = {
    "a": lambda row: row[1],
    "a + 1": lambda row: None if row[1] is None else row[1] + 1,
    "coalesce(a, 0)": lambda row: row[1] or 0,
    "100 % a": _rest(100),
    "7 % a": _rest(7),
}
DEFINITIONS = [
    *(Definition(f"SELECT k, {sql} AS x FROM {source}", of, source) for sql, of in EXPRESSIONS.items() for source in ("t", "u", "both")),
    *(Definition(f"SELECT k, CAST(count(*) AS INT) AS x FROM {source} GROUP BY k", None, source) for source in ("t", "both")),
]


class ModelSink:
    """What a sink may have received. possible: contents of its view since it was last seen, newest last; the first is what it had."""

    def __init__(self, view: str, mode: str, folder: str) -> None:
        self.view, self.mode = view, mode
        self.open_in(folder)

    def open_in(self, folder: str) -> None:
        """The sink has nothing there."""
        self.folder = folder
        self.possible: list[Content] = [Counter()]


class RandomRun:
    """A run of a pipeline in a folder. in_memory: without a state folder, so without restarts. over: over sessions."""

    def __init__(self, seed: int, folder: Path, *, in_memory: bool, over: bool = False) -> None:
        self.random, self.folder, self.in_memory, self.over = Random(seed), folder, in_memory, over
        (folder / "in").mkdir(parents=True)
        self.options: dict[str, Any] = {"rows_per_tick": 3, "retain": self.random.choice([0, 2, 100]), "base": folder}
        self.options |= {"state": None} if in_memory else {"state": folder / "state", "commit_log": self.random.random() < 0.3}
        self.t, self.u, self.files, self.ids = Rows(), Rows(), 0, 0
        self.given: list[Rows] = []
        """The content of t after each file that may not have been read yet."""
        self.views = {name: self.random.choice(DEFINITIONS) for name in ("v", "w", "x")}
        self.sinks: dict[str, ModelSink] = {}
        self.log: list[str] = []
        self.fault: Callable[[str], None] | None = None
        self.change_sinks()
        self.pipeline: Pipeline | None = None

    def script(self) -> str:
        views = "".join(f"CREATE MATERIALIZED VIEW {name} AS {view.sql};\n" for name, view in self.views.items())
        sinks = (
            f"CREATE SINK {name} FROM {sink.view} USING json OPTIONS (path 'out/{sink.folder}', mode '{sink.mode}');\n"
            for name, sink in self.sinks.items()
        )
        return TABLES + views + "".join(sinks)

    def change_sinks(self) -> None:
        for name in [name for name in self.sinks if self.random.random() < 0.2]:
            del self.sinks[name]
        while len(self.sinks) < 2 or self.random.random() < 0.4:
            self.ids += 1
            self.sinks[f"s{self.ids}"] = ModelSink(
                self.random.choice(list(self.views)), self.random.choice(["changes", "changes", "snapshot"]), f"s{self.ids}"
            )

    def note(self) -> None:
        """Adds the content that each sink may receive now."""
        for sink in self.sinks.values():
            try:
                content = self.views[sink.view].content(self.t, self.u)
            except Failing:
                continue
            if sink.possible[-1] != content:
                sink.possible.append(content)

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Deliveries call `fault` before and after they write."""
        with pytest.MonkeyPatch.context() as patched:
            for kind in (ChangesSink, SnapshotSink):
                patched.setattr(kind, "deliver", self._faulty(kind.deliver))
            yield

    def _faulty(self, deliver: Any) -> Any:
        def faulty(sink: Any, epoch: int, rows: pa.Table) -> None:
            if self.fault is not None:
                self.fault("before")
            deliver(sink, epoch, rows)
            if self.fault is not None:
                self.fault("after")

        return faulty

    def run(self, steps: int) -> None:
        with self.faults():
            try:
                self.start()
                for _ in range(steps):
                    self.step()
                self.settle()
            finally:
                if self.pipeline is not None:
                    self.close()

    def start(self) -> None:
        self.log.append(f"start {self.script()}")
        self.note()
        if not self.over:
            self.pipeline = Pipeline(self.script(), **self.options)
            return
        options = dict(self.options)
        base, rows_per_tick = options.pop("base"), options.pop("rows_per_tick")
        session = deltic.Session(**options, clock="wall", on_view_error="isolate")
        try:
            session.program(self.script())
            self.pipeline = Pipeline.over(session, base=base, rows_per_tick=rows_per_tick)
        except BaseException:
            session.close()
            raise

    @property
    def session(self) -> deltic.Session:
        assert self.pipeline is not None
        return self.pipeline.session

    def step(self) -> None:
        kinds = ["file", "commit", "commit", "tick", "settle", "redefine", "define", "fail"] + ["kill", "restart", "edit"] * (
            not self.in_memory
        )
        kind = self.random.choice(kinds)
        self.log.append(kind)
        getattr(self, f"do_{kind}")()

    def do_file(self) -> None:
        rows, lines = dict(self.t if not self.given else self.given[-1]), ["_op,id,k,a"]
        for op, id, row in self.changes(rows):
            lines.append(f"{op},{id}," + ("," if row is None else f"{row[0]},{'' if row[1] is None else row[1]}"))
        (self.folder / f"in/{self.files:06}.csv").write_text("\n".join(lines) + "\n")
        self.log.append(f"{lines}")
        self.files += 1
        self.given.append(rows)

    def changes(self, rows: Rows) -> Iterator[tuple[str, int, Row | None]]:
        """Changes that rows take, and takes them."""
        for _ in range(self.random.randint(1, 3)):
            id = self.random.randint(1, 5)
            if id in rows and self.random.random() < 0.5:
                del rows[id]
                yield "delete", id, None
            else:
                rows[id] = (self.random.randint(1, 2), self.random.choice([0, 1, 3, 5, 8, 9, None]))
                yield "upsert", id, rows[id]

    def do_commit(self) -> None:
        for op, id, row in self.changes(self.u):
            self.log.append(f"{op} {id} {row}")
            if row is None:
                self.session.delete("u", [id])
            else:
                self.session.upsert("u", [{"id": id, "k": row[0], "a": row[1]}])
            self.note()

    def do_tick(self) -> None:
        """One tick, after which the model does not know how far t is read."""
        assert self.pipeline is not None
        if self.given:
            self.settle()
        else:
            self.pipeline.tick()

    def do_settle(self) -> None:
        self.settle()

    def settle(self) -> None:
        """Everything is read and delivered: sinks have their views, or what they had before these failed."""
        assert self.pipeline is not None
        while self.given:  # file by file, so that the model has each content
            later = sorted((self.folder / "in").glob("*.csv"))[-len(self.given) + 1 :] if len(self.given) > 1 else []
            for path in later:
                path.rename(path.with_name(f".{path.name}"))
            self.read(self.given.pop(0))
            for path in later:
                path.with_name(f".{path.name}").rename(path)
        self.pipeline.run_once()
        self.check()

    def read(self, rows: Rows) -> None:
        """Reads one file, which is one tick."""
        assert self.pipeline is not None
        self.t = rows
        self.note()
        self.pipeline.run_once()

    def do_redefine(self) -> None:
        name, view = self.random.choice(list(self.views)), self.random.choice(DEFINITIONS)
        self.log.append(f"{name} AS {view.sql}")
        self.views[name] = view
        self.session.sql(f"CREATE OR REPLACE MATERIALIZED VIEW {name} AS {view.sql}")
        self.note()

    def do_define(self) -> None:
        """Definitions that no sink reads: some make no epoch."""
        self.session.sql(
            self.random.choice(
                [
                    "DROP VIEW IF EXISTS other",
                    "CREATE OR REPLACE MATERIALIZED VIEW other AS SELECT count(*) AS n FROM t",
                    f"CREATE OR REPLACE MATERIALIZED VIEW other AS {self.views['v'].sql}",
                    "CREATE OR REPLACE VIEW unread AS SELECT 1 AS one",
                ]
            )
        )

    def do_fail(self) -> None:
        """A sink fails, once or twice, before or after it has written; the next tick delivers."""
        self.faulty(SinkError("no room"), SinkError)

    def do_kill(self) -> None:
        self.faulty(Killed(), Killed)
        self.reopen()

    def faulty(self, error: BaseException, kind: type[BaseException]) -> None:
        """Ticks with faults at some of the deliveries."""
        assert self.pipeline is not None
        left, where = self.random.randint(1, 3), self.random.choice(["before", "after"])

        def fault(at: str) -> None:
            nonlocal left
            if at == where:
                left -= 1
                if left == 0:
                    raise error

        if self.given:
            self.settle()
        self.fault = fault
        try:
            self.do_commit()
            for _ in range(2):
                try:
                    self.pipeline.tick()
                except kind:
                    if kind is Killed:
                        break
        finally:
            self.fault = None

    def do_restart(self) -> None:
        """With other views and sinks; what was not noted is delivered again."""
        if self.random.random() < 0.5:
            self.settle()
        self.close()
        for name in self.views:
            if self.random.random() < 0.3:
                self.views[name] = self.random.choice(DEFINITIONS)
        if self.random.random() < 0.7:
            self.change_sinks()
        for name, sink in self.sinks.items():
            if self.random.random() < 0.3:
                self.empty_or_move(name, sink)
        self.start()

    def empty_or_move(self, name: str, sink: ModelSink) -> None:
        """The sink has an empty folder: its own, one that it has left before, or a new one."""
        folder = f"{name}-{self.random.randint(1, 2)}" if self.random.random() < 0.5 else sink.folder
        shutil.rmtree(self.folder / "out" / folder, ignore_errors=True)
        sink.open_in(folder)

    def do_edit(self) -> None:
        """A session drops views and sinks, commits, and creates them again while no pipeline runs."""
        self.close()
        script = self.script()
        with deltic.Session(state=self.folder / "state", clock="wall", on_view_error="isolate") as session:
            session.program(script)
            session.sql("".join(f"DROP SINK {name};" for name in self.sinks) + "".join(f"DROP VIEW {name};" for name in self.views))
            for op, id, row in self.changes(self.u):
                self.log.append(f"{op} {id} {row}")
                if row is None:
                    session.delete("u", [id])
                else:
                    session.upsert("u", [{"id": id, "k": row[0], "a": row[1]}])
            if self.random.random() < 0.5:
                session.program(script)
        self.start()

    def reopen(self) -> None:
        self.close()
        self.start()

    def close(self) -> None:
        assert self.pipeline is not None
        self.pipeline.close()
        self.session.close()
        self.pipeline = None

    def check(self) -> None:
        assert self.pipeline is not None
        for name, view in self.views.items():
            try:
                content = view.content(self.t, self.u)
            except Failing:
                assert name in self.session.failing, name
                continue
            assert Counter(map(tuple, (row.values() for row in self.session.view(name).rows()))) == content, name
        for name, sink in self.sinks.items():
            received = self.received(sink.folder, sink.mode)
            failing = sink.view in self.session.failing
            assert received in sink.possible if failing else received == sink.possible[-1], (name, sink.view, received, sink.possible)
            sink.possible = sink.possible[sink.possible.index(received) :] if failing else [received]

    def received(self, name: str, mode: str) -> Content:
        """The content of a sink's folder: the sum of its changes, or its snapshot. Each row occurs once in an epoch."""
        folder = self.folder / "out" / name
        if mode == "snapshot":
            files = list(folder.glob("snapshot*"))
            return Counter(tuple(json.loads(line).values()) for path in files for line in path.read_text().splitlines())  # type: ignore[misc]
        total: Content = Counter()
        for path in sorted(folder.glob("changes-*")):
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            signs = {((row["k"], row["x"]), row["_weight"] > 0) for row in rows}
            assert signs and len({row for row, _ in signs}) == len(signs) and all(row["_weight"] for row in rows), path
            for row in rows:
                total[row["k"], row["x"]] += row["_weight"]
        assert min(total.values(), default=0) >= 0, total
        return +total
