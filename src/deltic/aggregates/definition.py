"""The definition of an aggregate function: its type rule, the state of a group, the computation of the value from the state, a reference.

A function is one object, and each built-in one has a file in this room. Plain Python without NumPy and kernels, since the oracle evaluates
`reference`. The engine uses the declaration of the state (`Linear`, `First`) and, if the value is not a count, a total or a mean, the
`finish` function that computes it from exact sums, one group at a time.

- Linear: the state is linear in the weights of the rows, so inserts, deletes, shards and joins only add. Only `finish` rounds,
  so errors do not accumulate.
- First: the rows of the group are sorted, and the value is that of the first one.
- Commonest: the values of the group are counted, and the value is the one that occurs most often, or made of the first ones by that order.
- Ranked: the values of the group are sorted, and the value is computed from those at given ranks, which are found from the previous ones.
- Listed: the value is computed from all rows of the group, or the first ones in an order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, Self
from typing import Literal as OneOf

from deltic.errors import Span
from deltic.expr.nodes import Expr, Value
from deltic.schema import Type

Direction = tuple[bool, bool]
"""Of a term of an order: whether it descends, and whether NULL comes first."""

Rows = Sequence[tuple[tuple[Value, ...], int]]
"""Argument lists of a group with their weights. NULL occurs only if the function allows it; with DISTINCT each list has weight 1."""

UNIT = 32 * 34
"""A double is a multiple of 2^-UNIT, a product of n doubles one of 2^-(n·UNIT)."""
SPECIAL = 1000
"""Positions from this one on count NaN and the infinities."""


@dataclass(frozen=True, slots=True)
class Signature:
    """arguments: the types that the arguments are cast to. result: the type of the value. nullable: whether it is NULL over no rows.

    directions: for each term of WITHIN GROUP (ORDER BY …), whether it descends, and whether NULL comes first.
    """

    arguments: tuple[Type, ...]
    result: Type
    nullable: bool = True
    directions: tuple[Direction, ...] = ()


MeasureKind = OneOf["count", "int", "bigint", "rounded", "decimal"]
DigitKind = OneOf["real", "product", "bits"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A sum kept as weights of a row, as int64 words. NULL counts as 0.

    count: 1 if the argument is not NULL. int: TINYINT to INT as one word. bigint: two limbs.
    rounded: BIGINT rounded to DOUBLE, as AVG sums it, two limbs. decimal: the unscaled number in two limbs (precision ≤ 18) or four.
    Limbs are ordered from high to low: x = Σ limb · 2^(32 · i), all but the highest in [0, 2^32).
    """

    kind: MeasureKind
    argument: Expr

    @property
    def width(self) -> int:
        """The number of words."""
        match self.kind:
            case "count" | "int":
                return 1
            case "bigint" | "rounded":
                return 2
            case "decimal":
                return 2 if self.argument.type.precision <= 18 else 4


@dataclass(frozen=True, slots=True)
class Digits:
    """A sum kept as rows of (position, digit), for numbers too wide for weights. A row with a NULL argument counts as 0.

    real: a DOUBLE, x = Σ digit · 2^(32 · position). product: the exact product of two to four DOUBLEs, likewise; 0 if one is not finite.
    bits: the number of integers that have the bit `position` set, in the two's complement of the argument's type.
    """

    kind: DigitKind
    arguments: tuple[Expr, ...]


Sum = Measure | Digits


@dataclass(frozen=True, slots=True)
class Totals:
    """The state of a Linear aggregate over one group. count: the number of rows. digits: for each sum, position → digit."""

    count: int
    digits: tuple[Mapping[int, int], ...]

    def integer(self, i: int) -> int:
        """Sum i of an integer measure, or of the unscaled numbers of a decimal one."""
        return sum(digit << 32 * position for position, digit in self.digits[i].items())

    def is_finite(self, i: int) -> bool:
        """Whether sum i, of reals, contains neither NaN nor an infinity."""
        return not any(digit for position, digit in self.digits[i].items() if position >= SPECIAL)

    def real(self, i: int) -> int:
        """Sum i of finite reals, in units of 2^-UNIT."""
        return sum(digit << 32 * position + UNIT for position, digit in self.digits[i].items() if position < SPECIAL)

    def product(self, i: int, factors: int = 2) -> int:
        """Sum i of products of so many factors, in units of 2^-(factors·UNIT)."""
        return sum(digit << 32 * position + factors * UNIT for position, digit in self.digits[i].items())


Finish = OneOf["count", "total", "mean", "try_total", "try_mean"] | Callable[[Totals, Signature], Value]
"""count: the number of rows. total: the only sum, in the result's type. mean: total divided by count. try_total, try_mean: NULL where it
does not fit its type. A function computes the value over at least one row or, if the result is not nullable, over any number."""


class Estimated(Protocol):
    """A number of which an error bound is known; see `circuit/certified.py`."""

    def __add__(self, other: Self) -> Self: ...

    def __sub__(self, other: Self | int) -> Self: ...

    def __mul__(self, other: Self) -> Self: ...

    def __rmul__(self, other: int) -> Self: ...

    def __truediv__(self, other: Self) -> Self: ...

    def sqrt(self) -> Self: ...


@dataclass(frozen=True, slots=True)
class Linear:
    """sums: returns the sums over the arguments. finish: computes the value from the sums, once for each group that changed.

    estimate: the same value of many groups at once, from the number of rows and the sums, Digits of finite numbers, where their count and
    sums define one. Where its bound does not say how the value is rounded, or it divides by 0, `finish` is called.
    """

    sums: Callable[[tuple[Expr, ...]], tuple[Sum, ...]]
    finish: Finish
    estimate: Callable[..., Estimated] | None = None


