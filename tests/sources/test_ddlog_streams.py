"""Each worked example of the published text on streaming aggregates, corrected where it errs, and what it says of streams."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.cli import main
from deltic.cli.exits import Exit
from deltic.errors import QueryError
from session_rows import touched_rows

EVENTS = "input stream R1(k: string, v: s64)\n"
FOLD = """
input relation Keys(k: string)
multiset Fold(k: string, v: s64)
output relation Sum(k: string, s: s64)
Fold(k, v) :- R1'(k, v), Keys(k).
Fold(k, s) :- Sum-1(k, s), Keys(k).
Sum(k, s) :- Fold(k, v), var s = v.group_by(k).sum().
"""


class Running:
    """A program with the streams and relations of the examples."""

    def __init__(self, program: str, **options: Any) -> None:
        self.session = deltic.Session(**options)
        self.session.datalog(program, warn=False)

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def tick(self, *events: tuple[Any, ...], stream: str = "R1", **changed: Iterable[tuple[Any, ...]]) -> None:
        """One transaction: rows of the stream, and insertions into relations; deletions have `del_` before the relation's name."""
        with self.session.transaction() as tx:
            for name, rows in changed.items():
                table = name.removeprefix("del_")
                (tx.delete if table != name else tx.insert)(table, self._rows(table, rows))
            tx.insert(stream, self._rows(stream, events))

    def _rows(self, table: str, rows: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
        names = [field.name for field in self.session.table(table).schema]
        return [dict(zip(names, row, strict=True)) for row in rows]

    def rows(self, view: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row.values()) for row in self.session.view(view).rows())

    def changes(self, view: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row.values()) for row in self.session.view(view).changes().to_pylist())

    def state_rows(self) -> int:
        return self.state()[0]

    def state(self) -> tuple[int, int]:
        """The rows and the bytes of the state."""
        rows, size = zip(*self.session._runtime.statistics().values(), strict=True)
        return sum(rows), sum(size)

    def kept(self, ticks: int, *events: tuple[Any, ...]) -> list[int]:
        """The rows of the state after each of so many transactions. Changes that cancel each other stay until runs are merged."""
        found = []
        for _ in range(ticks):
            self.tick(*events)
            found.append(self.state_rows())
        return found


def refused(program: str, message: str, place: str) -> None:
    with deltic.Session() as session, pytest.raises(QueryError) as caught:
        session.datalog(program, warn=False)
    assert message in str(caught.value)
    assert caught.value.span is not None
    assert f"{caught.value.span.line}:{caught.value.span.column}" == place


# the examples


def test_the_sum_of_a_stream_keeps_the_sum_alone() -> None:
    """Values count as often as they occur, which the example forgets; its loop over the group is the step of the fold."""
    program = """
        input stream R1(x: usize, y: string)
        output relation R2(y: string, sum: usize)
        R2(y, sum) :- R1(x, y), var sum = x.stream_aggregate((y), |acc: usize, v, w| (acc as s64 + v * w) as usize, 0).
    """
    with Running(program) as running:
        running.tick((3, "a"), (3, "a"), (4, "b"))
        assert running.rows("R2") == [("a", 6), ("b", 4)]
        kept = running.kept(200, (1, "a"))
        assert running.rows("R2") == [("a", 206), ("b", 4)]
        assert running.changes("R2") == [("a", 205, -1), ("a", 206, 1)]
        assert kept[-1] <= max(kept[:30])


def test_the_set_of_all_values() -> None:
    program = """
        input stream R1(x: s64, y: string)
        output relation Values(y: string, all: Vec<s64>)
        Values(y, all) :- R1(x, y), var all = x.stream_aggregate((y), |acc: Vec<s64>, v, w| added(acc, v), []).
        extern function added(acc: Vec<s64>, v: s64): Vec<s64>
    """

    def added(values: list[int], value: int) -> list[int]:
        return sorted({*values, value})

    with deltic.Session() as session:
        session.register("added", added, "ARRAY<BIGINT>")
        session.datalog(program)
        for values in ((3, 1, 3), (2, 1)):
            session.apply({"R1": [{"x": x, "y": "a", "_weight": 1} for x in values]})
        assert session.view("Values").rows() == [{"y": "a", "all": [1, 2, 3]}]


