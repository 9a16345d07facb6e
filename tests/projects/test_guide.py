"""The code of docs/projects.md: its files are a project, and a dry run says of it what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deltic.cli import main
from pipelines_projects import SPEC, written

PAGE = Path(__file__).parents[2] / "docs" / "projects.md"
BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"(?:#|--) (\S+\.(?:py|sql))\n")


def files_of_page() -> dict[str, str]:
    """The blocks that begin with the name of a file."""
    blocks = BLOCK.findall(PAGE.read_text())
    return {match[1]: block[match.end() :] for block in blocks if (match := FILE.match(block))}


def test_the_project_of_the_page_is_planned_as_the_page_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("yaml")
    files = files_of_page()
    assert set(files) == {"transformations/example_python_materialized_view.py", "transformations/example_sql_materialized_view.sql"}
    spec = written(tmp_path, {"spark-pipeline.yml": SPEC, **files})
    assert main(["pipelines", "dry-run", "--spec", str(spec)]) == 0
    told = re.sub(r"\.(py|sql):\d+", r".\1", capsys.readouterr().out)
    assert sorted(told.splitlines()) == sorted(
        re.sub(r"\.(py|sql):\d+", r".\1", line) for line in PAGE.read_text().splitlines() if ".py:5)" in line or ".sql:1)" in line
    )
