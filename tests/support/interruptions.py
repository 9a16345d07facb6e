"""Test support: a session whose ticks and definitions are interrupted, compared with the oracle afterwards.

As a program it breaks off its own ticks, and says how often: with the arguments `sigint SEED TICKS [FOLDER]` by Ctrl-C, with
`memory SEED TIMES` by a limit of its address space.
"""

from __future__ import annotations

import ast
import gc
import os
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pyarrow as pa

import deltic
from deltic.plan.evaluate import evaluate
from deltic.plan.relation import Relation

SOURCES = str(Path(deltic.__file__).parent)
SCRIPT = """
CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, customer BIGINT, amount BIGINT);
CREATE TABLE edges (a BIGINT NOT NULL, b BIGINT NOT NULL);
CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n, sum(amount) AS amount FROM orders;
CREATE MATERIALIZED VIEW copied AS SELECT * FROM orders;
CREATE MATERIALIZED VIEW spend AS SELECT customer, count(*) AS n, max(amount) AS most FROM orders GROUP BY customer;
CREATE MATERIALIZED VIEW pairs AS SELECT o.id, p.id AS other FROM orders o JOIN orders p ON o.customer = p.customer WHERE o.id < p.id;
CREATE MATERIALIZED VIEW best AS SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 3;
CREATE MATERIALIZED VIEW nodes AS SELECT a AS node FROM edges UNION SELECT b FROM edges
"""
EXTRA = "CREATE MATERIALIZED VIEW extra AS SELECT e.a, count(*) AS n FROM edges e JOIN orders o ON e.a = o.customer GROUP BY e.a"
Rows = dict[str, dict[Any, tuple[Any, ...]]]


class Broken:
    """A session, the content of its tables, and a pending change."""

    def __init__(self, session: deltic.Session, rng: random.Random, domain: int = 12) -> None:
        self.session, self.rng, self.domain = session, rng, domain
        self.content: Rows = {"orders": {}, "edges": {}}
        self.extra = False
        session.sql(SCRIPT)

    def change(self, rows: int) -> tuple[dict[str, Any], Rows]:
        """(random change frames, the tables after them)."""
        rng, after = self.rng, {table: dict(content) for table, content in self.content.items()}
        orders = []
        for id in rng.sample(range(20 * rows), rows):
            if id in after["orders"]:
                row = after["orders"].pop(id)
                orders.append((*row, "delete"))
            else:
                after["orders"][id] = row = (id, rng.randrange(self.domain), rng.randrange(1000))
                orders.append((*row, "insert"))
        ids, customers, amounts, ops = zip(*orders, strict=True)
        frames: dict[str, Any] = {"orders": pa.table({"id": ids, "customer": customers, "amount": amounts, "_op": ops})}
        edge = (rng.randrange(self.domain), rng.randrange(self.domain))
        frames["edges"] = [{"a": edge[0], "b": edge[1], "_weight": -1 if edge in after["edges"] else 1}]
        after["edges"].pop(edge) if edge in after["edges"] else after["edges"].update({edge: edge})
        return frames, after

    def check(self) -> None:
        """Asserts that the listed views are the expected ones, and equal the oracle."""
        expected = {name: evaluate(plan, self.tables()) for name, plan in self.session._definitions.catalog.plans().items()}
        assert set(self.session.views) == set(expected) and ("extra" in expected) == self.extra
        for name, relation in expected.items():
            actual = Relation((tuple(row.values()), 1) for row in self.session.view(name).rows())
            assert actual == relation, f"{name} at epoch {self.session.epoch}"

    def tables(self) -> dict[str, Relation]:
        return {table: Relation((row, 1) for row in content.values()) for table, content in self.content.items()}

    def tick(self, rows: int, breaking: Callable[[Callable[[], None]], bool]) -> bool:
        """Runs a tick that may be interrupted, and repeats it unless it was committed. Returns whether it was interrupted."""
        frames, after = self.change(rows)
        epoch = self.session.epoch
        broken = breaking(lambda: self.session.apply(frames))
        assert self.session.epoch - epoch in ((0, 1) if broken else (1,))
        if self.session.epoch == epoch:
            self.check()
            self.session.apply(frames)
        self.content = after
        self.check()
        return broken

    def define(self, breaking: Callable[[Callable[[], None]], bool]) -> bool:
        """The same with a view that is created or dropped."""
        before = self.extra
        script = "DROP VIEW extra" if before else EXTRA
        broken = breaking(lambda: self.session.sql(script))
        if ("extra" in self.session.views) == before:
            assert broken
            self.check()
            self.session.sql(script)
        self.extra = not before
        self.check()
        return broken


