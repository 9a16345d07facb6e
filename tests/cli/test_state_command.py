"""`deltic state`: output and exit codes."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltic import Session, disk
from deltic.cli import main
from deltic.cli.exits import Exit
from deltic.storage.state import State
from deltic.trace.reading import Reader

SCRIPT = """CREATE TABLE orders (id BIGINT NOT NULL, customer STRING, amount DECIMAL(10,2), PRIMARY KEY (id));
CREATE MATERIALIZED VIEW spend AS SELECT SUM(amount) AS total, customer FROM orders GROUP BY customer;
CREATE MATERIALIZED VIEW large AS SELECT id FROM orders WHERE amount > 2;
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Epoch 0 is empty, 1 has the program, 2 to 6 have two orders more each."""
    folder = tmp_path_factory.mktemp("made") / "orders.state"
    with Session(state=str(folder)) as session:
        session.sql(SCRIPT)
        for i in range(5):
            rows = [{"id": 2 * i + j, "customer": f"customer {j}", "amount": Decimal(i), "_op": "insert"} for j in range(2)]
            session.apply({"orders": pa.Table.from_pylist(rows)}, notes={f"taken:orders:{i}.csv": [100, 1, 2, 2]})
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "orders.state"))


def state(capsys: pytest.CaptureFixture[str], *arguments: object, ends: Exit = Exit.OK) -> str:
    assert main(["state", *map(str, arguments)]) == ends
    out, err = capsys.readouterr()
    return out if ends is Exit.OK or not err else err


def plain(text: str, folder: Path) -> str:
    """Without what differs from run to run."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "TIME", text.replace(str(folder), "FOLDER"))
    return re.sub(r"[0-9a-f]{32}", "ID", re.sub(r"[0-9a-f]{8}-\d{12}-\d{5}-\d{3}-[0-9a-f]{16}", "FILE", text))


