"""The shell of `deltic edn`: what is typed runs, an error does not end it, names are completed, and the history is kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

import deltic
from deltic.cli import terminal
from deltic.cli.edn_commands import COMMANDS, FormRunner
from deltic.cli.edn_shell import FormCompleter, converse
from shells import typed

SCHEMA = "{:p/name {:db/valueType :db.type/string :db/unique :db.unique/identity} :p/friend {:db/valueType :db.type/ref}}"


@pytest.fixture
def runner() -> Iterator[tuple[FormRunner, list[str]]]:
    lines = list[str]()
    with deltic.Session() as session:
        yield FormRunner(session, session.edn_store("people", schema=SCHEMA), lines.append), lines


def test_what_is_typed_runs(runner: tuple[FormRunner, list[str]]) -> None:
    keys = '(subscribe names [:find [?n ...]\r:where [_ :p/name ?n]])\r[{:p/name "Ann"}]\r\r[:find ?n :where [_ :p/name ?n]]\rexit\r[]\r'
    history = typed(converse, runner[0], keys)
    assert runner[1] == [
        '{:name "names", :weight 1, :row ["Ann"]}',
        '{:tx 3, :tempids {}, :tx-data [[1 :p/name "Ann" 3 true]]}',
        '["Ann"]',
    ]
    assert history == [
        "(subscribe names [:find [?n ...]\n:where [_ :p/name ?n]])",
        '[{:p/name "Ann"}]',
        "[:find ?n :where [_ :p/name ?n]]",
        "exit",
    ]
    runner[0].close()
    assert not runner[0].session.views


def test_an_error_ends_nothing(runner: tuple[FormRunner, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    printed = []
    monkeypatch.setattr(terminal, "print_formatted_text", lambda text, **_: printed.extend(text))
    keys = "[:find ?n :where [_ :p/nam ?n]]\r(subscrib a)\r(unsubscribe a)\r(q)\r7\r]\r(rules\x03"
    keys += "(explain [:find ?e :where [?e :p/name]])\r\x04"
    typed(converse, runner[0], keys)
    assert "p/name" in runner[1][0] and len(runner[1]) == 1
    texts = "".join(text for _, text in printed)
    for message in (
        "the store people has no attribute :p/nam",
        "there is no command subscrib",
        "there is no subscription a",
        "q has 0 arguments",
        "7 is neither a query nor a transaction",
        "unmatched ]",
    ):
        assert message in texts
    assert ("ansicyan", "help: did you mean 'subscribe'?\n") in printed and printed[0][0] == "ansired bold"


def test_help_lists_the_commands(runner: tuple[FormRunner, list[str]]) -> None:
    typed(converse, runner[0], "(help)\rhelp\r(schema)\r\x04")
    assert runner[1][0] == runner[1][1] and all(name in runner[1][0] for name in COMMANDS)
    assert runner[1][2:] == [
        ":p/name {:db/valueType :db.type/string, :db/unique :db.unique/identity}",
        ":p/friend {:db/valueType :db.type/ref}",
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[:find ?n :where [?e :p/", [":p/name", ":p/friend", ":p/_friend"]),
        ("[:fin", [":find"]),
        ("[:find ?name :where [?e :p/name ?n", ["?name"]),
        ("(subs", ["subscribe"]),
        ("ex", ["explain", "exit"]),
        ("(q [:find ?e :where (rea", ["reaches"]),
        ("[:find (max", ["max"]),
        ("[:find ?e :where [(clojure.string/starts", ["clojure.string/starts-with?"]),
        ('[{:p/name ":p/', []),
        ("[:find x", []),
    ],
)
def test_names_are_completed(runner: tuple[FormRunner, list[str]], text: str, names: list[str]) -> None:
    runner[0].set_rules("[[(reaches ?a ?b) [?a :p/friend ?b]]]", "rules")
    completions = list(FormCompleter(runner[0]).get_completions(Document(text), CompleteEvent()))
    assert [one.text for one in completions] == names
    assert all((text[: len(text) + one.start_position] + one.text).startswith(text) for one in completions)