def test_an_enum_resets_the_accumulator() -> None:
    """The first of the two ways to drop a key: a value of the stream says so."""
    program = """
        input stream R1(x: Option<s64>, y: string)
        output relation R2(y: string, sum: s64)
        R2(y, sum) :- R1(x, y), var sum = x.stream_aggregate((y), |acc, v, w| match (v) { None -> None, Some{x} -> Some{acc + x * w} }, 0).
    """
    some = lambda x: {"tag": "Some", "x": x}  # noqa: E731
    with Running(program) as running:
        running.tick((some(4), "a"), (some(6), "a"), (some(1), "b"))
        assert running.rows("R2") == [("a", 10), ("b", 1)]
        running.tick(({"tag": "None", "x": None}, "a"))
        assert running.rows("R2") == [("b", 1)]
        running.tick((some(300), "a"))
        assert running.rows("R2") == [("a", 300), ("b", 1)]


def test_a_relation_does_not_become_a_stream_in_silence() -> None:
    """The second way adds an indicator for each key of a relation to the stream: a stream derived from a relation."""
    program = """input relation Ys(y: string)
        input stream R1(x: s64, y: string)
        stream R1_1(x: Option<s64>, y: string)
        R1_1(Some{x}, y) :- R1(x, y), Ys(y).
        R1_1(None, y) :- Ys(y)."""
    refused(program, "the stream R1_1 is derived without a stream", "5:9")


@pytest.mark.parametrize(
    ("rule", "message", "place"),
    [
        ("R1'(k, s) :- Sum(k, s).", "the input relation R1 is the head of a rule", "4:1"),
        ("Sum'(k, s) :- R1'(k, s).", "the head of a rule is delayed or differentiated", "4:1"),
        ("Sum-1(k, s) :- R1'(k, s).", "the head of a rule is delayed or differentiated", "4:1"),
        ("R1(k, v) -= R1{-1}(k, v).", "unexpected", "4:10"),
        ("Sum(k, s) :- R1(k, v), Keys(k), var s = v.group_by(k).sum().", "the relation Sum would be derived from the stream R1", "4:1"),
    ],
)
def test_what_the_discussion_proposed_and_dropped(rule: str, message: str, place: str) -> None:
    """Next-state heads, retraction by rules, and a relation that is the sum of a stream, which would have to forget rows."""
    refused(f"{EVENTS}input relation Keys(k: string)\noutput relation Sum(k: string, s: s64)\n{rule}", message, place)


@pytest.mark.parametrize("options", [{}, {"shards": 3}])
def test_the_fold_with_keys_forgets_a_key(options: dict[str, Any]) -> None:
    with Running(EVENTS + FOLD, **options) as running:
        running.tick(("a", 4), Keys=[("a",)])
        running.tick(("a", 6), ("b", 1))
        assert running.rows("Sum") == [("a", 10)]
        running.tick(del_Keys=[("a",)])
        assert running.rows("Sum") == []
        running.tick(("a", 5))
        assert running.rows("Sum") == []
        running.tick(("a", 300), Keys=[("a",)])
        assert running.rows("Sum") == [("a", 300)]


def test_an_old_sum_does_not_merge_with_a_new_value() -> None:
    """With the set that the text declares, 10 and 10 are one row; the fold is a multiset."""
    with Running(EVENTS + FOLD) as multiset, Running(EVENTS + FOLD.replace("multiset Fold", "relation Fold")) as as_set:
        for running in (multiset, as_set):
            running.tick(("a", 10), Keys=[("a",)])
            running.tick(("a", 10))
        assert multiset.rows("Sum") == [("a", 20)]
        assert as_set.rows("Sum") == [("a", 10)]


def test_the_fold_keeps_one_row_for_each_key() -> None:
    with Running(EVENTS + FOLD) as running:
        running.tick(Keys=[("a",), ("b",)])
        kept = running.kept(200, ("a", 1), ("b", 3), ("other", 1))
        assert running.rows("Sum") == [("a", 200), ("b", 600)]
        assert kept[-1] <= max(kept[:30])


