"""What is installed is what was tested: constraints cover every dependency, and CI runs README's own commands."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import deltic

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REQUIREMENTS = [Requirement(text) for group in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()) for text in group]


def pins() -> dict[str, str]:
    lines = (line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#"))
    return {_normal(name): version for name, _, version in (line.partition("==") for line in lines)}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=str)
def test_a_dependency_has_a_pin_that_fits(requirement: Requirement) -> None:
    assert requirement.specifier.contains(pins()[_normal(requirement.name)])


def test_the_pins_of_pyspark_and_pyarrow() -> None:
    assert pins()["pyspark"].startswith("4.2.")
    assert int(pins()["pyarrow"].split(".")[0]) < 26


def test_the_package_knows_its_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", deltic.__version__)
    assert (ROOT / "CHANGELOG.md").read_text().count("## Unreleased") == 1


def test_the_command_is_installed_under_its_name() -> None:
    try:
        entries = metadata.distribution("deltic").entry_points
    except metadata.PackageNotFoundError:
        pytest.skip("deltic is imported from the source tree, it is not installed")
    assert [(entry.name, entry.value) for entry in entries] == [("deltic", "deltic.cli:main")]


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, ROOT / ".ci" / "readme_command.py", *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("name", "last"), [("main job", ".venv/bin/deltic demo flights"), ("tests", ".venv/bin/pytest -n auto")])
def test_readme_has_each_command_as_one_line_with_its_whole_set_up(name: str, last: str) -> None:
    whole, setup, run = (command(name, *which).stdout.strip() for which in ((), ("setup",), ("last",)))
    assert whole == f"{setup} && {run}"
    assert setup.startswith("python3 -m venv .venv && .venv/bin/pip install -c constraints.txt ")
    assert run == last


def test_a_command_that_readme_lacks_is_an_error() -> None:
    done = command("dance")
    assert done.returncode == 1
    assert "no fenced block after a line `<!-- command: dance -->`" in done.stderr


def test_the_index_of_decisions_lists_each_once() -> None:
    index = (ROOT / "docs" / "adr" / "index.md").read_text()
    listed = re.findall(r"^- \[(.*)\]\((.*\.md)\)(?: \(superseded by (\d{4})\))?$", index, re.MULTILINE)
    pages = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
    assert listed == [_decision(page) for page in pages]
    assert len({page.name[:4] for page in pages}) == len(pages), "two decisions have one number"


def _decision(page: Path) -> tuple[str, str, str]:
    """Its title, its file, and the number of the decision that replaced it, if one did."""
    title, text = page.read_text().split("\n", 1)
    assert title.startswith(f"# {page.name[:4]}. "), f"{page.name} begins with {title!r}; expected '# {page.name[:4]}. TITLE'"
    replaced = re.search(r"^Superseded by (\d{4})\b", text, re.MULTILINE)
    return title.removeprefix("# "), page.name, replaced[1] if replaced else ""
