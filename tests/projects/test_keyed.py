"""create_auto_cdc_flow: the newest event of each key, whatever the order and the batches in which events come."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.errors import DelticError, EvaluationError
from deltic.schema import BIGINT, STRING, Field
from deltic.session import Program
from pipelines_projects import SPEC, NoSpark, planned, written

pytest.importorskip("pyspark.sql.connect.proto")
pytest.importorskip("yaml")

USERS = """
from pyspark import pipelines as dp
from pyspark.sql.functions import col, struct

dp.create_streaming_table("users")
dp.create_auto_cdc_flow(
    target="users", source="users_cdc", keys=["id"], sequence_by=col("at"), apply_as_deletes="op = 'D'", except_column_list=["op", "at"]
)

@dp.materialized_view
def names():
    return spark.table("users").groupBy("name").count()
"""
EVENTS = [Field("id", BIGINT), Field("name", STRING), Field("op", STRING), Field("at", BIGINT)]


def test_late_events_lose_to_newer_ones_and_to_deletes(tmp_path: Path) -> None:
    plan = planned(written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.py": USERS}), NoSpark(*EVENTS))
    assert {key: one.refresh for key, one in plan.datasets.items()} == {"users": "incremental", "names": "incremental"}
    assert list(plan.events) == ["users events"] and plan.datasets["users"].schema.names == ("id", "name")
    draw = random.Random(3)
    newest: dict[int, dict[str, Any]] = {}
    sequence = draw.sample(range(1000), 120)
    with deltic.Session() as session:
        session.program(Program.defined_by(plan.statements()))
        while sequence:
            batch = [
                {"id": draw.randrange(8), "name": draw.choice("abc"), "op": draw.choice("IUD"), "at": sequence.pop()}
                for _ in range(min(len(sequence), draw.randrange(1, 12)))
            ]
            session.apply({"users events": [{**event, "_weight": 1} for event in batch]})
            for event in batch:
                if event["at"] > newest.get(event["id"], {"at": -1})["at"]:
                    newest[event["id"]] = event
            live = [(event["id"], event["name"]) for event in newest.values() if event["op"] != "D"]
            assert sorted((row["id"], row["name"]) for row in session.view("users").rows()) == sorted(live)
            assert sum(row["count"] for row in session.view("names").rows()) == len(live)
        with pytest.raises(EvaluationError, match=r"transformations/a.py:6:4: an event has a NULL as its key, or as its sequence"):
            session.apply({"users events": [{"id": None, "name": "a", "op": "I", "at": 2000, "_weight": 1}]})


@pytest.mark.parametrize("left_out", [["op", "at"], ["op", "at", "rank"]])
def test_the_least_of_events_with_equal_sequences_stays_in_whatever_runs_they_come(tmp_path: Path, left_out: list[str]) -> None:
    text = USERS.replace('["op", "at"]', str(left_out))
    fields = [EVENTS[0], Field("rank", BIGINT), *EVENTS[1:]]
    plan = planned(written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.py": text}), NoSpark(*fields))
    draw = random.Random(5)
    events = [(i % 3, draw.choice([None, 0, 1]), draw.choice([None, "a", "b"]), draw.choice("IUD")) for i in range(24)]
    newest = {key: min((e for e in events if e[0] == key), key=_nulls_first) for key in range(3)}
    for runs in (1, 4, len(events)):
        draw.shuffle(events)
        with deltic.Session() as session:
            session.program(Program.defined_by(plan.statements()))
            for run in range(runs):
                rows = [dict(zip(("id", "rank", "name", "op", "at"), (*event, 7), strict=True)) for event in events[run::runs]]
                session.apply({"users events": [{**row, "_weight": 1} for row in rows]})
            shown = sorted((row["id"], row["name"]) for row in session.view("users").rows())
        assert shown == sorted((key, name) for key, _, name, op in newest.values() if op != "D")


def _nulls_first(event: tuple[Any, ...]) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is not None, str(value)) for value in event)


def test_lines_that_are_added_above_a_flow_do_not_fill_its_view_again(tmp_path: Path) -> None:
    ids = set()
    for above in ("", "# users\n"):
        plan = planned(written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.py": above + USERS}), NoSpark(*EVENTS))
        with deltic.Session(state=tmp_path / "state") as session:
            session.program(Program.defined_by(plan.statements()))
            ids.add(session.view("users")._arrangement)
    assert len(ids) == 1


BAD = {
    'keys=["id"], sequence_by="at", column_list=["name"]': "the key id is not among the columns of the table",
    'keys=["id"], sequence_by="at", column_list=["id"], except_column_list=["op"]': "both column_list and except_column_list",
    'keys=["id"], sequence_by="at", column_list=["id", "nothing"]': "the source users_cdc has no column nothing",
    'keys=[col("users_cdc.id")], sequence_by="at"': "is not a name",
    'keys=["missing"], sequence_by="at"': "missing",
}


@pytest.mark.parametrize("arguments", BAD)
def test_errors_of_the_flow_have_its_place(tmp_path: Path, arguments: str) -> None:
    text = f"""
from pyspark import pipelines as dp
from pyspark.sql.functions import col

dp.create_streaming_table("users")
dp.create_auto_cdc_flow(target="users", source="users_cdc", {arguments})
"""
    with pytest.raises(DelticError) as raised:
        planned(written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.py": text}), NoSpark(*EVENTS))
    assert BAD[arguments] in str(raised.value) and "transformations/a.py:6" in str(raised.value)


def test_the_columns_of_a_view_are_known_without_spark(tmp_path: Path) -> None:
    text = """
from pyspark import pipelines as dp

@dp.temporary_view
def checked():
    return spark.readStream.schema("id BIGINT, name STRING, at BIGINT").json("events").where("id > 0").drop("other")

dp.create_streaming_table("users")
dp.create_auto_cdc_flow(target="users", source="checked", keys=["id"], sequence_by="at")
"""
    spark = NoSpark()
    plan = planned(written(tmp_path, {"spark-pipeline.yml": SPEC, "transformations/a.py": text}), spark)
    assert plan.events["users events"].schema.names == ("id", "name", "at") and spark.questions == 0
