"""Streams and delays in Datalog: the fold in bounded memory, R-N, S', feedback over transactions; equal to the oracle at every tick."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import deltic
from deltic.cli import main
from deltic.cli.exits import Exit
from deltic.errors import CatalogError, DelticError, Unsupported
from deltic.frontends.datalog import bind_datalog
from deltic.plan.evaluate import Moment, evaluate
from deltic.plan.relation import Relation
from deltic.session import Datalog
from deltic.session.catalog import Catalog
from deltic.session.datalog import datalog_statements
from deltic.session.draft import Draft
from parts import slow
from seeds import rotating

FOLD = """
input stream Event(k: s64, v: s64)
input relation Keys(k: s64)
multiset Fold(k: s64, v: s64)
output relation Sum(k: s64, s: s64)
Fold(k, v) :- Event'(k, v), Keys(k).
Fold(k, s) :- Sum-1(k, s), Keys(k).
Sum(k, s) :- Fold(k, v), var s = v.group_by(k).sum().
"""
PROGRAM = f"""
{FOLD}
output stream Joined(k: s64, v: s64)
Joined(k, v) :- Event(k, v), Keys(k), v > 1.
output stream Grouped(k: s64, s: s64, n: usize)
Grouped(k, s, n) :- Event(k, v), var g = v.group_by(k), var s = g.sum(), var n = g.count().
output relation Now(k: s64, v: s64)
Now(k, v) :- Event'(k, v), not Keys(k).
output stream Before(k: s64, v: s64)
Before(k, v) :- Event-1(k, v).
output relation Gone(k: s64)
Gone(k) :- Keys-2(k), not Keys(k).
output relation Seen(k: s64)
Seen(k) :- Event'(k, _).
Seen(k) :- Seen-1(k).
output relation Path(x: s64, y: s64)
Path(x, y) :- Now(x, y).
Path(x, y) :- Path-2(x, y), Seen(x), not Path-1(y, x).
Path(x, z) :- Path(x, y), Path(y, z).
output relation Folded(k: s64, s: s64, n: usize)
Folded(k, p.0, p.1) :- Event(k, v), Keys(k), var p = (k, v).stream_aggregate(k, |acc: (s64, usize), e, w| step(acc, e.1, w), (0, 1)).
function step(acc: (s64, usize), v: s64, w: s64): Option<(s64, usize)> = if (v == 3) None else Some{{(acc.0 * 2 + v * w, acc.1 + 1)}}
"""


def contents(session: deltic.Session, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in session.view(name).rows())


def tick(session: deltic.Session, events: Any = (), added: Any = (), removed: Any = ()) -> None:
    with session.transaction() as tx:
        tx.delete("Keys", [{"k": k} for k in removed])
        tx.insert("Keys", [{"k": k} for k in added])
        tx.insert("Event", [{"k": k, "v": v} for k, v in events])


def test_the_fold_forgets_a_key() -> None:
    with deltic.Session() as session:
        session.datalog(FOLD)
        tick(session, [(1, 4), (1, 4)], [1])
        tick(session, [(1, 2), (2, 7)])
        assert contents(session, "Sum") == [(1, 10)]
        tick(session, [(1, 10)])  # an old sum that is equal to a new value does not merge with it
        assert contents(session, "Sum") == [(1, 20)]
        tick(session, removed=[1])
        assert contents(session, "Sum") == []
        tick(session, [(1, 100)])
        tick(session, [(1, 300)], [1])
        assert contents(session, "Sum") == [(1, 300)]


def run(seed: int, options: dict[str, Any]) -> None:
    draft = Draft(Catalog())
    for statement in datalog_statements(Datalog(PROGRAM), draft):
        draft.apply(statement)
    plans = draft.catalog.plans()
    random, keys = Random(seed), set[int]()
    moments = [Moment({"Event": {}, "Keys": {}})]  # the definition is a tick, too
    session = opened(options)
    try:
        for number in range(8):
            if "state" in options and number % 3 == 2:
                session.close()
                session = opened({**options, "shards": random.choice((1, 2, 3))} if "shards" in options else options)
            events = [(random.randrange(4), random.randrange(4)) for _ in range(random.randrange(5))]
            added = [k for k in range(4) if k not in keys and random.random() < 0.4]
            removed = [k for k in sorted(keys) if random.random() < 0.3]
            keys = (keys - set(removed)) | set(added)
            tick(session, events, added, removed)
            moments.append(Moment({"Event": Relation((event, 1) for event in events), "Keys": {(k,): 1 for k in keys}}))
            for name, plan in plans.items():
                expected = evaluate(plan, moments[-1].tables, past=moments[:-1])
                assert Relation((row, 1) for row in contents(session, name)) == expected, (seed, number, name)
    finally:
        session.close()


def opened(options: dict[str, Any]) -> deltic.Session:
    session = deltic.Session(**options)
    session.datalog(PROGRAM)
    return session


@pytest.mark.parametrize("seed", [0, 1, 2, 3, *slow(*rotating(396))])
def test_random_ticks_equal_the_oracle(seed: int, tmp_path: Path) -> None:
    run(seed, [{}, {"shards": 3}, {"state": tmp_path / "s"}, {"state": tmp_path / "s", "shards": 2}][seed % 4])


@pytest.mark.slow
@pytest.mark.spark
def test_streams_on_spark(spark: Any, tmp_path: Path) -> None:
    run(0, {"spark": spark, "state": tmp_path / "s", "shards": 2})


def test_streams_in_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.dl").write_text(FOLD + "output stream Big(v: s64)\nBig(v) :- Event(_, v), v > 5.\n")
    (tmp_path / "p.dat").write_text(
        "start; insert Keys(1), insert Event(1, 7), insert Event(1, 7); commit dump_changes; dump Big;\nstart; commit dump_changes; dump;"
    )
    assert main(["datalog", str(tmp_path / "p.dl"), "--script", str(tmp_path / "p.dat")]) == Exit.OK
    first = "Sum:\nSum{.k = 1, .s = 14}: +1\nBig:\nBig{.v = 7}: +2\nBig{.v = 7}\nBig{.v = 7}\n"
    assert capsys.readouterr().out == first + "Sum:\nSum{.k = 1, .s = 14}\n\nBig:\n\n"
    (tmp_path / "p.dat").write_text("dump Event;")
    assert main(["datalog", str(tmp_path / "p.dl"), "--script", str(tmp_path / "p.dat")]) == Exit.INPUT
    shown = capsys.readouterr().err
    assert "Event is an input stream, whose rows are gone after the transaction" in shown and "dump an output stream" in shown
    (tmp_path / "p.dat").write_text("start; insert Event(1, 7); clear Event; commit;")
    assert main(["datalog", str(tmp_path / "p.dl"), "--script", str(tmp_path / "p.dat")]) == Exit.INPUT
    assert "p.dat:1:28: the rows of the stream Event cannot be deleted" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rules", "place", "message"),
    [
        ("S(x) :- T(x), T(x).", "6:15", "a join of the streams T and T"),
        ("S(x) :- T(x), T-1(x).", "6:15", "a join of the streams T and T"),
        ("R(x) :- A(x), not T(x).", "6:19", "a negated stream"),
        ("S(x) :- T(x), not A(x).", "6:19", "an antijoin after a stream"),
        ("R(x) :- R(x), T'(x).", "6:15", "a stream in the recursion of R"),
        ("S(x) :- S(x), A(x).", "6:9", "a stream in the recursion of S"),
        ("R(x) :- T(x).", "6:1", "the relation R would be derived from the stream T"),
        ("S(x) :- A(x).", "6:1", "the stream S is derived without a stream"),
        ("S(x) :- T'(x).", "6:1", "the stream S is derived without a stream"),
        ("S(1).", "6:1", "the stream S is derived without a stream"),
        ("R(x) :- A'(x).", "6:9", "A' of a relation"),
        ("R-1(x) :- A(x).", "6:1", "the head of a rule is delayed or differentiated"),
        ("S'(x) :- T(x).", "6:1", "the head of a rule is delayed or differentiated"),
        ("index I(x: s64) on T(x)", "6:20", "an index on a stream"),
        ("index I(x: s64) on A-1(x)", "6:20", "an index is on a relation of the program"),
        ("input stream U(x: s64) primary key (u) u.x", "6:40", "a stream has no primary key"),
        ("R(x) :- A(x), not R(x).", "6:19", "relation R depends on itself through negation"),
    ],
)
def test_errors(rules: str, place: str, message: str) -> None:
    program = f"input stream T(x: s64)\ninput relation A(x: s64)\nstream S(x: s64)\nrelation R(x: s64)\n\n{rules}"
    with pytest.raises(Unsupported) as caught:
        draft = Draft(Catalog())
        for statement in bind_datalog(program, "test").statements(draft):
            draft.apply(statement)
    assert message in str(caught.value)
    assert caught.value.span is not None
    assert f"{caught.value.span.line}:{caught.value.span.column}" == place
    assert "help: " in str(caught.value)


SESSION = """
    CREATE STREAM q (k BIGINT NOT NULL, v BIGINT NOT NULL);
    CREATE VIEW w AS SELECT k, v FROM q WHERE v > 0;
    CREATE TABLE n (k BIGINT NOT NULL);