def test_ls(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    lines = plain(state(capsys, "ls", folder), folder).splitlines()
    assert re.sub(" +", " ", lines[0]) == "epoch committed generation shards files written state"
    assert [re.sub(" +", " ", line).split(" ", 6)[:5] for line in lines[1:4]] == [
        ["", "0", "TIME", "1", "1"],
        ["", "1", "TIME", "1", "1"],
        ["", "2", "TIME", "1", "1"],
    ]
    output = json.loads(state(capsys, "ls", folder, "--json"))
    assert [line["epoch"] for line in output["epochs"]] == list(range(7))
    assert output["size"]["data_bytes"] == sum(path.stat().st_size for path in (folder / "data").iterdir())


def test_show(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    text = plain(state(capsys, "show", folder), folder)
    assert text.startswith("FOLDER\nepoch 6, committed TIME by generation 1; epochs 0 to 6 can be read\nshards 1, 5 files with ")
    assert re.search(r"^table orders +10 +320 bytes +5 +5 +5$", text, re.MULTILINE)
    assert re.search(r"^view spend +18 +", text, re.MULTILINE)
    assert text.endswith(
        "table orders (id BIGINT, customer STRING, amount DECIMAL(10,2))\n"
        "view spend (total DECIMAL(20,2), customer STRING)\n"
        "view large (id BIGINT)\n"
        "source of orders: read 5 files with 10 rows, 500 bytes\n"
    )
    earlier = json.loads(state(capsys, "show", folder, "--epoch", 3, "--json"))
    assert (earlier["epoch"], earlier["oldest"], earlier["newest"]) == (3, 0, 6)
    first = earlier["arrangements"][0]
    assert (first["kind"], first["name"], first["rows"]) == ("table", "orders", 4)
    assert earlier["sources"] == {"orders": {"files": 2, "rows": 4, "bytes": 200, "cursor": None}}


def test_show_has_defaults(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with Session(state=tmp_path) as session:
        session.sql("CREATE TABLE Orders (id INT, Day DATE DEFAULT current_date); CREATE MATERIALIZED VIEW v AS SELECT Day FROM Orders")
    text = state(capsys, "show", tmp_path)
    assert text.endswith("table Orders (id INT, Day DATE DEFAULT current_date)\nview v (Day DATE)\n")


def test_a_stream_is_called_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with Session(state=tmp_path) as session:
        session.sql("CREATE STREAM e (id INT); CREATE TABLE t (id INT); CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM e")
        session.sql("INSERT INTO e VALUES (1); INSERT INTO t VALUES (1)")
    text = state(capsys, "show", tmp_path)
    assert "\nstream e (id INT)\n" in text and "\ntable t (id INT)\n" in text
    shown = json.loads(state(capsys, "show", tmp_path, "--json"))
    assert list(shown["columns"]) == ["stream e", "table t", "view v"]
    assert [(line["kind"], line["name"]) for line in shown["arrangements"]][:3] == [("table", "t"), ("stream", "e"), ("view", "v")]


def test_verify(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert re.fullmatch(r"7 manifests and 5 files of [\d.]+ kB: no damage\n", state(capsys, "verify", folder))
    (path,) = (folder / "data").glob("*-000000000004-*")
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    text = plain(state(capsys, "verify", folder, "--no-lease", ends=Exit.INPUT), folder)
    assert re.fullmatch(
        r"FILE\.deltic: [a-z ]+ is damaged \(bytes \d+ to \d+\)\n"
        r"  lost: inner state of views, table orders, view spend, at epochs 4 to 6, the last\n"
        r"7 manifests and 5 files of [\d.]+ kB: 1 finding\n",
        text,
    ), text
    output = [json.loads(line) for line in state(capsys, "verify", folder, "--json", ends=Exit.INPUT).splitlines()]
    assert output[0]["file"] == path.name and output[-1]["findings"] == 1


def test_compact_and_gc(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    text = state(capsys, "compact", folder)
    assert re.match(r"\d+ batches became 4\n5 data files and 7 manifests became 9 and 9; added [\d.]+ kB, [\d.]+ kB remain\n", text), text
    assert text.endswith("epochs 0 to 8 can be read\n")
    text = state(capsys, "gc", folder, "--keep", 0)
    assert re.fullmatch(
        r"9 data files and 9 manifests became 4 and 1; freed [\d.]+ kB, [\d.]+ kB remain\nepochs 9 to 9 can be read\n", text
    ), text
    output = json.loads(state(capsys, "gc", folder, "--keep", 0, "--json"))
    assert (output["before"]["files"], output["after"]["files"], output["epochs"], output["batches"]) == (4, 4, [10, 10], [4, 4])
    with Session(state=str(folder)) as session:
        session.sql(SCRIPT)
        assert session.view("spend").to_arrow().sort_by("customer").to_pylist() == [
            {"total": Decimal(10), "customer": "customer 0"},
            {"total": Decimal(10), "customer": "customer 1"},
        ]


def test_export(capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "here"
    assert state(capsys, "export", folder, out) == f"epoch 6\nlarge: 4 rows to {out}/large.parquet\nspend: 2 rows to {out}/spend.parquet\n"
    assert sorted(pq.read_table(out / "large.parquet").column("id").to_pylist()) == [6, 7, 8, 9]
    state(capsys, "export", folder, out, "--view", "SPEND", "--epoch", 3, "--format", "csv")
    assert sorted((out / "spend.csv").read_text().splitlines()) == ['"total","customer"', '1.00,"customer 0"', '1.00,"customer 1"']
    output = json.loads(state(capsys, "export", folder, out, "--view", "large", "--format", "json", "--json"))
    assert output == {"epoch": 6, "views": [{"view": "large", "rows": 4, "file": f"{out}/large.json"}]}
    assert sorted(json.loads(line)["id"] for line in (out / "large.json").read_text().splitlines()) == [6, 7, 8, 9]
    assert not list((folder / "leases").iterdir())


def test_read(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert state(capsys, "read", folder, "LARGE", "--limit", 2) == "id\n6\n7\n4 rows, the first 2 are shown\n"
    text = state(capsys, "read", folder, "large", "--changes", "--limit", 1)
    assert text.split() == ["id", "_weight", "8", "1", "2", "rows,", "the", "first", "1", "are", "shown"]
    text = state(capsys, "read", folder, "spend", "--epoch", 3, "--changes")
    assert text.splitlines()[0].split() == ["total", "customer", "_weight"] and text.endswith("\n4 rows\n")
    rows = [json.loads(line) for line in state(capsys, "read", folder, "spend", "--epoch", 2, "--json").splitlines()]
    assert sorted(row["customer"] for row in rows) == ["customer 0", "customer 1"]
    assert "did you mean spend?" in state(capsys, "read", folder, "spent", ends=Exit.INPUT)


def test_read_decodes_only_the_rows_that_it_shows(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Session(state=tmp_path / "s") as session:
        session.sql("CREATE TABLE t (a INT, b STRING); CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
        session.apply({"t": [{"a": i % 3, "b": f"a text that is longer than a word, {i % 3}", "_weight": 1} for i in range(9)]})
    decoded = []
    table = Reader.table
    monkeypatch.setattr(Reader, "table", lambda reader, words, strings: decoded.append(len(words[0])) or table(reader, words, strings))
    text = state(capsys, "read", tmp_path / "s", "v", "--limit", 4)
    assert (text.splitlines()[-1], sum("longer" in line for line in text.splitlines())) == ("9 rows, the first 4 are shown", 4)
    state(capsys, "read", tmp_path / "s", "v", "--limit", 0)
    assert decoded == [4, 0]


def test_an_export_overwrites_no_file(capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path) -> None:
    (tmp_path / "spend.parquet").write_text("mine")
    assert state(capsys, "export", folder, tmp_path, "--view", "spend", ends=Exit.INPUT) == (
        f"deltic: [DELTIC-6001] {tmp_path}/spend.parquet already exists\n"
        "expected: a name that is free\nhelp: name another folder, or delete the file\n"
    )
    assert (tmp_path / "spend.parquet").read_text() == "mine"


@pytest.mark.parametrize("command", ["ls", "show", "verify", "compact", "gc"])
def test_a_folder_that_is_not_a_state_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str) -> None:
    assert state(capsys, command, tmp_path / "absent", ends=Exit.INPUT) == (
        f"deltic: [DELTIC-5000] {tmp_path}/absent is not a state folder\nexpected: a folder that contains manifests/\n"
        "help: pass the folder that was used as state\n"
    )
    assert not (tmp_path / "absent").exists()


def test_an_unknown_view_and_an_unreadable_epoch(capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path) -> None:
    assert state(capsys, "export", folder, tmp_path, "--view", "spent", ends=Exit.INPUT) == (
        "deltic: [DELTIC-1002] the state has no view spent\nexpected: one of spend, large\nhelp: did you mean spend?\n"
    )
    assert state(capsys, "read", folder, "Orders", ends=Exit.INPUT) == (
        "deltic: [DELTIC-1002] orders is a table of the state, not a view\nexpected: one of spend, large\n"
        "help: deltic sql STATE -c 'SELECT …' reads the rows of a table beside the writer\n"
    )
    assert state(capsys, "show", folder, "--epoch", 9, ends=Exit.INPUT) == (
        f"deltic: [DELTIC-5000] epoch 9 of the state folder {folder} is not readable\nexpected: an epoch from 0 to 6\n"
        "help: choose one of these, or omit the epoch to read the last one\n"
    )


def test_a_state_in_use_is_read_but_not_altered(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    writer = State.open(folder)
    assert "epoch 7" in state(capsys, "show", folder)
    assert "no damage" in state(capsys, "verify", folder)
    for command in ("gc", "compact"):
        assert "is in use by process " in state(capsys, command, folder, ends=Exit.INPUT)
    writer.close()


def test_an_export_has_a_file_for_every_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    names = ["v" * 300, "é" * 120, "a/b", "..", "100%", "CON", "new\nline"]
    with Session(state=str(tmp_path / "state")) as session:
        session.sql(SCRIPT)
        for name in names:
            session.sql(f"CREATE MATERIALIZED VIEW `{name}` AS SELECT id FROM orders")
    out = tmp_path / "out"
    output = json.loads(state(capsys, "export", tmp_path / "state", out, "--format", "csv", "--json"))
    files = {written["view"]: Path(written["file"]) for written in output["views"]}
    assert set(names) < files.keys() and len({path.name for path in files.values()}) == len(files)
    assert all(path.parent == out and path.read_text() == '"id"\n' for name, path in files.items() if name in names)
    index = json.loads((out / "@views.json").read_text())
    assert {name: entry["view"] for name, entry in index.items()} == {path.name: name for name, path in files.items()}
    state(capsys, "export", tmp_path / "state", out, "--view", "spend", "--format", "json")
    assert json.loads((out / "@views.json").read_text()).keys() == index.keys() | {"spend.json"}


def test_an_export_refuses_before_it_writes(capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path) -> None:
    (tmp_path / "spend.parquet").touch()
    state(capsys, "export", folder, tmp_path, ends=Exit.INPUT)
    assert not (tmp_path / "large.parquet").exists()
    (tmp_path / "spend.parquet").unlink()
    (tmp_path / "@views.json").write_text("[]")
    assert "is not an index of exported views" in state(capsys, "export", folder, tmp_path, ends=Exit.INPUT)


def test_a_folder_that_cannot_be_written_is_read_without_a_lease(
    capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(step: str, path: str) -> None:
        if step == "write:before" and Path(path).is_relative_to(folder):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    monkeypatch.setattr(disk, "at", read_only)
    commands: tuple[tuple[object, ...], ...] = (
        ("state", "read", folder, "large"),
        ("state", "export", folder, tmp_path / "out"),
        ("state", "verify", folder),
        ("sql", folder, "-c", "SELECT id FROM large"),
    )
    for command in commands:
        assert main([*map(str, command)]) == Exit.INPUT
        assert capsys.readouterr().err.endswith(
            f"no lease can be taken: the state folder {folder} cannot be written: Read-only file system\n"
            "expected: a folder that this process can read and write\n"
            "help: deltic.open(folder, lease=False), and --no-lease of a command, read without a lease and write nothing\n"
        )
        assert main([*map(str, command), "--no-lease"]) == Exit.OK
        assert capsys.readouterr().out