@contextmanager
def raising(kind: type[BaseException], line: int) -> Iterator[list[int]]:
    """Raises at the line-th executed line of Deltic in the block; yields [lines so far].

    Lines at which neither signals nor allocations come between are left out: the head of a `with`, by which Python also leaves it, `try:`,
    which does nothing, and what stands in a `finally`. So are functions that callbacks of weak references run: Python prints what these
    raise, and goes on.
    """
    seen = [0]

    def step(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line" and frame.f_lineno not in sheltered(frame.f_code.co_filename):
            seen[0] += 1
            if seen[0] == line:
                raise kind
        return step

    def enter(frame: FrameType, event: str, _: Any) -> Any:
        return step if frame.f_code.co_filename.startswith(SOURCES) else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        yield seen
    finally:
        sys.settrace(before)


def interrupted_everywhere(action: Callable[[], object], check: Callable[[], object]) -> int:
    """Runs the action and the check again and again, each time interrupted at the next place; returns how many there are."""
    at, came = 0, True
    while came:
        at, came = at + 1, False
        try:
            came = interrupted(at, action)
        except KeyboardInterrupt:
            came = True
        else:
            assert not came, f"the interrupt at place {at} was lost"
        check()
    return at - 1


def interrupted(at: int, action: Callable[[], object]) -> bool:
    """Runs the action, with a SIGINT where CPython handles signals for the at-th time; whether there are so many such places.

    They are where a function of Python begins, and after a call of one in C, but for callbacks of weak references, and the end of
    generators: Python prints what these raise, and goes on. So the collector waits, too, which ends the garbage of other tests. Raises
    KeyboardInterrupt, and what the action raises.
    """
    seen = 0

    def step(frame: FrameType, event: str, _: Any) -> None:
        nonlocal seen
        code = frame.f_code
        if event in ("call", "c_return") and not code.co_filename.endswith(UNINTERRUPTED) and code.co_name != "<genexpr>":
            seen += 1
            if seen == at:
                signal.raise_signal(signal.SIGINT)

    handler, collects = signal.signal(signal.SIGINT, signal.default_int_handler), gc.isenabled()  # PySpark has installed its own
    gc.disable()
    sys.setprofile(step)
    try:
        action()
    finally:
        sys.setprofile(None)
        signal.signal(signal.SIGINT, handler)
        if collects:
            gc.enable()
    return seen >= at


UNINTERRUPTED: Final = (__file__, "/weakref.py", "/_weakrefset.py")
IN_CALLBACKS: Final = ("__hash__", "representative")


@cache
def sheltered(file: str) -> frozenset[int]:
    """Lines of a source at which no exception is raised."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(Path(file).read_text())):
        if isinstance(node, ast.With):
            lines.update(range(node.lineno, node.body[0].lineno))
        if isinstance(node, ast.Try):
            lines.add(node.lineno)
        for statement in node.finalbody if isinstance(node, ast.Try) else ():
            lines.update(range(statement.lineno, (statement.end_lineno or 0) + 1))
        if isinstance(node, ast.FunctionDef) and node.name in IN_CALLBACKS:
            lines.update(range(node.lineno, (node.end_lineno or 0) + 1))
    return frozenset(lines)


def by_sigint(delay_s: float) -> Callable[[Callable[[], None]], bool]:
    """Interrupts by Ctrl-C after a delay."""
    main = threading.main_thread().ident
    assert main is not None

    def breaking(action: Callable[[], None]) -> bool:
        timer = threading.Timer(delay_s, signal.pthread_kill, (main, signal.SIGINT))
        try:
            timer.start()
            action()
            timer.join()
            time.sleep(0.001)
        except KeyboardInterrupt:
            timer.join()
            return True
        raise AssertionError("the signal did not come")

    return breaking


def by_limit(size: int) -> Callable[[Callable[[], None]], bool]:
    """Limits the address space to `size` more bytes."""

    def breaking(action: Callable[[], None]) -> bool:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + size, resource.RLIM_INFINITY))
        try:
            action()
        except MemoryError:
            return True
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return False

    return breaking


def interrupt(seed: int, ticks: int, folder: str | None) -> int:
    """Ticks, and a third as many definitions, interrupted by Ctrl-C; returns the number of interruptions."""
    rng = random.Random(seed)
    with deltic.Session(state=folder) as session:
        broken, heard = Broken(session, rng), list[pa.Table]()
        session.view("copied").subscribe(heard.append)
        for _ in range(3):
            broken.tick(5, lambda action: bool(action()))
        began = time.perf_counter()
        broken.tick(5, lambda action: bool(action()))
        span_s = 1.5 * (time.perf_counter() - began)
        count = sum(broken.tick(5, by_sigint(rng.uniform(0, span_s))) for _ in range(ticks))
        count += sum(broken.define(by_sigint(rng.uniform(0, 5 * span_s))) for _ in range(ticks // 3))
        broken.tick(5, lambda action: bool(action()))
        rows = [tuple(row.values()) for change in heard for row in change.to_pylist()]
        assert Relation((row[:-1], row[-1]) for row in rows) == broken.tables()["orders"], "a commit was not heard of, or twice"
        return count


def starve(seed: int, times: int) -> int:
    """Runs ticks until a memory limit has interrupted this number of them; each that it leaves alone makes it smaller.

    The first has no limit: it loads kernels, and LLVM ends the process where it finds no memory.
    Needs the environment SYSTEM_MEMORY: what is freed must not be used again within a limit.
    """
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # a thread that starts without memory ends the process
    rng = random.Random(seed)
    with deltic.Session() as session:
        session.sql(WIDE)
        session.apply({"t": numbered(0)})
        at, broken, size = ROWS, 0, rng.randrange(LARGEST)
        while broken < times:
            assert size, "no limit broke a tick"
            rows = numbered(at)
            if by_limit(size)(lambda rows=rows: session.apply({"t": rows})):
                broken, size = broken + 1, rng.randrange(LARGEST)
                assert counted(session) == {at}
                session.apply({"t": rows})
            else:
                size //= 2
            at += ROWS
            assert counted(session) == {at}
        return broken


def numbered(first: int) -> pa.Table:
    """Inserts of ROWS rows."""
    return pa.table({"id": range(first, first + ROWS), "amount": [first] * ROWS, "_op": ["insert"] * ROWS})


ROWS = 20_000
LARGEST = 64 << 20
SYSTEM_MEMORY = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536", "ARROW_DEFAULT_MEMORY_POOL": "system"}
"""Every array is mapped by itself, and unmapped when it is freed."""
WIDE = "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, amount BIGINT);" + ";".join(
    f"CREATE MATERIALIZED VIEW v{i} AS SELECT id + {i} AS id, amount FROM t" for i in range(5)
)


def counted(session: deltic.Session) -> set[int]:
    """The numbers of rows of the views: a single one if they agree."""
    return {session.view(name).to_arrow().num_rows for name in session.views}


if __name__ == "__main__":
    kind, seed, times, *folder = sys.argv[1:]
    print(interrupt(int(seed), int(times), folder[0] if folder else None) if kind == "sigint" else starve(int(seed), int(times)))
