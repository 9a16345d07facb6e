"""Subscribers that raise or close their pipeline, and sinks of a closed one: they have everything, or an error says what they lack."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.connectors.files.sinks import ChangesSink, SnapshotSink
from deltic.errors import ClosedError, ReentrantCall, SinkError, SubscriberError
from deltic.pipeline import Pipeline
from deltic.pipeline.held_changes import HeldChanges
from shop import CUSTOMERS, EXPECTED, LETTERS, ORDERS, SPEND, SPEND_OUT, TOP, TOP_OUT, Shop, views

NO_ROOM = "no room"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def options(in_memory: bool) -> dict[str, Any]:
    return {"state": None} if in_memory else {}


def over(shop: Shop, session: deltic.Session) -> Pipeline:
    return Pipeline.over(session, base=shop.folder)


def no_room(*_: object) -> None:
    raise SinkError(NO_ROOM)


@pytest.mark.parametrize("in_memory", [False, True])
def test_sinks_have_a_tick_of_which_a_subscriber_raises(shop: Shop, in_memory: bool) -> None:
    def fail(changes: object) -> None:
        raise ValueError("a subscriber's own")

    with shop.pipeline(**options(in_memory)) as pipeline:
        shop.fill()
        pipeline.session.view("spend").subscribe(fail)
        for _ in range(2):
            with pytest.raises(SubscriberError, match="a subscriber's own"):
                pipeline.tick()
            assert shop.summed() == views(pipeline)["spend"] and shop.snapshot() == views(pipeline)["top"]
        while views(pipeline) != EXPECTED:
            with pytest.raises(SubscriberError):
                pipeline.run_once()
        assert shop.summed() == EXPECTED["spend"] and shop.snapshot() == EXPECTED["top"]


def test_the_error_of_a_sink_says_what_subscribers_raised(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(changes: object) -> None:
        raise ValueError("a subscriber's own")

    with shop.pipeline(state=None) as pipeline:
        shop.fill()
        pipeline.session.view("spend").subscribe(fail)
        with monkeypatch.context() as patched:
            patched.setattr(ChangesSink, "deliver", no_room)
            with pytest.raises(SinkError, match=NO_ROOM) as error:
                pipeline.tick()
        assert "a subscriber's own" in error.value.__notes__[0]


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("owned", [False, True])
def test_a_subscriber_closes_the_pipeline_at_the_end_of_the_tick(shop: Shop, in_memory: bool, owned: bool) -> None:
    with deltic.Session(clock="wall", state=None if in_memory or owned else str(shop.state)) as session:
        if owned:
            pipeline = shop.pipeline(**options(in_memory))
        else:
            session.sql(ORDERS.format(letters=LETTERS) + CUSTOMERS + SPEND + TOP + SPEND_OUT + TOP_OUT)
            pipeline = over(shop, session)
        shop.fill()
        contents = list[dict[str, Counter[Any]]]()

        def close(changes: object) -> None:
            pipeline.close()
            contents.append(views(pipeline))

        pipeline.session.view("spend").subscribe(close)
        summary = pipeline.run_once()
        assert summary.stopped and summary.rows_out["spend"] == len(contents[0]["spend"]) > 0
        assert shop.summed() == contents[0]["spend"] and shop.snapshot() == contents[0]["top"] and len(contents) == 1
        with pytest.raises(ClosedError):
            pipeline.tick()


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_tick_that_fails_still_closes_the_pipeline(shop: Shop, in_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = shop.pipeline(**options(in_memory))
    shop.fill()
    pipeline.session.view("spend").subscribe(lambda changes: pipeline.close())
    monkeypatch.setattr(ChangesSink, "deliver", no_room)
    with pytest.raises(SinkError, match=NO_ROOM):
        pipeline.tick()
    with pytest.raises(ClosedError):
        pipeline.tick()


GIVEN = (
    """
    CREATE TABLE given (id BIGINT NOT NULL, customer BIGINT NOT NULL, PRIMARY KEY (id));
    CREATE MATERIALIZED VIEW spend AS SELECT id, customer FROM given;
    CREATE MATERIALIZED VIEW top AS SELECT id, customer FROM given;
    """
    + SPEND_OUT
    + TOP_OUT
)


def give(session: deltic.Session, *ids: int) -> None:
    for id in ids:
        session.insert("given", [{"id": id, "customer": id}])


@pytest.mark.parametrize("owned", [False, True])
def test_close_delivers_in_memory_what_was_committed(shop: Shop, owned: bool) -> None:
    with deltic.Session(clock="wall") as session:
        session.sql(GIVEN)
        with shop.pipeline(GIVEN, state=None) if owned else over(shop, session) as pipeline:
            give(pipeline.session, 1, 2, 3)
        assert len(shop.delivered()) == 3
        assert shop.summed() == shop.snapshot() == Counter({(1, 1): 1, (2, 2): 1, (3, 3): 1})


def test_a_subscriber_of_a_commit_closes_the_pipeline_after_it(shop: Shop) -> None:
    pipeline = shop.pipeline(GIVEN, state=None)
    pipeline.session.view("top").subscribe(lambda changes: pipeline.close())
    give(pipeline.session, 1)
    assert shop.summed() == shop.snapshot() == Counter({(1, 1): 1})


def test_close_says_which_sinks_lost_changes_and_delivers_the_others(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChangesSink, "deliver", no_room)
    pipeline = shop.pipeline(GIVEN, state=None)
    give(pipeline.session, 1)
    with pytest.raises(SinkError) as error:
        pipeline.close()
    assert error.value.message == (
        "the last changes for sink spend_out are lost, as the pipeline in memory is closed without them: no room"
    )
    assert shop.snapshot() == Counter({(1, 1): 1})
    pipeline.close()
    with pytest.raises(ClosedError):
        pipeline.session.view("spend").rows()


def test_an_error_in_the_block_of_a_pipeline_is_not_replaced(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SnapshotSink, "deliver", lambda *_: None)
    with pytest.raises(ZeroDivisionError) as error, shop.pipeline(GIVEN, state=None) as pipeline:
        give(pipeline.session, 1)
        monkeypatch.setattr(SnapshotSink, "deliver", no_room)
        raise ZeroDivisionError
    assert "the last changes for sink top_out are lost" in error.value.__notes__[0]
    assert shop.summed() == Counter({(1, 1): 1})


def test_a_session_that_is_closed_before_its_pipeline_loses_only_what_no_tick_has_delivered(shop: Shop) -> None:
    with deltic.Session(clock="wall") as session:
        session.sql(GIVEN)
        pipeline = over(shop, session)
        give(session, 1)
        pipeline.run_once()
    pipeline.close()
    other = Shop(shop.folder / "other")
    with deltic.Session(clock="wall") as session:
        session.sql(GIVEN)
        pipeline = over(other, session)
        give(session, 1)
    with pytest.raises(SinkError, match=r"for sinks spend_out, top_out are lost.*its session was closed first"):
        pipeline.close()
    pipeline.close()


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_sink_that_fails_keeps_nothing_from_the_others(shop: Shop, in_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop.pipeline(GIVEN, **options(in_memory)) as pipeline:
        with monkeypatch.context() as patched:
            patched.setattr(ChangesSink, "deliver", no_room)
            give(pipeline.session, 1)
            for _ in range(2):
                with pytest.raises(SinkError, match=NO_ROOM):
                    pipeline.run_once()
                assert shop.snapshot() == Counter({(1, 1): 1}) and shop.delivered() == []
        pipeline.run_once()
        assert shop.summed() == Counter({(1, 1): 1})


def test_changes_of_an_earlier_pipeline_in_memory_are_refused_for_what_they_are(shop: Shop) -> None:
    with deltic.Session(clock="wall") as session:
        session.sql(GIVEN)
        with over(shop, session):
            give(session, 1)
        for _ in range(2):
            with pytest.raises(SinkError) as error:
                over(shop, session)
            assert error.value.message == (
                f"sink spend_out: {shop.made / 'spend'} contains changes that an earlier pipeline over this session delivered; "
                "without a state folder it is not known up to which epoch"
            )
        shutil.rmtree(shop.made / "spend")
        with over(shop, session):
            give(session, 2)
        assert shop.summed() == shop.snapshot() == Counter({(1, 1): 1, (2, 2): 1})


def shown(id: int) -> int:
    sys.displayhook(id)  # what the test puts there: a function of a view cannot capture a pipeline
    return id


def test_a_function_of_a_commit_cannot_close_the_pipeline(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[str] = []

    def called(value: object) -> None:
        for call in (pipeline.close, pipeline.tick):
            with pytest.raises(ReentrantCall) as error:
                call()
            refused.append(error.value.message)

    with deltic.Session(clock="wall") as session:
        session.sql(GIVEN)
        session.register("shown", shown, int)
        session.sql("CREATE MATERIALIZED VIEW seen AS SELECT shown(id) AS id FROM given")
        with over(shop, session) as pipeline:
            with monkeypatch.context() as patched:
                patched.setattr(sys, "displayhook", called)
                give(session, 1)
            assert len(refused) == 2
            give(session, 2)
        assert shop.summed() == Counter({(1, 1): 1, (2, 2): 1})


def test_close_frees_a_session_whose_changes_cannot_be_held(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    with deltic.Session(clock="wall") as session:
        session.sql(GIVEN)
        pipeline = over(shop, session)
        with monkeypatch.context() as patched:
            patched.setattr(HeldChanges, "follow", full)
            for _ in range(2):
                with pytest.raises(MemoryError):
                    give(session, 1)
            assert session.view("spend").rows() == []
            with pytest.raises(MemoryError):
                pipeline.close()
            give(session, 1)
        session.sql("DROP SINK spend_out")


@pytest.mark.parametrize("step", ["_keep_definitions", "_attach"])
def test_an_interrupted_start_frees_the_session(shop: Shop, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done = getattr(Pipeline, step)

    def interrupted(self: Pipeline, *arguments: Any) -> None:
        done(self, *arguments)
        raise KeyboardInterrupt

    with deltic.Session(clock="wall") as session:
        session.sql(GIVEN)
        with monkeypatch.context() as patched:
            patched.setattr(Pipeline, step, interrupted)
            with pytest.raises(KeyboardInterrupt) as error:
                over(shop, session)
        assert error.tb is not None, "which keeps the pipeline, as a debugger does"
        give(session, 1)
        assert session._contents._observers == ()
        session.sql("DROP SINK top_out")
        with over(shop, session):
            assert shop.summed() == Counter({(1, 1): 1})


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("step", ["finish", "end", "session"])
def test_an_interrupted_close_closes_the_session_of_the_pipeline(
    shop: Shop, in_memory: bool, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    pipeline = shop.pipeline(GIVEN, **options(in_memory))
    give(pipeline.session, 1)
    with monkeypatch.context() as patched:
        if step == "session":
            patched.setattr(deltic.Session, "close", interrupted)
        else:
            patched.setattr(type(pipeline._delivery), step, interrupted)
        with pytest.raises(KeyboardInterrupt):
            pipeline.close()
    pipeline.close()
    with pytest.raises(ClosedError):
        give(pipeline.session, 2)
    if not in_memory:
        assert shop.run(GIVEN)["spend"] == shop.summed() == Counter({(1, 1): 1})


@pytest.mark.parametrize("step", ["finish", "end"])
@pytest.mark.parametrize("in_memory", [False, True])
def test_an_interrupted_close_frees_the_session(shop: Shop, in_memory: bool, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with deltic.Session(clock="wall", state=None if in_memory else str(shop.state)) as session:
        session.sql(GIVEN)
        pipeline = over(shop, session)
        with monkeypatch.context() as patched:
            patched.setattr(type(pipeline._delivery), step, interrupted)
            with pytest.raises(KeyboardInterrupt):
                pipeline.close()
        give(session, 1)
        assert session._contents._observers == ()
        session.sql("DROP SINK top_out")
        over(shop, session).close()
        assert shop.summed() == Counter({(1, 1): 1})
