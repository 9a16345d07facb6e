"""Calls from a kernel to other kernels by their machine addresses, and arrays over memory at an address.

A kernel that calls another one by its name is compiled together with it, each time again: for the runner of level programs, which calls
most of them, that takes a minute. By its address a kernel is called as it was compiled for its own callers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.sigutils import normalize_signature
from numba.extending import intrinsic

from deltic.kernels import bounds
from deltic.kernels.build import CHECKED
from deltic.kernels.compiler import KERNELS, part, seal
from deltic.kernels.memory import Words

WORDS = types.Array(types.int64, 1, "C")
_COLUMNS = types.Array(types.int64, 2, "C")


def entry_of(kernel: Any) -> int:
    """The machine address of a kernel with one signature, for `call`; compiles or loads it."""
    function = kernel.__wrapped__ if CHECKED else kernel.py_func  # in the checked build the dispatcher is within a function
    dispatcher, (signature,) = next(declared for declared in KERNELS if declared[0].py_func is function)
    seal(dispatcher, (signature,))
    compiled = dispatcher.overloads[normalize_signature(signature)[0]]
    return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


def _caller(returned: Any) -> Any:
    """What calls the kernel at an address, which returns this type, with a tuple of int64 and of int64 arrays. Raises what it raises."""

    def _call(typing: Any, entry: Any, arguments: Any) -> Any:
        kinds = tuple(types.Array(types.int64, kind.ndim, "C") if isinstance(kind, types.Array) else types.int64 for kind in arguments)

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            convention = context.call_conv
            pointer = builder.inttoptr(values[0], convention.get_function_type(returned, kinds).as_pointer())
            parts = cgutils.unpack_tuple(builder, values[1], len(kinds))
            given = [context.cast(builder, value, kind, wanted) for value, kind, wanted in zip(parts, arguments, kinds, strict=True)]
            status, result = convention.call_function(builder, pointer, returned, kinds, given)
            with cgutils.if_unlikely(builder, status.is_error):
                convention.return_status_propagate(builder, status)
            return result

        return returned(types.int64, arguments), generate

    return intrinsic(_call)


def _view(typing: Any, address: Any, length: Any) -> Any:
    """int64[length] at a machine address; it owns nothing."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = context.make_array(WORDS)(context, builder)
        word = context.get_value_type(types.intp)
        context.populate_array(
            array,
            data=builder.inttoptr(values[0], array.data.type),
            shape=[values[1]],
            strides=[ir.Constant(word, 8)],
            itemsize=ir.Constant(word, 8),
            meminfo=None,
        )
        return array._getvalue()

    return WORDS(types.int64, types.int64), generate


def _cycles(typing: Any) -> Any:
    """The processor's counter of cycles, or another clock that runs evenly."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(64), [])
        return builder.call(builder.module.declare_intrinsic("llvm.readcyclecounter", (), kind), [])

    return types.int64(), generate


@part
def _checked_view(address: int, length: int) -> Words:
    if length <= 0:
        return _array_at(0, 0)
    start = bounds.located(address, 8 * length)
    if start == 0:
        raise bounds.BadAddress(address, 8 * length)
    return _array_at(start, length)


call = cast(Callable[[int, tuple[Any, ...]], int], _caller(types.int64))
call_fixpoint = cast(
    Callable[[int, tuple[Any, ...]], tuple[int, Words, Words, Words, Words]],
    _caller(types.Tuple((types.int64, _COLUMNS, _COLUMNS, _COLUMNS, WORDS))),
)
cycles = cast(Callable[[], int], intrinsic(_cycles))
_array_at = cast(Callable[[int, int], Words], intrinsic(_view))
words_at: Callable[[int, int], Words] = _checked_view if CHECKED else _array_at
"""int64[length] over the memory at `address`, which it does not keep alive."""
