"""`deltic warm-up`: compiles all kernels, so that no session has to."""

from __future__ import annotations

from deltic import kernels
from deltic.cli.exits import Exit
from deltic.cli.output import emit


def warm_up() -> int:
    """Compile the kernels now, for example when an image is built, and keep them for all sessions on machines of this kind.

    Nothing is compiled if the package has precompiled ones that fit this machine, Python and numba. Compiled ones are kept in
    NUMBA_CACHE_DIR if it is set, otherwise beside the package or in the user's cache folder.
    """
    kernels.warm_up()
    if kernels.SHIPPED is not None:
        emit(f"all kernels are precompiled, in {kernels.SHIPPED}")
        return Exit.OK
    if kernels.FOLDER is None:
        emit("the kernels compile, but no folder is writable to keep them: set NUMBA_CACHE_DIR to a writable one")
        return Exit.SETUP
    emit(f"all kernels are in {kernels.FOLDER}")
    return Exit.OK
