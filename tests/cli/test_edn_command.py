"""`deltic edn`: a store in a folder, as a user has it from the command line and from scripts."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

import deltic
from deltic.cli import main
from deltic.cli.exits import Exit

SCHEMA = """
{:person/name {:db/valueType :db.type/string :db/unique :db.unique/identity}
 :person/age {:db/valueType :db.type/long}
 :person/friend {:db/valueType :db.type/ref :db/cardinality :db.cardinality/many}
 :person/tag {:db/cardinality :db.cardinality/many}}
"""
FACTS = """
[{:db/id "ann" :person/name "Ann" :person/age 31 :person/tag [:admin 7 "x"]}
 {:person/name "Bob" :person/age 25 :person/friend ["ann" {:person/name "Cat"}]}]
"""
REACHES = """
[[(reaches ?a ?b) [?a :person/friend ?b]]
 [(reaches ?a ?c) [?a :person/friend ?b] (reaches ?b ?c)]]
"""
NAMES = "[:find [?n ...] :where [_ :person/name ?n]]"
FRIENDS = "[:find ?n ?m :where [?e :person/friend ?f] [?e :person/name ?n] [?f :person/name ?m]]"
SCRIPT = f"""
#_(ignored) (rules {REACHES})
(subscribe friends {FRIENDS})
[[:db/retract [:person/name "Bob"] :person/friend [:person/name "Ann"]]
 [:db/add [:person/name "Cat"] :person/friend [:person/name "Ann"]]]
