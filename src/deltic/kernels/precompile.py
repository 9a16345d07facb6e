"""Compiles all kernels for any machine of this one's kind: `python -m deltic.kernels.precompile FOLDER`. About 90 CPU seconds.

The build of a wheel runs it (hatch_build.py) and puts the folder into the package. A machine with another processor, Python or numba finds
no folder there that fits, and compiles.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from deltic.kernels import processors
from deltic.kernels.cache import COMPLETE, FOLDER, SUFFIX, mark_complete, on_stderr
from deltic.kernels.compiler import KERNELS
from deltic.kernels.warm import RARE, USUAL, seal_modules


def precompile(into: Path, *modules: str) -> Path:
    """The folder, below `into`, of the kernels of some modules; by default of all."""
    processor = processors.portable()
    if processor is None:
        raise SystemExit("there is no processor to precompile kernels for on machines of this kind; they compile where they are used")
    with tempfile.TemporaryDirectory() as cache:
        chosen = {
            "NUMBA_CPU_NAME": processor.name,
            "NUMBA_CPU_FEATURES": processor.features,
            "NUMBA_CACHE_DIR": cache,
            "DELTIC_CHECKED": "",
        }
        # In a process of its own, since numba takes its processor from the environment, once.
        code = "import sys; from deltic.kernels import precompile; precompile.fill(*sys.argv[1:])"
        subprocess.run([sys.executable, "-c", code, *modules], env={**os.environ, **chosen}, check=True)
        (folder,) = Path(cache).iterdir()
        return Path(shutil.copytree(folder, into / folder.name))


def fill(*modules: str) -> None:
    """Compiles into this process's folder. Fails if a kernel cannot be kept."""
    chosen = modules or (*USUAL, *RARE)
    seal_modules(*chosen)
    assert FOLDER is not None
    for dispatcher, signatures in KERNELS:
        module = dispatcher.__module__.rpartition(".")[2]
        if module in chosen and len(list(FOLDER.glob(f"{module}.{dispatcher.__name__}-*{SUFFIX}"))) != len(signatures):
            raise SystemExit(f"the kernel {module}.{dispatcher.__name__} could not be kept")
    mark_complete()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m deltic.kernels.precompile", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    on_stderr("compiling all kernels for the wheel; this takes one or two minutes")
    folder = precompile(parser.parse_args().folder)
    on_stderr(f"{sum(path.name != COMPLETE for path in folder.iterdir())} kernels are in {folder}")


if __name__ == "__main__":
    main()
