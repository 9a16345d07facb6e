"""Vectors, ARRAYs of FLOATs: their lengths, products and distances."""

from __future__ import annotations

from typing import Final

from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.functions.signature import Parameter, takes
from deltic.expr.nodes import Literal
from deltic.expr.registry import Function
from deltic.expr.rows import vectors as rows
from deltic.schema import FLOAT
from deltic.types import array_type

_VECTOR: Final = Parameter("ARRAY<FLOAT>", lambda t: t if t == array_type(FLOAT) else None)
_DEGREE: Final = Parameter("FLOAT", lambda t: FLOAT if t == FLOAT else None)
_EUCLIDEAN: Final = Literal(2.0, FLOAT)


def _of_two(name: str, run: object) -> Function:
    signature = takes([_VECTOR, _VECTOR], FLOAT, nullable="always")
    return Function(name=name, signature=signature, can_fail=True, rows=run, arrays=per_distinct)  # type: ignore[arg-type]


FUNCTIONS: Final = (
    _of_two("vector_inner_product", rows.inner_product),
    _of_two("vector_l2_distance", rows.distance),
    _of_two("vector_cosine_similarity", rows.cosine),
    Function(
        name="vector_norm",
        signature=takes([_VECTOR, _DEGREE], FLOAT, defaults=[_EUCLIDEAN], nullable="always"),
        can_fail=True,
        rows=rows.norm,
        arrays=per_distinct,
    ),
    Function(
        name="vector_normalize",
        signature=takes([_VECTOR, _DEGREE], array_type(FLOAT), defaults=[_EUCLIDEAN], nullable="always"),
        can_fail=True,
        rows=rows.normalized,
        arrays=per_distinct,
    ),
)