(q [:find [?m ...] :in $ % ?n :where [?e :person/name ?n] (reaches ?e ?f) [?f :person/name ?m]] "Bob")
(q [:find ?n ?a :in $ ?least :where [?e :person/age ?a] [?e :person/name ?n] [(<= ?least ?a)]] 30)
(unsubscribe friends)
[{{:person/name "Dan" :person/friend [:person/name "Ann"]}}]
(schema {{:person/height {{:db/valueType :db.type/double}}}})
(run "more.edn")
exit
(1 2)
"""
OUTPUT = """\
["Bob" "Ann"]
["Bob" "Cat"]
{:name "friends", :weight -1, :row ["Bob" "Ann"]}
{:name "friends", :weight 1, :row ["Cat" "Ann"]}
{:tx T, :tempids {}, :tx-data [[2 :person/friend 1 T false] [3 :person/friend 1 T true]]}
"Ann"
"Cat"
["Ann" 31]
{:tx T, :tempids {}, :tx-data [[4 :person/name "Dan" T true] [4 :person/friend 1 T true]]}
{:tx T, :tempids {}, :tx-data [[4 :person/height 1.5 T true]]}
["Dan" 1.5]
"""


TREE = "[:find (pull ?e [:person/name :person/tag]) . :where [?e :person/age 31]]"
REACHED = "[:find [?m ...] :in $ % ?n :where [?e :person/name ?n] (reaches ?e ?f) [?f :person/name ?m]]"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with files."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"schema": SCHEMA, "facts": FACTS, "reaches": REACHES, "script": SCRIPT}.items():
        (tmp_path / f"{name}.edn").write_text(text)
    (tmp_path / "empty").mkdir()
    return tmp_path


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_a_store_is_created_and_queried(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["edn", "people", "--schema", "schema.edn", "--transact", "facts.edn"]) == Exit.OK
    assert lines(capsys)[0].startswith('{:tx 2, :tempids {"ann" 1}, :tx-data [[1 :person/name "Ann" 2 true]')
    assert main(["edn", "people", "-q", NAMES, "-q", "[:find (count ?e) . :where [?e :person/age]]", "-q", TREE]) == Exit.OK
    assert lines(capsys) == ['"Ann"', '"Bob"', '"Cat"', "2", '{:person/name "Ann", :person/tag ["x" 7 :admin]}']
    with deltic.Session(state=folder / "people") as session:
        opened = session.edn_store("facts")
        assert len(opened.datoms()) == 10 and not session.views


@pytest.mark.slow
def test_options_of_queries(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["edn", "people", "--schema", "schema.edn", "--transact", "facts.edn", "--name", "folk", "--shards", "2"])
    capsys.readouterr()
    assert main(["edn", "people", "-q", TREE, "-q", FRIENDS, "--format", "json", "--name", "folk"]) == Exit.OK
    assert list(map(json.loads, lines(capsys))) == [
        {":person/name": "Ann", ":person/tag": ["x", 7, ":admin"]},
        ["Bob", "Ann"],
        ["Bob", "Cat"],
    ]
    assert main(["edn", "people", "-q", REACHED, "--rules", "reaches.edn", "--input", '"Bob"']) == Exit.OK
    assert lines(capsys) == ['"Ann"', '"Cat"']


def test_a_script_of_queries_transactions_and_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "more.edn").write_text(
        '[{:person/name "Dan" :person/height 1.5}]\n[:find ?n ?h :where [?e :person/name ?n] [?e :person/height ?h]]'
    )
    arguments = ["edn", "people", "--schema", "schema.edn", "--transact", "facts.edn", "--script", "script.edn"]
    assert main(arguments) == Exit.OK
    report, *shown = lines(capsys)
    assert (
        report.startswith("{:tx 2") and [re.sub(r"\b\d+( true| false|, :tempids)", r"T\1", line) for line in shown] == OUTPUT.splitlines()
    )


def test_standard_input_ends_at_an_error(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{FACTS}\n[:find\n ?n :where\n [?e :person/nam ?n]]\n{NAMES}"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main(["edn", "people", "--schema", "schema.edn"]) == Exit.INPUT
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 1
    assert "<stdin>:7:6: the store facts has no attribute :person/nam" in captured.err and "did you mean ':person/name'?" in captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no store nowhere"),
        (["empty"], "the state empty has no store"),
        (["people", "--schema", "facts.edn"], "facts.edn:2:2: the attribute has no name"),
        (["people", "--schema", "schema.edn", "-q", "[:find"], "query:1:1: [ is not closed"),
        (["people", "--schema", "schema.edn", "-q", "facts.edn"], "query:1:1: the query is neither a map nor a vector"),
        (["people", "--schema", "schema.edn", "-q", REACHED], "the query takes rules (%), and none are given"),
        (["people", "--schema", "schema.edn", "-q", NAMES, "--input", "3"], "1 values for 0 inputs"),
    ],
)
def test_what_is_refused(folder: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["edn", *arguments]) == Exit.INPUT
    assert message in capsys.readouterr().err


def test_a_store_over_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = "CREATE TABLE Staff (id BIGINT, `a name` STRING DEFAULT 'Ann', PRIMARY KEY (id))"
    with deltic.Session(state=tmp_path / "state") as session:
        session.sql(f"{table}; INSERT INTO staff (id) VALUES (1)")
        session.edn_store("facts", tables={"staff": "staff"})
    assert main(["edn", str(tmp_path / "state"), "-q", "[:find [?a ...] :where [_ ?a _]]"]) == Exit.OK
    assert capsys.readouterr().out.splitlines() == [":staff/a name", ":staff/id"]
    with deltic.Session(state=tmp_path / "state") as session:
        session.sql(f"{table}; INSERT INTO staff (id) VALUES (2)")
        assert [row["a name"] for row in session.query("SELECT * FROM staff").rows()] == ["Ann", "Ann"]


def test_views_that_a_store_drops_from_its_state_are_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with deltic.Session(state="st") as session:
        session.edn_store("people", schema=SCHEMA).transact(FACTS)
        session.sql("CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT a FROM t; INSERT INTO t VALUES (1)")
    for reported in ("deltic: state st: views dropped: v\n", ""):
        assert main(["edn", "st", "-q", "[:find (max ?a) . :where [_ :person/age ?a]]"]) == Exit.OK
        output = capsys.readouterr()
        assert (output.out, output.err) == ("31\n", reported)
    with deltic.Session(state="st") as session:
        session.sql("CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
        assert session.view("v").rows() == [{"a": 1}]
