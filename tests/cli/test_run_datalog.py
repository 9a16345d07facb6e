"""`deltic run` of a Datalog program whose relations name files: inputs are read, outputs are written, and a state resumes."""

from __future__ import annotations

from pathlib import Path

import pytest

import deltic
from deltic.cli import main
from deltic.cli.exits import Exit

PROGRAM = """
#[source = "csv", path = "in]", header = true, op_column = "op"]
input relation Edge(x: s64, y: s64)
#[sink = "csv", path = "out", mode = "snapshot", header = true]
output relation Path(x: s64, y: s64)
#[sink = "json", path = "changes", mode = "changes"]
output relation Ends(n: usize)
Path(x, y) :- Edge(x, y).
Path(x, z) :- Path(x, y), Edge(y, z).
Ends(n) :- Path(_, y), var n = y.group_by(()).count_distinct().
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "in]").mkdir()
    (tmp_path / "in]" / "1.csv").write_text("op,x,y\ninsert,1,2\ninsert,2,3\n")
    (tmp_path / "graph.dl").write_text(PROGRAM)
    return tmp_path / "graph.dl"


def paths(program: Path) -> list[tuple[int, int]]:
    (file,) = (program.parent / "out").glob("*.csv")
    head, *rows = file.read_text().splitlines()
    assert head == '"x","y"'
    return sorted((int(x), int(y)) for x, y in (row.split(",") for row in rows))


def test_files_are_read_and_written(program: Path) -> None:
    assert main(["run", str(program), "--engine", "embedded"]) == Exit.OK
    assert paths(program) == [(1, 2), (1, 3), (2, 3)]
    (program.parent / "in]" / "2.csv").write_text("op,x,y\ndelete,1,2\ninsert,3,2\n")
    assert main(["run", str(program), "--engine", "embedded"]) == Exit.OK
    assert paths(program) == [(2, 2), (2, 3), (3, 2), (3, 3)]
    assert program.with_suffix(".state").is_dir()
    changes = [line for file in (program.parent / "changes").rglob("*.json") for line in file.read_text().splitlines()]
    assert any('"n":2' in line for line in changes)


def test_a_dry_run_changes_nothing(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(program), "--engine", "embedded", "--dry-run"]) == Exit.OK
    assert "table Edge: 1 files to read with 2 rows" in capsys.readouterr().out
    assert not program.with_suffix(".state").exists()


def test_a_table_of_sql_keeps_its_source(program: Path) -> None:
    table = "CREATE TABLE edge (x BIGINT NOT NULL, y BIGINT NOT NULL) USING csv OPTIONS (path 'in')"
    with pytest.raises(deltic.errors.CatalogError, match="the session has a table edge"):
        deltic.Program(table, program)