def test_the_set_of_values_by_a_fold() -> None:
    """Left is the set so far, Right a new value."""
    program = """
        typedef Either<'A, 'B> = Left{l: 'A} | Right{r: 'B}
        input relation Keys(k: string)
        multiset Rfold(k: string, v: Either<Set<s64>, s64>)
        relation Element(k: string, x: s64)
        output relation UniqueSet(k: string, all: Set<s64>)
        Rfold(k, Right{v}) :- R1'(k, v), Keys(k).
        Rfold(k, Left{s}) :- UniqueSet-1(k, s), Keys(k).
        Element(k, x) :- Rfold(k, Right{x}).
        Element(k, x) :- Rfold(k, Left{s}), var x = FlatMap(s).
        UniqueSet(k, s) :- Element(k, x), var s = x.group_by(k).to_set().
    """
    with Running(EVENTS + program) as running:
        running.tick(("a", 3), ("a", 1), ("a", 3), Keys=[("a",)])
        running.tick(("a", 2), ("a", 1))
        assert running.rows("UniqueSet") == [("a", [1, 2, 3])]
        running.tick(del_Keys=[("a",)])
        running.tick(("a", 7), Keys=[("a",)])
        assert running.rows("UniqueSet") == [("a", [7])]


def test_an_aggregate_of_a_stream_is_a_stream() -> None:
    """The third option: everything is a stream, and no old value is retracted."""
    program = (
        "input relation Keys(k: string)\noutput stream Sum(k: string, s: s64)\nSum(k, s) :- R1(k, v), Keys(k), var s = v.group_by(k).sum()."
    )
    with Running(EVENTS + program) as running:
        running.tick(("a", 1), ("a", 1), ("b", 5), Keys=[("a",)])
        assert running.changes("Sum") == [("a", 2, 1)]
        running.tick(("a", 7))
        assert running.changes("Sum") == [("a", 7, 1)]
        running.tick()
        assert running.changes("Sum") == [] == running.rows("Sum")


# what holds of streams


def test_a_stream_is_a_multiset_of_one_transaction_and_keeps_nothing() -> None:
    program = "input relation L(k: string, w: s64)\noutput stream J(k: string, v: s64, w: s64)\nJ(k, v, w) :- R1(k, v), L(k, w)."
    with Running(EVENTS + program) as running:
        running.tick(("a", 1), ("a", 1), L=[("a", 7)])
        assert running.changes("J") == [("a", 1, 7, 2)]
        running.tick(("b", 2), L=[("b", 8)])  # the relation as of this commit
        assert running.changes("J") == [("b", 2, 8, 1)]
        running.tick(del_L=[("a", 7)], L=[("a", 9)])  # earlier records are not looked at again
        assert running.changes("J") == []
        kept = running.state()
        assert running.kept(3, ("b", 2), ("c", 3)) == [kept[0]] * 3
        assert running.state() == kept


def test_a_relation_keeps_its_rows_until_they_are_deleted() -> None:
    with Running(EVENTS + "input relation L(k: string)\noutput relation Kept(k: string)\nKept(k) :- L(k).") as running:
        running.tick(L=[("x",), ("y",)])
        running.tick(("x", 1))
        assert running.rows("Kept") == [("x",), ("y",)]
        running.tick(del_L=[("x",)])
        assert (running.rows("Kept"), running.changes("Kept")) == ([("y",)], [("x", -1)])


def test_aggregates_honour_weights() -> None:
    """Of a stream, and of a relation that is a multiset; stream_aggregate has the weight of each value."""
    result = "(k, n, s, a) :- {}(k, v), var g = v.group_by(k), var n = g.count(), var s = g.sum(), var a = g.avg()."
    program = f"""
        multiset Copies(k: string, v: s64)
        Copies(k, 5) :- R1'(k, _).
        output stream OfStream(k: string, n: usize, s: s64, a: double)
        OfStream{result.format("R1")}
        output relation OfRelation(k: string, n: usize, s: s64, a: double)
        OfRelation{result.format("Copies")}
        output relation Weights(k: string, w: s64)
        Weights(k, w) :- R1(k, v), var w = v.stream_aggregate(k, |acc: s64, _v, w| acc * 10 + w, 0).
    """
    with Running(EVENTS + program) as running:
        running.tick(("a", 1), ("a", 1), ("a", 4), ("b", 2))
        assert running.rows("OfStream") == [("a", 3, 6, 2.0), ("b", 1, 2, 2.0)]
        assert running.rows("OfRelation") == [("a", 3, 15, 5.0), ("b", 1, 5, 5.0)]
        assert running.rows("Weights") == [("a", 21), ("b", 1)]


