"""`deltic sql`: what statements and commands print, over a session and over a state, and the shell in a terminal."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console

import deltic
from deltic.cli import main, terminal
from deltic.cli.exits import Exit
from deltic.cli.sql_runner import StatementRunner
from deltic.cli.sql_shell import StatementCompleter, converse, is_begun
from deltic.cli.terminal import history_file
from deltic.errors import DelticError, SyntaxFailure, Unsupported
from deltic.session.state_query import StateQueries

DEFINITIONS = """
CREATE TABLE t (id INT PRIMARY KEY, name STRING);
CREATE MATERIALIZED VIEW v AS SELECT name, count(*) AS n FROM t GROUP BY name;
CREATE VIEW w AS SELECT id FROM t;
"""


class Screen:
    """A runner, and what it has printed since the last look."""

    def __init__(self, source: deltic.Session | StateQueries) -> None:
        self._out = io.StringIO()
        self.runner = StatementRunner(source, Console(file=self._out, width=200, highlight=False))
        self.runner.timing = False

    def after(self, text: str) -> list[str]:
        self.runner.run(text)
        lines = [line.strip() for line in self._out.getvalue().splitlines()]
        self._out.seek(0)
        self._out.truncate()
        return [" ".join(line.split()) for line in lines if line.strip("─ ")]


@pytest.fixture
def screen() -> Iterator[Screen]:
    with deltic.Session() as session:
        session.sql(DEFINITIONS)
        yield Screen(session)


def test_statements_and_queries(screen: Screen) -> None:
    assert screen.after("INSERT INTO t VALUES (1, 'a'), (2, NULL); SELECT * FROM t ORDER BY id DESC") == [
        "id name",
        "2 NULL",
        "1 a",
        "2 rows",
    ]
    assert screen.after("FROM t |> WHERE id = 1;") == ["id name", "1 a", "1 row"]
    values = "true AS b, X'0aFF' AS x, array(1, NULL) AS l, named_struct('n', 1, 't', true) AS s, map('k', false) AS m"
    assert screen.after(f"SELECT {values}")[1] == "true X'0AFF' [1, NULL] {1, true} {k -> false}"
    values = "1e16D AS d, TIMESTAMP'2024-01-02 03:04:05.5' AS t, CAST(1.1 AS FLOAT) AS f, INTERVAL '3' MONTH AS m, array(2.0D) AS i"
    assert screen.after(f"SELECT {values}")[1] == "1.0E16 2024-01-02 03:04:05.5 1.1 INTERVAL '3' MONTH [2.0]"
    assert screen.after("(SELECT '[red]' AS a)") == ["a", "[red]", "1 row"]
    assert screen.after("BEGIN") == []
    assert screen.runner.is_open
    assert screen.after("DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (1, 'b')") == []
    assert screen.after("COMMIT; SELECT n, name FROM v ORDER BY name") == ["n name", "1 NULL", "1 b", "2 rows"]
    assert screen.after("BEGIN; DELETE FROM t; ROLLBACK; SELECT count(*) AS n FROM t") == ["n", "2", "1 row"]
    assert not screen.runner.is_open
    for text, message in (("SELECT nope FROM t", "no column 'nope'"), ("ROLLBACK", "ROLLBACK without BEGIN")):
        with pytest.raises(DelticError, match=message):
            screen.after(text)
    assert screen.after("DECLARE least INT = 1; SET VAR least = least + 1; SELECT id FROM t WHERE id = least") == ["id", "2", "1 row"]


def test_a_transaction_outlives_an_error_of_syntax(screen: Screen) -> None:
    screen.after("BEGIN; INSERT INTO t VALUES (1, 'a')")
    for text, message in (("INSERT INTO t VALUES (2, 'b'", "unmatched opening parenthesis"), ("BEGIN", "BEGIN in a transaction")):
        with pytest.raises(SyntaxFailure, match=message):
            screen.after(text)
    with pytest.raises(SyntaxFailure, match="BEGIN without COMMIT"):
        screen.runner.finish()
    assert screen.after("COMMIT; SELECT count(*) AS n FROM t") == ["n", "1", "1 row"]
    screen.runner.finish()


def test_queries_in_a_transaction_see_its_changes(screen: Screen) -> None:
    session = screen.runner._source
    assert isinstance(session, deltic.Session)
    screen.after("INSERT INTO t VALUES (1, 'a'), (2, 'b'); DECLARE least INT = 5")
    screen.after("BEGIN; INSERT INTO t VALUES (3, 'c'); DELETE FROM t WHERE id = 1; SET VAR least = 2")
    assert screen.after("SELECT id FROM t ORDER BY id") == ["id", "2", "3", "2 rows"]
    assert screen.after("SELECT id, least FROM t WHERE id > least") == ["id least", "3 2", "1 row"]
    assert screen.after("SELECT name, n FROM v ORDER BY name") == ["name n", "b 1", "c 1", "2 rows"]
    assert len(session.view("v").rows()) == 2 and session.query("SELECT max(id) AS m FROM t").rows() == [{"m": 2}]
    for text, message in (
        ("INSERT INTO t VALUES ('x', 1, 2)", "does not fit the columns"),
        ("UPDATE t SET nope = 1", "no column"),
        ("CREATE TABLE u (a INT)", "definition"),
    ):
        with pytest.raises(DelticError, match=message):
            screen.after(text)
    screen.after("UPDATE t SET name = 'd' WHERE id = 3")
    assert screen.after("SELECT max(name) AS m FROM t; ROLLBACK; SELECT max(name) AS m, min(least) AS l FROM t") == [
        *("m", "d", "1 row"),
        *("m l", "b 5", "1 row"),
    ]
    assert screen.after("BEGIN; DELETE FROM t; COMMIT; SELECT count(*) AS n FROM t") == ["n", "0", "1 row"]


def test_a_table_that_is_too_wide_is_a_list_of_columns(screen: Screen) -> None:
    numbers = ", ".join(f"{i} AS column_{i}" for i in range(60))
    lines = screen.after(f"SELECT {numbers} UNION ALL SELECT {numbers}")
    assert lines[:3] == ["row 1", "column_0 0", "column_1 1"] and "row 2" in lines and lines[-2:] == ["column_59 59", "2 rows"]
    assert screen.after(f"SELECT * FROM (SELECT {numbers}) LIMIT 0")[:2] == ["column_0", "column_1"]
    assert screen.after("SELECT repeat('x', 300) AS long, 1 AS n")[0] == "long n"


def test_commands(screen: Screen) -> None:
    assert screen.after("\\d") == ["name kind", "t table", "v materialized view", "w view"]
    assert screen.after("SHOW TABLES; DESCRIBE w") == [*screen.after("\\d"), "column type", "id INT NOT NULL"]
    assert screen.after("DESC TABLE t") == screen.after("\\d t") == ["column type", "id INT NOT NULL key", "name STRING"]
    assert "TableInput" not in "".join(screen.after("EXPLAIN v")) and "source" in "".join(screen.after("EXPLAIN VIEW v;"))
    assert "Filter (id#0 > 1)" in (plan := screen.after("EXPLAIN SELECT * FROM t WHERE id > 1")) and "source" in "".join(plan)
    assert "Values (col1)" in "".join(screen.after("EXPLAIN VALUES (1)"))
    assert screen.after("\\timing") == ["timing is on"]
    assert screen.after("DELETE FROM t")[0].endswith("ms")
    assert screen.after("\\?")[0] == "command"
    assert screen.after("help;") == screen.after("\\?")
    assert screen.runner.run("\\q") and screen.runner.run("exit") and screen.runner.run("QUIT;")
    for text, message in (("\\nope", "no command"), ("\\d nope", "no table or view"), ("EXPLAIN w", "not materialized")):
        with pytest.raises(DelticError, match=message):
            screen.after(text)


def test_columns_are_described_with_their_defaults(screen: Screen, tmp_path: Path) -> None:
    table = "CREATE TABLE d (id INT PRIMARY KEY, at DATE NOT NULL DEFAULT\n  current_date, s STRING DEFAULT 'a b')"
    lines = ["column type", "id INT NOT NULL key", "at DATE NOT NULL DEFAULT current_date", "s STRING DEFAULT 'a b'"]
    screen.after(table)
    assert screen.after("DESCRIBE D") == lines
    screen.after("ALTER TABLE d ALTER COLUMN at DROP DEFAULT")
    assert screen.after("\\d d") == [*lines[:2], "at DATE NOT NULL", lines[3]]
    with deltic.Session(state=tmp_path / "state") as session:
        session.sql(table)
    with StateQueries(tmp_path / "state") as state:
        assert Screen(state).after("\\d d") == lines


def test_subscriptions_print_changes(screen: Screen) -> None:
    assert screen.after("SUBSCRIBE v") == []
    assert screen.after("INSERT INTO t VALUES (1, 'a')") == ["v:", "name n _weight", "a 1 1"]
    with pytest.raises(SyntaxFailure, match="not the name of a view"):
        screen.after("SUBSCRIBE v WHERE n > 1")
    assert screen.after("UNSUBSCRIBE v; INSERT INTO t VALUES (2, 'a')") == []


def test_a_state_is_read_beside_its_writer(tmp_path: Path) -> None:
    with deltic.Session(state=tmp_path / "state", shards=2) as session:
        session.sql(DEFINITIONS + "INSERT INTO t VALUES (1, 'a'), (2, 'a'), (3, NULL)")
        with StateQueries(tmp_path / "state") as state:
            screen = Screen(state)
            assert screen.after("\\d") == ["name kind", "t table", "v materialized view"]
            joined = "SELECT t.id, v.n, concat(v.name, '!') AS s FROM t JOIN v USING (name) ORDER BY t.id"
            assert screen.after(joined) == ["id n s", "1 2 a!", "2 2 a!", "2 rows"]
            session.sql("DELETE FROM t WHERE id = 1")
            assert screen.after(joined) == ["id n s", "2 1 a!", "1 row"]
            assert "source" in "".join(screen.after("EXPLAIN SELECT * FROM v WHERE n > 1"))
            with pytest.raises(DelticError, match="the state is only read"):
                screen.after("DELETE FROM t")
            changes = state.changes("v")
            session.sql("INSERT INTO t VALUES (7, 'q')")
            assert next(changes).to_pylist() == [{"name": "q", "n": 1, "_weight": 1}]


def test_streams_and_views_over_them(tmp_path: Path) -> None:
    listed = ["name kind", "e stream", "t table", "v materialized view"]
    with deltic.Session(state=tmp_path / "state", shards=2) as session:
        session.sql("CREATE STREAM e (s STRING); CREATE TABLE t (s STRING); CREATE MATERIALIZED VIEW v AS SELECT s FROM e")
        assert Screen(session).after("SHOW TABLES") == listed
        with StateQueries(tmp_path / "state") as state:
            screen = Screen(state)
            assert screen.after("\\d") == screen.after("SHOW TABLES") == listed
            assert screen.after("\\d v") == ["column type", "s STRING"]
            session.sql("BEGIN; INSERT INTO e VALUES ('a rather long text'), ('b'); INSERT INTO t VALUES ('b'); COMMIT")
            assert screen.after("SELECT v.s FROM v LEFT SEMI JOIN t USING (s)") == ["s", "b", "1 row"]
            session._note({"of": "a source"})
            assert screen.after("SELECT * FROM v ORDER BY s") == ["s", "a rather long text", "b", "2 rows"]
            with pytest.raises(Unsupported, match="the stream e has rows in a tick alone"):
                screen.after("SELECT * FROM e")
            session.sql("INSERT INTO t VALUES ('c')")
            assert screen.after("SELECT * FROM v") == ["s", "0 rows"]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "script.sql"
    script.write_text(DEFINITIONS)
    state = str(tmp_path / "state")
    assert main(["sql", state, "--script", str(script), "-c", "INSERT INTO t VALUES (1, 'a')", "-c", "SELECT n FROM v"]) == Exit.OK
    assert capsys.readouterr().out.split() == ["n", "─", "1", "1", "row"]
    assert main(["sql", state, "-c", "SELECT name FROM v; SELECT id FROM t"]) == Exit.OK
    assert capsys.readouterr().out.split()[-3:] == ["1", "1", "row"]
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1 -- one;\nAS one;\n\\d\nSELECT ';\n' AS two; -- done\nhelp\nSELECT 3 AS three"))
    assert main(["sql"]) == Exit.OK
    words = capsys.readouterr().out.split()
    assert words[0] == "one" and {"two", ";", "command", "three"} <= set(words)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"SELECT '{'x' * 300}' AS a, 1 AS b;\nexit\nSELECT nope;"))
    assert main(["sql"]) == Exit.OK
    assert f"{'x' * 300}   1\n" in capsys.readouterr().out
    assert main(["sql", "-c", "CREATE TABLE t (a INT); BEGIN; INSERT INTO t VALUES (1)"]) == Exit.INPUT
    assert "BEGIN without COMMIT" in capsys.readouterr().err
    assert main(["sql", "-c", "-- a comment\nSELECT 1 AS one"]) == Exit.OK
    assert main(["sql", state, "-c", "DELETE FROM t"]) == Exit.INPUT
    assert "the state is only read" in capsys.readouterr().err
    assert main(["sql", "-c", "SELECT nope"]) == Exit.INPUT
    assert "no column 'nope'" in capsys.readouterr().err
    assert main(["sql", str(tmp_path / "nothing"), "-c", "SELECT 1"]) == Exit.INPUT


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_characters_that_the_terminal_lacks_are_escaped(errors: str, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, "ascii", errors=errors))
    assert main(["sql", "-c", "SELECT 'é' AS s"]) == Exit.OK
    sys.stdout.flush()
    assert b"\\xe9" in raw.getvalue()


def test_the_shell(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = []
    monkeypatch.setattr(terminal, "print_formatted_text", lambda text, **_: printed.extend(text))
    history = InMemoryHistory()
    with create_pipe_input() as pipe:
        pipe.send_text("INSERT INTO t\rVALUES (1, 'a');\rSELECT nope;\rSEL\x03\\d\r\\q\rSELECT 1;\r")
        converse(screen.runner, history=history, input=pipe, output=DummyOutput())
    assert history.get_strings() == ["INSERT INTO t\nVALUES (1, 'a');", "SELECT nope;", "\\d", "\\q"]
    assert any("no column 'nope'" in text for _, text in printed)
    assert screen.after("SELECT count(*) AS n FROM t")[-2:] == ["1", "1 row"]


def test_an_interrupted_statement_ends_no_shell(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[tuple[str, str]] = []
    monkeypatch.setattr(terminal, "print_formatted_text", lambda text, **_: printed.extend(text))
    ran, run = [], screen.runner.run

    def interrupted(text: str) -> bool:
        ran.append(text)
        if len(ran) == 1:
            raise KeyboardInterrupt
        return run(text)

    monkeypatch.setattr(screen.runner, "run", interrupted)
    with create_pipe_input() as pipe:
        pipe.send_text("SELECT 1;\rexit\r")
        converse(screen.runner, history=InMemoryHistory(), input=pipe, output=DummyOutput())
    assert ran == ["SELECT 1;", "exit"]
    assert [text for _, text in printed] == ["interrupted\n"]


@pytest.mark.parametrize(
    ("text", "begun"),
    [
        ("SELECT 1", True),
        ("SELECT 1;", False),
        ("SELECT 1; -- one", False),
        ("SELECT 1 -- one;", True),
        ("SELECT 1; /* one", True),
        ("SELECT ';", True),
        ("SELECT ';\n';", False),
        ("SELECT `a;", True),
        ("SELECT #;", False),
        ("-- one", False),
        (" ", False),
        ("\\d t", False),
        ("help", False),
        ("Exit", False),
    ],
)
def test_a_statement_ends_at_its_semicolon(text: str, begun: bool) -> None:
    assert is_begun(text) == begun


def test_names_are_completed(screen: Screen) -> None:
    completer = StatementCompleter(screen.runner)

    def completed(text: str) -> list[str]:
        return [one.text for one in completer.get_completions(Document(text), CompleteEvent())]

    assert completed("SELECT na") == ["name"]
    assert completed("SELECT count(i") == ["id", "IN", "INSERT", "INTERSECT", "INTO", "IS"]
    assert completed("SELECT count(t.i") == ["id"]
    assert completed("SELECT v.") == ["name", "n"]
    assert completed("SELECT 1 FROM v AS x JOIN t y ON x.n") == ["name", "n"]
    assert completed("SELECT 1 FROM v AS x JOIN t y ON y.") == ["id", "name"]
    assert completed("SELECT q.n") == ["name", "n"]
    screen.after("CREATE TABLE `Odd one` (`a-b` INT)")
    assert completed("SELECT od") == completed("SELECT `od") == ["`Odd one`"]
    assert completed("SELECT a-") == ["`a-b`"]
    assert completed("\\t") == ["\\timing"]
    assert "MATERIALIZED" in completed("CREATE mat")
    assert completed("SELECT ") == []


def test_the_history_has_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history_file("sql") == tmp_path / "deltic" / "sql_history"
    assert history_file("sql").parent.is_dir()


def test_what_a_script_drops_from_a_state_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    source = "CREATE TABLE visits (id INT, page STRING) USING csv OPTIONS (path 'in', header 'true');"
    Path("v.sql").write_text(f"{source} CREATE TABLE kept (a INT); CREATE MATERIALIZED VIEW pages AS SELECT page FROM visits;")
    Path("other.sql").write_text("CREATE TABLE kept (a INT);")
    Path("in").mkdir()
    Path("in/1.csv").write_text("id,page\n1,a\n")
    assert main(["run", "v.sql", "--engine", "embedded"]) == Exit.OK
    capsys.readouterr()
    assert main(["sql", "v.state", "--script", "v.sql", "-c", "SELECT page FROM pages"]) == Exit.OK
    assert capsys.readouterr().err == ""
    assert main(["sql", "v.state", "--script", "other.sql", "-c", "SELECT 1 AS x"]) == Exit.OK
    assert capsys.readouterr().err == "deltic: state v.state: views dropped: pages; tables dropped: visits\n"
    assert main(["sql", "v.state", "--script", "other.sql", "-c", "DROP TABLE kept"]) == Exit.OK
    assert main(["run", "v.sql", "--engine", "embedded"]) == Exit.OK
    first, last = capsys.readouterr().err.splitlines()
    assert "v.state: resumes after epoch " in first and "1 files, rows: visits 1" in last
