"""What an aggregate function is: its type rule, the state of a group, how the value is computed from that state, and its reference.

One object says all of it, and each of the built-in ones is a file of this room. Plain Python: no NumPy and no kernels, since the oracle
evaluates `reference`. What runs takes from here the declaration of the state (`Linear`, `First`), and, where a value is more than a count,
a total or a mean, the `finish` that computes it from exact sums, one group at a time.

- Linear: what is kept is linear in the weights of the rows, so inserts, deletes, shards and joins only add. Nothing is rounded before
  `finish`, hence nothing drifts.
- First: the rows of the group lie sorted, and the value is that of the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from deltic.errors import Span
from deltic.expr.nodes import Expr, Value
from deltic.schema import Type

Rows = Sequence[tuple[tuple[Value, ...], int]]
"""Argument lists of a group with their weights. NULL is only where the function allows it; with DISTINCT each list once, of weight 1."""

UNIT = 32 * 34
"""A double is a multiple of 2^-UNIT, a product of two one of 2^-(2·UNIT)."""
SPECIAL = 1000
"""Positions from here on count NaN and the infinities."""


@dataclass(frozen=True, slots=True)
class Signature:
    """arguments: the type that each argument is cast to. result: the type of the value; nullable: whether it is NULL over no rows."""

    arguments: tuple[Type, ...]
    result: Type
    nullable: bool = True


MeasureKind = OneOf["count", "int", "bigint", "rounded", "decimal"]
DigitKind = OneOf["real", "product", "bits"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A sum that rides in the weight of a row, as int64 words. NULL counts nothing.

    count: 1 where the argument is not NULL. int: TINYINT to INT as one word. bigint: two limbs.
    rounded: BIGINT rounded to DOUBLE, as AVG sums it, two limbs. decimal: the unscaled number in two limbs (precision ≤ 18) or four.
    Limbs are in order from high to low: x = Σ limb · 2^(32 · i), all but the highest in [0, 2^32).
    """

    kind: MeasureKind
    argument: Expr

    @property
    def width(self) -> int:
        """Words."""
        match self.kind:
            case "count" | "int":
                return 1
            case "bigint" | "rounded":
                return 2
            case "decimal":
                return 2 if self.argument.type.precision <= 18 else 4


@dataclass(frozen=True, slots=True)
class Digits:
    """A sum that is kept as rows of (position, digit), for numbers too wide for the weight. A row with a NULL argument counts nothing.

    real: a DOUBLE, x = Σ digit · 2^(32 · position). product: of two DOUBLEs, exact, likewise; one that is not finite counts nothing.
    bits: of an integer, how many values have the bit `position` set, in the two's complement of the argument's type.
    """

    kind: DigitKind
    arguments: tuple[Expr, ...]


Sum = Measure | Digits


@dataclass(frozen=True, slots=True)
class Totals:
    """The state of a Linear aggregate over one group. count: the rows that count. digits: of each sum, position → digit."""

    count: int
    digits: tuple[Mapping[int, int], ...]

    def integer(self, i: int) -> int:
        """Sum i, of an integer measure; of a decimal one the unscaled number."""
        return sum(digit << 32 * position for position, digit in self.digits[i].items())

    def is_finite(self, i: int) -> bool:
        """Whether neither NaN nor an infinity is among what sum i, a real one, has added."""
        return not any(digit for position, digit in self.digits[i].items() if position >= SPECIAL)

    def real(self, i: int) -> int:
        """Sum i, finite, in units of 2^-UNIT."""
        return sum(digit << 32 * position + UNIT for position, digit in self.digits[i].items() if position < SPECIAL)

    def product(self, i: int) -> int:
        """Sum i, of products, in units of 2^-(2·UNIT)."""
        return sum(digit << 32 * position + 2 * UNIT for position, digit in self.digits[i].items())


Finish = OneOf["count", "total", "mean"] | Callable[[Totals, Signature], Value]
"""count: of the rows. total: the one sum, in the result's type. mean: the total divided by the count. Else the value over count > 0
rows; where the result is not nullable, also over none."""


@dataclass(frozen=True, slots=True)
class Linear:
    """sums: the sums over the arguments. finish: how the value is computed from the sums; called once for each group that changed."""

    sums: Callable[[tuple[Expr, ...]], tuple[Sum, ...]]
    finish: Finish


@dataclass(frozen=True, slots=True)
class First:
    """Argument 0 of the row that comes first by the arguments `order`, each `descending` or not.

    The first of them is not NULL; in the others NULL comes last. Order is total: -0.0 before 0.0, NaN last, strings by their bytes.
    """

    order: tuple[int, ...]
    descending: bool

    def __post_init__(self) -> None:
        assert 0 in self.order


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate function, all of it.

    rule: (name, types of the arguments as written, place) → Signature; raises TypeMismatch. reference: the value over a group by its
    definition, which the oracle uses; over no rows it is not called where the result is nullable, but NULL.
    parameters: how many arguments, at least and (None: any number) at most. optional: the arguments in which NULL counts.
    copies: whether it matters how often a value occurs; where it does not, DISTINCT is dropped.
    never_negative_zero: whether a DOUBLE result cannot be -0.0.
    """

    name: str
    rule: Callable[[str, Sequence[Type], Span | None], Signature]
    state: Linear | First
    reference: Callable[[Rows, Signature], Value]
    aliases: tuple[str, ...] = ()
    parameters: tuple[int, int | None] = (1, 1)
    optional: frozenset[int] = frozenset()
    copies: bool = True
    never_negative_zero: bool = False

    @property
    def takes_negative(self) -> bool:
        """Whether rows may have negative weights: a count, a total and a mean only add them up; else each row is there 0 times or more."""
        return isinstance(self.state, Linear) and isinstance(self.state.finish, str)

    def __post_init__(self) -> None:
        assert all(name.isidentifier() and name == name.lower() for name in (self.name, *self.aliases)), self.name
        assert not (isinstance(self.state, First) and self.copies), "the first row does not depend on copies"
