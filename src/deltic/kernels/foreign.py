"""C functions for kernels: calls by their machine addresses, and the callback by which Arrow returns memory that a kernel has allocated.

No function here needs the GIL, so Arrow may call the callback from any of its threads. Its machine code lives as long as the process:
kernels are never unloaded.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from deltic.kernels.intake import PRIVATE, RELEASE
from deltic.kernels.raw import WORD

ALLOCATE: Final = cast(int, ctypes.cast(ctypes.pythonapi.PyMem_RawMalloc, ctypes.c_void_p).value)
FREE: Final = cast(int, ctypes.cast(ctypes.pythonapi.PyMem_RawFree, ctypes.c_void_p).value)
"""The addresses of Python's functions for memory, which every platform has under these names."""


def _call_c(typing: Any, function: Any, word: Any) -> Any:
    """The word that the C function at an address returns for a word; undefined if it returns void."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.FunctionType(WORD, [WORD]).as_pointer())
        return builder.call(pointer, [arguments[1]])

    return types.int64(types.int64, types.int64), generate


def _release_callback(typing: Any) -> Any:
    """The address of a C function that releases an ArrowArray: it frees its private data, whose first word is the function that does so."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ptrtoint(_release_function(builder.module), WORD)

    return types.int64(), generate


def _release_function(module: ir.Module) -> ir.Function:
    name = "deltic_release"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [WORD.as_pointer()]), name)
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block())
    owned, released = (builder.gep(function.args[0], [ir.Constant(WORD, i)]) for i in (PRIVATE, RELEASE))
    memory = builder.load(owned)
    builder.store(ir.Constant(WORD, 0), released)
    with builder.if_then(builder.icmp_unsigned("!=", memory, ir.Constant(WORD, 0))):
        free = builder.load(builder.inttoptr(memory, WORD.as_pointer()))
        builder.call(builder.inttoptr(free, ir.FunctionType(ir.VoidType(), [WORD]).as_pointer()), [memory])
    builder.ret_void()
    return function


call_c = cast(Callable[[int, int], int], intrinsic(_call_c))
release_callback = cast(Callable[[], int], intrinsic(_release_callback))
