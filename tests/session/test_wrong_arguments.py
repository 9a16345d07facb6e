"""Arguments of a wrong type: each is an error of Deltic that shows the argument, never a TypeError from inside; nothing is applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.errors import DelticError

SURROGATE = "/tmp/\ud800x"
SCRIPT = "CREATE TABLE t (a BIGINT PRIMARY KEY, b STRING); CREATE MATERIALIZED VIEW v AS SELECT * FROM t"
ROW = {"a": 1, "b": "x", "_op": "insert"}

Call = Callable[[Any], object]
ON_SESSIONS: dict[str, Call] = {
    "sql None": lambda s: s.sql(None),
    "sql number": lambda s: s.sql(5),
    "sql bytes": lambda s: s.sql(b"x"),
    "datalog number": lambda s: s.datalog(5),
    "datalog None": lambda s: s.datalog(None),
    "datalog bytes": lambda s: s.datalog(b"x"),
    "program number": lambda s: s.program(5),
    "program None": lambda s: s.program(None),
    "program path": lambda s: s.program(Path("x")),
    "program notes": lambda s: s.program("", notes=5),
    "view number": lambda s: s.view(5),
    "view None": lambda s: s.view(None),
    "view bytes": lambda s: s.view(b"v"),
    "table": lambda s: s.table(5),
    "explain": lambda s: s.explain(5),
    "apply number": lambda s: s.apply(5),
    "apply None": lambda s: s.apply(None),
    "apply list": lambda s: s.apply([("t", [])]),
    "apply to number": lambda s: s.apply({5: []}),
    "apply frame": lambda s: s.apply({"t": 5}),
    "apply sequence": lambda s: s.apply({"t": [ROW]}, sequence=5),
    "apply sequences": lambda s: s.apply({"t": [ROW]}, sequence={"t": 5}),
    "apply sequence list": lambda s: s.apply({"t": [ROW]}, sequence=["a"]),
    "apply notes": lambda s: s.apply({}, notes=5),
    "apply note of number": lambda s: s.apply({}, notes={5: 5}),
    "advance_to": lambda s: s.advance_to("x"),
    "register": lambda s: s.register(5),
    "install": lambda s: s.install(5),
    "subscribe": lambda s: s.view("v").subscribe(5),
    "changes text": lambda s: s.view("v").changes("x"),
    "changes fraction": lambda s: s.view("v").changes(1.5),
    "changes list": lambda s: s.view("v").changes([]),
    "lookup": lambda s: s.view("v").lookup(object()),
    "circuit input": lambda s: deltic.Circuit(s).input(5),
    "circuit view": lambda s: deltic.Circuit(s).view(5),
    "insert": lambda s: _in_transaction(s, lambda tx: tx.insert(5, [])),
    "delete": lambda s: _in_transaction(s, lambda tx: tx.delete(5, [])),
    "transaction sequence": lambda s: _in_transaction(s, lambda tx: tx.apply("t", [ROW], sequence=5)),
}
ON_HANDLES: dict[str, Call] = {
    "view number": lambda handle: handle.view(5),
    "view None": lambda handle: handle.view(None),
    "epoch text": lambda handle: handle.view("v", epoch="x"),
    "epoch list": lambda handle: handle.view("v", epoch=[]),
    "epoch truth": lambda handle: handle.view("v", epoch=True),
    "changes text": lambda handle: handle.view("v").changes("x"),
    "changes fraction": lambda handle: handle.view("v").changes(1.5),
    "lookup": lambda handle: handle.view("v").lookup(object()),
    "open epoch text": lambda handle: deltic.open(handle.root, epoch="x"),
    "open epoch fraction": lambda handle: deltic.open(handle.root, epoch=1.5),
    "open epoch truth": lambda handle: deltic.open(handle.root, epoch=True),
}
ALONE: dict[str, Callable[[], object]] = {
    "state surrogate": lambda: deltic.Session(state=SURROGATE),
    "state bytes": lambda: deltic.Session(state=b"/tmp/x"),
    "open surrogate": lambda: deltic.open(SURROGATE),
    "open number": lambda: deltic.open(5),
    "open None": lambda: deltic.open(None),
    "open NUL": lambda: deltic.open("a\0b"),
    "open empty": lambda: deltic.open(""),
    "open bytes": lambda: deltic.open(b"x"),
    "program number": lambda: deltic.Program(5),
    "program surrogate": lambda: deltic.Program(Path(SURROGATE)),
    "program NUL": lambda: deltic.Program(Path("a\0b")),
    "pipeline": lambda: deltic.Pipeline(5),
    "variant of None": lambda: deltic.Variant.parse_json(None),
    "variant of bytes": lambda: deltic.Variant.parse_json(b"1"),
    "circuit": lambda: deltic.Circuit(5),
    "watermark": lambda: deltic.Watermark(5, 5),
}


def _in_transaction(session: deltic.Session, change: Callable[[deltic.Transaction], object]) -> None:
    with session.transaction() as tx:
        change(tx)


@pytest.fixture(scope="module", params=["memory", "folder"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[deltic.Session]:
    state = tmp_path_factory.mktemp("wrong") / "state" if request.param == "folder" else None
    with deltic.Session(state=state) as session:
        session.sql(SCRIPT)
        session.apply({"t": [ROW]})
        yield session


@pytest.fixture(scope="module")
def handle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[deltic.ReadOnlyState]:
    folder = tmp_path_factory.mktemp("handle") / "state"
    with deltic.Session(state=folder) as session:
        session.sql(SCRIPT)
        session.apply({"t": [ROW]})
    with deltic.open(folder) as handle:
        yield handle


@pytest.mark.parametrize("name", ON_SESSIONS)
def test_of_a_session(session: deltic.Session, name: str) -> None:
    before = session.epoch, session.view("v").rows()
    with pytest.raises(DelticError):
        ON_SESSIONS[name](session)
    assert (session.epoch, session.view("v").rows()) == before


@pytest.mark.parametrize("name", ON_HANDLES)
def test_of_a_read_only_state(handle: deltic.ReadOnlyState, name: str) -> None:
    with pytest.raises(DelticError):
        ON_HANDLES[name](handle)


@pytest.mark.parametrize("name", ALONE)
def test_of_a_constructor(name: str) -> None:
    with pytest.raises(DelticError):
        ALONE[name]()


def test_errors_show_the_argument_and_what_is_expected(session: deltic.Session) -> None:
    texts = {
        "script": (lambda: session.sql(b"x"), "invalid script b'x'", "SQL as a string"),
        "view": (lambda: session.view(5), "invalid name 5 of a view", "a string"),
        "changes": (lambda: session.apply(5), "invalid changes 5", "a dict of change frames by table"),
        "open": (lambda: deltic.open(5), "invalid state location 5", "the path of a folder, or a URL"),
        "epoch": (lambda: session.view("v").changes("x"), "invalid epoch 'x'", "an integer"),
    }
    for call, message, expected in texts.values():
        with pytest.raises(DelticError) as caught:
            call()
        assert message in str(caught.value) and expected in (caught.value.expected or "")