"""


def of_session(program: str) -> deltic.Session:
    session = deltic.Session()
    session.sql(SESSION)
    session.datalog(program)
    return session


@pytest.mark.parametrize("stream", ["Q", "W"])
@pytest.mark.parametrize(
    ("program", "message", "remedy"),
    [
        ("output relation O(k: s64)\nO(k) :- @(k, _).", "the relation O would be derived from the stream @", "@'(…)"),
        ("output relation O(k: s64)\nO(k) :- @(k, _).\nindex I(k: s64) on O(k)", "would be derived from the stream @", "@'(…)"),
        ("output stream O(k: s64)\nO(k) :- @(k, _).\nO(k) :- N(k).", "the stream O is derived without a stream", "declare O as a relation"),
        ("output relation O(k: s64)\nO(k) :- N(k), not @(k, _).", "a negated stream", "@'(…)"),
        ("output stream O(k: s64)\nO(k) :- @(k, _), @(_, k).", "a join of the streams @ and @", "@'(…)"),
        ("output relation O(k: s64)\nO(k) :- N'(k).", "N' of a relation", "read N"),
        ("output relation O(k: s64)\nO(k) :- N(k).\nO(k) :- O(k), @'(k, _).", "a stream in the recursion of O", "outside the recursion"),
    ],
)
def test_streams_of_the_session_are_streams_in_rules(stream: str, program: str, message: str, remedy: str) -> None:
    with pytest.raises(Unsupported) as caught:
        of_session(program.replace("@", stream))
    assert message.replace("@", stream) in str(caught.value) and caught.value.span is not None
    assert remedy.replace("@", stream) in str(caught.value.remedy) and "current()" not in str(caught.value)


@pytest.mark.parametrize("stream", ["Q", "W"])
def test_rules_over_streams_of_the_session(stream: str) -> None:
    program = """
        output stream O(k: s64, v: s64)
        O(k, v) :- @(k, v), N(k).
        output relation Sum(k: s64, s: s64)
        Sum(k, s) :- @(k, v), var s = v.stream_aggregate(k, |a: s64, x, w| a + x * w, 0).
        output relation Now(k: s64)
        Now(k) :- N(k), not @'(k, _).
    """
    with of_session(program.replace("@", stream)) as session:
        session.apply({"n": [{"k": 1, "_weight": 1}, {"k": 2, "_weight": 1}], "q": [{"k": 1, "v": 5, "_weight": 2}]})
        assert [contents(session, name) for name in ("O", "Sum", "Now")] == [[(1, 5), (1, 5)], [(1, 10)], [(2,)]]
        session.apply({"q": [{"k": 2, "v": 1, "_weight": 1}]})
        assert [contents(session, name) for name in ("O", "Sum", "Now")] == [[(2, 1)], [(1, 10), (2, 1)], [(1,)]]


@pytest.mark.parametrize(
    ("name", "declared", "atom", "message"),
    [
        ("Q", "relation Q(k: s64, v: s64)", "Q(k, v)", "has a stream q"),
        ("N", "stream N(k: s64)", "N(k)", "has a table n"),
    ],
)
def test_an_input_is_declared_as_what_it_is_in_the_session(name: str, declared: str, atom: str, message: str) -> None:
    with pytest.raises(CatalogError, match=message):
        of_session(f"input {declared}\noutput {declared.replace(name, 'O')}\n{atom.replace(name, 'O')} :- {atom}.")


def test_a_view_that_rules_read_cannot_become_a_stream() -> None:
    with deltic.Session() as session:
        session.sql("CREATE STREAM q (k BIGINT NOT NULL); CREATE VIEW w AS SELECT k FROM integrate(q)")
        session.datalog("output relation O(k: s64)\nO(k) :- W(k).")
        with pytest.raises(DelticError, match="would be derived from the stream W"):
            session.sql("CREATE OR REPLACE VIEW w AS SELECT k FROM q")


@pytest.mark.filterwarnings("ignore::deltic.errors.DatalogWarning")
def test_a_stream_that_nothing_derives_is_an_empty_relation() -> None:
    program = "stream S(k: s64)\ninput relation N(k: s64)\noutput relation O(k: s64)\nO(k) :- S'(k).\nO(k) :- N(k), not S'(k)."
    with of_session(program) as session:
        session.apply({"n": [{"k": 1, "_weight": 1}]})
        assert contents(session, "O") == [(1,)]
