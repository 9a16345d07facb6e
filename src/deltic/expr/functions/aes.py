"""AES_ENCRYPT, AES_DECRYPT and TRY_AES_DECRYPT with the modes GCM, CBC and ECB, by the package `cryptography`, the extra `crypto`.

A result is the initialization vector, which GCM and CBC have, followed by what is encrypted; in GCM its tag comes last. AES_ENCRYPT
requires a vector for GCM and CBC: without one Spark draws it at random, so the same row would give another result each time.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from deltic.errors import EvaluationError, Span, TypeMismatch, Unsupported
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.collating import ignoring
from deltic.expr.failures import invalid
from deltic.expr.functions.signature import BYTES, PLAIN_TEXT, accept, any_nullable, check_count, constant
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.registry import Function, Typed
from deltic.schema import BINARY, STRING

_DEFAULTS: Final = (Literal("GCM", STRING), Literal("DEFAULT", STRING), Literal(b"", BINARY), Literal(b"", BINARY))
_BLOCK: Final = 16
_TAG: Final = 16


class Mode(NamedTuple):
    """A mode of AES: its padding, the bytes of its vector, and whether it authenticates further data."""

    padding: str
    vector: int
    authenticates: bool


MODES: Final = {"GCM": Mode("NONE", 12, True), "CBC": Mode("PKCS", 16, False), "ECB": Mode("PKCS", 0, False)}


def _signature(encrypts: bool) -> Callable[[str, Sequence[Expr], Span | None], Typed]:
    """(data, key[, mode[, padding[, vector[, further data]]]]); AES_DECRYPT has no vector. Mode and padding are constants."""
    parameters = (BYTES, BYTES, PLAIN_TEXT, PLAIN_TEXT, *((BYTES,) if encrypts else ()), BYTES)

    def rule(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
        check_count(name, arguments, 2, len(parameters), span)
        if importlib.util.find_spec("cryptography") is None:
            remedy = "pip install 'deltic[crypto]', on Spark's workers too"
            raise Unsupported(f"{name} requires the package cryptography", span=span, remedy=remedy)
        taken = [accept(name, i, a, p, span) for i, (a, p) in enumerate(zip(arguments, parameters, strict=False), 1)]
        taken += _DEFAULTS[len(taken) - 2 :] if encrypts else (*_DEFAULTS[:2], _DEFAULTS[3])[len(taken) - 2 :]
        mode, padding = (_word(name, i, argument, span) for i, argument in enumerate(taken[2:4], 3))
        taken[2:4] = mode, padding
        if encrypts and mode.value != "ECB" and taken[4] == _DEFAULTS[2]:
            remedy = "give a vector of your own as argument 5, or encrypt before the rows are stored"
            raise Unsupported(f"{name} without an initialization vector draws one at random", span=span, remedy=remedy)
        return Typed(tuple(taken), BINARY, name.lower().startswith("try") or any_nullable(taken))

    return rule


def _word(name: str, position: int, argument: Expr, span: Span | None) -> Literal:
    """A constant in upper case; NULL stays NULL. Raises TypeMismatch."""
    literal = constant(argument)
    if literal is None:
        raise TypeMismatch(f"argument {position} of {name} is not a constant", span=argument.span or span, expected="a STRING")
    return Literal(literal.value.upper() if isinstance(literal.value, str) else None, STRING, literal.span)


def _checked(key: bytes, mode: str, padding: str, further: bytes, span: Span | None) -> Mode:
    """The mode. Raises EvaluationError for what Spark does not support."""
    if len(key) not in (16, 24, 32):
        raise invalid(f"aes: the key has {len(key)} bytes, and not 16, 24 or 32", span)
    properties = MODES.get(mode)
    if properties is None or padding not in ("DEFAULT", properties.padding):
        raise invalid(f"aes: the mode {mode} with the padding {padding} is not one of GCM with NONE, CBC with PKCS, ECB with PKCS", span)
    if further and not properties.authenticates:
        raise invalid(f"aes: the mode {mode} does not authenticate further data", span)
    return properties


def _encrypted(call: Call, data: bytes, key: bytes, mode: str, padding: str, vector: bytes, further: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415  an extra
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
    from cryptography.hazmat.primitives.padding import PKCS7  # noqa: PLC0415

    properties = _checked(key, mode, padding, further, call.span)
    if len(vector) != properties.vector:
        raise invalid(f"aes_encrypt: the vector has {len(vector)} bytes, and not {properties.vector}, for {mode}", call.span)
    if mode == "GCM":
        return vector + AESGCM(key).encrypt(vector, data, further or None)
    padder = PKCS7(8 * _BLOCK).padder()
    cipher = Cipher(algorithms.AES(key), modes.CBC(vector) if mode == "CBC" else modes.ECB()).encryptor()
    return vector + cipher.update(padder.update(data) + padder.finalize()) + cipher.finalize()


def _decrypted(call: Call, data: bytes, key: bytes, mode: str, padding: str, further: bytes) -> bytes:
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415  an extra
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
    from cryptography.hazmat.primitives.padding import PKCS7  # noqa: PLC0415

    properties = _checked(key, mode, padding, further, call.span)
    vector, body = data[: properties.vector], data[properties.vector :]
    failure = invalid(f"{call.function}: the data or the key is invalid for {mode}", call.span)
    if len(vector) < properties.vector or (mode == "GCM" and len(body) < _TAG):
        raise failure
    try:
        if mode == "GCM":
            return AESGCM(key).decrypt(vector, body, further or None)
        if not body:
            return b""  # as Java's ciphers: no block, no padding
        cipher = Cipher(algorithms.AES(key), modes.CBC(vector) if mode == "CBC" else modes.ECB()).decryptor()
        unpadder = PKCS7(8 * _BLOCK).unpadder()
        return unpadder.update(cipher.update(body) + cipher.finalize()) + unpadder.finalize()
    except (InvalidTag, ValueError):
        raise failure from None


def _tried(call: Call, *arguments: bytes) -> bytes | None:
    try:
        return _decrypted(call, *arguments)  # type: ignore[arg-type]
    except EvaluationError:
        return None


FUNCTIONS: Final = (
    Function(name="aes_encrypt", collated=ignoring, signature=_signature(True), can_fail=True, rows=_encrypted, arrays=per_distinct),
    Function(name="aes_decrypt", collated=ignoring, signature=_signature(False), can_fail=True, rows=_decrypted, arrays=per_distinct),
    Function(name="try_aes_decrypt", collated=ignoring, signature=_signature(False), can_fail=False, rows=_tried, arrays=per_distinct),
)
