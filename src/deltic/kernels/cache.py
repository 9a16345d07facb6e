"""Where compiled kernels are: precompiled in the package, or in a folder; one file for each kernel and signature (`stored.py`).

A folder is named by a digest of all kernel sources, numba, Python, the processor and the build (`build.py`): a change in one file can
never leave stale code of another, and a folder shared by several machines serves each its own. A file that is torn or damaged is never
loaded: the kernel is compiled again and the file replaced. A folder that another user can write to is not used, since loading runs code.
The package has such a folder too, unless its wheel was built without (`precompile.py`); nothing is written there.
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
from importlib.abc import ResourceLoader
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final, cast

import llvmlite
import llvmlite.binding
import numba
from numba.core import config
from numba.core.sigutils import normalize_signature

from deltic.kernels import processors
from deltic.kernels.build import CHECKED
from deltic.kernels.processors import Processor
from deltic.kernels.stored import Unstorable, checked, decoded, encoded

_log = logging.getLogger(__name__)

SUFFIX: Final = ".kernel"
COMPLETE: Final = "complete"
"""The file that says that the kernels that every session uses were compiled into the folder, and for what."""
PRECOMPILED: Final = "precompiled"
"""The folder of the package that has folders of precompiled kernels."""


def folder_name(processor: Processor) -> str:
    """Of the folder of kernels for a processor."""
    digest = hashlib.sha256()
    for source in sorted(files("deltic.kernels").iterdir(), key=lambda source: source.name):
        if source.name.endswith(".py"):
            digest.update(source.name.encode() + b"\0" + source.read_bytes())
    digest.update(repr((_described(processor), getattr(sys, "abiflags", ""), processor.features, CHECKED)).encode())
    return f"kernels-{digest.hexdigest()[:16]}"


def _described(processor: Processor) -> str:
    versions = f"{sys.implementation.cache_tag}, numba {numba.__version__}, llvmlite {llvmlite.__version__}"
    return f"{processor.name}, {versions}, {llvmlite.binding.get_process_triple()}"


def _shipped() -> Path | None:
    """The package's kernels, possibly in a zip file, if this machine runs them and NUMBA_CPU_NAME asks for no others."""
    processor = processors.portable()
    if processor is None or config.CPU_NAME is not None or not processor.fits():
        return None
    folder = files("deltic.kernels") / PRECOMPILED / folder_name(processor)
    return Path(str(folder)) if folder.joinpath(COMPLETE).is_file() else None


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
    name = folder_name(processors.own())
    root = _root(name)
    if root is None:
        _log.warning("compiled kernels cannot be kept, so each process compiles them: set NUMBA_CACHE_DIR to a folder that can be written")
        return None
    return root / name


SHIPPED: Final = _shipped()
"""The package's folder of precompiled kernels; None if it has none for this machine, Python and numba."""
FOLDER: Final = None if SHIPPED is not None else _folder()
"""The folder of kernels that were compiled here; None if the package has them, or if no folder has all kernels or can be written."""


def complete() -> bool:
    """Whether the usual kernels need not be compiled. One that was damaged since is compiled again when it is used."""
    return SHIPPED is not None or (FOLDER is not None and (FOLDER / COMPLETE).exists())


def unfit() -> list[str]:
    """What the package's precompiled kernels are for, where none of them are used."""
    folder = files("deltic.kernels") / PRECOMPILED
    if SHIPPED is not None or not folder.is_dir():
        return []
    return sorted(each.joinpath(COMPLETE).read_text() for each in folder.iterdir() if each.joinpath(COMPLETE).is_file())


def damaged() -> list[Path]:
    """Files that do not hold the bytes that were written. O(bytes), some 5 MB."""
    folder = SHIPPED or FOLDER
    listed: Traversable | None = FOLDER if SHIPPED is None else files("deltic.kernels") / PRECOMPILED / SHIPPED.name
    if folder is None or listed is None or not listed.is_dir():
        return []
    names = sorted(path.name for path in listed.iterdir() if path.name.endswith(SUFFIX))
    return [folder / name for name in names if _content(folder / name) is None]


def mark_complete() -> None:
    """Notes that the usual kernels are in the folder."""
    if FOLDER is not None and not complete():
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / COMPLETE).write_text(_described(processors.own()))


def on_stderr(line: str) -> None:
    """Tells the user what takes time."""
    print(f"deltic: {line}", file=sys.stderr, flush=True)


def _content(path: Path) -> bytes | None:
    """What was written to the file; None if it is absent or damaged.

    The loader of the package opens a zip file for each read: an open one would have one position in a process and in its forks.
    """
    try:
        if SHIPPED is None:
            return checked(path.read_bytes())
        # Beside this module as it was imported: a loader of "./deltic.zip" does not know "deltic.zip".
        beside = os.path.join(os.path.dirname(__file__), PRECOMPILED, path.parent.name, path.name)
        return checked(cast(ResourceLoader, __spec__.loader).get_data(beside))
    except OSError:
        return None


class KernelCache:
    """The compiled forms of one function, with the interface that numba's dispatchers use.

    numba's own cache unpickles its files, loads damaged ones, and cannot cache code that is imported from a zip file.
    """

    def __init__(self, function: Callable[..., Any], signatures: tuple[str, ...], folder: Path) -> None:
        self._function, self._signatures, self._folder = function, signatures, folder
        self._name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        self._enabled = True

    @property
    def cache_path(self) -> str:
        return str(self._folder)

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        """Nothing: files are replaced when they are damaged, and another source has another folder."""

    def load_overload(self, arguments: Any, target: Any) -> Any:
        """The compiled function; None if it has to be compiled."""
        content = _content(self._folder / self._file(arguments)) if self._enabled else None
        if content is not None:
            return decoded(content, self._function, tuple(arguments), self._returns(arguments), target)
        if complete():  # so this kernel is rare, or its file was damaged
            on_stderr(f"compiling the kernel {self._name}, once on this machine" if FOLDER is not None else self._lost())
        return None

    def save_overload(self, arguments: Any, result: Any) -> None:
        """Writes the compiled function under another name and renames it, so that no reader sees half of it."""
        if not self._enabled or self._folder is SHIPPED:
            return
        try:
            content = encoded(result, self._returns(arguments))
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._folder, suffix=".tmp", delete=False) as file:
                file.write(content)
            os.chmod(file.name, 0o644)
            Path(file.name).replace(self._folder / self._file(arguments))
        except (OSError, Unstorable) as error:
            _log.warning("the compiled kernel %s could not be kept in %s: %s", self._name, self._folder, error)

    def _returns(self, arguments: Any) -> Any:
        """The declared type of the result."""
        declared = (normalize_signature(signature) for signature in self._signatures)
        return next(returns for taken, returns in declared if taken == tuple(arguments))

    def _file(self, arguments: Any) -> str:
        return f"{self._name}-{hashlib.sha256(repr(arguments).encode()).hexdigest()[:16]}{SUFFIX}"

    def _lost(self) -> str:
        return f"compiling the kernel {self._name}, since its precompiled file is damaged: install Deltic again"
