"""Joins as plan nodes: of two relations, and of several by shared variables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Final
from typing import Literal as OneOf

from deltic.errors import Span
from deltic.expr.failing import can_fail
from deltic.expr.nodes import Expr, calls_python
from deltic.plan.node import PlanNode, computed
from deltic.schema import BOOLEAN, NULL, Schema, Type

if TYPE_CHECKING:
    from deltic.plan.nodes import Plan

JoinKind = OneOf["inner", "left", "right", "full", "semi", "anti", "not_in"]
HintKind = OneOf["multiway", "binary"]
TESTS: Final[tuple[JoinKind, ...]] = ("semi", "anti", "not_in")
"""The kinds that test which right rows there are, and have the left columns alone."""

WORD_DIGITS: Final = 18
"""Digits of the widest DECIMAL that is one word."""


@dataclass(frozen=True, slots=True)
class Hint:
    """Requests that an inner join be computed as part of one multiway join with those around it, or as a binary join."""

    kind: HintKind
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Join(PlanNode):
    """An equality join with an optional residual condition over (left, right).

    keys: pairs (expression over left, expression over right) of equal types; a NULL key matches nothing. () is a cross join.
    Each is evaluated on every row of its side, except where `evaluates_pairs`.
    residual: must also be TRUE for two rows to match.
    kind: semi and anti keep left rows with, or without, a match and have left's schema. `not_in` is NOT IN: `value` is the pair
    (left value, right value), and a left row stays iff no right row has its keys, or its value is not NULL and none of the right rows with
    its keys has a NULL or an equal value.
    A left row has a match if the weights of the matching right rows add up to more than 0.
    span: the right relation's place in the text.
    """

    left: Plan
    right: Plan
    kind: JoinKind
    keys: tuple[tuple[Expr, Expr], ...] = ()
    residual: Expr | None = None
    value: tuple[Expr, Expr] | None = None
    hint: Hint | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        assert all(a.type == b.type for a, b in self.keys)
        assert self.residual is None or self.residual.type == BOOLEAN
        assert (self.value is not None) == (self.kind == "not_in")
        assert self.hint is None or self.kind == "inner"

    @computed
    def schema(self) -> Schema:
        if self.kind in TESTS:
            return self.left.schema
        left = self.left.schema.nullable if self.kind in ("right", "full") else self.left.schema
        right = self.right.schema.nullable if self.kind in ("left", "full") else self.right.schema
        return Schema(left.fields + right.fields)

    @computed
    def evaluates_pairs(self) -> bool:
        """Whether the keys, and `value` after the residual, are evaluated on pairs of rows, each where those before it are equal.

        A key that is NULL is not equal to one that fails, whichever is evaluated first. So a subquery that tests existence fails only on
        what it compares. Functions of users are called once for each row.
        """
        exprs = [expr for pair in self.compared for expr in pair]
        return self.kind in TESTS and any(map(can_fail, exprs)) and not any(map(calls_python, exprs))

    @property
    def compared(self) -> tuple[tuple[Expr, Expr], ...]:
        """The keys, and the values of NOT IN."""
        return self.keys if self.value is None else (*self.keys, self.value)


@dataclass(frozen=True, slots=True, eq=False)
class MultiwayJoin(PlanNode):
    """The inner join of several relations by shared variables, over their concatenated columns. Weights multiply.

    variables: for each input, the number of the variable of each column, from 0 in order of appearance. Columns of one variable must be
    equal, and if there are several, not NULL and not -0.0. The columns of one input have different variables.
    output: the columns of the result, ascending. condition: over all columns; must also be TRUE. It cannot fail.
    """

    inputs: tuple[Plan, ...]
    variables: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    condition: Expr | None = None

    def __post_init__(self) -> None:
        assert [len(part.schema) for part in self.inputs] == [len(numbers) for numbers in self.variables]
        assert all(len(set(numbers)) == len(numbers) for numbers in self.variables)
        flat = [variable for numbers in self.variables for variable in numbers]
        assert list(dict.fromkeys(flat)) == list(range(len(set(flat))))
        types: dict[int, set[Type]] = {}
        for variable, column in zip(flat, self.columns, strict=True):
            types.setdefault(variable, set()).add(column.type)
        assert all(len(types[variable]) == 1 and all(map(is_word, types[variable])) for variable in self.shared)
        assert list(self.output) == sorted(set(self.output))
        assert self.condition is None or self.condition.type == BOOLEAN

    @computed
    def columns(self) -> Schema:
        """The columns of all inputs, concatenated."""
        return Schema(tuple(column for part in self.inputs for column in part.schema))

    @computed
    def flat(self) -> tuple[int, ...]:
        """The variable of each column."""
        return tuple(variable for numbers in self.variables for variable in numbers)

    @computed
    def shared(self) -> tuple[int, ...]:
        """The variables that occur in several inputs, ascending."""
        return tuple(sorted(variable for variable, count in Counter(self.flat).items() if count > 1))

    @computed
    def starts(self) -> tuple[int, ...]:
        """For each input the position of its first column."""
        return (0, *accumulate(len(numbers) for numbers in self.variables[:-1]))

    @computed
    def schema(self) -> Schema:
        columns = self.columns
        return Schema(tuple(columns[i] for i in self.output))


def is_word(type_: Type) -> bool:
    """Whether values of the type, except NULL and -0.0, are single words, equal iff the values are: required of shared variables."""
    return not (type_ == NULL or (type_.is_decimal and type_.precision > WORD_DIGITS))
