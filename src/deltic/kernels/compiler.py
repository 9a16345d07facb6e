"""How kernels are compiled. They are kept on disk (`cache.py`).

Owns the register of kernels. A kernel has a fixed signature, given when it is declared, whatever the number of columns: it takes int64
scalars and contiguous int64 arrays of addresses or state, releases the GIL unless it ends at once, and never starts threads.
A kernel is compiled by its first call or by `warm_up`, not where it is declared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from threading import RLock
from typing import Any, Final, TypeVar

import numba
from numba.core.compiler_lock import global_compiler_lock
from numba.core.sigutils import normalize_signature
from numba.extending import register_jitable

from deltic.kernels.bounds import OutOfBounds
from deltic.kernels.build import CHECKED
from deltic.kernels.cache import FOLDER, SHIPPED, KernelCache

F = TypeVar("F", bound=Callable[..., Any])

KERNELS: list[tuple[Any, tuple[str, ...]]] = []
SEALED: set[Any] = set()
_SEALING: Final = RLock()


def _dispatcher(function: Callable[..., Any], signatures: tuple[str, ...], nogil: bool = True) -> Any:
    dispatcher = numba.njit(nogil=nogil, error_model="numpy", boundscheck=CHECKED)(function)
    dispatcher.compile = partial(_compiled, dispatcher)
    if (folder := SHIPPED or FOLDER) is not None:
        dispatcher._cache = KernelCache(function, signatures, folder)
    return dispatcher


def _compiled(dispatcher: Any, signature: Any) -> Any:
    """As `Dispatcher.compile`, which refuses a thread whose first call has waited for the lock while another one sealed the kernel."""
    with global_compiler_lock:
        existing = dispatcher.overloads.get(tuple(normalize_signature(signature)[0]))
        return type(dispatcher).compile(dispatcher, signature) if existing is None else existing.entry_point


def kernel(*signatures: str, sealed: bool = False, nogil: bool = True) -> Callable[[F], F]:
    """Declares a compiled function by its signature, such as "int64(int64[::1], int64)". sealed: compiled, or loaded, at once.

    nogil: False for one that ends at once, since another thread that takes the GIL meanwhile keeps it for up to milliseconds.
    """

    def declare(function: F) -> F:
        dispatcher = _dispatcher(function, signatures, nogil)
        KERNELS.append((dispatcher, signatures))
        if sealed:
            seal(dispatcher, signatures)
        return _blamed(dispatcher) if CHECKED else dispatcher  # type: ignore[no-any-return]

    return declare


def _blamed(dispatcher: Any) -> Any:
    """The kernel, naming itself where it leaves the bounds of an array."""

    @wraps(dispatcher.py_func)
    def call(*arguments: Any) -> Any:
        try:
            return dispatcher(*arguments)
        except IndexError as error:
            raise OutOfBounds(f"kernel {dispatcher.__module__.rpartition('.')[2]}.{dispatcher.__name__}: {error}") from error

    return call


def seal(dispatcher: Any, signatures: tuple[str, ...]) -> None:
    """Compiles a kernel, or loads it, for its signatures and forbids all others; does nothing the second time, also in another thread."""
    with _SEALING:
        if dispatcher in SEALED:
            return
        for signature in signatures:
            # By its arguments alone, as at a first call: numba keeps what is compiled with a return type under another name.
            dispatcher.compile(normalize_signature(signature)[0])
        dispatcher.disable_compile()
        SEALED.add(dispatcher)


def part(function: F) -> F:
    """Declares a function that is compiled into the kernels that call it, and runs as plain Python elsewhere."""
    return register_jitable(boundscheck=CHECKED)(function)  # type: ignore[no-any-return]