def test_a_delayed_atom_breaks_a_cycle() -> None:
    """Without the delay the negation of itself is refused."""
    program = """
        input relation L(k: string)
        output relation Flip(k: string)
        Flip(k) :- L(k), not Flip{}(k).
        output relation Third(k: string)
        Third(k) :- R1'(k, _).
        Third(k) :- Third-3(k).
    """
    with Running(EVENTS + program.format("-1")) as running:
        seen = []
        for number in range(5):
            running.tick(*([("a", 1)] if number == 0 else []), L=[("x",)] if number == 0 else [])
            seen.append((running.rows("Flip"), running.rows("Third")))
        on, third = [("x",)], [("a",)]
        assert seen == [(on, third), ([], []), (on, []), ([], third), (on, [])]
    refused(EVENTS + program.format(""), "relation Flip depends on itself through negation", "5:30")


def test_contents_of_earlier_transactions() -> None:
    program = """
        input relation L(k: string)
        output stream Old(k: string, v: s64)
        Old(k, v) :- R1-2(k, v).
        output relation Lost(k: string)
        Lost(k) :- L-1(k), not L(k).
        output relation Now(k: string)
        Now(k) :- R1'(k, _).
    """
    with Running(EVENTS + program) as running:
        running.tick(("a", 1), ("a", 1), L=[("x",), ("y",)])
        assert (running.changes("Old"), running.rows("Lost"), running.changes("Now")) == ([], [], [("a", 1)])
        running.tick(("b", 2), del_L=[("x",)])
        assert (running.changes("Old"), running.rows("Lost"), running.changes("Now")) == ([], [("x",)], [("a", -1), ("b", 1)])
        running.tick()
        assert (running.changes("Old"), running.rows("Lost"), running.changes("Now")) == ([("a", 1, 2)], [], [("b", -1)])


def test_removing_a_key_frees_its_state() -> None:
    """Keys that come and go: what they leave is gone as soon as runs are merged."""
    with Running(EVENTS + FOLD) as running:
        kept = []
        for number in range(24):
            keys = [(f"{number} {i}",) for i in range(20)]
            running.tick(*((key, 1) for (key,) in keys), Keys=keys)
            running.tick(del_Keys=keys)
            kept.append(running.state_rows())
        assert kept[-1] <= max(kept[:12])


def test_windows_are_a_relation() -> None:
    """Windows come and go while the program runs; a removed one is forgotten."""
    program = """
        input stream Reading(at: s64, v: s64)
        input relation Window(start: s64, end: s64)
        multiset Part(start: s64, v: s64)
        output relation Total(start: s64, s: s64)
        Part(a, v) :- Reading'(t, v), Window(a, b), t >= a, t < b.
        Part(a, s) :- Total-1(a, s), Window(a, _).
        Total(a, s) :- Part(a, v), var s = v.group_by(a).sum().
    """
    with Running(program) as running:
        running.tick((1, 5), (12, 7), stream="Reading", Window=[(0, 10), (10, 20)])
        running.tick((3, 1), (11, 1), (25, 9), stream="Reading", Window=[(20, 30)])
        assert running.rows("Total") == [(0, 6), (10, 8), (20, 9)]
        running.tick((13, 2), stream="Reading", del_Window=[(0, 10)])
        assert running.rows("Total") == [(10, 10), (20, 9)]


def test_the_greatest_value_of_a_stream_is_one_row() -> None:
    program = "output relation Top(k: string, m: s64)\nTop(k, m) :- R1(k, v), var m = v.stream_aggregate(k, |m, v, _w| max(m, v), 0)."
    with Running(EVENTS + program) as running:
        running.tick(*(("a", v) for v in range(1000)))
        assert running.state_rows() <= 3  # the accumulator, the relation, and the view
        running.tick(("a", 5), ("b", 2))
        assert running.changes("Top") == [("b", 2, 1)]
        assert running.rows("Top") == [("a", 999), ("b", 2)]


