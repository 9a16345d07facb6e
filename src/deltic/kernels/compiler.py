"""How kernels are compiled, and where their machine code is kept.

Owns the register of kernels and their cache folder. A kernel has a fixed signature, given when it is declared, whatever the number of
columns: it takes int64 scalars and contiguous int64 arrays of addresses or state, releases the GIL, and never starts threads.
The cache folder is named by a digest of all kernel sources, numba, Python and the processor: a change in one file can never leave
stale code of another behind, and a folder shared by several machines serves each its own.
Declaring a kernel compiles nothing; its first call, or `warm_up`, does.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import llvmlite.binding
import numba
from numba.core.sigutils import normalize_signature
from numba.extending import register_jitable

F = TypeVar("F", bound=Callable[..., Any])

KERNELS: list[tuple[Any, tuple[str, ...]]] = []
SEALED: set[Any] = set()


if platform.machine() in ("x86_64", "AMD64"):
    # LLVM would turn our selects back into branches, as if data were foreseeable: merging random rows then takes 1.6 times as long.
    llvmlite.binding.set_option("", "--x86-cmov-converter=false")


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    about = (numba.__version__, llvmlite.__version__, sys.version, llvmlite.binding.get_host_cpu_name())
    digest.update(repr(about).encode())
    return digest.hexdigest()[:16]


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _cache_root() -> Path:
    """NUMBA_CACHE_DIR if the user set it, else beside the kernels, else the user's cache folder, else one for this process alone."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    personal = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "deltic"
    candidates = [Path(chosen)] if chosen else []
    for folder in (*candidates, Path(__file__).parent / "__pycache__", personal):
        if _writable(folder):
            return folder
    return Path(tempfile.mkdtemp(prefix="deltic-"))


CACHE = _cache_root() / f"kernels-{_fingerprint()}"


def _dispatcher(function: Callable[..., Any]) -> Any:
    """numba reads its cache folder when it decorates, so only our own functions are cached in ours."""
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(CACHE)
    try:
        return numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    finally:
        numba.config.CACHE_DIR = before


def kernel(*signatures: str) -> Callable[[F], F]:
    """Declares a compiled function by its signature, such as "int64(int64[::1], int64)"."""

    def declare(function: F) -> F:
        dispatcher = _dispatcher(function)
        KERNELS.append((dispatcher, signatures))
        return dispatcher  # type: ignore[no-any-return]

    return declare


def seal(dispatcher: Any, signatures: tuple[str, ...]) -> None:
    """Compiles a kernel, or loads it, for its signatures and forbids all others; does nothing the second time."""
    if dispatcher in SEALED:
        return
    for signature in signatures:
        # By its arguments alone, as at a first call: numba keeps what is compiled with a return type under another name.
        dispatcher.compile(normalize_signature(signature)[0])
    dispatcher.disable_compile()
    SEALED.add(dispatcher)


def part(function: F) -> F:
    """Declares a function that is compiled into the kernels that call it, and runs as plain Python elsewhere."""
    return register_jitable(function)  # type: ignore[no-any-return]
