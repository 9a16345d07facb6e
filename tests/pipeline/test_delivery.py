"""Sinks receive each epoch once, first the whole view, and the difference if a view is redefined."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import deltic
from deltic.connectors.files.sinks import MARKER, ChangesSink
from deltic.errors import SinkError
from deltic.pipeline import Pipeline
from deltic.pipeline.delivery import Delivery
from deltic.pipeline.notes import CLAIMS
from shop import EXPECTED, ORDERS, SCRIPT, SPEND_OUT, TOP_OUT, Row, Shop, views

WITHOUT_SINKS = SCRIPT.replace(SPEND_OUT, "").replace(TOP_OUT, "")
DOUBLE = SCRIPT.replace("SUM(o.amount) AS total", "SUM(2 * o.amount) AS total")
WIDER = SCRIPT.replace("COUNT(*) AS orders", "COUNT(*) AS orders, MAX(o.amount) AS most")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_a_changes_sink_adds_up_to_its_view_and_a_snapshot_equals_it(shop: Shop) -> None:
    shop.fill()
    assert shop.run() == EXPECTED
    assert shop.summed() == EXPECTED["spend"] and shop.snapshot() == EXPECTED["top"]
    assert len(shop.delivered()) == 5


def test_a_new_sink_of_an_old_view_first_receives_its_whole_content(shop: Shop) -> None:
    shop.fill()
    shop.run(WITHOUT_SINKS)
    with shop.pipeline() as pipeline:
        assert shop.summed() == EXPECTED["spend"] and shop.snapshot() == EXPECTED["top"]
        assert [int(path.stem[-12:]) for path in shop.delivered()] == [pipeline.session.epoch]
        shop.orders("d.csv", "insert,7,3,1")
        pipeline.run_once()
        assert shop.summed() == views(pipeline)["spend"] == Counter({("ann", 120, 2): 1, ("eve", 76, 3): 1})


def test_a_redefined_view_is_delivered_as_a_difference(shop: Shop) -> None:
    shop.fill()
    shop.run()
    before = shop.delivered()
    with shop.pipeline(DOUBLE) as pipeline:
        assert str(pipeline.start).endswith("views reused: top; filled: spend")
        assert shop.summed() == views(pipeline)["spend"] == Counter({("ann", 240, 2): 1, ("eve", 150, 2): 1})
        assert shop.snapshot() == EXPECTED["top"]
    assert len(shop.delivered()) == len(before) + 1
    assert shop.run() == EXPECTED
    assert shop.summed() == EXPECTED["spend"]
    assert shop.run() == EXPECTED
    assert len(shop.delivered()) == len(before) + 2


def test_a_view_redefined_with_other_columns_is_refused_before_anything_changes(shop: Shop) -> None:
    shop.fill()
    shop.run()
    with pytest.raises(SinkError) as error:
        shop.pipeline(WIDER)
    assert str(error.value).splitlines()[0] == (
        "[DELTIC-6001] shop.sql:9:62: sink spend_out contains changes of view spend with the columns "
        "name STRING, total BIGINT, orders BIGINT; now it has name STRING, total BIGINT, orders BIGINT, most INT"
    )
    assert str(error.value).splitlines()[3:] == [
        "expected: the same columns, since the content of a sink is never altered",
        "help: give the sink a new name and an empty location: it then receives the whole content of the view",
    ]
    assert shop.run() == EXPECTED
    again = WIDER.replace("SINK spend_out", "SINK wider_out").replace("made/spend", "made/wider")
    shop.run(again)
    assert shop.summed("wider") == Counter({("ann", 120, 2, 60): 1, ("eve", 75, 2, 50): 1})


def test_a_sink_that_was_dropped_cannot_resume_in_its_old_folder(shop: Shop) -> None:
    shop.fill()
    shop.run()
    shop.run(WITHOUT_SINKS)
    with pytest.raises(SinkError) as error:
        shop.pipeline()
    assert str(error.value).splitlines() == [
        f"[DELTIC-6001] sink spend_out: {shop.made / 'spend'} contains changes from before a sink of this name was dropped, "
        "or wrote to another location",
        "expected: an empty location for a new sink, which first receives the whole content of its view",
        "help: empty it, or choose another location",
    ]
    shutil.rmtree(shop.made / "spend")
    assert shop.run() == EXPECTED
    assert shop.summed() == EXPECTED["spend"]


def test_a_sink_whose_folder_was_emptied_receives_its_whole_view(shop: Shop) -> None:
    shop.fill()
    shop.run()
    shutil.rmtree(shop.made / "spend")
    shop.run()
    assert shop.summed() == EXPECTED["spend"] and len(shop.delivered()) == 1


def test_a_sink_that_is_emptied_between_two_pipelines_over_a_session_receives_its_whole_view(shop: Shop) -> None:
    shop.fill()
    with deltic.Session(state=shop.state, clock="wall") as session:
        session.sql(SCRIPT)
        with Pipeline.over(session, base=shop.folder) as pipeline:
            pipeline.run_once()
        for sink in ("spend", "top"):
            shutil.rmtree(shop.made / sink)
        shop.orders("d.csv", "insert,7,3,1")
        with Pipeline.over(session, base=shop.folder) as pipeline:
            assert shop.summed() == EXPECTED["spend"] and shop.snapshot() == EXPECTED["top"]
            pipeline.run_once()
            assert shop.summed() == views(pipeline)["spend"] and shop.snapshot() == views(pipeline)["top"]


@pytest.mark.parametrize("over", [False, True])
def test_a_sink_with_another_location_receives_its_whole_view_and_cannot_return(shop: Shop, over: bool) -> None:
    ids = iter(range(7, 100))

    def run(folder: str) -> None:
        """A file, a tick, and sinks with these folders."""
        script = SCRIPT.replace("made/spend", f"made/{folder}").replace("made/top", f"made/now-{folder}")
        shop.orders(f"{folder}{next(ids)}.csv", f"insert,{next(ids)},3,{next(ids)}")
        if over:
            with deltic.Session(state=shop.state, clock="wall") as session:
                session.program(script)
                with Pipeline.over(session, base=shop.folder) as pipeline:
                    pipeline.run_once()
                    content = views(pipeline)
        else:
            content = shop.run(script)
        assert shop.summed(folder) == content["spend"] and shop.snapshot(f"now-{folder}") == content["top"]

    shop.fill()
    for folder in ("a", "b", "b"):
        run(folder)
    before = shop.delivered("a")
    for _ in range(2):
        with pytest.raises(SinkError, match="a contains changes from before a sink of this name was dropped, or wrote to another location"):
            run("a")
        assert shop.delivered("a") == before
    run("b")
    for folder in ("a", "now-a"):
        shutil.rmtree(shop.made / folder)
    for folder in ("a", "c", "c"):
        run(folder)


@pytest.mark.parametrize("over", [False, True])
def test_a_snapshot_that_returns_to_an_earlier_location_is_written_although_its_view_is_the_same(shop: Shop, over: bool) -> None:
    shop.fill()
    for folder, extra in (("a", ()), ("b", ("insert,7,3,100",)), ("a", ())):
        if extra:
            shop.orders("d.csv", *extra)
        script = SCRIPT.replace("made/top", f"made/{folder}").replace(SPEND_OUT, "")
        if over:
            with deltic.Session(state=shop.state, clock="wall") as session:
                session.program(script)
                with Pipeline.over(session, base=shop.folder) as pipeline:
                    pipeline.run_once()
        else:
            shop.run(script)
    assert shop.snapshot("a") == shop.snapshot("b") == Counter({(7, 100): 1, (6, 60): 1})


def test_a_sink_whose_folder_was_moved_resumes(shop: Shop) -> None:
    shop.fill()
    shop.run()
    before = [path.name for path in shop.delivered()]
    (shop.made / "spend").rename(shop.made / "moved")
    shop.orders("d.csv", "insert,7,3,1")
    content = shop.run(SCRIPT.replace("made/spend", "made/moved"))
    assert [path.name for path in shop.delivered("moved")][:-1] == before and shop.summed("moved") == content["spend"]


def test_a_marker_of_an_earlier_version_has_no_claim_and_is_resumed(shop: Shop) -> None:
    shop.fill()
    shop.run()
    marker = shop.made / "spend" / MARKER
    marker.write_text(json.dumps({key: value for key, value in json.loads(marker.read_text()).items() if key != "claim"}))
    with deltic.Session(state=shop.state) as session:  # and the state
        session.program(SCRIPT, notes={CLAIMS: None})
    shop.orders("d.csv", "insert,7,3,1")
    before = len(shop.delivered())
    content = shop.run()
    assert len(shop.delivered()) == before + 1 and shop.summed() == content["spend"]


@pytest.mark.parametrize("note", [7, {"spend": 7}, ["spend"]])
def test_what_a_user_has_noted_under_the_name_of_claims_is_ignored(shop: Shop, note: object) -> None:
    shop.fill()
    shop.run()
    with deltic.Session(state=shop.state) as session:
        session.program(SCRIPT, notes={CLAIMS: note, "claims": note})
    before = len(shop.delivered())
    with shop.pipeline() as pipeline:
        pipeline.run_once()
        assert pipeline.session.notes["claims"] == note
    assert len(shop.delivered()) == before and shop.summed() == EXPECTED["spend"]


def test_a_sink_that_fails_with_any_error_keeps_nothing_from_the_others(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    shop.fill()
    with shop.pipeline() as pipeline:
        with monkeypatch.context() as patched, pytest.raises(MemoryError):
            patched.setattr(ChangesSink, "deliver", fail)
            pipeline.run_once()
        assert shop.snapshot() == Counter({row: 1 for row in views(pipeline)["top"]})
        pipeline.run_once()
    assert shop.summed() == EXPECTED["spend"] and shop.snapshot() == EXPECTED["top"]


def test_files_removed_from_a_sink_folder_are_not_written_again(shop: Shop) -> None:
    shop.fill()
    shop.run()
    for path in shop.delivered():
        path.unlink()
    assert shop.run() == EXPECTED
    assert shop.delivered() == []


def test_a_snapshot_is_written_only_if_its_view_changed(shop: Shop) -> None:
    shop.fill()
    shop.run()
    path = shop.made / "top" / "snapshot.json"
    before = path.stat().st_ino
    shop.orders("d.csv", "insert,7,1,1")
    shop.run()
    assert path.stat().st_ino == before
    shop.orders("e.csv", "insert,8,1,100")
    shop.run()
    assert path.stat().st_ino != before and shop.snapshot() == Counter({(8, 100): 1, (6, 60): 1})


def test_pending_deliveries_are_made_by_the_next_start_however_many_starts_fail(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.fill()

    def fail(*_: object) -> None:
        raise SinkError("no room")

    with shop.pipeline(retain=2) as pipeline, monkeypatch.context() as patched:
        patched.setattr(Delivery, "deliver", fail)
        with pytest.raises(SinkError, match="no room"):
            pipeline.run_once()
    for _ in range(8):
        with monkeypatch.context() as patched:
            patched.setattr(Delivery, "deliver", fail)
            with pytest.raises(SinkError, match="no room"):
                shop.pipeline(retain=2)
    with shop.pipeline(retain=2) as pipeline:
        pipeline.run_once()
        assert views(pipeline) == EXPECTED
    assert shop.summed() == EXPECTED["spend"] and shop.snapshot() == EXPECTED["top"]


def test_idle_runs_retain_no_more_epochs_than_the_option(shop: Shop) -> None:
    shop.fill()
    shop.run(retain=2)
    for _ in range(6):
        shop.run(retain=2)
    with shop.pipeline(retain=2) as pipeline:
        assert pipeline.session.epoch - pipeline.session.notes["keep"] < 14


def test_the_sum_is_exact_after_resharding(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.fill()
    with shop.pipeline(shards=2) as pipeline, monkeypatch.context() as patched:
        patched.setattr(Delivery, "deliver", lambda _: None)
        pipeline.tick()
    assert shop.run(shards=3) == EXPECTED
    assert shop.summed() == EXPECTED["spend"] and shop.snapshot() == EXPECTED["top"]


def test_names_of_views_in_sinks_are_case_insensitive(shop: Shop) -> None:
    shop.fill()
    shop.run()
    before = shop.delivered()
    shop.run(SCRIPT.replace("VIEW spend", "VIEW Spend").replace("spend_out FROM spend", "Spend_Out FROM SPEND"))
    assert shop.delivered() == before


def test_tables_without_a_key_accept_equal_rows(shop: Shop) -> None:
    shop.customers("a.parquet", [(1, "ann"), (1, "ann")])
    shop.orders("a.csv", "insert,1,1,10")
    shop.run()
    assert shop.summed() == Counter({("ann", 20, 2): 1})


TICKS = """
    CREATE STREAM t (a INT) USING csv OPTIONS (path 'in');
    CREATE MATERIALIZED VIEW n AS SELECT a FROM t;
    CREATE MATERIALIZED VIEW c AS SELECT a FROM current(t);
    CREATE MATERIALIZED VIEW d AS SELECT a FROM delay(t);
    CREATE VIEW h AS SELECT a FROM batched(t, 2);
    CREATE MATERIALIZED VIEW b AS SELECT a FROM integrate(h);