def test_the_greatest_value_of_all_rows_so_far_is_one_row() -> None:
    """Without a step: the max of the integral of an insert-only stream, which SQL names."""
    with deltic.Session() as session:
        session.sql("CREATE STREAM r (k STRING NOT NULL, v BIGINT NOT NULL); CREATE VIEW ever AS SELECT k, v FROM integrate(r)")
        session.datalog("output relation Top(k: string, m: s64)\nTop(k, m) :- Ever(k, v), var m = v.group_by(k).max().")
        session.apply({"r": [{"k": "a", "v": value, "_weight": 1} for value in range(1000)]})
        session.apply({"r": [{"k": "a", "v": 5, "_weight": 1}, {"k": "b", "v": 2, "_weight": 1}]})
        assert session.view("Top").changes().to_pylist() == [{"k": "b", "m": 2, "_weight": 1}]
        assert sum(rows for rows, _ in session._runtime.statistics().values()) < 20
        assert "fold_extremes grows with every new key of stream r" in str(session.explain("Top"))


def test_the_removal_of_a_key_is_told_apart_by_its_weight() -> None:
    """(None, -1); a value of None with weight 1 is another. Streams of Datalog have no negative weights, those of circuits may."""

    def step(total: int | None, rows: Any) -> int | None:
        for row, weight in rows:
            if (row.v, weight) == (None, -1):
                return None
            total = (total or 0) + (row.v or 0) * weight
        return total

    circuit = deltic.Circuit()
    events = circuit.stream("events", schema={"k": str, "v": int | None, "w": int})
    weighted = events.explode(lambda row: [(row.k, row.v, row.w)], schema={"k": str, "v": int | None})
    circuit.output("sums", weighted.index_with("k").stream_aggregate(step, schema={"s": int}))
    with deltic.Session() as session:
        session.install(circuit)
        for value, weight, rows in ((4, 2, [8]), (None, 1, [8]), (None, -1, []), (3, 1, [3])):
            session.apply({"events": [{"k": "a", "v": value, "w": weight, "_weight": 1}]})
            assert [row["s"] for row in session.view("sums").rows()] == rows


def test_a_large_accumulator_is_not_copied() -> None:
    """The set of all values: one more value costs one row, whatever the set has."""

    def added(values: Any, row: Any) -> Any:
        values.add(row.v)
        return values

    circuit = deltic.Circuit()
    rows = circuit.stream("rows", schema={"k": str, "v": int})
    seen = rows.index_with("k").stream_aggregate(step=added, schema={"values": deltic.SetOf(int)})
    circuit.output("seen", seen.elements("values"))
    with deltic.Session() as session:
        session.install(circuit)
        session.apply({"rows": [{"k": "a", "v": value, "_weight": 1} for value in range(2_000)]})
        session.apply({"rows": [{"k": "a", "v": -1, "_weight": 1}]})
        assert session.view("seen").changes().to_pylist() == [{"k": "a", "element": -1, "_weight": 1}]
        assert session.last_tick is not None
        assert touched_rows(session) < 300


@pytest.mark.parametrize("options", [{}, {"shards": 3}])
def test_an_aggregate_is_applied_every_third_transaction(options: dict[str, Any], tmp_path: Path) -> None:
    """What is pending is part of the state."""
    program = "output relation Sum(k: string, s: s64)\nSum(k, s) :- R1(k, v), var s = v.stream_aggregate(k, |s, v, w| s + v * w, 0, 3)."
    applied: dict[str, int] = {}
    pending: dict[str, int] = {}
    before = 0
    for number in range(10):
        with Running(EVENTS + program, state=tmp_path / "state", **options) as running:
            running.tick(("a", number), ("b", 1), ("b", 1))
            for key, value in (("a", number), ("b", 2)):
                pending[key] = pending.get(key, 0) + value
            before, last = running.session.epoch, before
            if before // 3 > last // 3:  # the epochs in which a state is opened count, too
                applied = {key: applied.get(key, 0) + value for key, value in pending.items()}
                pending = {}
            assert running.rows("Sum") == sorted(applied.items()), number
    assert applied["b"] >= 14


