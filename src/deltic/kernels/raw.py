"""Words and bytes at machine addresses, as LLVM loads and stores them, unchecked. Only `memory`, `table` and `bounds` use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

WORD = ir.IntType(64)


def _load(typing: Any, address: Any, index: Any) -> Any:
    """The word at `address` + 8 * `index`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], WORD.as_pointer())
        return builder.load(builder.gep(pointer, [arguments[1]]), align=8)

    return types.int64(types.int64, types.int64), generate


def _store(typing: Any, address: Any, index: Any, word: Any) -> Any:
    """Writes the word at `address` + 8 * `index`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], WORD.as_pointer())
        builder.store(arguments[2], builder.gep(pointer, [arguments[1]]), align=8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _load_int(bits: int) -> Callable[[int], int]:
    """An intrinsic: the integer of `bits` bits at `address`, unaligned, as a word (8 bits: from 0 to 255)."""

    def load_int(typing: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            value = builder.load(pointer, align=1)
            if bits == 64:
                return value
            widen = builder.zext if bits == 8 else builder.sext
            return widen(value, WORD)

        return types.int64(types.int64), generate

    return cast(Callable[[int], int], intrinsic(load_int))


def _store_int(bits: int) -> Callable[[int, int], None]:
    """An intrinsic: writes the lowest `bits` bits of a word at `address`, unaligned."""

    def store_int(typing: Any, address: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = ir.IntType(bits)
            pointer = builder.inttoptr(arguments[0], kind.as_pointer())
            builder.store(builder.trunc(arguments[1], kind), pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return cast(Callable[[int, int], None], intrinsic(store_int))


def _copy(typing: Any, target: Any, source: Any, length: Any) -> Any:
    """Copies `length` bytes between addresses that do not overlap."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointers = [builder.inttoptr(a, ir.IntType(8).as_pointer()) for a in arguments[:2]]
        cgutils.raw_memcpy(builder, *pointers, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _prefetch(typing: Any, address: Any, index: Any) -> Any:
    """Requests the cache line of the word at `address` + 8 * `index`; the address may be invalid."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag]))
        pointer = builder.gep(builder.inttoptr(arguments[0], WORD.as_pointer()), [arguments[1]])
        read, keep, data = ir.Constant(flag, 0), ir.Constant(flag, 3), ir.Constant(flag, 1)
        builder.call(function, [builder.bitcast(pointer, byte), read, keep, data])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def _address_of(typing: Any, array: Any) -> Any:
    """The address of the first element of an array, for as long as the array lives. It counts no reference."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ptrtoint(context.make_array(signature.args[0])(context, builder, arguments[0]).data, WORD)

    return types.int64(array), generate


def _increment(typing: Any, address: Any) -> Any:
    """Adds 1 to the word at `address`, atomically; returns what it was."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", builder.inttoptr(arguments[0], WORD.as_pointer()), ir.Constant(WORD, 1), "monotonic")

    return types.int64(types.int64), generate


load = cast(Callable[[int, int], int], intrinsic(_load))
store = cast(Callable[[int, int, int], None], intrinsic(_store))
load_byte, load_int32, load_unaligned = _load_int(8), _load_int(32), _load_int(64)
store_byte, store_int32 = _store_int(8), _store_int(32)
copy_bytes = cast(Callable[[int, int, int], None], intrinsic(_copy))
prefetch = cast(Callable[[int, int], None], intrinsic(_prefetch))
address_of = cast(Callable[[Any], int], intrinsic(_address_of))
increment = cast(Callable[[int], int], intrinsic(_increment))