"""
OUT = """
    CREATE SINK c_out FROM c USING csv OPTIONS (path 'made/c', mode 'snapshot');
    CREATE SINK d_out FROM d USING parquet OPTIONS (path 'made/d', mode 'changes');
"""


@pytest.mark.parametrize("options", [{}, {"commit_log": True}, {"retain": 0}, {"state": None}], ids=["files", "log", "retained", "memory"])
def test_the_commit_of_the_offsets_of_sinks_is_no_tick(tmp_path: Path, options: dict[str, Any]) -> None:
    for script in (TICKS, TICKS + OUT):
        shop = Shop(tmp_path / str(len(script)))
        with shop.pipeline(script, **options) as pipeline:
            heard: list[int] = []
            pipeline.session.view("n").subscribe(lambda changes, heard=heard: heard.extend(changes["a"].to_pylist()))
            for number in range(3):
                (shop.folder / f"in/{number}.csv").write_text(f"{number}\n")
                pipeline.run_once()
            assert {name: list(rows) for name, rows in views(pipeline).items() if name != "b"} == {"n": [(2,)], "c": [(2,)], "d": [(1,)]}
            assert heard == [0, 1, 2]
            batches = views(pipeline)["b"].keys()
        if script != TICKS:
            assert batches >= {(0,), (1,)}, "no multiple of 2 is passed over"
            assert shop.summed("d") == Counter({(0,): 1, (1,): 1}) and (shop.made / "c/snapshot.csv").read_text() == "2\n"
        if shop.state.exists():
            with deltic.open(shop.state) as state:
                assert state.view("n").rows() == [{"a": 2}] and state.view("d").rows() == [{"a": 1}]


def test_a_snapshot_of_a_stream_has_the_rows_of_the_last_tick(shop: Shop) -> None:
    script = """
        CREATE STREAM t (a INT) USING csv OPTIONS (path 'in');
        CREATE MATERIALIZED VIEW odd AS SELECT a FROM t WHERE a % 2 = 1;
        CREATE SINK odd_out FROM odd USING json OPTIONS (path 'made/odd', mode 'snapshot');
    """
    path = shop.made / "odd" / "snapshot.json"
    with shop.pipeline(script) as pipeline:
        for number, expected in enumerate([[], [1], [], [3], [], [5], [7], []]):
            (shop.folder / f"in/{number}.csv").write_text("".join(f"{one}\n" for one in expected or [0]))
            pipeline.run_once()
            assert shop.snapshot("odd") == views(pipeline)["odd"] == Counter((one,) for one in expected)
        written = path.stat().st_ino
        (shop.folder / "in/8.csv").write_text("8\n")
        pipeline.run_once()
        assert path.stat().st_ino == written, "it is empty already"
        (shop.folder / "in/9.csv").write_text("9\n")
        pipeline.run_once()
        assert shop.snapshot("odd") == Counter([(9,)])
    with shop.pipeline(script) as pipeline:
        assert shop.snapshot("odd") == views(pipeline)["odd"] == Counter(), "opening a state is no tick"


BESIDE = """
CREATE TABLE orders (id BIGINT NOT NULL, customer BIGINT NOT NULL, amount INT, PRIMARY KEY (id));
CREATE MATERIALIZED VIEW spend AS SELECT customer, {total} AS total FROM orders GROUP BY customer;
CREATE MATERIALIZED VIEW top AS SELECT customer, {total} AS total FROM orders GROUP BY customer;
"""


@pytest.mark.parametrize("total", ["count(*)", "sum(100 % amount)"], ids=["exact", "can fail"])
def test_epochs_are_delivered_as_committed_while_another_thread_commits(shop: Shop, monkeypatch: pytest.MonkeyPatch, total: str) -> None:
    looked_up, lookups = deltic.Session.view, 0
    with shop.pipeline(BESIDE.format(total=total) + SPEND_OUT + TOP_OUT) as pipeline:
        for at in range(1, 13):

            def view(session: deltic.Session, name: str, at: int = at) -> deltic.View:
                """Commits once in a tick, between two steps of a delivery that look the view up."""
                nonlocal lookups
                lookups += 1
                if lookups == at:
                    row = {"id": 100 + at, "customer": at % 5, "amount": 7}
                    thread = Thread(target=lambda: session.insert("orders", [row]))
                    thread.start()
                    thread.join()
                return looked_up(session, name)

            lookups = 0
            with monkeypatch.context() as patched:
                patched.setattr(deltic.Session, "view", view)
                pipeline.tick({"orders": [{"id": at, "customer": at % 3, "amount": at, "_op": "insert"}]})
            pipeline.run_once()
            assert shop.summed() == views(pipeline)["spend"] and shop.snapshot() == views(pipeline)["top"]
        assert len(views(pipeline)["spend"]) == 5, "rows of both threads"


SHARE = "CREATE {}MATERIALIZED VIEW {} AS SELECT customer, {} AS share FROM orders;\n"
EXACT, CAN_FAIL = "amount + 1", "100 % amount"


def _shares(share: str, replace: str = "") -> str:
    return SHARE.format(replace, "spend", share) + SHARE.format(replace, "top", share)


@pytest.mark.parametrize("share", [EXACT, CAN_FAIL])
def test_a_view_that_was_dropped_and_created_again_is_delivered_as_a_difference(shop: Shop, share: str) -> None:
    script = ORDERS.format(letters="") + _shares(share) + SPEND_OUT + TOP_OUT
    shop.orders("a.csv", "insert,1,1,30", "insert,2,2,40")
    shop.run(script)
    before = len(shop.delivered())
    with deltic.Session(state=shop.state, clock="wall", on_view_error="isolate") as session:
        session.program(script)
        session.sql("DROP SINK spend_out; DROP SINK top_out; DROP VIEW spend; DROP VIEW top")
        session.sql("DELETE FROM orders WHERE id = 1")
        session.sql(_shares(share) + SPEND_OUT + TOP_OUT)
    with shop.pipeline(script) as pipeline:
        assert shop.summed() == shop.snapshot() == views(pipeline)["spend"] and len(views(pipeline)["spend"]) == 1
        assert len(shop.delivered()) == before + 1
        shop.orders("b.csv", "insert,3,3,60")
        pipeline.run_once()
        assert shop.summed() == shop.snapshot() == views(pipeline)["spend"] and len(views(pipeline)["spend"]) == 2


@pytest.mark.parametrize(("before", "after"), [(EXACT, CAN_FAIL), (CAN_FAIL, EXACT), (EXACT, "amount + 2"), (EXACT, "coalesce(amount, 0)")])
def test_a_view_that_is_redefined_in_a_running_pipeline_is_delivered_as_a_difference(shop: Shop, before: str, after: str) -> None:
    script = ORDERS.format(letters="") + _shares(before) + SPEND_OUT + TOP_OUT
    shop.orders("a.csv", "insert,1,1,30", "insert,2,2,40")
    with shop.pipeline(script) as pipeline:
        pipeline.run_once()
        for number, share in enumerate([after, before, after]):
            pipeline.session.sql(_shares(share, "OR REPLACE "))
            shop.orders(f"b{number}.csv", f"insert,{10 + number},3,{60 + number}", f"update,1,1,{31 + number}")
            pipeline.run_once()
            assert shop.summed() == shop.snapshot() == views(pipeline)["spend"] and len(views(pipeline)["spend"]) == 3 + number
        content = views(pipeline)["spend"]
    assert shop.run(script.replace(before, after))["spend"] == content == shop.summed() == shop.snapshot()


def test_a_view_that_another_thread_redefines_while_its_first_delivery_is_noted(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    script = ORDERS.format(letters="") + _shares(EXACT) + SPEND_OUT + TOP_OUT
    shop.orders("a.csv", "insert,1,1,30")
    with shop.pipeline(script) as pipeline:
        pipeline.run_once()
        noted, session = deltic.Session._note_at, pipeline.session
        for share in ("amount + 3", CAN_FAIL):
            session.sql(_shares("amount + 2", "OR REPLACE "))

            def note(self: deltic.Session, notes: Callable[[int], Mapping[str, Any]], share: str = share) -> None:
                monkeypatch.setattr(deltic.Session, "_note_at", noted)
                thread = Thread(target=lambda: session.sql(_shares(share, "OR REPLACE ")))
                thread.start()
                thread.join()
                noted(self, notes)

            monkeypatch.setattr(deltic.Session, "_note_at", note)
            pipeline.tick()
            pipeline.tick()
            assert deltic.Session._note_at is noted
            assert shop.summed() == shop.snapshot() == views(pipeline)["spend"]


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize(
    "statement", ["DROP VIEW IF EXISTS nothing", "CREATE OR REPLACE VIEW q AS SELECT 1 AS a", "CREATE TABLE IF NOT EXISTS t (id INT)"]
)
def test_a_commit_is_delivered_although_definitions_follow_it(tmp_path: Path, in_memory: bool, statement: str) -> None:
    """They make no epoch of their own: it is still that of the commit."""
    script = """
        CREATE TABLE t (id INT NOT NULL, s STRING NOT NULL, PRIMARY KEY (id));
        CREATE MATERIALIZED VIEW v AS SELECT s, count(*) AS n FROM t GROUP BY s;
        CREATE SINK out FROM v USING json OPTIONS (path 'out', mode 'changes');
        CREATE SINK now FROM v USING json OPTIONS (path 'now', mode 'snapshot')
    """
    with deltic.Pipeline(script, state=None if in_memory else tmp_path / "state", base=tmp_path) as pipeline:
        pipeline.session.insert("t", [{"id": 0, "s": "a"}])
        for _ in range(2):
            pipeline.session.sql(statement)
        pipeline.run_once()
        for i, letter in enumerate("bc", start=1):
            pipeline.tick({"t": [{"id": i, "s": letter, "_op": "insert"}]})
    changes = [json.loads(line) for path in sorted((tmp_path / "out").glob("changes-*")) for line in path.read_text().splitlines()]
    assert [(row["s"], row["_weight"]) for row in changes] == [("a", 1), ("b", 1), ("c", 1)]
    snapshot = (tmp_path / "now" / "snapshot.json").read_text()
    assert sorted(json.loads(line)["s"] for line in snapshot.splitlines()) == ["a", "b", "c"]


EVENTS = """
CREATE STREAM events (id BIGINT NOT NULL, a INT);
CREATE TABLE kept (id BIGINT NOT NULL, a INT);
"""
EVENTS_SEEN = "CREATE {}MATERIALIZED VIEW spend AS SELECT id, {} AS a FROM {};\n"
EVENTS_OUT = SPEND_OUT + TOP_OUT.replace("FROM top", "FROM spend")
REPLACES = "OR REPLACE "


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("ticks", [False, True])
def test_a_redefined_view_over_a_stream_keeps_what_it_has_emitted(shop: Shop, in_memory: bool, ticks: bool) -> None:
    with shop.pipeline(EVENTS + EVENTS_SEEN.format("", "a", "events") + EVENTS_OUT, **({"state": None} if in_memory else {})) as pipeline:
        session = pipeline.session
        expected, number = Counter[Row](), 0

        def between() -> None:
            if ticks:
                pipeline.run_once()
                assert shop.summed() == expected and shop.snapshot() == views(pipeline)["spend"]

        for added in (0, 5, 0, 7, 7):
            session.sql(EVENTS_SEEN.format(REPLACES, f"a + {added}", "events"))
            between()
            for _ in range(2):
                number += 1
                session.insert("events", [{"id": number, "a": 1}])
                expected[number, 1 + added] += 1
                between()
            session.insert("kept", [{"id": number, "a": 1}])  # a tick without events
            between()
        pipeline.run_once()
        assert shop.summed() == expected and shop.snapshot() == views(pipeline)["spend"] == Counter()
        session.sql(EVENTS_SEEN.format(REPLACES, "a", "kept"))
        if ticks:
            pipeline.run_once()
            assert shop.summed() == expected + views(pipeline)["spend"] and shop.snapshot() == views(pipeline)["spend"]
        session.insert("kept", [{"id": 100, "a": 1}])
        pipeline.run_once()
        assert shop.summed() == expected + views(pipeline)["spend"] and shop.snapshot() == views(pipeline)["spend"]
        session.sql(EVENTS_SEEN.format(REPLACES, "a", "events"))
        between()
        for id in (101, 102):
            session.insert("events", [{"id": id, "a": 1}])
            expected[id, 1] += 1
        pipeline.run_once()
        assert shop.summed() == expected and shop.snapshot() == views(pipeline)["spend"] == Counter({(102, 1): 1})


def test_a_view_over_a_stream_that_is_redefined_between_two_runs_keeps_what_it_has_emitted(shop: Shop) -> None:
    script = EVENTS + EVENTS_SEEN.format("", "a", "events") + EVENTS_OUT
    with shop.pipeline(script) as pipeline:
        pipeline.tick({"events": [{"id": 1, "a": 1, "_weight": 1}]})
        pipeline.session.insert("events", [{"id": 2, "a": 1}])
    with shop.pipeline(script.replace("a AS a", "a + 1 AS a")) as pipeline:
        assert shop.summed() == Counter({(1, 1): 1, (2, 1): 1})
        pipeline.session.insert("events", [{"id": 3, "a": 1}])
        pipeline.run_once()
        before = shop.delivered()
        assert shop.summed() == Counter({(1, 1): 1, (2, 1): 1, (3, 2): 1})
    with shop.pipeline(script.replace("a AS a", "a + 1 AS a")) as pipeline:
        pipeline.run_once()
        assert shop.delivered() == before
    with pytest.raises(SinkError, match="contains changes of view spend with the columns"):
        shop.pipeline(script.replace("a AS a", "a + 1 AS b"))
