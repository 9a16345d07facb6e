"""The shell of `deltic datalog`: what is typed runs, an error does not end it, names are completed, and the history is kept."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output.vt100 import Vt100_Output

import deltic
from deltic.cli import datalog_shell, terminal
from deltic.cli.datalog_commands import CommandRunner
from deltic.cli.datalog_shell import CommandCompleter, converse
from deltic.cli.terminal import history_file
from deltic.session import Datalog
from shells import typed

PROGRAM = """
input relation Likes(a: u32, b: u32)
input relation Person(id: u32)
output relation Friends(a: u32, b: u32)
index ByB(b: u32) on Likes(_, b)
Friends(a, b) :- Likes(a, b), Person(a), Person(b).
"""


@pytest.fixture
def runner() -> Iterator[tuple[CommandRunner, list[str]]]:
    source, lines = Datalog(PROGRAM), list[str]()
    with deltic.Session() as session:
        session.datalog(source)
        yield CommandRunner(session, source.bound(), lines.append), lines


def test_what_is_typed_runs(runner: tuple[CommandRunner, list[str]]) -> None:
    keys = "start;\rinsert Person(1), insert Person(2),\rinsert Likes(1, 2);\rcommit dump_changes;\r\rdump Friends;\rexit;\rdump;\r"
    history = typed(converse, runner[0], keys)
    assert runner[1] == ["Friends:", "Friends{.a = 1, .b = 2}: +1", "Friends{.a = 1, .b = 2}"]
    assert history == [
        "start;",
        "insert Person(1), insert Person(2),\ninsert Likes(1, 2);",
        "commit dump_changes;",
        "dump Friends;",
        "exit;",
    ]


def test_an_error_ends_nothing(runner: tuple[CommandRunner, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    printed = []
    monkeypatch.setattr(terminal, "print_formatted_text", lambda text, **_: printed.extend(text))
    typed(converse, runner[0], "insert Likes(1, 2);\rstart; insert Like(1);\rstar\x03echo on;\r\x04")
    assert runner[1] == ["on"]
    texts = [text for _, text in printed]
    assert any("no transaction is open" in text for text in texts)
    assert any("there is no relation Like" in text for text in texts)
    assert ("ansicyan", "help: did you mean 'Likes'?\n") in printed
    assert printed[0][0] == "ansired bold"


def test_an_error_in_a_terminal_is_red_and_its_remedy_cyan(runner: tuple[CommandRunner, list[str]]) -> None:
    """What a terminal gets, between the prompts."""
    screen = io.StringIO()
    output = Vt100_Output(screen, lambda: Size(24, 100), term="xterm-256color", enable_cpr=False)
    with create_pipe_input() as pipe:
        pipe.send_text("start; insert Like(1, 2);\r\x04")
        converse(runner[0], history=InMemoryHistory(), input=pipe, output=output)
    shown = [
        "\x1b[0;31;1mdeltic: [DELTIC-1002] <terminal>:1:15: there is no relation Like\r\n",
        "\x1b[0m  start; insert Like(1, 2);\r\n                ^^^^\r\n",
        "\x1b[0;36mhelp: did you mean 'Likes'?\r\n\x1b[0m",
    ]
    assert "".join(shown) in screen.getvalue()
    assert screen.getvalue().count("\x1b[0;31;1m") == 1


def test_help_lists_the_commands(runner: tuple[CommandRunner, list[str]]) -> None:
    typed(converse, runner[0], "help;\rhelp\r\x04")
    assert runner[1][0] == runner[1][1]
    assert {line.split("  ")[0] for line in runner[1][0].splitlines()} == {*datalog_shell.COMMANDS}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("s", ["start"]),
        ("start; in", ["insert", "insert_or_update"]),
        ("insert ", ["Likes", "Person"]),
        ("insert L", ["Likes"]),
        ("insert Likes(1, 2), delete P", ["Person"]),
        ("dump ", ["Friends"]),
        ("query_index ", ["ByB"]),
        ("commit ", ["dump_changes"]),
        ("clear F", []),
        ("timestamp ", []),
    ],
)
def test_names_are_completed(runner: tuple[CommandRunner, list[str]], text: str, names: list[str]) -> None:
    completions = CommandCompleter(runner[0]).get_completions(Document(text), CompleteEvent())
    assert [one.text for one in completions] == names


def test_a_completion_replaces_the_word(runner: tuple[CommandRunner, list[str]]) -> None:
    text = "start; insert Per"
    (one,) = CommandCompleter(runner[0]).get_completions(Document(text), CompleteEvent())
    assert text[: len(text) + one.start_position] + one.text == "start; insert Person"


def test_the_history_is_in_the_users_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history_file("datalog") == tmp_path / "deltic" / "datalog_history"
    assert history_file("datalog").parent.is_dir()