@pytest.mark.parametrize(
    ("rules", "message", "place"),
    [
        ("S(x) :- T(x), T(x).", "a join of the streams T and T", "5:15"),
        ("R(x) :- A(x), not T(x).", "a negated stream", "5:19"),
        ("S(x) :- T(x), not A(x).", "an antijoin after a stream", "5:19"),
        ("R(x) :- R(x), T'(x).", "a stream in the recursion of R", "5:15"),
        ("S(x) :- S(x), A(x).", "a stream in the recursion of S", "5:9"),
        ("S'(x) :- T(x).", "the head of a rule is delayed or differentiated", "5:1"),
        ("index I(x: s64) on T(x)", "an index on a stream", "5:20"),
        ("index I(x: s64) on A-1(x)", "an index is on a relation of the program", "5:20"),
        ("input stream U(x: s64) primary key (u) u.x", "a stream has no primary key", "5:40"),
        ("R(m) :- A(x), var m = x.stream_aggregate((), |m, v, w| m, 0).", "stream_aggregate of a relation", "5:23"),
        (
            "R(m) :- T(x), R(y), var m = x.stream_aggregate((), |m, v, w| m, 0).",
            "relation R depends on itself through an aggregate",
            "5:29",
        ),
        ("R(m) :- T(x), var m = x.stream_aggregate((), |m, v| m, 0).", "a closure of the accumulator, a value and its weight", "5:46"),
        ("R(m) :- T(x), var m = x.stream_aggregate((), |m: u64, v, w| m, 0).", "the variable m is u64", "5:3"),
        ("R(m) :- T(x), var m = x.stream_aggregate((), |m, v: u8, w| m, 0).", "the parameter v is s64", "5:53"),
        ("R(m) :- T(x), var m = x.stream_aggregate((), |m, v, w| m + x, 0).", "the variable x is not bound", "5:60"),
        ("R(m) :- T(x), var m = x.stream_aggregate((), |m, v, w| m, x).", "the variable x is not bound", "5:59"),
        ("R(m) :- T(x), var m = x.stream_aggregate((), |m, v, w| m, 0, x).", "the variable x is not bound", "5:62"),
        ("R(m) :- T(x), var m = x.stream_aggregate((), |m, v, w| m, 0, 0).", "an invalid number of transactions", "5:62"),
        ("R(m) :- T(x), var m = x.stream_aggregate((), |m, v, w| m).", "stream_aggregate takes a key, a step", "5:23"),
        ("R(x) :- T(x), 1 == x.stream_aggregate((), |m, v, w| m, 0).", "stream_aggregate is not allowed here", "5:20"),
    ],
)
def test_errors_have_their_place(rules: str, message: str, place: str) -> None:
    refused(f"input stream T(x: s64)\ninput relation A(x: s64)\nstream S(x: s64)\nrelation R(x: s64)\n{rules}", message, place)


@pytest.mark.parametrize("options", [{}, {"shards": 3}])
def test_accumulators_resume(options: dict[str, Any], tmp_path: Path) -> None:
    program = EVENTS + (
        "output relation S(k: string, p: (s64, usize))\n"
        "S(k, p) :- R1(k, v), var p = v.stream_aggregate((k), |acc: (s64, usize), v, w| if (v < 0) None else Some{next(acc, v)}, (0, 0)).\n"
        "function next(p: (s64, usize), v: s64): (s64, usize) = (p.0 + v, p.1 + 1)\n"
    )
    expected = [[("a", (1, 1)), ("b", (2, 1))], [("a", (6, 2))], [("a", (6, 2)), ("b", (7, 1))]]
    for events, rows in zip(([("a", 1), ("b", 2)], [("a", 5), ("b", -1)], [("b", 7)]), expected, strict=True):
        with Running(program, state=tmp_path / "state", **options) as running:
            running.tick(*events)
            assert sorted((row["k"], tuple(row["p"].values())) for row in running.session.view("S").rows()) == rows
    changed = program.replace("p.0 + v", "p.0 - v")  # another function starts again
    with Running(changed, state=tmp_path / "state", **options) as running:
        running.tick(("a", 1))
        assert [row["p"]["_0"] for row in running.session.view("S").rows()] == [-1]


# the parcels of the tutorial: one post office, several ways to look at what passes through it