@dataclass(frozen=True, slots=True)
class First:
    """Argument 0 of the first row in the order of the arguments `order`, all `descending` or not.

    Rows with NULL in the first of them are left out; in others NULL comes last. The order is total: -0.0 before 0.0, NaN last, strings by
    their bytes.
    """

    order: tuple[int, ...]
    descending: bool

    def __post_init__(self) -> None:
        assert 0 in self.order


@dataclass(frozen=True, slots=True)
class Commonest:
    """Argument 0 of the rows in which it is most frequent; among several such values the least, or in a descending order the greatest.

    values: of more than one, the most frequent ones first, the reference makes the result. limit: the constant argument that says how many.
    """

    values: int = 1
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Rank:
    """A place among n sorted values. fraction: from 0 to 1.

    interpolated: at (n - 1) · fraction, linearly between the values around it. Otherwise the first value that has n · fraction values up to
    and including itself.
    """

    fraction: float
    interpolated: bool

    def places(self, n: int) -> tuple[int, int, float]:
        """(the positions of the values around the place, from 0, and the part of the way from the first to the second), for n > 0.

        >>> Rank(0.25, True).places(4), Rank(0.25, False).places(4)
        ((0, 1, 0.75), (0, 0, 0.0))
        """
        if not self.interpolated:
            place = max(math.ceil(n * self.fraction) - 1, 0)
            return place, place, 0.0
        position = (n - 1) * self.fraction
        low = math.floor(position)
        return low, math.ceil(position), position - low


@dataclass(frozen=True, slots=True)
class Ranked:
    """The values of argument 0 at the ranks that the constant argument 1 names; an ARRAY of them if it is one, else one value.

    fraction: the only rank, where the function has no such argument. frequency: the argument that says how often a row counts.
    """

    interpolated: bool
    fraction: float | None = None
    frequency: int | None = None

    def ranks(self, arguments: Sequence[Value]) -> tuple[Rank, ...]:
        """The ranks. arguments: of a call; those that are not constant may be anything."""
        named = self.fraction if self.fraction is not None else arguments[1]
        fractions = named if isinstance(named, tuple) else (named,)
        return tuple(Rank(fraction, self.interpolated) for fraction in fractions if isinstance(fraction, float))


@dataclass(frozen=True, slots=True)
class Listed:
    """The reference over all rows of the group, computed again when one of them changes: costs O(rows of the group).

    first, limit: only the first rows in this order, as many as the constant argument `limit` says; costs O(these rows).
    """

    first: First | None = None
    limit: int | None = None


State = Linear | First | Commonest | Ranked | Listed


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate function.

    rule: (name, types of the written arguments, place) → Signature; raises TypeMismatch. reference: the value over a group by its
    definition, for the oracle; over no rows a nullable result is NULL, and it is not called.
    parameters: the least and greatest (None: any) number of arguments. optional: the arguments that may be NULL in rows that count.
    copies: whether the result depends on how often a value occurs; if not, DISTINCT is dropped.
    never_negative_zero: whether a DOUBLE result cannot be -0.0.
    constants: the arguments that must be constant, each with the values that it takes, in words, and a test for them.
    within: what WITHIN GROUP (ORDER BY …) gives: nothing; argument 0, always ("required") or where it is not written ("value"); or
    arguments after the others, which sort the rows and may be NULL ("rows"); such arguments, but by the order of a window alone ("window").
    variants: the functions for other numbers of arguments.
    always_distinct: a call without DISTINCT is one with it. distinct: whether DISTINCT is accepted.
    distinct_argument: the argument of which a call with DISTINCT reads the distinct values, of the rows in which no argument is NULL; None
    if it reads the distinct rows.
    """

    name: str
    rule: Callable[[str, Sequence[Type], Span | None], Signature]
    state: State
    reference: Callable[[Rows, Signature], Value]
    aliases: tuple[str, ...] = ()
    parameters: tuple[int, int | None] = (1, 1)
    optional: frozenset[int] = frozenset()
    copies: bool = True
    never_negative_zero: bool = False
    constants: Mapping[int, tuple[str, Callable[[Value], bool]]] = field(default_factory=dict, hash=False)
    within: OneOf["nothing", "required", "value", "rows", "window"] = "nothing"
    variants: Mapping[int, AggregateFunction] = field(default_factory=dict, hash=False)
    always_distinct: bool = False
    distinct: bool = True
    distinct_argument: int | None = None

    def of(self, arguments: int) -> AggregateFunction:
        """The function for this number of arguments."""
        return self.variants.get(arguments, self)

    @property
    def takes_negative(self) -> bool:
        """Whether it accepts negative weights: counts, totals and means only add them up."""
        return isinstance(self.state, Linear) and isinstance(self.state.finish, str)

    def __post_init__(self) -> None:
        assert all(name.isidentifier() and name == name.lower() for name in (self.name, *self.aliases)), self.name
        assert not (isinstance(self.state, First) and self.copies), "the first row does not depend on copies"


def _no_rule(name: str, types: Sequence[Type], span: Span | None) -> Signature:
    raise AssertionError(name)


def _no_reference(rows: Rows, signature: Signature) -> Value:
    raise AssertionError(signature)


OF_USERS: Final = AggregateFunction("of_users", _no_rule, Listed(), _no_reference, parameters=(1, None))
"""What all aggregates of users have in common; a call of one has its function."""
