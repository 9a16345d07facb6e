"""Numbers of two words, the high one with the sign: parts of the kernels over decimals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from deltic.kernels.compiler import part
from deltic.kernels.memory import WORD_MIN


def _high_product(typing: Any, left: Any, right: Any) -> Any:
    """The high word of the product of two unsigned words."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide, word = ir.IntType(128), ir.IntType(64)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)

    return types.int64(types.int64, types.int64), generate


high_product = cast(Callable[[int, int], int], intrinsic(_high_product))


@part
def below(left: int, right: int) -> bool:
    """Whether an unsigned word is less than another."""
    return (left ^ WORD_MIN) < (right ^ WORD_MIN)


@part
def is_less(high: int, low: int, other_high: int, other_low: int) -> bool:
    """Whether an unsigned number is less than another."""
    return below(low, other_low) if high == other_high else below(high, other_high)


@part
def minus(high: int, low: int, other_high: int, other_low: int) -> tuple[int, int]:
    return high - other_high - np.int64(below(low, other_low)), low - other_low


@part
def negated(high: int, low: int) -> tuple[int, int]:
    return ~high + np.int64(low == 0), -low


@part
def magnitude(high: int, low: int) -> tuple[int, int]:
    return negated(high, low) if high < 0 else (high, low)


@part
def is_within(high: int, low: int, bound_high: int, bound_low: int) -> bool:
    """Whether the magnitude of a number is less than a bound, which is positive."""
    high, low = magnitude(high, low)
    return is_less(high, low, bound_high, bound_low)