PARCELS = """
typedef zip_code_t = u32

input stream Parcel(zip: zip_code_t, weight: usize)
input relation ZipCodes(zip: zip_code_t, city: string)

// A streaming join: parcels with their cities.
output stream ParcelCity(zip: zip_code_t, city: string, weight: usize)
ParcelCity(zip, city, weight) :- Parcel(zip, weight), ZipCodes(zip, city).

// A group of a stream: the parcels of one transaction.
output stream CityWeight(city: string, weight: usize)
CityWeight(city, total) :- ParcelCity(_, city, weight), var total = weight.group_by(city).sum().

// Differentiation: the parcels of this transaction as a relation.
output relation Today(zip: zip_code_t, weight: usize)
Today(zip, weight) :- Parcel'(zip, weight).

// Delay: the codes that the previous transaction had.
output relation Retired(zip: zip_code_t, city: string)
Retired(zip, city) :- ZipCodes-1(zip, city), not ZipCodes(zip, city).

// A fold: the weight of all parcels so far, in one row for each code.
multiset ParcelFold(zip: zip_code_t, weight: usize)
output relation ParcelWeight(zip: zip_code_t, weight: usize)
ParcelFold(zip, weight) :- Parcel'(zip, weight).
ParcelFold(zip, weight) :- ParcelWeight-1(zip, weight).
ParcelWeight(zip, total) :- ParcelFold(zip, weight), var total = weight.group_by(zip).sum().
"""
PARCEL_COMMANDS = """
start;
insert ZipCodes(94022, "Los Altos"),
insert ZipCodes(94085, "Sunnyvale"),
insert Parcel(94022, 2),
insert Parcel(94022, 2),
insert Parcel(94085, 6);
commit dump_changes;
echo second day;
start;
insert Parcel(94022, 1),
delete ZipCodes(94085, "Sunnyvale"),
insert Parcel(94085, 4);
commit dump_changes;
echo nothing;
start;
commit dump_changes;
dump ParcelWeight;
"""
PARCEL_OUTPUT = """\
ParcelCity:
ParcelCity{.zip = 94022, .city = "Los Altos", .weight = 2}: +2
ParcelCity{.zip = 94085, .city = "Sunnyvale", .weight = 6}: +1
CityWeight:
CityWeight{.city = "Los Altos", .weight = 4}: +1
CityWeight{.city = "Sunnyvale", .weight = 6}: +1
Today:
Today{.zip = 94022, .weight = 2}: +1
Today{.zip = 94085, .weight = 6}: +1
ParcelWeight:
ParcelWeight{.zip = 94022, .weight = 4}: +1
ParcelWeight{.zip = 94085, .weight = 6}: +1
second day
ParcelCity:
ParcelCity{.zip = 94022, .city = "Los Altos", .weight = 1}: +1
CityWeight:
CityWeight{.city = "Los Altos", .weight = 1}: +1
Today:
Today{.zip = 94022, .weight = 1}: +1
Today{.zip = 94022, .weight = 2}: -1
Today{.zip = 94085, .weight = 4}: +1
Today{.zip = 94085, .weight = 6}: -1
Retired:
Retired{.zip = 94085, .city = "Sunnyvale"}: +1
ParcelWeight:
ParcelWeight{.zip = 94022, .weight = 4}: -1
ParcelWeight{.zip = 94022, .weight = 5}: +1
ParcelWeight{.zip = 94085, .weight = 6}: -1
ParcelWeight{.zip = 94085, .weight = 10}: +1
nothing
Today:
Today{.zip = 94022, .weight = 1}: -1
Today{.zip = 94085, .weight = 4}: -1
Retired:
Retired{.zip = 94085, .city = "Sunnyvale"}: -1
ParcelWeight{.zip = 94022, .weight = 5}
ParcelWeight{.zip = 94085, .weight = 10}
"""


def test_parcels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "parcels.dl").write_text(PARCELS)
    (tmp_path / "parcels.dat").write_text(PARCEL_COMMANDS)
    assert main(["datalog", str(tmp_path / "parcels.dl"), "--script", str(tmp_path / "parcels.dat")]) == Exit.OK
    assert capsys.readouterr().out == PARCEL_OUTPUT
