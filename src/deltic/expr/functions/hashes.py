"""Hashes: of a string's UTF-8 bytes, and of any values as Spark partitions them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from typing import Final

from deltic.errors import Span
from deltic.expr.arrays import hashes as arrays
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.collating import ignoring
from deltic.expr.functions.signature import BYTES, INTEGER, check_count, takes, wrong_type
from deltic.expr.nodes import Call, Expr, Value
from deltic.expr.registry import Function, Nulls, Signature, Typed
from deltic.expr.rows import hashes as rows
from deltic.schema import BIGINT, INT, STRING, Type

_SHA2: Final = {0: hashlib.sha256, 224: hashlib.sha224, 256: hashlib.sha256, 384: hashlib.sha384, 512: hashlib.sha512}


def _digest(name: str, run: Callable[[bytes], str], aliases: tuple[str, ...] = ()) -> Function:
    return Function(
        name=name,
        aliases=aliases,
        collated=ignoring,
        signature=takes([BYTES], STRING),
        can_fail=False,
        rows=lambda call, data: run(data),
        arrays=per_distinct,
    )


def _sha2(call: Call, data: bytes, bits: int) -> str | None:
    """NULL for a number of bits that SHA-2 does not have."""
    return _SHA2[bits](data).hexdigest() if bits in _SHA2 else None


def _of_values(type: Type) -> Signature:
    """Any arguments, at least one; the hash is never NULL."""

    def rule(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
        check_count(name, arguments, 1, None, span)
        for i, argument in enumerate(arguments, 1):
            if not argument.type.is_ordered:
                raise wrong_type(name, i, argument, "any type without a MAP or a VARIANT", span)
        return Typed(tuple(arguments), type, False)

    return rule


def _folded(run: Callable[[Value, Type, int], int]) -> Callable[..., int]:
    def of_row(call: Call, *values: Value) -> int:
        seed = rows.SEED
        for argument, value in zip(call.arguments, values, strict=True):
            if value is not None:
                seed = run(value, argument.type, seed)
        return seed

    return of_row


_MURMUR3: Final = rows.of_parts(rows.murmur3)
_XXHASH64: Final = rows.of_parts(rows.xxhash64)
FUNCTIONS: Final = (
    _digest("md5", lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest()),
    _digest("sha1", lambda data: hashlib.sha1(data, usedforsecurity=False).hexdigest(), ("sha",)),
    Function(
        name="sha2",
        collated=ignoring,
        signature=takes([BYTES, INTEGER], STRING, nullable="always"),
        can_fail=False,
        rows=_sha2,
        arrays=per_distinct,
    ),
    _digest("base64", lambda data: base64.b64encode(data).decode()),
    Function(
        name="hash",
        collated=ignoring,
        signature=_of_values(INT),
        nulls=Nulls.SEEN,
        can_fail=False,
        rows=_folded(_MURMUR3),
        arrays=arrays.folded(_MURMUR3),
        ignores_sign_of_zero=True,
    ),
    Function(
        name="xxhash64",
        collated=ignoring,
        signature=_of_values(BIGINT),
        nulls=Nulls.SEEN,
        can_fail=False,
        rows=_folded(_XXHASH64),
        arrays=arrays.folded(_XXHASH64),
        ignores_sign_of_zero=True,
    ),
)
