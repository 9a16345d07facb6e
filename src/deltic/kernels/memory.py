"""Words in memory: a kernel reaches columns by their addresses, so that one signature serves any number of columns.

An address is an int64. Whoever takes it keeps the array alive and has checked its type (see `table.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

Words = npt.NDArray[np.int64]

WORD_MIN = -(2**63)


def _load(typing: Any, address: Any, index: Any) -> Any:
    """The word at `address` + 8 * `index`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.load(builder.gep(pointer, [arguments[1]]), align=8)

    return types.int64(types.int64, types.int64), generate


def _store(typing: Any, address: Any, index: Any, word: Any) -> Any:
    """Writes the word at `address` + 8 * `index`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        builder.store(arguments[2], builder.gep(pointer, [arguments[1]]), align=8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _prefetch(typing: Any, address: Any, index: Any) -> Any:
    """Asks for the cache line of the word at `address` + 8 * `index`; it need not be there."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag]))
        pointer = builder.gep(builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()), [arguments[1]])
        read, keep, data = ir.Constant(flag, 0), ir.Constant(flag, 3), ir.Constant(flag, 1)
        builder.call(function, [builder.bitcast(pointer, byte), read, keep, data])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def _product_overflows(typing: Any, left: Any, right: Any) -> Any:
    """Whether `left` * `right` leaves 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.extract_value(builder.smul_with_overflow(arguments[0], arguments[1]), 1)

    return types.boolean(types.int64, types.int64), generate


def _choose(typing: Any, condition: Any, one: Any, other: Any) -> Any:
    """`one` if `condition`, else `other`, without a branch: for conditions that no processor can predict.

    LLVM turns other selects back into branches where it takes them for predictable; merging random rows then takes 1.6 times as long.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        chosen = builder.select(*arguments)
        chosen.set_metadata("unpredictable", builder.module.add_metadata([]))
        return chosen

    return types.int64(types.boolean, types.int64, types.int64), generate


load = cast(Callable[[int, int], int], intrinsic(_load))
store = cast(Callable[[int, int, int], None], intrinsic(_store))
product_overflows = cast(Callable[[int, int], bool], intrinsic(_product_overflows))
prefetch = cast(Callable[[int, int], None], intrinsic(_prefetch))
choose = cast(Callable[[bool, int, int], int], intrinsic(_choose))
