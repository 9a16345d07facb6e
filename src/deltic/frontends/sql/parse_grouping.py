"""The keys of GROUP BY and their grouping sets: aggregationClause of Spark's grammar."""

from __future__ import annotations

from abc import ABC
from itertools import product
from typing import Final

from deltic.errors import SyntaxFailure, Unsupported
from deltic.frontends.sql import tree
from deltic.frontends.sql.parse_expression import ExpressionParser

MOST_SETS: Final = 4096
"""Of one GROUP BY: a CUBE of 12 keys."""
_WITH: Final = (("WITH", "ROLLUP"), ("WITH", "CUBE"))

Sets = tuple[tree.KeyNumbers, ...]


def analytic_sets(word: str, parts: Sets) -> Sets:
    """The sets of ROLLUP or CUBE: prefixes or subsets of the parts, the largest first.

    >>> analytic_sets("ROLLUP", ((0,), (1,))), analytic_sets("CUBE", ((0,), (1,)))
    (((0, 1), (0,), ()), ((0, 1), (0,), (1,), ()))
    """
    if word == "ROLLUP":
        return tuple(sum(parts[:length], ()) for length in reversed(range(len(parts) + 1)))
    chosen = [[i for i in range(len(parts)) if number >> (len(parts) - 1 - i) & 1] for number in reversed(range(1 << len(parts)))]
    return tuple(sum((parts[i] for i in subset), ()) for subset in chosen)


class GroupingParser(ExpressionParser, ABC):
    """Rules for what follows GROUP BY. Sets are listed as numbers of keys, in the order in which Spark makes them."""

    def grouping(self) -> tuple[tuple[tree.Expression, ...], Sets | None]:
        """(the keys, the grouping sets; None if there is only the set of all keys)."""
        keys: list[tree.Expression] = []
        start = self.token.start
        parts = self.several(lambda: self._key_or_sets(keys))
        is_plain = all(len(sets) == 1 for sets, analytic in parts) and not any(analytic for _, analytic in parts)
        if self.sees("GROUPING", "SETS") or any(self.sees(*words) for words in _WITH):
            sets = self._after(keys, is_plain, start)
            return tuple(keys), sets
        if is_plain:
            return tuple(keys), None
        return tuple(keys), self._checked([sum(choice, ()) for choice in product(*(sets for sets, _ in parts))], start)

    def _key_or_sets(self, keys: list[tree.Expression]) -> tuple[Sets, bool]:
        """(its sets, whether it is ROLLUP, CUBE or GROUPING SETS)."""
        if self._sees_analytic():
            return self._analytic(keys), True
        return (self._numbered(keys, self.expression()),), False

    def _sees_analytic(self) -> bool:
        return self.sees("ROLLUP", "(") or self.sees("CUBE", "(") or self.sees("GROUPING", "SETS", "(")

    def _analytic(self, keys: list[tree.Expression]) -> Sets:
        start = self.token.start
        word = self.take().word
        if word == "GROUPING":
            self.expect("SETS")
            self.deeper()
            sets = self.listed(lambda: self._analytic(keys) if self._sees_analytic() else (self._set(keys),))
            self.depth -= 1
            return tuple(one for part in sets for one in part)
        return self._sets_of(word, self.listed(lambda: self._grouping_element(keys, word)), start)

    def _grouping_element(self, keys: list[tree.Expression], word: str) -> tree.KeyNumbers:
        """A set of ROLLUP or CUBE, which has a key."""
        start = self.token.start
        step = self._set(keys)
        if not step:
            remedy = f"leave it out: the sets of {word} include the one without keys"
            raise Unsupported(f"{word} has no empty set", span=self.since(start), remedy=remedy)
        return step

    def _set(self, keys: list[tree.Expression]) -> tree.KeyNumbers:
        """(key, …), or one key."""
        if self.passes("(", ")"):
            return ()
        expression = self.expression()
        if isinstance(expression, tree.RowValue):
            return tuple(number for item in expression.items for number in self._numbered(keys, item))
        return self._numbered(keys, expression)

    @staticmethod
    def _numbered(keys: list[tree.Expression], expression: tree.Expression) -> tree.KeyNumbers:
        keys.append(expression)
        return (len(keys) - 1,)

    def _sets_of(self, word: str, parts: Sets, start: int) -> Sets:
        """The sets of ROLLUP or CUBE, if they are not too many."""
        if word == "CUBE" and 1 << len(parts) > MOST_SETS:
            raise self._too_many(start)
        return analytic_sets(word, parts)

    def _after(self, keys: list[tree.Expression], is_plain: bool, start: int) -> Sets:
        """keys WITH ROLLUP, WITH CUBE or GROUPING SETS (…)."""
        if not is_plain:
            expected = "GROUP BY keys WITH ROLLUP, or GROUP BY ROLLUP (keys)"
            raise SyntaxFailure(f"{self.word} after ROLLUP, CUBE or GROUPING SETS", span=self.span, expected=expected)
        listed = tuple((i,) for i in range(len(keys)))
        if self.passes("GROUPING", "SETS"):
            return self._checked(list(self.listed(lambda: self._set(keys))), start)
        self.expect("WITH")
        return self._checked(list(self._sets_of(self.take().word, listed, start)), start)

    def _checked(self, sets: list[tree.KeyNumbers], start: int) -> Sets:
        if len(sets) > MOST_SETS:
            raise self._too_many(start)
        return tuple(sets)

    def _too_many(self, start: int) -> Unsupported:
        return Unsupported("there are too many grouping sets", span=self.since(start), expected=f"at most {MOST_SETS:,}")
