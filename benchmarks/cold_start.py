"""The first answer after an installation: `python -m benchmarks.cold_start [--download] [--repeats N]`.

Builds the wheel, installs it into a new environment, and runs README's first example in a new process that finds no compiled kernels.
`first` is that process from its start to its end, `again` the next one, which finds what the first has kept; `parts` says how long the
import takes, and the example after it. `install_s` is `pip install` of the wheel. Its dependencies are those of the environment that
runs the benchmark; with `--download` they come from the package index in the same command.

The case `no_home` is the same where the installation is read-only and the process has neither HOME nor a cache folder from before: in a
mount namespace of its own, for which this process must be root on Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks import harness
from benchmarks.harness import ROOT, Figures

REPEATS: Final = 3
TIMEOUT_S: Final = 600.0
CACHES: Final = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "PYTHONPATH", "HOME")
TIMED: Final = """
import json, sys, time
start = time.perf_counter()
import deltic
imported = time.perf_counter()
exec(compile(open(sys.argv[1]).read(), "README.md", "exec"), {})
print(json.dumps({"import_s": round(imported - start, 3), "example_s": round(time.perf_counter() - imported, 3)}))
"""


def example() -> str:
    """README's first example."""
    return (ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0]


def built_wheel(folder: Path) -> Path:
    """The wheel of the working tree, with precompiled kernels."""
    constraints = str(ROOT / "constraints.txt")  # the kernels are for one version of numba
    asked = {"HATCH_BUILD_HOOK_ENABLE_CUSTOM": "true", "PIP_CONSTRAINT": constraints, "PIP_BUILD_CONSTRAINT": constraints}
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(command, check=True, stdout=sys.stderr, env={**os.environ, **asked})
    (wheel,) = folder.glob("*.whl")
    return wheel


class Installation:
    """The wheel in a new environment. download: with its dependencies from the index."""

    def __init__(self, folder: Path, wheel: Path, *, download: bool) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self.python = folder / "bin" / "python"
        if not download:
            version = f"python{sys.version_info.major}.{sys.version_info.minor}"
            own = folder / "lib" / version / "site-packages"
            (own / "dependencies.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n")
        start = time.perf_counter()
        options = ["-q", "--force-reinstall", *([] if download else ["--no-deps"])]
        subprocess.run([str(self.python), "-m", "pip", "install", *options, str(wheel)], check=True, stdout=sys.stderr)
        self.seconds = time.perf_counter() - start


def process(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Figures:
    """How long a new process takes, and what it says of its parts; absent if it fails."""
    start = time.perf_counter()
    done = subprocess.run(command, env=dict(environment), cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    seconds = time.perf_counter() - start
    if done.returncode:
        return {"absent": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]}
    parts = json.loads(done.stdout.strip().splitlines()[-1])
    return {"s": round(seconds, 2), "parts": parts}


def environment_of(home: Path | None) -> dict[str, str]:
    """This process's, without what leads to compiled kernels or to another copy of Deltic."""
    kept = {name: value for name, value in os.environ.items() if name not in CACHES and not name.startswith("DELTIC")}
    return kept if home is None else {**kept, "HOME": str(home)}


def hidden(commands: Sequence[str], installation: Path) -> list[str]:
    """A shell's commands in a mount namespace: the installation is read-only, and the caches of users without a home are empty."""
    cache = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache"
    steps = [
        f"mount --bind {installation} {installation}",
        f"mount -o remount,bind,ro {installation}",
        "mount -t tmpfs tmpfs /var/tmp",
        f"mkdir -p {cache}",
        f"mount -t tmpfs -o ro tmpfs {cache}",
        *commands,
    ]
    return ["unshare", "--mount", "sh", "-ec", "\n".join(steps)]


def fresh(installation: Installation, script: Path, folder: Path) -> Figures:
    """With a new home: the first process, and the second."""
    environment = environment_of(folder)
    command = [str(installation.python), "-c", TIMED, str(script)]
    return {"first": process(command, environment, folder), "again": process(command, environment, folder)}


def without_home(installation: Installation, script: Path, folder: Path) -> Figures:
    """The first process without a home on the read-only installation."""
    (folder / "timed.py").write_text(TIMED)
    command = hidden([f"exec {installation.python} {folder / 'timed.py'} {script}"], installation.folder)
    return {"first": process(command, environment_of(None), folder)}


CASES: Final = {"fresh": fresh, "no_home": without_home}


def measure(wheel: Path, folder: Path, repeats: int, *, download: bool) -> Figures:
    """Each case in installations of its own; medians of the seconds."""
    script = folder / "example.py"
    script.write_text(example())
    figures: Figures = {}
    for name, case in CASES.items():
        if name == "no_home" and (os.geteuid() != 0 or shutil.which("unshare") is None):
            figures[name] = {"absent": "a mount namespace needs root, and unshare"}
            continue
        runs, installs = [], list[float]()
        for number in range(repeats):
            own = folder / f"{name}{number}"
            own.mkdir()
            installation = Installation(own / "venv", wheel, download=download)
            installs.append(installation.seconds)
            runs.append(case(installation, script, own))
            harness.progress(f"{name}: installed in {installation.seconds:.1f} s, {runs[-1]}")
            shutil.rmtree(own)
        figures[name] = {"install_s": round(statistics.median(installs), 2)}
        for process_name in runs[0]:
            answers = [run[process_name] for run in runs]
            absent = next((answer for answer in answers if "absent" in answer), None)
            figures[name][process_name] = absent or sorted(answers, key=lambda answer: answer["s"])[len(answers) // 2]
        figures[name]["correct"] = not any("absent" in one for run in runs for one in run.values())
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cold_start", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--download", action="store_true", help="install the dependencies from the package index too")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="deltic-cold-") as name:
        folder = Path(name)
        cases = measure(built_wheel(folder), folder, options.repeats, download=options.download)
    correct = all(case.get("correct", True) for case in cases.values())
    params = {"repeats": options.repeats, "download": options.download}
    harness.emit({"benchmark": "cold_start", "engine": "deltic", "params": params, "cases": cases, "correct": correct})


if __name__ == "__main__":
    main()
