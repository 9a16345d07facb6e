"""The code in README and docs runs, block after block of each page, in an empty folder.

A block after `<!-- run: KIND -->` runs in a process of its own: `shell` in the shell; `s3` in the shell, with an
object store in the environment; `datalog` in the shell, without Spark; `connect` with the address of a Spark Connect server in CONNECT_URL;
`delta` with a Spark that fetches Delta from Maven Central.
"""

from __future__ import annotations

import importlib
import os
import re
import signal
import subprocess
import sys
import unicodedata
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

import deltic
from benchmarks.connect import connect_server
from deltic.cli import app, main
from deltic.runtimes.durable.strings import HASH_VERSION
from deltic.storage.layout import FORMAT_VERSION
from deltic.storage.manifest import LOGGED_VERSION

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SPARK = ROOT / "docs" / "spark.md"
STRICT = ("-eu", "-o", "pipefail", "-c")
_BLOCK = re.compile(r"^(?:<!-- run: (\w+) -->\n)?```(python|sh)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_OPTION = re.compile(r"--[a-z-]+")
COMMANDS = [name for name in app if not name.startswith("-")]
TIMEOUT_S = 300


def blocks(page: Path) -> list[str]:
    """Python to run in this process."""
    return [code for kind, language, code in _BLOCK.findall(page.read_text()) if language == "python" and not kind]


def apart(page: Path, kind: str) -> list[str]:
    """Blocks of a kind."""
    return [code for block_kind, _, code in _BLOCK.findall(page.read_text()) if block_kind == kind]


def run_apart(command: list[str], folder: Path, timeout_s: float = TIMEOUT_S, **environment: str) -> None:
    """Runs a command in a folder, and ends whatever it leaves running."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout_s)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, output[-6000:]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p) and p != SPARK], ids=lambda p: p.name)
def test_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(page, tmp_path, monkeypatch)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_code_of_spark_md_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(SPARK, tmp_path, monkeypatch)


def run(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    names: dict[str, object] = {"__name__": "page"}
    for number, block in enumerate(blocks(page)):
        exec(compile(block, f"{page.name} block {number}", "exec"), names)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("page", [p for p in PAGES if apart(p, "shell")], ids=lambda p: p.name)
def test_what_a_page_does_in_the_shell_works(page: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    run_apart(["bash", *STRICT, "\n".join(apart(page, "shell"))], tmp_path)
    assert list(tmp_path.glob("out/*/changes-*.json"))


def test_what_edn_md_does_in_the_shell_works(tmp_path: Path) -> None:
    (code,) = apart(ROOT / "docs" / "edn.md", "edn")
    run_apart(["bash", *STRICT, code], tmp_path)


def test_what_datalog_md_does_in_the_shell_works(tmp_path: Path) -> None:
    codes = apart(ROOT / "docs" / "datalog.md", "datalog")
    assert len(codes) == 3
    run_apart(["bash", *STRICT, "\n".join(codes)], tmp_path)


@pytest.mark.slow
@pytest.mark.spark
def test_what_spark_md_does_in_an_object_store_works(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        address = "http://{}:{}".format(*server.get_host_and_port())
        with urllib.request.urlopen(urllib.request.Request(f"{address}/bucket", method="PUT"), timeout=30):
            environment = {"AWS_ENDPOINT_URL": address, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
            environment |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "DELTIC_CACHE": str(tmp_path / "cache")}
        before = apart(SPARK, "shell")[0].partition("deltic run")[0]
        run_apart(["bash", *STRICT, "\n".join([before, *apart(SPARK, "s3")])], tmp_path, **environment)
    finally:
        server.stop()
    assert len(list((tmp_path / "out" / "pages").glob("changes-*.json"))) == 1


@pytest.mark.slow
@pytest.mark.spark
def test_what_spark_md_does_through_spark_connect_works(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    (code,) = apart(SPARK, "connect")
    with connect_server(tmp_path) as url:
        run_apart([sys.executable, "-c", code], tmp_path, CONNECT_URL=url)


@pytest.mark.slow
@pytest.mark.spark
def test_what_spark_md_does_with_delta_works(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    (code,) = apart(SPARK, "delta")
    run_apart([sys.executable, "-c", code], tmp_path, 3 * TIMEOUT_S)


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_links_to_headings_lead_somewhere_on_github_and_on_the_site() -> None:
    headings = {page.name: re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE) for page in PAGES}
    for page in PAGES:
        for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
            name = Path(target).name or page.name
            assert anchor in {*map(_on_github, headings[name])} & {*map(_on_the_site, headings[name])}, f"{page.name}: {name}#{anchor}"


def _on_github(heading: str) -> str:
    return re.sub(r"[^\w -]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading)).lower().replace(" ", "-")


def _on_the_site(heading: str) -> str:
    """As Python-Markdown's `slugify`."""
    ascii = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii).strip().lower())


def test_the_api_page_has_the_public_names() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    assert {*re.findall(r"(?:^::: |`)deltic\.(\w+)(?:$|`)", page, re.MULTILINE)} == {*deltic.__all__}


def test_the_api_page_has_the_public_names_of_spark() -> None:
    pytest.importorskip("pyspark")
    page = (ROOT / "docs" / "api.md").read_text()
    assert {*re.findall(r"^::: deltic\.spark\.(\w+)$", page, re.MULTILINE)} == {*importlib.import_module("deltic.spark").__all__}


def test_the_versions_page_has_the_numbers_of_the_state_formats() -> None:
    rows = re.findall(
        r"^\| (manifest format|data file format|string ids) \| (\d+) \|", (ROOT / "docs" / "versions.md").read_text(), re.MULTILINE
    )
    assert rows == [
        ("manifest format", str(LOGGED_VERSION)),
        ("data file format", str(FORMAT_VERSION)),
        ("string ids", str(HASH_VERSION)),
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_the_command_has_the_options_of_its_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    (section,) = re.findall(rf"^## `deltic {name}\b.*?(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    for subcommand in [[name], *([name, part] for part in app[name] if not part.startswith("-"))]:
        assert main([*subcommand, "--help"]) == 0
    options = {*_OPTION.findall(capsys.readouterr().out)} - {"--help", "--version"}
    listed = " ".join(re.findall(r"^(?:## .*|\| `.*?` \|)", section, re.MULTILINE))
    assert {*_OPTION.findall(listed)} <= options <= {*_OPTION.findall(section)}


def test_the_files_that_extending_md_names_exist() -> None:
    page = (ROOT / "docs" / "extending.md").read_text()
    named = set(re.findall(r"`((?:src|tests|docs)/[\w./-]+)`", page)) - {"src/deltic/optimizer/VERB.py"}
    assert len(named) > 25
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
    sections = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert sections == ["A function", "An aggregate", "An operator", "A rule", "A connector", "A front end"]
