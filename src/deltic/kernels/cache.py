"""Where compiled kernels are kept: a folder of files, one for each kernel and signature, each after the digest of its bytes.

The folder is named by a digest of all kernel sources, numba, Python, the processor and the build (`build.py`): a change in one file can
never leave stale code of another, and a folder shared by several machines serves each its own. A file that is torn or damaged is never
loaded: the kernel is compiled again and the file replaced. A folder that another user can write to is not used, since loading runs code.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import llvmlite.binding
import numba
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps, loads

from deltic.kernels.build import CHECKED

_log = logging.getLogger(__name__)

SUFFIX: Final = ".kernel"
COMPLETE: Final = "complete"
"""The file that says that the kernels that every session uses were compiled into the folder."""


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for source in sorted(files("deltic.kernels").iterdir(), key=lambda source: source.name):
        if source.name.endswith(".py"):
            digest.update(source.name.encode() + b"\0" + source.read_bytes())
    about = (numba.__version__, llvmlite.__version__, sys.version, llvmlite.binding.get_host_cpu_name(), CHECKED)
    digest.update(repr(about).encode())
    return digest.hexdigest()[:16]


def _usable(folder: Path) -> bool:
    """Whether files can be written to the folder, and by nobody else."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return _private(folder)
    except OSError:
        return False


def _private(folder: Path) -> bool:
    if platform.system() == "Windows":
        return True  # folders have no such owner, and the candidates are in the user's own folders
    about = folder.stat()
    return about.st_uid in (0, os.geteuid()) and not about.st_mode & stat.S_IWOTH


def _candidates() -> Iterator[Path]:
    """A folder beside the kernels, the user's cache folder, and for users without a home a folder that outlives the process."""
    package = files("deltic.kernels")
    if isinstance(package, Path):
        yield package / "__pycache__"
    if cache := os.environ.get("XDG_CACHE_HOME"):
        yield Path(cache) / "deltic"
    home = os.path.expanduser("~")
    if home != "~":
        yield Path(home) / ".cache" / "deltic"
    if hasattr(os, "geteuid"):
        yield Path("/var/tmp") / f"deltic-{os.geteuid()}"


def _root(name: str) -> Path | None:
    """The first candidate that has all kernels, in an image that may be read-only, or the first that can be written; None if none can.

    NUMBA_CACHE_DIR comes before all others.
    """
    chosen = [Path(folder)] if (folder := os.environ.get("NUMBA_CACHE_DIR")) else []
    if chosen and _usable(chosen[0]):
        return chosen[0]
    candidates = [*chosen, *_candidates()]
    warm = (root for root in candidates if _is_warm(root / name))
    return next(warm, None) or next(filter(_usable, candidates), None)


def _is_warm(folder: Path) -> bool:
    """Whether the usual kernels were compiled into the folder, and nobody else can write to it."""
    try:
        return (folder / COMPLETE).exists() and _private(folder)
    except OSError:
        return False


def _folder() -> Path | None:
    name = f"kernels-{_fingerprint()}"
    root = _root(name)
    if root is None:
        _log.warning("compiled kernels cannot be kept, so each process compiles them: set NUMBA_CACHE_DIR to a folder that can be written")
        return None
    return root / name


FOLDER: Final = _folder()
"""None if no folder has all kernels or can be written."""


def complete() -> bool:
    """Whether the usual kernels were compiled into the folder. One that was damaged since is compiled again when it is used."""
    return FOLDER is not None and (FOLDER / COMPLETE).exists()


def damaged() -> list[Path]:
    """Files that do not hold the bytes that were written. O(bytes), some 5 MB."""
    return [] if FOLDER is None else [path for path in sorted(FOLDER.glob(f"*{SUFFIX}")) if _payload(path) is None]


def mark_complete() -> None:
    """Notes that the usual kernels are in the folder."""
    if FOLDER is not None and not complete():
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / COMPLETE).touch()


def on_stderr(line: str) -> None:
    """Tells the user what takes time."""
    print(f"deltic: {line}", file=sys.stderr, flush=True)


def _payload(path: Path) -> bytes | None:
    """What was written to the file; None if it is absent or damaged."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    digest, payload = content[:32], content[32:]
    return payload if hashlib.sha256(payload).digest() == digest else None


class KernelCache:
    """The compiled forms of one function, with the interface that numba's dispatchers use.

    numba's own cache loads damaged files, and cannot cache code that is imported from a zip file.
    """

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._name, self._folder = f"{function.__module__.rpartition('.')[2]}.{function.__name__}", folder
        self._enabled = True

    @property
    def cache_path(self) -> str:
        return str(self._folder)

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        for path in self._folder.glob(f"{self._name}-*{SUFFIX}"):
            path.unlink(missing_ok=True)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The compiled function; None if it has to be compiled."""
        target.refresh()
        payload = _payload(self._path(signature, target.codegen())) if self._enabled else None
        if payload is not None:
            return CompileResult._rebuild(target, *loads(payload))
        if complete():  # so this kernel is rare, or its file was damaged
            on_stderr(f"compiling the kernel {self._name}, once on this machine")
        return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Writes the compiled function under another name and renames it, so that no reader sees half of it."""
        if not self._enabled:
            return
        payload = dumps(data._reduce())
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._folder, suffix=".tmp", delete=False) as file:
                file.write(hashlib.sha256(payload).digest() + payload)
            os.chmod(file.name, 0o644)
            Path(file.name).replace(self._path(signature, data.codegen))
        except OSError as error:
            _log.warning("the compiled kernel %s could not be kept in %s: %s", self._name, self._folder, error)

    def _path(self, signature: Any, codegen: Any) -> Path:
        digest = hashlib.sha256(repr((signature, codegen.magic_tuple())).encode()).hexdigest()[:16]
        return self._folder / f"{self._name}-{digest}{SUFFIX}"
